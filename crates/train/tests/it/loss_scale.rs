//! Gradients vanish in fp16 unless the loss is scaled: counted on every dx output of a step, against PyTorch's.

use crate::support::{Golden, machine};
use ane::{BindError, Budget, Call, CallStats, CompileError, Device, DeviceInfo, Dir, EvalError, Io, Memory, Port, Program, SurfaceError};
use cpu::matmul::Path;
use half::f16;
use infer::Machine;
use mil::Verified;
use model::Axis;
use model::programs::{Act, Attention, Options, ProgramKind, Weights};
use std::sync::{Arc, Mutex};
use train::{LossScaler, Net, step};

/// What programs gave, call by call: name and outputs, rows one after another.
type Log = Arc<Mutex<Vec<(String, Vec<f16>)>>>;

/// A device that keeps a copy of every output.
struct Recorder {
    inner: Arc<dyn Device>,
    log: Log,
}

struct RecordedProgram {
    inner: Arc<dyn Program>,
    log: Log,
}

struct RecordedCall {
    inner: Box<dyn Call>,
    io: Arc<Io>,
    program: Arc<RecordedProgram>,
}

impl Device for Recorder {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }
    fn budget(&self) -> Budget {
        self.inner.budget()
    }
    fn compile(&self, name: &str, program: &Verified) -> Result<Arc<dyn Program>, CompileError> {
        Ok(Arc::new(RecordedProgram { inner: self.inner.compile(name, program)?, log: self.log.clone() }))
    }
    fn memory(&self, bytes: usize) -> Result<Memory, SurfaceError> {
        self.inner.memory(bytes)
    }
}

impl Program for RecordedProgram {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn ports(&self) -> &[Port] {
        self.inner.ports()
    }
    fn bind(self: Arc<Self>, io: Arc<Io>) -> Result<Box<dyn Call>, BindError> {
        let inner = self.inner.clone().bind(io.clone())?;
        Ok(Box::new(RecordedCall { inner, io, program: self }))
    }
}

impl Call for RecordedCall {
    #[allow(unsafe_code)]
    fn run(&mut self) -> Result<CallStats, EvalError> {
        let stats = self.inner.run()?;
        let port = self.program.ports().iter().find(|p| p.dir == Dir::Out).unwrap();
        let memory = self.io.outputs[0].memory();
        // SAFETY: inside an evaluation the outputs are this call's alone; the memory is aligned and initialised.
        let all = unsafe { std::slice::from_raw_parts(memory.base().as_ptr().cast::<f16>(), memory.len() / 2) };
        let rows = all.chunks(port.row_stride / 2).take(port.rows());
        let values = rows.flat_map(|row| row[..port.cols()].iter().copied()).collect();
        self.program.log.lock().unwrap().push((self.program.name().to_string(), values));
        Ok(stats)
    }
}

/// Of the elements of dx outputs that PyTorch has above 1e-7, how many there are and how many are zero.
fn vanished(golden: &Golden, scale: f32) -> (usize, usize) {
    let log = Log::default();
    let machine = machine(Path::Portable, 2);
    let device = Arc::new(Recorder { inner: machine.device.clone(), log: log.clone() });
    let options = Options { weights: Weights::Ports, attention: Attention::Split };
    let mut net = Net::new(&Machine { device, ..machine }, &golden.config, golden.shape(), options, golden.params()).unwrap();
    let mut scaler = LossScaler::with_scale(scale);
    step(&mut net, &mut golden.optimizer(), &mut scaler, &golden.steps()[0], golden.lr()).unwrap();

    let (programs, layout) = (&net.forward.programs, &net.forward.programs.layout);
    let plain = &layout.dim;
    let outputs: [(ProgramKind, Act, &str, &Axis); 8] = [
        (ProgramKind::FfnBwd, Act::Dx, "ffn_norm", plain),
        (ProgramKind::FfnBwd, Act::DH1, "h1", &layout.hidden),
        (ProgramKind::FfnBwd, Act::DH3, "h3", &layout.hidden),
        (ProgramKind::WoBwd, Act::DAttnOut, "attn_out", &layout.q),
        (ProgramKind::AttnBwd1, Act::DV, "v", &layout.kv),
        (ProgramKind::AttnBwd2, Act::DQ, "q_rot", &layout.q),
        (ProgramKind::AttnBwd2, Act::DK, "k_rot", &layout.kv),
        (ProgramKind::QkvBwd, Act::Dx, "attn_norm", plain),
    ];
    let (mut large, mut zero) = (0, 0);
    let log = log.lock().unwrap();
    for (kind, act, name, axis) in outputs {
        let field = programs.get(kind).unwrap().output(act).unwrap().1.clone();
        // The backward pass takes the layers from the last to the first.
        for (i, (_, values)) in log.iter().filter(|(program, _)| program == kind.name()).enumerate() {
            let layer = golden.config.n_layers - 1 - i;
            let reference = golden.tensor(&format!("dx.{layer}.{name}"));
            let channels = reference.shape[1];
            for s in axis.segments() {
                for (c, token) in (0..s.len).flat_map(|c| (0..golden.seq).map(move |t| (c, t))) {
                    // Stored times 2^16, so that fp16 keeps it.
                    let wanted = reference.values[token * channels + s.from + c] / 65536.0;
                    if wanted.abs() > 1e-7 {
                        large += 1;
                        zero += usize::from(values[(field.row + s.to + c) * golden.seq + token] == f16::ZERO);
                    }
                }
            }
        }
    }
    (large, zero)
}

#[test]
fn scaled_gradients_survive_and_unscaled_ones_vanish() {
    let golden = Golden::load("deep12");
    let (large, lost) = vanished(&golden, 256.0 * 12.0);
    let (_, lost_unscaled) = vanished(&golden, 1.0);
    println!("of {large} elements above 1e-7, {lost} vanish with the loss scale and {lost_unscaled} without");
    assert!(large > 400_000, "{large} elements were compared");
    assert!(lost * 10_000 < large, "{lost} of {large} vanish at 256 a layer");
    assert!(lost_unscaled * 10 > large, "only {lost_unscaled} of {large} vanish without a loss scale");
}
