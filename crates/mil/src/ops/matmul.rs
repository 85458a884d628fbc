//! `matmul`.

use super::{Call, Cost, Domain, Kind, Lit, Need, OpDef, Param, Reject};
use crate::ir::{DType, Opset, Type};

/// Batched matrix product over the last two axes; leading axes broadcast.
pub(super) const MATMUL: OpDef = OpDef {
    name: "matmul",
    doc: "Batched matrix product over the last two axes; leading axes broadcast.",
    opsets: (Opset::Ios15, Opset::Ios18),
    params: &[
        Param { name: "x", kind: Kind::Tensor, domain: Domain::T(&[DType::F16, DType::F32, DType::I32]), need: Need::Required },
        Param { name: "y", kind: Kind::Tensor, domain: Domain::T(&[DType::F16, DType::F32, DType::I32]), need: Need::Required },
        Param { name: "transpose_x", kind: Kind::Const, domain: Domain::Free(&[DType::Bool]), need: Need::Default(Lit::False) },
        Param { name: "transpose_y", kind: Kind::Const, domain: Domain::Free(&[DType::Bool]), need: Need::Default(Lit::False) },
    ],
    infer: Some(infer),
    cost: |call, out| {
        let inner = call.ty(0).ok().and_then(|x| {
            let axis = x.shape.len().checked_sub(if call.flag(2).unwrap_or(false) { 2 } else { 1 })?;
            x.shape.get(axis).copied()
        });
        let mut cost = Cost::moves(call, out);
        cost.flops = 2 * inner.unwrap_or(1) * out.iter().map(|t| t.numel() as u64).sum::<u64>();
        cost
    },
};

fn infer(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    let (x, y) = (call.ty(0)?, call.ty(1)?);
    let split = |t: &Type, flip: bool, param: &'static str| match t.shape.as_slice() {
        [batch @ .., rows, cols] => Ok((batch.to_vec(), if flip { (*cols, *rows) } else { (*rows, *cols) })),
        short => {
            Err(Reject { param, message: format!("has rank {}", short.len()), help: "matmul wants at least two axes: expand_dims first" })
        }
    };
    let (batch_x, (m, k)) = split(&x, call.flag(2)?, "x")?;
    let (batch_y, (inner, n)) = split(&y, call.flag(3)?, "y")?;
    if k != inner {
        let message = format!("has inner length {inner} where x has {k}");
        return Err(Reject { param: "y", message, help: "check transpose_x and transpose_y" });
    }
    let mut shape = super::broadcast(&batch_x, &batch_y).ok_or_else(|| Reject {
        param: "y",
        message: format!("has leading axes {batch_y:?} where x has {batch_x:?}"),
        help: "leading axes must be equal or 1",
    })?;
    shape.extend([m, n]);
    Ok(vec![Type { dtype: x.dtype, shape }])
}
