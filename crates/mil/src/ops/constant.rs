//! `const`.

use super::{ALL, Cost, OpDef};

/// The value of attribute `val`.
pub(super) const CONST: OpDef = OpDef {
    name: "const",
    doc: "A constant: the value of attribute `val`.",
    opsets: ALL,
    params: &[],
    infer: Some(|call| Ok(call.op.attr("val").iter().map(|l| l.ty()).collect())),
    cost: |_, _| Cost { flops: 0, bytes: 0 },
};
