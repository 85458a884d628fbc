//! Which function evaluates which op.

use super::args::Args;
use super::tensor::Tensor;
use super::{moves, pointwise, products, reduce};
use mil::ops::OpKind;

/// Evaluates an op: one tensor for each result.
pub(super) type Rule = fn(&Args<'_>) -> Result<Vec<Tensor>, String>;

/// The op's rule; `None`: it is not emulated.
pub(super) fn rule(kind: OpKind) -> Option<Rule> {
    Some(match kind {
        // The literal is the value.
        OpKind::Const => return None,
        OpKind::Add | OpKind::Sub | OpKind::Mul | OpKind::RealDiv | OpKind::Maximum | OpKind::Minimum | OpKind::Pow => pointwise::two,
        OpKind::Sigmoid | OpKind::Tanh | OpKind::Relu | OpKind::Silu | OpKind::Exp | OpKind::Sqrt | OpKind::Rsqrt | OpKind::Log => {
            pointwise::one
        }
        OpKind::Cast => pointwise::cast,
        OpKind::Softmax => reduce::softmax_op,
        OpKind::ReduceSum | OpKind::ReduceMean | OpKind::ReduceMax => reduce::reduce,
        OpKind::Reshape | OpKind::ExpandDims | OpKind::Squeeze => moves::relabel,
        OpKind::Transpose => moves::transpose,
        OpKind::SliceBySize | OpKind::SliceByIndex => moves::slice,
        OpKind::Split => moves::split,
        OpKind::Concat => moves::concat,
        OpKind::Tile => moves::tile,
        OpKind::Matmul => products::matmul,
        OpKind::Conv => products::conv,
        OpKind::ScaledDotProductAttention => products::attention,
        _ => return None,
    })
}
