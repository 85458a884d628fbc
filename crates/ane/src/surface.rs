//! Shared memory with a borrow flag that the CPU's guards and the queue both obey.
#![allow(unsafe_code)]

use crate::device::{Device, Dir, Port};
use cpu::{View, ViewMut};
use half::f16;
use std::fmt;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Surfaces are allocated in multiples of this many bytes (ane-facts 4.1).
pub const ALLOCATION_UNIT: usize = 65_536;

/// The bytes that every surface of direction `dir` of a program gets: all alike, at the largest, in whole units (ane-facts 4.3).
pub fn allocation(ports: &[Port], dir: Dir) -> usize {
    let largest = ports.iter().filter(|p| p.dir == dir).map(|p| p.bytes).max().unwrap_or(0);
    largest.max(1).next_multiple_of(ALLOCATION_UNIT)
}

/// CPU-addressable bytes, for as long as anyone holds them.
pub struct Memory {
    base: NonNull<u8>,
    len: usize,
    owner: Box<dyn Owner>,
}

/// Keeps memory alive and visible.
///
/// # Safety
/// The bytes handed to [`Memory::new`] with this owner stay mapped, fixed and initialised while the owner lives.
pub unsafe trait Owner: Send + Sync {
    /// Makes the other side's writes visible; an IOSurface locks and unlocks here.
    fn sync(&self, access: Dir) {
        let _ = access;
    }
}

// SAFETY: the bytes are plain memory owned by `owner` (Send + Sync); who may touch them when is decided by `Surface`'s flag.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Wraps bytes.
    ///
    /// # Safety
    /// `base` is aligned to 64 and valid for reads and writes of `len` initialised bytes while `owner` lives, and nobody else touches them.
    pub unsafe fn new(base: NonNull<u8>, len: usize, owner: Box<dyn Owner>) -> Memory {
        Memory { base, len, owner }
    }

    /// Zeroed memory from the heap, aligned to 64 bytes; pages are touched only when used.
    ///
    /// # Errors
    /// When there is not enough.
    pub fn heap(bytes: usize) -> Result<Memory, SurfaceError> {
        let out_of_memory = || SurfaceError::Memory { bytes };
        // Asking the allocator for 64-byte alignment would make it write the zeros itself, and every page with them; at its natural
        // alignment it takes fresh pages as they come. So align by hand.
        const ALIGN: usize = 64;
        let size = bytes.max(1).checked_add(ALIGN).ok_or_else(out_of_memory)?;
        let layout = std::alloc::Layout::from_size_align(size, 16).map_err(|_| out_of_memory())?;
        // SAFETY: the layout has a size above zero.
        let block = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) }).ok_or_else(out_of_memory)?;
        // SAFETY: at most 63 bytes on, inside the block, which is 64 bytes longer than asked.
        let base = unsafe { block.add(block.align_offset(ALIGN).min(ALIGN)) };
        // SAFETY: `bytes` zeroed bytes from an aligned base; `Heap` frees the block when dropped and nobody else has the pointer.
        Ok(unsafe { Memory::new(base, bytes, Box::new(Heap { block, layout })) })
    }

    /// First byte. Reading or writing through it is up to the holder of the surface's flag.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

struct Heap {
    block: NonNull<u8>,
    layout: std::alloc::Layout,
}

// SAFETY: a heap block stays where it is until dropped.
unsafe impl Owner for Heap {}
// SAFETY: `Heap` only frees; it never reads or writes through the pointer.
unsafe impl Send for Heap {}
// SAFETY: as above.
unsafe impl Sync for Heap {}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: allocated in `Memory::heap` with this very layout, freed once.
        unsafe { std::alloc::dealloc(self.block.as_ptr(), self.layout) }
    }
}

/// Shared memory that programs and CPU take turns at. Clones are the same memory.
#[derive(Clone)]
pub struct Surface(Arc<Inner>);

struct Inner {
    memory: Memory,
    rows: usize,
    row_stride: usize,
    flag: Mutex<Flag>,
}

/// Who uses the memory. The queue is first in, first out, so its own entries need no ordering among themselves.
#[derive(Default)]
struct Flag {
    readers: u32,
    writer: bool,
    device_reads: u32,
    device_writes: u32,
    stale: bool,
}

/// Why memory was not to be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SurfaceError {
    /// Allocation failed.
    #[error("no memory for a surface of {bytes} bytes: use a smaller model, batch or sequence")]
    Memory {
        /// Bytes asked for.
        bytes: usize,
    },
    /// The ports that should share a surface differ in layout.
    #[error("ports `{first}` and `{second}` cannot share a surface: rows of {first_stride} and {second_stride} bytes")]
    Layout {
        /// A port.
        first: String,
        /// Its row stride.
        first_stride: usize,
        /// Another.
        second: String,
        /// Its row stride.
        second_stride: usize,
    },
    /// In use.
    #[error("surface is in use by {0}")]
    Busy(&'static str),
    /// The last evaluation that should have written it failed.
    #[error("surface holds the output of a failed evaluation: evaluate again before reading")]
    Stale,
}

impl fmt::Debug for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Surface({} rows of {} bytes at {:p})", self.0.rows, self.0.row_stride, self.0.memory.base)
    }
}

impl Surface {
    /// One allocation that fits every port it will meet, of at least `bytes` (see [`allocation`]).
    ///
    /// # Errors
    /// When the ports' layouts differ or memory is short.
    pub fn for_ports(device: &dyn Device, ports: &[&Port], bytes: usize) -> Result<Surface, SurfaceError> {
        let (mut rows, mut row_stride, mut len) = (0, 0, bytes);
        for port in ports {
            if row_stride != 0 && port.row_stride != row_stride {
                return Err(SurfaceError::Layout {
                    first: ports[0].name.clone(),
                    first_stride: row_stride,
                    second: port.name.clone(),
                    second_stride: port.row_stride,
                });
            }
            row_stride = port.row_stride;
            rows = rows.max(port.rows());
            len = len.max(port.bytes);
        }
        let memory = device.memory(len.max(1).next_multiple_of(ALLOCATION_UNIT))?;
        Ok(Surface(Arc::new(Inner { memory, rows, row_stride, flag: Mutex::default() })))
    }

    /// Whether both are the same memory.
    pub fn is(&self, other: &Surface) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The memory; for back ends, inside an evaluation only.
    pub fn memory(&self) -> &Memory {
        &self.0.memory
    }

    /// Rows of the largest port it was made for.
    pub fn rows(&self) -> usize {
        self.0.rows
    }

    /// Bytes from one row to the next.
    pub fn row_stride(&self) -> usize {
        self.0.row_stride
    }

    fn flag(&self) -> MutexGuard<'_, Flag> {
        self.0.flag.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens it for reading by the CPU.
    ///
    /// # Errors
    /// While it is written, queued to be written, or holds a failed evaluation's output.
    pub fn read(&self) -> Result<Read, SurfaceError> {
        let mut flag = self.flag();
        if flag.writer {
            return Err(SurfaceError::Busy("a CPU writer"));
        }
        if flag.device_writes > 0 {
            return Err(SurfaceError::Busy("the device"));
        }
        if flag.stale {
            return Err(SurfaceError::Stale);
        }
        flag.readers += 1;
        drop(flag);
        self.0.memory.owner.sync(Dir::Out);
        Ok(Read(self.clone()))
    }

    /// Opens it for writing by the CPU.
    ///
    /// # Errors
    /// While anyone else uses it.
    pub fn write(&self) -> Result<Write, SurfaceError> {
        let mut flag = self.flag();
        if flag.writer {
            return Err(SurfaceError::Busy("a CPU writer"));
        }
        if flag.readers > 0 {
            return Err(SurfaceError::Busy("a CPU reader"));
        }
        if flag.device_writes > 0 || flag.device_reads > 0 {
            return Err(SurfaceError::Busy("the device"));
        }
        flag.writer = true;
        drop(flag);
        self.0.memory.owner.sync(Dir::In);
        Ok(Write(self.clone()))
    }

    /// Queues a device access. Reads are refused while the CPU writes, writes while the CPU reads or writes.
    pub(crate) fn device_begin(&self, dir: Dir) -> Result<(), &'static str> {
        let mut flag = self.flag();
        if flag.writer {
            return Err("a CPU writer");
        }
        match dir {
            Dir::In => flag.device_reads += 1,
            Dir::Out if flag.readers > 0 => return Err("a CPU reader"),
            Dir::Out => flag.device_writes += 1,
        }
        Ok(())
    }

    /// Ends a device access; `good` says whether an output may be read.
    pub(crate) fn device_end(&self, dir: Dir, good: bool) {
        let mut flag = self.flag();
        match dir {
            Dir::In => flag.device_reads -= 1,
            Dir::Out => {
                flag.device_writes -= 1;
                flag.stale = !good;
            }
        }
    }

    /// Takes back a device access that was queued but not sent.
    pub(crate) fn device_cancel(&self, dir: Dir) {
        let mut flag = self.flag();
        match dir {
            Dir::In => flag.device_reads -= 1,
            Dir::Out => flag.device_writes -= 1,
        }
    }

    /// Whether the last evaluation into it failed.
    pub(crate) fn is_stale(&self) -> bool {
        self.flag().stale
    }
}

/// A window of a surface: `rows` rows from `row`, `cols` fp16 columns from `col`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// First row.
    pub row: usize,
    /// Number of rows.
    pub rows: usize,
    /// First column.
    pub col: usize,
    /// Number of columns.
    pub cols: usize,
}

/// A window of a surface, with the surface.
#[derive(Clone, Debug)]
pub struct Slot {
    /// The surface.
    pub surface: Surface,
    /// The window.
    pub field: Field,
}

/// Read access by the CPU; owned, so that it can move into a job on another thread.
pub struct Read(Surface);

/// Write access by the CPU.
pub struct Write(Surface);

impl Drop for Read {
    fn drop(&mut self) {
        self.0.flag().readers -= 1;
    }
}

impl Drop for Write {
    fn drop(&mut self) {
        let mut flag = self.0.flag();
        flag.writer = false;
        flag.stale = false;
    }
}

/// Offset in elements, length in elements and row stride of a field.
///
/// # Panics
/// When the field is not inside the surface: fields come from port tables, so that is a programming error.
fn place(surface: &Surface, f: Field) -> (usize, usize, usize) {
    let stride = surface.0.row_stride / 2;
    let start = f.row * stride + f.col;
    let len = if f.rows == 0 { 0 } else { (f.rows - 1) * stride + f.cols };
    let inside = f.col + f.cols <= stride && (start + len) * 2 <= surface.0.memory.len;
    assert!(inside, "{f:?} is outside {surface:?}");
    (start, len, stride)
}

impl Read {
    /// The window `f`.
    pub fn view(&self, f: Field) -> View<'_> {
        let (start, len, stride) = place(&self.0, f);
        // SAFETY: `place` checked the bounds; the base is aligned to 64 and initialised; while a `Read` lives the flag admits no writer,
        // neither CPU (`write` is refused) nor device (`device_begin(Out)` is refused), so the bytes do not change.
        let data = unsafe { std::slice::from_raw_parts(self.0.0.memory.base.as_ptr().cast::<f16>().add(start), len) };
        View { data, rows: f.rows, cols: f.cols, stride }
    }
}

impl Write {
    /// The window `f`; one at a time.
    pub fn view_mut(&mut self, f: Field) -> ViewMut<'_> {
        let (start, len, stride) = place(&self.0, f);
        // SAFETY: as in `Read::view`; a `Write` is alone on the surface, and `&mut self` lends one window at a time.
        let data = unsafe { std::slice::from_raw_parts_mut(self.0.0.memory.base.as_ptr().cast::<f16>().add(start), len) };
        ViewMut { data, rows: f.rows, cols: f.cols, stride }
    }
}

impl Slot {
    /// Opens the surface for reading.
    ///
    /// # Errors
    /// As [`Surface::read`].
    pub fn read(&self) -> Result<SlotRead, SurfaceError> {
        Ok(SlotRead { guard: self.surface.read()?, field: self.field })
    }

    /// Opens the surface for writing.
    ///
    /// # Errors
    /// As [`Surface::write`].
    pub fn write(&self) -> Result<SlotWrite, SurfaceError> {
        Ok(SlotWrite { guard: self.surface.write()?, field: self.field })
    }
}

/// Read access to a slot.
pub struct SlotRead {
    guard: Read,
    field: Field,
}

/// Write access to a slot.
pub struct SlotWrite {
    guard: Write,
    field: Field,
}

impl SlotRead {
    /// The slot's window.
    pub fn view(&self) -> View<'_> {
        self.guard.view(self.field)
    }
}

impl SlotWrite {
    /// The slot's window.
    pub fn view_mut(&mut self) -> ViewMut<'_> {
        self.guard.view_mut(self.field)
    }
}
