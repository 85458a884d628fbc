//! The AMX leaf: detection, tile configuration, and the 32×32 kernel.
//!
//! An fp16 value is exactly hi + lo with both bf16: hi the nearest, lo the rest, |lo| ≤ 2^-8 |hi|. The product is taken as
//! lo·hi + hi·hi + hi·lo; every one of these is exact in fp32, where `tdpbf16ps` adds them up. The dropped lo·lo is at most 2^-16 of
//! the product and 2^-18 typically, far below the 2^-11 of an fp16 result.
#![allow(unsafe_code)]

use std::arch::asm;
use std::marker::PhantomData;
use std::sync::OnceLock;

/// Elements of one packed block of 32 lines × 32 steps of the contraction: hi lines 0..16, hi 16..32, lo 0..16, lo 16..32.
pub(super) const BLOCK: usize = 2048;

/// Results of one kernel call: 32 × 32, row-major.
pub(super) const TILE_LEN: usize = 1024;

/// Proof that this process may use tiles and that the CPU has the AVX-512 sets that packing needs.
#[derive(Clone, Copy)]
pub(super) struct Amx(());

impl Amx {
    /// Asks the CPU and the operating system, once per process.
    pub(super) fn get() -> Option<Amx> {
        static GRANTED: OnceLock<bool> = OnceLock::new();
        GRANTED.get_or_init(|| features() && permission()).then_some(Amx(()))
    }
}

/// CPUID: AMX-TILE and AMX-BF16 (leaf 7, EDX 24 and 22), palette 1 as the kernel assumes it (leaf 1Dh), and the AVX-512 sets.
fn features() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    if __cpuid(0).eax < 0x1d {
        return false;
    }
    let extended = __cpuid_count(7, 0).edx;
    let palette = __cpuid_count(0x1d, 1);
    let (bytes_per_row, tiles, rows) = (palette.ebx & 0xffff, palette.ebx >> 16, palette.ecx & 0xffff);
    extended & (1 << 24) != 0
        && extended & (1 << 22) != 0
        && (bytes_per_row, tiles, rows) == (64, 8, 16)
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bf16")
}

/// Linux hands out the tile state on request: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA), for all threads of the process.
fn permission() -> bool {
    const ARCH_PRCTL: i64 = 158;
    const ARCH_REQ_XCOMP_PERM: u64 = 0x1023;
    const XFEATURE_XTILEDATA: u64 = 18;
    let result: i64;
    // SAFETY: this system call reads and writes no memory of ours; rcx and r11 are what `syscall` clobbers.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL => result,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") XFEATURE_XTILEDATA,
            out("rcx") _,
            out("r11") _,
            options(nostack)
        );
    }
    result == 0
}

#[repr(C, align(64))]
struct Config {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

static CONFIG: Config = Config {
    palette: 1,
    start_row: 0,
    reserved: [0; 14],
    row_bytes: [64, 64, 64, 64, 64, 64, 64, 64, 0, 0, 0, 0, 0, 0, 0, 0],
    rows: [16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0],
};

/// This thread's tiles, configured until dropped. Not held over a wait: a thread that is switched away with tiles in use costs
/// the kernel 8 KiB of state.
pub(super) struct Tiles {
    not_send: PhantomData<*const ()>,
}

impl Tiles {
    pub(super) fn configure(_: Amx) -> Tiles {
        // SAFETY: tiles are permitted (the argument proves it); the configuration is 64 valid bytes.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const CONFIG, options(nostack, readonly)) };
        Tiles { not_send: PhantomData }
    }

    /// acc = rows · columns, or acc += rows · columns, over the blocks of both packed panels.
    ///
    /// # Panics
    /// When the panels are not whole blocks of the same number, at least one, or `acc` is not one tile.
    pub(super) fn multiply(&self, rows: &[u16], columns: &[u16], acc: &mut [f32], add: bool) {
        let blocks = rows.len() / BLOCK;
        assert!(blocks > 0 && rows.len() == blocks * BLOCK && columns.len() == rows.len() && acc.len() == TILE_LEN, "amx: panels");
        // SAFETY: tiles are configured while `self` lives, 16 rows of 64 bytes each. Each of the `blocks` rounds reads 4 KiB of
        // either panel; `acc` is 32 rows of 128 bytes. All tile registers are declared as clobbered.
        unsafe {
            asm!(
                "test {add:e}, {add:e}",
                "jnz 3f",
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "jmp 2f",
                "3:",
                "tileloadd tmm0, [{c} + {ld}]",
                "tileloadd tmm1, [{c} + {ld} + 64]",
                "tileloadd tmm2, [{d} + {ld}]",
                "tileloadd tmm3, [{d} + {ld} + 64]",
                "2:",
                // lo rows · hi columns
                "tileloadd tmm4, [{a} + {s} + 2048]",
                "tileloadd tmm6, [{b} + {s}]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{b} + {s} + 1024]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{a} + {s} + 3072]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                // hi rows · hi columns
                "tileloadd tmm4, [{a} + {s}]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{a} + {s} + 1024]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                // hi rows · lo columns
                "tileloadd tmm6, [{b} + {s} + 2048]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tileloadd tmm7, [{b} + {s} + 3072]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {a}, 4096",
                "add {b}, 4096",
                "dec {n}",
                "jnz 2b",
                "tilestored [{c} + {ld}], tmm0",
                "tilestored [{c} + {ld} + 64], tmm1",
                "tilestored [{d} + {ld}], tmm2",
                "tilestored [{d} + {ld} + 64], tmm3",
                a = inout(reg) rows.as_ptr() => _,
                b = inout(reg) columns.as_ptr() => _,
                n = inout(reg) blocks => _,
                c = in(reg) acc.as_mut_ptr(),
                d = in(reg) acc.as_mut_ptr().add(TILE_LEN / 2),
                s = in(reg) 64usize,
                ld = in(reg) 128usize,
                add = in(reg) u32::from(add),
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack)
            );
        }
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: the tiles were configured by this thread (`Tiles` cannot leave it).
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}
