//! The device interface, and the back ends behind it.
//!
//! Nobody above this crate can tell which back end runs a program, except by speed:
//!
//! * [`emulator`]: executes MIL on any CPU, with the chip's fp16 arithmetic, limits and quirks; the default where no Neural Engine is found.
//! * [`null`]: answers at once and computes nothing; it measures everything that is ours.
//! * [`fault`]: wraps any device and misbehaves on the n-th call; for tests and `--fault`.
//!
//! The path of a call: [`Device::compile`] makes a [`Program`], which reports its [`Port`]s; a [`Surface`] is allocated for the
//! ports that it will meet; a [`Binding`] fixes program and surfaces once per (program, layer); a [`Queue`] runs bindings in order
//! on the one device thread, every wait bounded. Surfaces carry a borrow flag that the CPU's guards and the queue both obey, so
//! what the device still writes, or failed to write, cannot be read.

mod binding;
mod budget;
mod device;
pub mod emulator;
pub mod fault;
pub mod null;
mod queue;
mod surface;

pub use binding::{BindError, Binding};
pub use budget::Budget;
pub use device::{Call, CallStats, CompileError, Device, DeviceInfo, Dir, EvalError, Io, Port, Program};
pub use queue::{Pending, Queue, QueueStats};
pub use surface::{ALLOCATION_UNIT, Field, Memory, Owner, Read, Slot, SlotRead, SlotWrite, Surface, SurfaceError, Write, allocation};
