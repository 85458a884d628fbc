//! Constants, control flow, lists and states. Blocks inside an op have no text form that is read here.

use super::{
    ALL, BOOL, Call, Cost, Domain, FROM_18, I32, Kind, Lit, MOVABLE, MOVABLE_15, Need, OpDef, Param, Reject, STRING, constant, list, op,
    same, tensor,
};
use crate::ir::{DType, Type};

pub(super) const CONST_SYMBOLIC: OpDef =
    op("_const_symbolic", "A constant whose value is not known: the value of attribute `val`.", ALL, &[], Some(value), nothing);
pub(super) const CONST: OpDef = op("const", "A constant: the value of attribute `val`.", ALL, &[], Some(value), nothing);
pub(super) const CLASSIFY: OpDef = op(
    "classify",
    "The class with the highest probability, and all classes with theirs.",
    ALL,
    &[tensor("probabilities", Domain::Free(&[DType::F32])), constant("classes", STRING, Need::Required)],
    None,
    nothing,
);
pub(super) const COND: OpDef = op("cond", "One of two blocks, by `pred`.", ALL, &[tensor("pred", BOOL)], None, nothing);
pub(super) const WHILE_LOOP: OpDef =
    op("while_loop", "A block repeated while another gives true.", ALL, &[list("loop_vars", Domain::Free(MOVABLE))], None, nothing);
pub(super) const MAKE_LIST: OpDef = op(
    "make_list",
    "An empty list of tensors.",
    ALL,
    &[
        Param { name: "init_length", kind: Kind::Tensor, domain: I32, need: Need::Default(Lit::Int(1)) },
        constant("dynamic_length", BOOL, Need::Default(Lit::True)),
        list("elem_shape", I32),
        constant("dtype", STRING, Need::Default(Lit::Text("fp32"))),
    ],
    None,
    nothing,
);
pub(super) const LIST_GATHER: OpDef = op(
    "list_gather",
    "Elements of a list at `indices`.",
    ALL,
    &[tensor("ls", Domain::Free(MOVABLE)), tensor("indices", I32)],
    None,
    nothing,
);
pub(super) const LIST_LENGTH: OpDef =
    op("list_length", "The length of a list.", ALL, &[tensor("ls", Domain::Free(MOVABLE))], None, nothing);
pub(super) const LIST_READ: OpDef =
    op("list_read", "The element of a list at `index`.", ALL, &[tensor("ls", Domain::Free(MOVABLE)), tensor("index", I32)], None, nothing);
pub(super) const LIST_SCATTER: OpDef = op(
    "list_scatter",
    "A list with elements at `indices` replaced.",
    ALL,
    &[tensor("ls", Domain::Free(MOVABLE)), tensor("indices", I32), tensor("value", Domain::T(MOVABLE_15))],
    None,
    nothing,
);
pub(super) const LIST_WRITE: OpDef = op(
    "list_write",
    "A list with the element at `index` replaced.",
    ALL,
    &[tensor("ls", Domain::Free(MOVABLE)), tensor("index", I32), tensor("value", Domain::T(MOVABLE_15))],
    None,
    nothing,
);
/// coremltools' serializer makes it of `coreml_update_state`; it gives nothing.
pub(super) const WRITE_STATE: OpDef = op(
    "write_state",
    "Replaces the value of a state by `data`.",
    FROM_18,
    &[tensor("input", Domain::T(MOVABLE)), tensor("data", Domain::T(MOVABLE))],
    Some(write_state),
    Cost::moves,
);
pub(super) const READ_STATE: OpDef =
    op("read_state", "The value of a state.", FROM_18, &[tensor("input", Domain::Free(MOVABLE))], Some(same), Cost::moves);

fn value(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    Ok(call.op.attr("val").iter().map(|l| l.ty()).collect())
}

fn nothing(_: &Call<'_>, _: &[Type]) -> Cost {
    Cost { flops: 0, bytes: 0 }
}

/// The state keeps its type.
fn write_state(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let (state, data) = (call.ty(0)?, call.ty(1)?);
    if data.shape != state.shape {
        return Err(call.reject(1, format!("has shape {:?} where the state has {:?}", data.shape, state.shape), "a state keeps its shape"));
    }
    Ok(Vec::new())
}
