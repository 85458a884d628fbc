//! A device that misbehaves on the n-th call: for tests and for `--fault`.
#![allow(unsafe_code)]

use crate::device::{Call, CallStats, CompileError, Device, DeviceInfo, EvalError, Io, Port, Program};
use crate::surface::{Memory, Surface, SurfaceError};
use crate::{BindError, Budget};
use half::f16;
use mil::Verified;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What goes wrong, and when: `evaluate@12=inf`, `compile@1+=fail`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which calls are counted.
    pub call: FaultCall,
    /// The first that misbehaves; calls count from 1.
    pub at: u64,
    /// Whether all later ones do too.
    pub onwards: bool,
    /// How.
    pub kind: FaultKind,
}

/// The calls that can misbehave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultCall {
    /// Compiling a program.
    Compile,
    /// Running one.
    Evaluate,
}

/// The ways to misbehave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An error; an evaluation leaves garbage in its outputs.
    Fail,
    /// No answer for an hour.
    Hang,
    /// Success, with outputs of +inf.
    Inf,
    /// Success, with outputs of zero.
    Zero,
    /// Success, with the outputs of the call before.
    Stale,
}

/// What a fault is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no fault: write evaluate@N=fail|hang|inf|zero|stale or compile@N=fail|hang, with N+ for the N-th call and all after it")]
pub struct FaultSyntax(String);

impl FromStr for Fault {
    type Err = FaultSyntax;

    fn from_str(text: &str) -> Result<Fault, FaultSyntax> {
        let parse = || {
            let (call, rest) = text.split_once('@')?;
            let (at, kind) = rest.split_once('=')?;
            let call = match call {
                "compile" => FaultCall::Compile,
                "evaluate" => FaultCall::Evaluate,
                _ => return None,
            };
            let (at, onwards) = at.strip_suffix('+').map_or((at, false), |n| (n, true));
            let at = at.parse().ok().filter(|&n| n > 0)?;
            let kind = match (kind, call) {
                ("fail", _) => FaultKind::Fail,
                ("hang", _) => FaultKind::Hang,
                ("inf", FaultCall::Evaluate) => FaultKind::Inf,
                ("zero", FaultCall::Evaluate) => FaultKind::Zero,
                ("stale", FaultCall::Evaluate) => FaultKind::Stale,
                _ => return None,
            };
            Some(Fault { call, at, onwards, kind })
        };
        parse().ok_or_else(|| FaultSyntax(text.to_string()))
    }
}

/// Wraps a device. Calls are counted over the whole device, from 1.
pub struct Faulty {
    inner: Arc<dyn Device>,
    plan: Arc<Plan>,
}

struct Plan {
    faults: Vec<Fault>,
    compiles: AtomicU64,
    evaluates: AtomicU64,
}

impl Plan {
    fn next(&self, call: FaultCall) -> Option<FaultKind> {
        let counter = if call == FaultCall::Compile { &self.compiles } else { &self.evaluates };
        let n = counter.fetch_add(1, Ordering::SeqCst) + 1;
        self.faults.iter().find(|f| f.call == call && (f.at == n || (f.onwards && n > f.at))).map(|f| f.kind)
    }
}

impl Faulty {
    /// Wraps `inner` so that it misbehaves by `faults`; the first that fits a call decides.
    pub fn new(inner: Arc<dyn Device>, faults: Vec<Fault>) -> Faulty {
        Faulty { inner, plan: Arc::new(Plan { faults, compiles: AtomicU64::new(0), evaluates: AtomicU64::new(0) }) }
    }
}

fn hang() {
    std::thread::sleep(std::time::Duration::from_secs(3600));
}

impl Device for Faulty {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn budget(&self) -> Budget {
        self.inner.budget()
    }

    fn compile(&self, name: &str, program: &Verified) -> Result<Arc<dyn Program>, CompileError> {
        let refused =
            || CompileError::Refused { program: name.into(), text: "_ANECompiler : ANECCompile() FAILED (injected by --fault)".into() };
        match self.plan.next(FaultCall::Compile) {
            Some(FaultKind::Hang) => hang(),
            Some(_) => return Err(refused()),
            None => {}
        }
        let inner = self.inner.compile(name, program)?;
        Ok(Arc::new(FaultyProgram { inner, plan: self.plan.clone() }))
    }

    fn memory(&self, bytes: usize) -> Result<Memory, SurfaceError> {
        self.inner.memory(bytes)
    }
}

struct FaultyProgram {
    inner: Arc<dyn Program>,
    plan: Arc<Plan>,
}

impl Program for FaultyProgram {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn ports(&self) -> &[Port] {
        self.inner.ports()
    }

    fn bind(self: Arc<Self>, io: Arc<Io>) -> Result<Box<dyn Call>, BindError> {
        let call = self.inner.clone().bind(io.clone())?;
        Ok(Box::new(FaultyCall { call, io, program: self }))
    }
}

struct FaultyCall {
    call: Box<dyn Call>,
    io: Arc<Io>,
    program: Arc<FaultyProgram>,
}

impl FaultyCall {
    fn fill(&self, value: f16) {
        self.io.outputs.iter().for_each(|surface| fill(surface, value));
    }
}

impl Call for FaultyCall {
    fn run(&mut self) -> Result<CallStats, EvalError> {
        let failed = || EvalError::Failed { program: self.program.name().into(), text: "0x1d (injected by --fault)".into() };
        match self.program.plan.next(FaultCall::Evaluate) {
            None => return self.call.run(),
            Some(FaultKind::Stale) => {}
            Some(FaultKind::Inf) => self.fill(f16::INFINITY),
            Some(FaultKind::Zero) => self.fill(f16::ZERO),
            Some(FaultKind::Fail) => {
                self.fill(f16::NAN);
                return Err(failed());
            }
            Some(FaultKind::Hang) => {
                hang();
                return Err(failed());
            }
        }
        Ok(CallStats::default())
    }
}

fn fill(surface: &Surface, value: f16) {
    let memory = surface.memory();
    // SAFETY: called inside an evaluation, when the queue holds the outputs for the device alone; the memory is aligned and initialised.
    let all = unsafe { std::slice::from_raw_parts_mut(memory.base().as_ptr().cast::<f16>(), memory.len() / 2) };
    all.fill(value);
}
