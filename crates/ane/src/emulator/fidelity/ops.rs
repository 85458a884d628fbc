//! Which function evaluates which op.

use super::args::Args;
use super::tensor::Tensor;
use super::{activation, encoded, moves, normalize, pointwise, products, recurrent, reduce};
use mil::ops::OpKind;

/// Evaluates an op: one tensor for each result.
pub(super) type Rule = fn(&Args<'_>) -> Result<Vec<Tensor>, String>;

/// The op's rule; `None`: it is not emulated, or is a constant as it stands.
pub(super) fn rule(kind: OpKind) -> Option<Rule> {
    use OpKind::*;
    Some(match kind {
        Add | Sub | Mul | RealDiv | FloorDiv | Mod | Maximum | Minimum | Pow | Equal | NotEqual | Greater | GreaterEqual | Less
        | LessEqual | LogicalAnd | LogicalOr | LogicalXor => pointwise::two,
        Select => pointwise::select,
        Abs | Acos | Asin | Atan | Atanh | Ceil | Cos | Cosh | Erf | Exp | Exp2 | Floor | Round | Sign | Sin | Sinh | Sqrt | Square
        | Tan | Tanh | LogicalNot | Inverse | Rsqrt | Log | Identity => pointwise::one,
        Cast => pointwise::cast,
        Relu | Relu6 | Clip | Threshold | Sigmoid | Silu | Gelu | Softplus | SoftplusParametric | Softsign | ClampedRelu | Elu
        | LeakyRelu | Prelu | LinearActivation | ScaledTanh | SigmoidHard | ThresholdedRelu => activation::activation,
        Softmax => reduce::softmax_op,
        Cumsum => reduce::cumsum,
        ReduceSum | ReduceMean | ReduceMax | ReduceMin | ReduceProd | ReduceL1Norm | ReduceL2Norm | ReduceLogSum | ReduceLogSumExp
        | ReduceSumSquare | ReduceArgmax | ReduceArgmin => reduce::reduce,
        BatchNorm => normalize::batch_norm,
        InstanceNorm => normalize::instance_norm,
        LayerNorm => normalize::layer_norm,
        L2Norm => normalize::l2_norm,
        Reshape | ExpandDims | Squeeze | Flatten2d => moves::relabel,
        Transpose => moves::transpose,
        SliceBySize | SliceByIndex => moves::slice,
        Split => moves::split,
        Concat => moves::concat,
        Stack => moves::stack,
        Tile => moves::tile,
        Reverse => moves::reverse,
        Pad => moves::pad,
        Fill | FillLike => moves::fill,
        Shape => moves::shape,
        Gather => moves::gather,
        GatherAlongAxis => moves::gather_along_axis,
        Matmul => products::matmul,
        Linear => products::linear,
        Conv => products::conv,
        ScaledDotProductAttention => products::attention,
        Lstm => recurrent::lstm,
        Quantize => encoded::quantize,
        Dequantize => encoded::dequantize,
        ConstexprAffineDequantize => encoded::affine_dequantize,
        ConstexprBlockwiseShiftScale => encoded::blockwise,
        ConstexprCast => encoded::constant_cast,
        ConstexprLutToDense => encoded::lut_to_dense,
        ConstexprSparseToDense => encoded::sparse_to_dense,
        _ => return None,
    })
}

/// Whether programs with this op run here.
pub(in crate::emulator) fn runs(kind: OpKind) -> bool {
    kind == OpKind::Const || rule(kind).is_some()
}
