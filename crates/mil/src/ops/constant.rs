//! `const`.

use super::{Cost, OpDef};
use crate::ir::Opset;

/// The value of attribute `val`.
pub(super) const CONST: OpDef = OpDef {
    name: "const",
    doc: "A constant: the value of attribute `val`.",
    opsets: (Opset::Ios15, Opset::Ios18),
    params: &[],
    infer: Some(|call| Ok(call.op.attr("val").iter().map(|l| l.ty()).collect())),
    cost: |_, _| Cost { flops: 0, bytes: 0 },
};
