//! A program in the second evaluator, and its calls.

use super::args::{Args, Env};
use super::constants;
use super::ops::{Rule, rule};
use super::rules::Rules;
use super::tensor::Tensor;
use crate::BindError;
use crate::device::{Call, CallStats, Dir, EvalError, Io, Port, Program};
use crate::emulator::memory::{Buf, Space, Span};
use crate::emulator::program::{Seat, surfaces_fit};
use mil::ops::OpKind;
use mil::{Blobs, Function, Op};
use std::sync::Arc;
use std::time::Instant;

/// A function with its constants decoded and everything that depends on constants alone computed.
pub(in crate::emulator) struct FidelityProgram {
    name: String,
    function: Function,
    blobs: Blobs,
    rules: Rules,
    ports: Vec<Port>,
    /// Constants and what follows from them, by index of the function's value.
    known: Vec<Option<Arc<Tensor>>>,
    seat: Seat,
}

impl FidelityProgram {
    /// Takes a function.
    ///
    /// # Errors
    /// When an op is not emulated or a constant cannot be read; the text names it.
    pub(in crate::emulator) fn compile(
        name: &str,
        function: &Function,
        blobs: &Blobs,
        ports: Vec<Port>,
        rules: Rules,
        seat: Seat,
    ) -> Result<FidelityProgram, String> {
        if let Some(port) = ports.iter().find(|p| p.ty.dtype.bits() % 8 != 0 || p.ty.dtype.bits() == 0) {
            return Err(format!("port `{}` is {}: ports have elements of whole bytes", port.name, port.ty));
        }
        let known = vec![None; function.values.len()];
        let mut program =
            FidelityProgram { name: name.into(), function: function.clone(), blobs: blobs.clone(), rules, ports, known, seat };
        let mut known = std::mem::take(&mut program.known);
        for (_, op) in function.ops.iter() {
            if op.kind == OpKind::Const {
                let literal = op.attr("val").ok_or("const without a value")?;
                // A string is read where it is used.
                if !matches!(literal, mil::Literal::Text(_)) {
                    let value = &function.values[op.results[0]];
                    let tensor = constants::decode(literal, blobs).map_err(|e| format!("constant `{}` {e}", value.name))?;
                    known[op.results[0].index()] = Some(Arc::new(tensor));
                }
            } else {
                let rule = rule(op.kind).ok_or_else(|| program.says(op, "is not emulated"))?;
                if program.depends_on_constants(op, &known) {
                    program.evaluate(op, rule, &mut known)?;
                }
            }
        }
        program.known = known;
        Ok(program)
    }

    fn says(&self, op: &Op, text: &str) -> String {
        let result = op.results.first().map_or("", |&v| self.function.values[v].name.as_str());
        format!("{} of `{result}`: {text}", op.kind.name())
    }

    fn depends_on_constants(&self, op: &Op, known: &Env) -> bool {
        let constant = |v: &mil::Handle<mil::Value>| known[v.index()].is_some() || self.function.constant(*v).is_some();
        op.args.iter().all(|(_, arg)| match arg {
            mil::Arg::Value(v) => constant(v),
            mil::Arg::List(vs) => vs.iter().all(constant),
            mil::Arg::Literal(_) => true,
        })
    }

    fn evaluate(&self, op: &Op, rule: Rule, env: &mut Env) -> Result<(), String> {
        let call = mil::ops::Call::new(&self.function, op).map_err(|r| self.says(op, &r.message))?;
        let args = Args { call: &call, rules: self.rules, pool: self.seat.pool(), blobs: &self.blobs, env };
        let made = rule(&args).map_err(|text| self.says(op, &text))?;
        for (&result, tensor) in op.results.iter().zip(made) {
            let ty = &self.function.values[result].ty;
            if tensor.dims != ty.dims() || tensor.dtype != ty.dtype || tensor.data.len() != ty.numel() {
                return Err(self.says(op, &format!("gives {} {:?} where {ty} is declared", tensor.dtype, tensor.dims)));
            }
            env[result.index()] = Some(Arc::new(tensor));
        }
        Ok(())
    }

    /// All results, from the inputs in order of declaration.
    fn run(&self, inputs: Vec<Tensor>) -> Result<Vec<Arc<Tensor>>, String> {
        let mut env = self.known.clone();
        for (&param, tensor) in self.function.params.iter().zip(inputs) {
            env[param.index()] = Some(Arc::new(tensor));
        }
        for (_, op) in self.function.ops.iter() {
            let done = op.results.iter().all(|r| env[r.index()].is_some());
            if let Some(rule) = rule(op.kind).filter(|_| !done) {
                self.evaluate(op, rule, &mut env)?;
            }
        }
        let result = |r: &mil::Handle<mil::Value>| {
            env[r.index()].clone().ok_or_else(|| format!("result `{}` was never made", self.function.values[*r].name))
        };
        self.function.results.iter().map(result).collect()
    }

    fn ports(&self, dir: Dir) -> impl Iterator<Item = (usize, &Port)> {
        self.ports.iter().filter(move |p| p.dir == dir).enumerate()
    }
}

impl Program for FidelityProgram {
    fn name(&self) -> &str {
        &self.name
    }

    fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn bind(self: Arc<Self>, io: Arc<Io>) -> Result<Box<dyn Call>, BindError> {
        let refused = |text: String| BindError::Refused { binding: self.name.clone(), text };
        surfaces_fit(&self.ports, &io).map_err(refused)?;
        Ok(Box::new(FidelityCall { program: self, io }))
    }
}

struct FidelityCall {
    program: Arc<FidelityProgram>,
    io: Arc<Io>,
}

impl Call for FidelityCall {
    fn run(&mut self) -> Result<CallStats, EvalError> {
        let begin = Instant::now();
        let program = &*self.program;
        let failed = |text: String| EvalError::Failed { program: program.name.clone(), text };
        let mut space = Space::new(&self.io, &[], None);
        let mut inputs = Vec::new();
        for (i, port) in program.ports(Dir::In) {
            let (reads, _) = space.lend(&[Span { buf: Buf::Input(i), low: 0, len: port.bytes / 2 }], &[]);
            let bytes: &[u8] = bytemuck::cast_slice(reads[0]);
            inputs.push(load(port, bytes).map_err(failed)?);
        }
        for ((i, port), result) in program.ports(Dir::Out).zip(program.run(inputs).map_err(failed)?) {
            let (_, mut writes) = space.lend(&[], &[Span { buf: Buf::Output(i), low: 0, len: port.bytes / 2 }]);
            save(port, &result, bytemuck::cast_slice_mut(writes[0]));
        }
        Ok(CallStats { elapsed: begin.elapsed(), ..CallStats::default() })
    }
}

/// The tensor in a port's rows.
fn load(port: &Port, bytes: &[u8]) -> Result<Tensor, String> {
    let (rows, cols) = (port.rows(), port.cols());
    let mut data = Vec::with_capacity(rows * cols);
    for row in bytes.chunks(port.row_stride).take(rows) {
        data.extend(constants::numbers(port.ty.dtype, row, cols)?);
    }
    Ok(Tensor { dtype: port.ty.dtype, dims: port.ty.dims(), data })
}

/// Writes a tensor into a port's rows.
fn save(port: &Port, tensor: &Tensor, bytes: &mut [u8]) {
    let width = port.ty.dtype.bits() as usize / 8;
    for (row, values) in bytes.chunks_mut(port.row_stride).zip(tensor.data.chunks(port.cols())) {
        for (place, &x) in row.chunks_exact_mut(width).zip(values) {
            place.copy_from_slice(&constants::bytes(port.ty.dtype, x)[..width]);
        }
    }
}
