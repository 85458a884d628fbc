//! What ops cost.

use super::Call;
use crate::ir::{Function, Type};
use std::ops::Add;

/// What an op costs: arithmetic and bytes moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Floating-point operations; a multiply-add is two, a transcendental function one.
    pub flops: u64,
    /// Bytes read and written.
    pub bytes: u64,
}

impl Add for Cost {
    type Output = Cost;
    fn add(self, other: Cost) -> Cost {
        Cost { flops: self.flops.saturating_add(other.flops), bytes: self.bytes.saturating_add(other.bytes) }
    }
}

impl Cost {
    /// The bytes of all tensor arguments and results, and no arithmetic.
    pub fn moves(call: &Call<'_>, results: &[Type]) -> Cost {
        let bytes = call.operands().map(|t| t.bytes()).chain(results.iter().map(Type::bytes)).fold(0, u64::saturating_add);
        Cost { flops: 0, bytes }
    }

    /// [`Cost::moves`] with `flops` for each element of the results.
    pub(super) fn each(call: &Call<'_>, results: &[Type], flops: u64) -> Cost {
        let elements = results.iter().map(|t| t.numel() as u64).fold(0, u64::saturating_add);
        Cost { flops: elements.saturating_mul(flops), ..Cost::moves(call, results) }
    }
}

/// The cost of all ops of a function, as the op table estimates it. Ops that do not resolve count nothing.
pub fn program_cost(function: &Function) -> Cost {
    let one = |call: Call<'_>| {
        let results: Vec<Type> = call.op.results.iter().map(|v| function.values[*v].ty.clone()).collect();
        (call.def.cost)(&call, &results)
    };
    function.ops.iter().filter_map(|(_, op)| Call::new(function, op).ok()).map(one).fold(Cost::default(), Cost::add)
}
