//! Ops that order or find elements.

use super::{
    ALL, BOOL, Call, Cost, Domain, FLOATS, FROM_17, GATHERABLE, I32, INDICES, Lit, MOVABLE_15, NUMBERS, Need, ONLY_15, ONLY_16, OpDef,
    Reject, STRING, TO_16, constant, op, tensor,
};
use crate::ir::{DType, Type};

pub(super) const ARGSORT: OpDef = op(
    "argsort",
    "Positions of the elements in order along `axis`.",
    ALL,
    &[
        tensor("x", Domain::T(NUMBERS)),
        constant("axis", I32, Need::Default(Lit::Int(-1))),
        constant("ascending", BOOL, Need::Default(Lit::False)),
    ],
    Some(argsort),
    Cost::moves,
);
pub(super) const TOPK_15: OpDef = op(
    "topk",
    "The `k` largest elements along `axis`, and their positions.",
    ONLY_15,
    &[
        tensor("x", Domain::T(NUMBERS)),
        constant("k", I32, Need::Default(Lit::Int(1))),
        constant("axis", I32, Need::Default(Lit::Int(-1))),
        constant("ascending", BOOL, Need::Default(Lit::False)),
    ],
    None,
    Cost::moves,
);
pub(super) const TOPK_16: OpDef = op(
    "topk",
    "The `k` largest elements along `axis`, and their positions.",
    ONLY_16,
    &[
        tensor("x", Domain::T(NUMBERS)),
        constant("k", I32, Need::Default(Lit::Int(1))),
        constant("axis", I32, Need::Default(Lit::Int(-1))),
        constant("ascending", BOOL, Need::Default(Lit::False)),
        constant("sort", BOOL, Need::Default(Lit::True)),
        constant("return_indices", BOOL, Need::Default(Lit::True)),
    ],
    None,
    Cost::moves,
);
pub(super) const TOPK: OpDef = op(
    "topk",
    "The `k` largest elements along `axis`, and their positions.",
    FROM_17,
    &[
        tensor("x", Domain::T(GATHERABLE)),
        constant("k", Domain::Free(INDICES), Need::Default(Lit::Int(1))),
        constant("axis", I32, Need::Default(Lit::Int(-1))),
        constant("ascending", BOOL, Need::Default(Lit::False)),
        constant("sort", BOOL, Need::Default(Lit::True)),
        constant("return_indices", BOOL, Need::Default(Lit::True)),
        constant("output_indices_dtype", STRING, Need::Default(Lit::Text("int32"))),
    ],
    None,
    Cost::moves,
);
pub(super) const NON_ZERO: OpDef =
    op("non_zero", "Positions of the elements that are not zero.", ALL, &[tensor("x", Domain::T(MOVABLE_15))], None, Cost::moves);
pub(super) const NON_MAXIMUM_SUPPRESSION_15: OpDef = op(
    "non_maximum_suppression",
    "Boxes that do not overlap better ones.",
    TO_16,
    &[
        tensor("boxes", Domain::T(FLOATS)),
        tensor("scores", Domain::T(FLOATS)),
        constant("iou_threshold", Domain::T(FLOATS), Need::Required),
        constant("score_threshold", Domain::T(FLOATS), Need::Required),
        constant("max_boxes", I32, Need::Required),
        constant("per_class_suppression", BOOL, Need::Default(Lit::False)),
    ],
    None,
    Cost::moves,
);
pub(super) const NON_MAXIMUM_SUPPRESSION: OpDef = op(
    "non_maximum_suppression",
    "Boxes that do not overlap better ones.",
    FROM_17,
    &[
        tensor("boxes", Domain::T(FLOATS)),
        tensor("scores", Domain::T(FLOATS)),
        constant("iou_threshold", Domain::T(FLOATS), Need::Required),
        constant("max_boxes", I32, Need::Required),
        constant("per_class_suppression", BOOL, Need::Default(Lit::False)),
    ],
    None,
    Cost::moves,
);

fn argsort(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let x = call.ty(0)?;
    call.axis(1, x.shape.len())?;
    Ok(vec![Type { dtype: DType::I32, shape: x.shape }])
}
