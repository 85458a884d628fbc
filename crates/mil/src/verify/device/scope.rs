//! What a rule looks at.

use crate::Handle;
use crate::ir::{Arg, Blobs, Chip, Function, Literal, Op, Program, Value};
use crate::live::values;
use crate::ops::{Call, OpKind};

/// What a rule looks at: a function, its surroundings, and who uses which of its values.
pub(super) struct Scope<'a> {
    pub(super) program: &'a Program,
    pub(super) function: &'a Function,
    pub(super) blobs: &'a Blobs,
    pub(super) chip: Chip,
    /// By index of the value: the ops that take it, and as what.
    uses: Vec<Vec<(&'a Op, &'a str)>>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(program: &'a Program, function: &'a Function, blobs: &'a Blobs, chip: Chip) -> Scope<'a> {
        let mut uses = vec![Vec::new(); function.values.len()];
        for (_, op) in function.ops.iter() {
            for (name, arg) in &op.args {
                values(arg).iter().for_each(|v| uses[v.index()].push((op, name.as_str())));
            }
        }
        Scope { program, function, blobs, chip, uses }
    }

    /// Ops of a kind, resolved.
    pub(super) fn calls(&self, kind: OpKind) -> impl Iterator<Item = Call<'a>> {
        self.every().filter(move |call| call.op.kind == kind)
    }

    /// All ops, resolved.
    pub(super) fn every(&self) -> impl Iterator<Item = Call<'a>> {
        let function = self.function;
        function.ops.iter().filter_map(|(_, op)| Call::new(function, op).ok())
    }

    pub(super) fn name(&self, op: &Op) -> &'a str {
        op.results.first().map_or("", |v| self.function.values[*v].name.as_str())
    }

    /// The op that makes a value; `None` for parameters.
    pub(super) fn maker(&self, v: Handle<Value>) -> Option<&'a Op> {
        match self.function.values[v].def {
            crate::ir::Def::Op(op, _) => Some(&self.function.ops[op]),
            crate::ir::Def::Param(_) => None,
        }
    }

    /// The ops that take a value, and as what.
    pub(super) fn uses(&self, v: Handle<Value>) -> &[(&'a Op, &'a str)] {
        &self.uses[v.index()]
    }

    /// Parameters and results.
    pub(super) fn ports(&self) -> impl Iterator<Item = (Handle<Value>, &'a Value)> {
        let function = self.function;
        function.params.iter().chain(&function.results).map(|v| (*v, &function.values[*v]))
    }

    pub(super) fn is_constant(&self, v: Handle<Value>) -> bool {
        self.function.is_constant(v)
    }

    /// Whether `v` is used as the weight of `conv` and not otherwise: a port whose width is 1, kernels being 1 × 1.
    pub(super) fn is_conv_weight(&self, v: Handle<Value>) -> bool {
        let uses = self.uses(v);
        !uses.is_empty()
            && uses.iter().all(|(op, name)| op.kind == OpKind::Conv && *name == "weight")
            && !self.function.results.contains(&v)
    }

    /// Literals of an op: those of its attributes and those that stand in place of values.
    pub(super) fn literals(op: &'a Op) -> impl Iterator<Item = &'a Literal> {
        let args = op.args.iter().filter_map(|(_, arg)| if let Arg::Literal(l) = arg { Some(l) } else { None });
        op.attrs.iter().map(|(_, l)| l).chain(args)
    }

    /// Paths and offsets of constants in weight files.
    pub(super) fn in_files(&self) -> impl Iterator<Item = (&'a Op, &'a str, u64)> {
        self.function.ops.iter().flat_map(|(_, op)| {
            Self::literals(op).filter_map(move |l| match l {
                Literal::Blob { path, offset, .. } => Some((op, path.as_str(), *offset)),
                _ => None,
            })
        })
    }
}
