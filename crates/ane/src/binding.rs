//! A program with its surfaces: built once per (program, layer), run every step.

use crate::device::{Call, Dir, EvalError, Io, Program};
use crate::surface::Surface;
use std::sync::{Arc, Mutex};

/// Ports bound to surfaces by name. Clones are the same binding.
#[derive(Clone)]
pub struct Binding {
    pub(crate) name: Arc<str>,
    pub(crate) call: Arc<Mutex<Box<dyn Call>>>,
    pub(crate) io: Arc<Io>,
    ports: Arc<dyn Program>,
}

/// Why surfaces do not fit a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// A port was left out.
    #[error("{binding}: port `{port}` is not bound")]
    Missing {
        /// Binding.
        binding: String,
        /// Port.
        port: String,
    },
    /// A name that is no port, or given twice.
    #[error("{binding}: `{port}` is no port of the program, or bound twice")]
    Unknown {
        /// Binding.
        binding: String,
        /// Name.
        port: String,
    },
    /// A surface that is too small or laid out otherwise.
    #[error("{binding}: port `{port}` wants {bytes} bytes in rows of {row_stride}, the surface has {found} in rows of {found_stride}")]
    Size {
        /// Binding.
        binding: String,
        /// Port.
        port: String,
        /// Bytes wanted.
        bytes: usize,
        /// Row stride wanted.
        row_stride: usize,
        /// Bytes of the surface.
        found: usize,
        /// Row stride of the surface.
        found_stride: usize,
    },
    /// One surface as input and output, or as two outputs.
    #[error("{binding}: port `{port}` shares its surface with another port that is written")]
    Alias {
        /// Binding.
        binding: String,
        /// Port.
        port: String,
    },
    /// The device refused.
    #[error("{binding}: {text}")]
    Refused {
        /// Binding.
        binding: String,
        /// The device's message.
        text: String,
    },
}

impl Binding {
    /// Binds every port of `program` to a surface.
    ///
    /// # Errors
    /// When a port is left out, unknown, or its surface does not fit, or a surface is input and output at once.
    pub fn new(program: &Arc<dyn Program>, name: &str, bind: &[(&str, &Surface)]) -> Result<Binding, BindError> {
        let binding = || name.to_string();
        for (i, (port, _)) in bind.iter().enumerate() {
            let known = program.ports().iter().any(|p| p.name == *port);
            if !known || bind[..i].iter().any(|(other, _)| other == port) {
                return Err(BindError::Unknown { binding: binding(), port: port.to_string() });
            }
        }
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for port in program.ports() {
            let Some((_, surface)) = bind.iter().find(|(name, _)| *name == port.name) else {
                return Err(BindError::Missing { binding: binding(), port: port.name.clone() });
            };
            let (found, found_stride) = (surface.memory().len(), surface.row_stride());
            if found < port.bytes || found_stride != port.row_stride {
                return Err(BindError::Size {
                    binding: binding(),
                    port: port.name.clone(),
                    bytes: port.bytes,
                    row_stride: port.row_stride,
                    found,
                    found_stride,
                });
            }
            let written_elsewhere = outputs.iter().any(|s: &Surface| s.is(surface));
            let read_elsewhere = inputs.iter().any(|s: &Surface| s.is(surface));
            if written_elsewhere || (read_elsewhere && port.dir == Dir::Out) {
                return Err(BindError::Alias { binding: binding(), port: port.name.clone() });
            }
            match port.dir {
                Dir::In => inputs.push((*surface).clone()),
                Dir::Out => outputs.push((*surface).clone()),
            }
        }
        let io = Arc::new(Io { inputs: inputs.into(), outputs: outputs.into() });
        let call = Arc::new(Mutex::new(program.clone().bind(io.clone())?));
        Ok(Binding { name: name.into(), call, io, ports: program.clone() })
    }

    /// Its name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Claims all surfaces for the device, or none.
    pub(crate) fn claim(&self) -> Result<(), EvalError> {
        let all = || {
            let inputs = self.io.inputs.iter().map(|s| (s, Dir::In));
            inputs.chain(self.io.outputs.iter().map(|s| (s, Dir::Out)))
        };
        for (i, (surface, dir)) in all().enumerate() {
            if let Err(user) = surface.device_begin(dir) {
                all().take(i).for_each(|(surface, dir)| surface.device_cancel(dir));
                let of_dir = if dir == Dir::In { i } else { i - self.io.inputs.len() };
                let port = self.ports.ports().iter().filter(|p| p.dir == dir).nth(of_dir).map_or("?", |p| p.name.as_str());
                return Err(EvalError::Busy { program: self.name.to_string(), port: port.to_string(), user });
            }
        }
        Ok(())
    }

    /// Gives all surfaces back; `good` says whether the outputs may be read.
    pub(crate) fn release(&self, good: bool) {
        self.io.inputs.iter().for_each(|s| s.device_end(Dir::In, good));
        self.io.outputs.iter().for_each(|s| s.device_end(Dir::Out, good));
    }
}
