//! The emulator: MIL in the chip's fp16 arithmetic, on any CPU.
//!
//! *Fast* arithmetic: fp16 storage, one rounding (to nearest, ties to even) at each op's result; matmul and conv with exact products
//! and wide sums, ±inf from 2^15 on (ane-measurements 1.1); elementwise ops overflow at fp16's own limit; no op gives NaN, and one
//! takes NaN for +inf (ane-measurements 1.3); `scaled_dot_product_attention` ignores its mask (ane-facts 5.2).
//!
//! A program is planned once and run many times:
//!
//! ```text
//! mil::Verified ──lower──▶ Graph ──fuse──▶ Units ──place──▶ where values lie ──plan──▶ Steps ──exec──▶ results
//! ```
//!
//! * `lower`: every op of the table becomes a few kinds of nodes, or is refused by name.
//! * `view`: slices, reshapes and transposes are strides; `place`: results are made where they end up; what remains are copies.
//! * `fuse`: elementwise chains run in one pass.
//! * `plan`: steps over slices of ports, constants and one arena, in which memory is reused.
//! * `exec`: the kernels. Fixed chunks: the same bits for any number of threads.
//! * `memory`: the only unsafe code.
//!
//! Beside this stands `fidelity`, which runs whole programs op by op: the chip's own arithmetic as measured, or the language's
//! exact one ([`Arithmetic`]).

mod exec;
mod fidelity;
mod fuse;
mod graph;
mod lower;
mod memory;
mod place;
mod plan;
mod program;
mod view;

use crate::device::{CompileError, Device, DeviceInfo, Program};
use crate::surface::{Memory, SurfaceError};
use crate::{Budget, Port};
use cpu::matmul::Path;
use cpu::{Finish, Pool};
pub use fidelity::Mac;
use fidelity::{FidelityProgram, Rules};
use mil::ops::OpKind;
use mil::{Chip, Profile, Verified};
use program::{EmulatorProgram, Shared};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How the rows of ports are padded in the emulator's report. Code that assumes one of these is caught by the others (programs.md 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowStride {
    /// Not at all.
    Dense,
    /// To a multiple of 64 bytes (ane-facts 4.2).
    #[default]
    Align64,
    /// To a multiple of 128 bytes.
    Align128,
}

impl RowStride {
    fn align(self) -> usize {
        match self {
            RowStride::Dense => 2,
            RowStride::Align64 => 64,
            RowStride::Align128 => 128,
        }
    }
}

/// What an emulator computes with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arithmetic {
    /// Fast enough to train with: exact products, wide sums.
    #[default]
    Fast,
    /// The chip's own as far as it was measured: tiles and grid of the multiply-accumulate, 33-knot activations, narrow `reduce_sum`,
    /// rounding by generation. Slow.
    Fidelity(Mac),
    /// The language's meaning: every op exact, rounded once to its result's type; fp32, integers and IEEE's special values too. Slow.
    Exact,
}

impl Arithmetic {
    /// Whether programs with this op run in it.
    pub fn runs(self, op: OpKind) -> bool {
        match self {
            Arithmetic::Fast => op.is_emulated(),
            Arithmetic::Fidelity(_) | Arithmetic::Exact => fidelity::runs(op),
        }
    }
}

impl fmt::Display for Arithmetic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Arithmetic::Fast => "fast",
            Arithmetic::Fidelity(Mac::Wide) => "fidelity, wide",
            Arithmetic::Fidelity(Mac::Grid) => "fidelity, grid",
            Arithmetic::Exact => "exact",
        })
    }
}

/// What an emulator is made of.
#[derive(Clone, Debug)]
pub struct EmulatorOptions {
    /// The chip that it imitates.
    pub chip: Chip,
    /// The threads that it computes with.
    pub pool: Arc<Pool>,
    /// What it computes with.
    pub arithmetic: Arithmetic,
    /// How the fast arithmetic's matmuls are computed.
    pub matmul: Path,
    /// Compiles that it allows, 119 by default: the 120th fails for good, whatever was released, and failed compiles count
    /// (programs.md 4). The chip counts per process, this per [`Emulator`].
    pub compile_limit: Option<u32>,
    /// Programs that it holds at once, 127 by default: the 128th fails until one is released (programs.md 4).
    pub live_limit: Option<u32>,
    /// How it pads rows.
    pub stride: RowStride,
    /// Takes programs that were verified as language only, with no regard to a chip.
    pub any_profile: bool,
}

impl EmulatorOptions {
    /// The defaults for a chip, on `pool` and the fastest matmul of this CPU.
    pub fn new(chip: Chip, pool: Arc<Pool>) -> EmulatorOptions {
        EmulatorOptions {
            chip,
            pool,
            arithmetic: Arithmetic::Fast,
            matmul: Path::detect(),
            compile_limit: Some(119),
            live_limit: Some(127),
            stride: RowStride::default(),
            any_profile: false,
        }
    }
}

/// The emulator of one chip.
pub struct Emulator {
    info: DeviceInfo,
    options: EmulatorOptions,
    compiles: AtomicU32,
    shared: Arc<Shared>,
}

impl Emulator {
    /// An emulator with nothing compiled yet.
    pub fn new(options: EmulatorOptions) -> Emulator {
        let info = DeviceInfo {
            name: "emulator".into(),
            chip: options.chip,
            arithmetic: match options.arithmetic {
                Arithmetic::Fast => format!("fast, matmul {}", options.matmul),
                other => other.to_string(),
            },
        };
        // Subnormals in the multiply-accumulate: flushed on M1, kept on M5, unknown between (ane-measurements 1.1). Where it is unknown
        // the emulator takes the harsher: what trains here then trains there.
        let finish = Finish { flush_subnormals: options.chip < Chip::H17, ..Finish::MATMUL };
        let shared = Arc::new(Shared::new(options.pool.clone(), options.matmul, finish));
        Emulator { info, options, compiles: AtomicU32::new(0), shared }
    }
}

impl Device for Emulator {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn budget(&self) -> Budget {
        Budget {
            compiles: self.compiles.load(Ordering::Relaxed),
            compile_limit: self.options.compile_limit,
            live: self.shared.live.load(Ordering::Relaxed),
            live_limit: self.options.live_limit,
        }
    }

    fn compile(&self, name: &str, program: &Verified) -> Result<Arc<dyn Program>, CompileError> {
        let profile = program.profile();
        if profile != Profile::Chip(self.options.chip) && !(self.options.any_profile && profile == Profile::Language) {
            let found = match profile {
                Profile::Language => "the language only".to_string(),
                Profile::Chip(chip) => format!("{chip:?}"),
            };
            return Err(CompileError::Profile { program: name.into(), found, wanted: format!("{:?}", self.options.chip) });
        }
        let n = self.compiles.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if let Some(limit) = self.options.compile_limit.filter(|&limit| n > limit) {
            self.compiles.store(limit, Ordering::Relaxed);
            return Err(CompileError::Budget { program: name.into(), n, limit });
        }
        let seat =
            Shared::seat(&self.shared, self.options.live_limit).map_err(|limit| CompileError::Live { program: name.into(), limit })?;
        let refused = |text| CompileError::Refused { program: name.into(), text };
        let function = program.program().functions.first().ok_or_else(|| refused("the program has no function".into()))?;
        let ports = Port::of_function(function, self.options.stride.align());
        let chip = (profile != Profile::Language).then_some(self.options.chip);
        let (blobs, slow) = (program.blobs(), |rules, seat| {
            FidelityProgram::compile(name, function, program.blobs(), ports.clone(), rules, seat).map(|p| Arc::new(p) as Arc<dyn Program>)
        });
        match self.options.arithmetic {
            Arithmetic::Fast => {
                EmulatorProgram::compile(name, function, blobs, ports.clone(), chip, seat).map(|p| Arc::new(p) as Arc<dyn Program>)
            }
            Arithmetic::Fidelity(mac) => slow(Rules::of(self.options.chip, mac), seat),
            Arithmetic::Exact => slow(Rules::EXACT, seat),
        }
        .map_err(refused)
    }

    fn memory(&self, bytes: usize) -> Result<Memory, SurfaceError> {
        Memory::heap(bytes)
    }
}
