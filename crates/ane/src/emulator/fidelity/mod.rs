//! The second evaluator: slow and obvious. Whole programs, op by op on dense tensors, nothing planned, nothing fused.
//!
//! It shares no code with the fast emulator but the op table's reading of arguments, and serves three ends:
//!
//! * **fidelity**: the chip's own arithmetic as far as it was measured (ane-measurements 1.1 to 1.3 and 1.8): `mac`, the
//!   multiply-accumulate; `table`, the activations; `rules`, roundings and special values, per chip generation;
//! * **exact**: what the language means: every op in f64, rounded once to its result's type. fp32 and integers too;
//! * the judge of the fast emulator, in tests and fuzzing.
//!
//! The chip computes fp16 only. Under fidelity an op on fp32 or integers is taken to run elsewhere, exactly.

mod activation;
mod args;
mod constants;
mod encoded;
mod mac;
mod moves;
mod normalize;
mod ops;
mod pointwise;
mod products;
mod program;
mod recurrent;
mod reduce;
mod rules;
mod table;
mod tensor;

pub use mac::Mac;
pub(super) use ops::runs;
pub(super) use program::FidelityProgram;
pub(super) use rules::Rules;
