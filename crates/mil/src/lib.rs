//! MIL, the language in which programs are sent to the Neural Engine.
//!
//! A [`Program`] holds [`Function`]s; a function holds values and the ops that make them, in single assignment form and
//! in the order of execution. The path through this crate is
//!
//! ```text
//! text ──parse──▶ Program ──verify──▶ Verified ──▶ a device
//!                   ▲                    │
//!        Builder ───┘                    └──print──▶ text
//! ```
//!
//! * [`ir`]: programs as data: arenas with typed handles, types, literals, source spans.
//! * [`ops`]: the **op table**, the one place that says what each op is called, takes, gives and costs. Parser checks,
//!   verifier, emulator coverage and docs are driven by it.
//! * [`Builder`]: typed construction in Rust; errors at the call site.
//! * [`parse`] and [`print`](fn@print): the text form, in both dialects; `print ∘ parse` is the identity on canonical text.
//!   [`fmt`](fn@fmt) lays a text out anew and keeps its comments.
//! * [`verify`]: the only maker of [`Verified`], which devices demand. Verified means: nothing downstream panics.
//! * [`blob`]: weight files in Apple's storage format.
#![forbid(unsafe_code)]

mod arena;
pub mod blob;
mod builder;
mod diagnostic;
pub mod ir;
mod live;
pub mod ops;
mod text;
mod verify;
mod word;

pub use arena::{Arena, Handle};
pub use builder::{BuildError, Builder, Conv, Val};
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use ir::{Arg, Blobs, Chip, DType, Def, Function, Literal, Op, Opset, Profile, Program, Span, Type, Value};
pub use text::{fmt, parse, print};
pub use verify::{LINTS, Lint, Verified, verify};
