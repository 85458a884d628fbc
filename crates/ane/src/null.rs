//! A device that answers at once and computes nothing. `bench step --device null` measures with it everything that is ours.

use crate::device::{Call, CallStats, CompileError, Device, DeviceInfo, EvalError, Io, Port, Program};
use crate::surface::{Memory, SurfaceError};
use crate::{BindError, Budget};
use mil::{Chip, Verified};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The null device. Outputs keep whatever they held: zeros, at first.
pub struct Null {
    info: DeviceInfo,
    compiles: AtomicU32,
}

impl Null {
    /// A null device that takes programs verified for `chip`.
    pub fn new(chip: Chip) -> Null {
        let info = DeviceInfo { name: "null".into(), chip, arithmetic: "none".into() };
        Null { info, compiles: AtomicU32::new(0) }
    }
}

impl Device for Null {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn budget(&self) -> Budget {
        Budget { compiles: self.compiles.load(Ordering::Relaxed), ..Budget::default() }
    }

    fn compile(&self, name: &str, program: &Verified) -> Result<Arc<dyn Program>, CompileError> {
        self.compiles.fetch_add(1, Ordering::Relaxed);
        let function = program
            .program()
            .functions
            .first()
            .ok_or_else(|| CompileError::Refused { program: name.into(), text: "the program has no function".into() })?;
        Ok(Arc::new(NullProgram { name: name.into(), ports: Port::of_function(function, 64) }))
    }

    fn memory(&self, bytes: usize) -> Result<Memory, SurfaceError> {
        Memory::heap(bytes)
    }
}

struct NullProgram {
    name: String,
    ports: Vec<Port>,
}

impl Program for NullProgram {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn bind(self: Arc<Self>, _: Arc<Io>) -> Result<Box<dyn Call>, BindError> {
        Ok(Box::new(NullCall))
    }
}

struct NullCall;

impl Call for NullCall {
    fn run(&mut self) -> Result<CallStats, EvalError> {
        Ok(CallStats::default())
    }
}
