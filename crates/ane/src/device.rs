//! What a device is: a place that compiles programs and runs them on shared memory.

use crate::surface::{Memory, Surface, SurfaceError};
use crate::{BindError, Budget};
use mil::{Chip, Def, Function, Type, Verified};
use std::sync::Arc;
use std::time::Duration;

/// A place that compiles and runs programs. `dyn` and without associated types: fault and null devices wrap or replace any other.
pub trait Device: Send + Sync {
    /// Chip, limits and name.
    fn info(&self) -> &DeviceInfo;

    /// Compiles and programs so far, with their limits.
    fn budget(&self) -> Budget;

    /// Compiles a verified program and loads it; `name` is for messages.
    ///
    /// # Errors
    /// When the profile does not cover the chip, a limit is reached, or the compiler refuses.
    fn compile(&self, name: &str, program: &Verified) -> Result<Arc<dyn Program>, CompileError>;

    /// Zeroed shared memory of at least `bytes`.
    ///
    /// # Errors
    /// When there is not enough memory.
    fn memory(&self, bytes: usize) -> Result<Memory, SurfaceError>;
}

/// A loaded program. Dropping the last `Arc` unloads it.
pub trait Program: Send + Sync {
    /// Name for messages.
    fn name(&self) -> &str;

    /// Ports as the device reports them after load; looked up by name, never by position.
    fn ports(&self) -> &[Port];

    /// Prepares a call on fixed surfaces. Only [`crate::Binding::new`] makes an [`Io`], with everything checked.
    ///
    /// # Errors
    /// When the device refuses the surfaces.
    fn bind(self: Arc<Self>, io: Arc<Io>) -> Result<Box<dyn Call>, BindError>;
}

/// A program with its surfaces fixed. `&mut`: one in flight.
pub trait Call: Send {
    /// Runs once. On error the outputs must not be read; the queue sees to that.
    ///
    /// # Errors
    /// When the device failed.
    fn run(&mut self) -> Result<CallStats, EvalError>;
}

/// Plain facts about a device.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceInfo {
    /// `emulator`, `null`, …
    pub name: String,
    /// The chip that it is, or imitates.
    pub chip: Chip,
    /// How it computes, in words: the emulator names its matmul path. Kept in a run's record, since bits depend on it.
    pub arithmetic: String,
}

/// Direction of a port or an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dir {
    /// Into the program; CPU writes.
    In,
    /// Out of the program; CPU reads.
    Out,
}

/// One port of a loaded program.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// The parameter's or result's name.
    pub name: String,
    /// Direction.
    pub dir: Dir,
    /// Type and shape.
    pub ty: Type,
    /// Bytes from one row (all axes but the last) to the next.
    pub row_stride: usize,
    /// Bytes of all rows.
    pub bytes: usize,
}

impl Port {
    /// Rows: the product of all axes but the last.
    pub fn rows(&self) -> usize {
        self.ty.numel() / self.cols().max(1)
    }

    /// Elements of a row: the last axis.
    pub fn cols(&self) -> usize {
        self.ty.shape.last().map_or(1, |&n| n as usize)
    }

    /// The ports of a function, rows padded to a multiple of `align` bytes (ane-facts 4.2 says 64).
    pub fn of_function(function: &Function, align: usize) -> Vec<Port> {
        let port = |name: &str, dir, ty: &Type| {
            let mut port = Port { name: name.to_string(), dir, ty: ty.clone(), row_stride: 0, bytes: 0 };
            port.row_stride = (port.cols() * ty.dtype.bits().div_ceil(8) as usize).next_multiple_of(align);
            port.bytes = port.row_stride * port.rows();
            port
        };
        let inputs = function.params.iter().map(|&v| (v, Dir::In));
        let outputs = function.results.iter().map(|&v| (v, Dir::Out));
        inputs
            .chain(outputs)
            .map(|(v, dir)| {
                let value = &function.values[v];
                debug_assert!(dir == Dir::Out || matches!(value.def, Def::Param(_)));
                port(&value.name, dir, &value.ty)
            })
            .collect()
    }
}

/// Surfaces of a call, in the order of [`Program::ports`]: inputs, then outputs.
#[derive(Debug)]
pub struct Io {
    /// One for each input port.
    pub inputs: Box<[Surface]>,
    /// One for each output port.
    pub outputs: Box<[Surface]>,
}

/// What a finished call says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallStats {
    /// Time on the device.
    pub elapsed: Duration,
    /// Of that, in matrix products, where the device can tell.
    pub matmul: Duration,
    /// In elementwise ops, softmax and reductions.
    pub elementwise: Duration,
    /// In copies that no view could avoid.
    pub copy: Duration,
}

/// Why a program was not compiled.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CompileError {
    /// The program was verified for something else.
    #[error("program `{program}` was verified for {found}, this device is {wanted}: verify it for that chip")]
    Profile {
        /// Program.
        program: String,
        /// Profile of the program.
        found: String,
        /// Profile wanted.
        wanted: String,
    },
    /// The process has used up its compiles.
    #[error("compile {n} of program `{program}`: a process has {limit} compiles; save and restart the process (ane-facts 6.1)")]
    Budget {
        /// Program.
        program: String,
        /// Which compile this would have been.
        n: u32,
        /// The limit.
        limit: u32,
    },
    /// Too many programs are alive.
    #[error("program `{program}`: {limit} programs are loaded already; release one first (programs.md 4)")]
    Live {
        /// Program.
        program: String,
        /// The limit.
        limit: u32,
    },
    /// The compiler said no.
    #[error("program `{program}` does not compile: {text}")]
    Refused {
        /// Program.
        program: String,
        /// The compiler's message.
        text: String,
    },
}

/// Why a call gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// A surface is in use.
    #[error("{program}: surface of port `{port}` is in use by {user}; finish with it first")]
    Busy {
        /// Program or binding.
        program: String,
        /// Port.
        port: String,
        /// Who holds it.
        user: &'static str,
    },
    /// The device reported failure. Its outputs are stale and unreadable.
    #[error("{program}: evaluation failed: {text}")]
    Failed {
        /// Program or binding.
        program: String,
        /// The device's message.
        text: String,
    },
    /// The device did not answer in time, or had not before. Nothing of this device may be used again.
    #[error("{program}: the device did not answer in time; it must be given up and the process restarted from its last checkpoint")]
    Hung {
        /// Program or binding.
        program: String,
    },
}
