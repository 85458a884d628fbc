//! Recurrent networks.

use super::{BOOL, Call, Cost, Domain, FLOATS, FROM_17, FROM_18, Lit, Need, ONLY_17, OpDef, Reject, STRING, TO_16, constant, op, tensor};
use crate::ir::{DType, Type};

pub(super) const LSTM_15: OpDef = op(
    "lstm",
    "Long short-term memory over `x` [steps, batch, in]: the hidden states, the last of them, the last cell state. Gates lie in the order input, forget, output, cell.",
    TO_16,
    &[
        tensor("x", Domain::T(&[DType::F32])),
        tensor("initial_h", Domain::T(&[DType::F32])),
        tensor("initial_c", Domain::T(&[DType::F32])),
        constant("weight_ih", Domain::T(&[DType::F32]), Need::Required),
        constant("weight_hh", Domain::T(&[DType::F32]), Need::Required),
        constant("bias", Domain::T(&[DType::F32]), Need::Optional),
        constant("peephole", Domain::T(&[DType::F32]), Need::Optional),
        constant("weight_ih_back", Domain::T(&[DType::F32]), Need::Optional),
        constant("weight_hh_back", Domain::T(&[DType::F32]), Need::Optional),
        constant("bias_back", Domain::T(&[DType::F32]), Need::Optional),
        constant("peephole_back", Domain::T(&[DType::F32]), Need::Optional),
        constant("direction", STRING, Need::Default(Lit::Text("forward"))),
        constant("output_sequence", BOOL, Need::Default(Lit::False)),
        constant("recurrent_activation", STRING, Need::Default(Lit::Text("sigmoid"))),
        constant("cell_activation", STRING, Need::Default(Lit::Text("tanh"))),
        constant("activation", STRING, Need::Default(Lit::Text("tanh"))),
        constant("clip", Domain::T(&[DType::F32]), Need::Optional),
    ],
    Some(lstm),
    lstm_cost,
);
pub(super) const LSTM: OpDef = op(
    "lstm",
    "Long short-term memory over `x` [steps, batch, in]: the hidden states, the last of them, the last cell state. Gates lie in the order input, forget, output, cell.",
    FROM_17,
    &[
        tensor("x", Domain::T(FLOATS)),
        tensor("initial_h", Domain::T(FLOATS)),
        tensor("initial_c", Domain::T(FLOATS)),
        constant("weight_ih", Domain::T(FLOATS), Need::Required),
        constant("weight_hh", Domain::T(FLOATS), Need::Required),
        constant("bias", Domain::T(FLOATS), Need::Optional),
        constant("peephole", Domain::T(FLOATS), Need::Optional),
        constant("weight_ih_back", Domain::T(FLOATS), Need::Optional),
        constant("weight_hh_back", Domain::T(FLOATS), Need::Optional),
        constant("bias_back", Domain::T(FLOATS), Need::Optional),
        constant("peephole_back", Domain::T(FLOATS), Need::Optional),
        constant("direction", STRING, Need::Default(Lit::Text("forward"))),
        constant("output_sequence", BOOL, Need::Default(Lit::False)),
        constant("recurrent_activation", STRING, Need::Default(Lit::Text("sigmoid"))),
        constant("cell_activation", STRING, Need::Default(Lit::Text("tanh"))),
        constant("activation", STRING, Need::Default(Lit::Text("tanh"))),
        constant("clip", Domain::T(FLOATS), Need::Optional),
    ],
    Some(lstm),
    lstm_cost,
);
pub(super) const GRU_15: OpDef = op(
    "gru",
    "Gated recurrent unit over `x` [steps, batch, in]: the hidden states, and the last of them.",
    TO_16,
    &[
        tensor("x", Domain::T(&[DType::F32])),
        tensor("initial_h", Domain::T(&[DType::F32])),
        constant("weight_ih", Domain::T(&[DType::F32]), Need::Required),
        constant("weight_hh", Domain::T(&[DType::F32]), Need::Required),
        constant("bias", Domain::T(&[DType::F32]), Need::Optional),
        constant("direction", STRING, Need::Default(Lit::Text("forward"))),
        constant("output_sequence", BOOL, Need::Default(Lit::False)),
        constant("recurrent_activation", STRING, Need::Default(Lit::Text("sigmoid"))),
        constant("activation", STRING, Need::Default(Lit::Text("tanh"))),
    ],
    Some(|call| recurrent(call, 3, 1)),
    |call, out| recurrent_cost(call, out, 3),
);
pub(super) const GRU_17: OpDef = op(
    "gru",
    "Gated recurrent unit over `x` [steps, batch, in]: the hidden states, and the last of them.",
    ONLY_17,
    &[
        tensor("x", Domain::T(FLOATS)),
        tensor("initial_h", Domain::T(FLOATS)),
        constant("weight_ih", Domain::T(FLOATS), Need::Required),
        constant("weight_hh", Domain::T(FLOATS), Need::Required),
        constant("bias", Domain::T(FLOATS), Need::Optional),
        constant("direction", STRING, Need::Default(Lit::Text("forward"))),
        constant("output_sequence", BOOL, Need::Default(Lit::False)),
        constant("recurrent_activation", STRING, Need::Default(Lit::Text("sigmoid"))),
        constant("activation", STRING, Need::Default(Lit::Text("tanh"))),
    ],
    Some(|call| recurrent(call, 3, 1)),
    |call, out| recurrent_cost(call, out, 3),
);
pub(super) const GRU: OpDef = op(
    "gru",
    "Gated recurrent unit over `x` [steps, batch, in]: the hidden states, and the last of them.",
    FROM_18,
    &[
        tensor("x", Domain::T(FLOATS)),
        tensor("initial_h", Domain::T(FLOATS)),
        constant("weight_ih", Domain::T(FLOATS), Need::Required),
        constant("weight_hh", Domain::T(FLOATS), Need::Required),
        constant("bias", Domain::T(FLOATS), Need::Optional),
        constant("direction", STRING, Need::Default(Lit::Text("forward"))),
        constant("output_sequence", BOOL, Need::Default(Lit::False)),
        constant("recurrent_activation", STRING, Need::Default(Lit::Text("sigmoid"))),
        constant("activation", STRING, Need::Default(Lit::Text("tanh"))),
        constant("reset_after", BOOL, Need::Optional),
        constant("input_bias", Domain::T(FLOATS), Need::Optional),
    ],
    Some(|call| recurrent(call, 3, 1)),
    |call, out| recurrent_cost(call, out, 3),
);
pub(super) const RNN_15: OpDef = op(
    "rnn",
    "Simple recurrent unit over `x` [steps, batch, in]: the hidden states, and the last of them.",
    TO_16,
    &[
        tensor("x", Domain::T(&[DType::F32])),
        tensor("initial_h", Domain::T(&[DType::F32])),
        constant("weight_ih", Domain::T(&[DType::F32]), Need::Required),
        constant("weight_hh", Domain::T(&[DType::F32]), Need::Required),
        constant("bias", Domain::T(&[DType::F32]), Need::Optional),
        constant("direction", STRING, Need::Default(Lit::Text("forward"))),
        constant("output_sequence", BOOL, Need::Default(Lit::False)),
        constant("activation", STRING, Need::Default(Lit::Text("tanh"))),
    ],
    Some(|call| recurrent(call, 1, 1)),
    |call, out| recurrent_cost(call, out, 1),
);
pub(super) const RNN: OpDef = op(
    "rnn",
    "Simple recurrent unit over `x` [steps, batch, in]: the hidden states, and the last of them.",
    FROM_17,
    &[
        tensor("x", Domain::T(FLOATS)),
        tensor("initial_h", Domain::T(FLOATS)),
        constant("weight_ih", Domain::T(FLOATS), Need::Required),
        constant("weight_hh", Domain::T(FLOATS), Need::Required),
        constant("bias", Domain::T(FLOATS), Need::Optional),
        constant("direction", STRING, Need::Default(Lit::Text("forward"))),
        constant("output_sequence", BOOL, Need::Default(Lit::False)),
        constant("activation", STRING, Need::Default(Lit::Text("tanh"))),
    ],
    Some(|call| recurrent(call, 1, 1)),
    |call, out| recurrent_cost(call, out, 1),
);

/// Checks a weight's shape.
fn expect(call: &Call<'_>, i: usize, wanted: &[u64]) -> Result<(), Reject> {
    if !call.has(i) || call.ty(i)?.shape == wanted {
        return Ok(());
    }
    Err(call.reject(i, format!("has shape {:?}, not {wanted:?}", call.ty(i)?.shape), "gates lie one after another along axis 0"))
}

/// Checks that string parameter `i` is one of `known`.
fn one_of(call: &Call<'_>, i: usize, known: &[&str], help: &'static str) -> Result<(), Reject> {
    let word = call.text(i)?;
    if known.contains(&word.as_str()) { Ok(()) } else { Err(call.reject(i, format!("is \"{word}\""), help)) }
}

fn gate_function(call: &Call<'_>, i: usize) -> Result<(), Reject> {
    const KNOWN: &[&str] = &["tanh", "scaled_tanh", "sigmoid", "sigmoid_hard", "hard_sigmoid", "relu", "linear"];
    one_of(call, i, KNOWN, "use tanh, scaled_tanh, sigmoid, hard_sigmoid, relu or linear")
}

/// Steps, batch, inputs of `x`, and the hidden size that `weight_hh` has for so many gates.
fn sizes_of(call: &Call<'_>, weight: usize, gates: u64) -> Result<[u64; 4], Reject> {
    let (x, hh) = (call.ty(0)?.shape, call.ty(weight + 1)?.shape);
    let &[steps, batch, inputs] = x.as_slice() else {
        return Err(call.reject(0, format!("has rank {}", x.len()), "x is [steps, batch, in]"));
    };
    match hh.as_slice() {
        &[rows, hidden] if hidden.checked_mul(gates) == Some(rows) => Ok([steps, batch, inputs, hidden]),
        _ => Err(call.reject(weight + 1, format!("has shape {hh:?}"), "weight_hh is [gates × hidden, hidden]")),
    }
}

fn lstm(call: &Call<'_>) -> Result<Vec<Type>, Reject> {
    const DIRECTION: usize = 11;
    let [steps, batch, inputs, hidden] = sizes_of(call, 3, 4)?;
    one_of(call, DIRECTION, &["forward", "reverse", "bidirectional"], "use forward, reverse or bidirectional")?;
    let both = call.text(DIRECTION)? == "bidirectional";
    for i in [13, 14, 15] {
        gate_function(call, i)?;
    }
    expect(call, 3, &[4 * hidden, inputs])?;
    expect(call, 5, &[4 * hidden])?;
    expect(call, 6, &[3 * hidden])?;
    if both {
        for i in [7, 8] {
            if !call.has(i) {
                return Err(call.reject(i, "is missing", "a bidirectional lstm has weights for both directions"));
            }
        }
        expect(call, 7, &[4 * hidden, inputs])?;
        expect(call, 8, &[4 * hidden, hidden])?;
        expect(call, 9, &[4 * hidden])?;
        expect(call, 10, &[3 * hidden])?;
    }
    let width = if both { 2 * hidden } else { hidden };
    expect(call, 1, &[batch, width])?;
    expect(call, 2, &[batch, width])?;
    let ty = |shape: Vec<u64>| Ok(Type { dtype: call.ty(0)?.dtype, shape });
    let steps = if call.flag(12)? { steps } else { 1 };
    Ok(vec![ty(vec![steps, batch, width])?, ty(vec![batch, width])?, ty(vec![batch, width])?])
}

/// `gru` and `rnn`: one direction, one state. `param` is the index of `initial_h`.
fn recurrent(call: &Call<'_>, gates: u64, param: usize) -> Result<Vec<Type>, Reject> {
    let [steps, batch, inputs, hidden] = sizes_of(call, param + 1, gates)?;
    one_of(call, 5, &["forward", "reverse"], "use forward or reverse")?;
    for i in 7..call.def.params.len() {
        if call.def.params[i].name.ends_with("activation") {
            gate_function(call, i)?;
        }
    }
    expect(call, param, &[batch, hidden])?;
    expect(call, param + 1, &[gates * hidden, inputs])?;
    expect(call, param + 3, &[gates * hidden])?;
    let ty = |shape: Vec<u64>| Ok(Type { dtype: call.ty(0)?.dtype, shape });
    Ok(vec![ty(vec![if call.flag(6)? { steps } else { 1 }, batch, hidden])?, ty(vec![batch, hidden])?])
}

fn lstm_cost(call: &Call<'_>, out: &[Type]) -> Cost {
    let both = call.text(11).is_ok_and(|d| d == "bidirectional");
    let one = recurrent_steps(call, out, 3, 4);
    if both { one + Cost { bytes: 0, ..one } } else { one }
}

fn recurrent_cost(call: &Call<'_>, out: &[Type], gates: u64) -> Cost {
    recurrent_steps(call, out, 2, gates)
}

/// One step: a matrix product with the input's and one with the state's weights.
fn recurrent_steps(call: &Call<'_>, out: &[Type], weight: usize, gates: u64) -> Cost {
    let Ok([steps, batch, inputs, hidden]) = sizes_of(call, weight, gates) else { return Cost::moves(call, out) };
    let row = inputs.saturating_add(hidden).saturating_mul(2).saturating_add(4);
    let rows = steps.saturating_mul(batch).saturating_mul(gates).saturating_mul(hidden);
    Cost { flops: rows.saturating_mul(row), ..Cost::moves(call, out) }
}
