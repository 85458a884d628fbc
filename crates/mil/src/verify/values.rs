//! Literals, types, weight files and results.

use super::{Found, title};
use crate::diagnostic::{Diagnostic, Severity};
use crate::ir::{Arg, Blobs, DType, Function, Literal, MAX_CONSTANT_RANK, MAX_RANK, Op, Span, Type};
use crate::ops::{Call, Kind, check_domains};
use std::collections::HashSet;

/// Most bytes of all values of a function together: no machine with a Neural Engine has as much memory. It keeps every
/// size and sum of sizes far from overflow.
const MAX_BYTES: u64 = 1 << 38;

pub(super) fn check(function: &Function, blobs: &Blobs, found: &mut Found) {
    let before = found.len();
    for (v, value) in function.values.iter() {
        check_type(&format!("`{}`", value.name), &value.ty, function.is_constant(v), value.span, found);
    }
    for v in &function.params {
        let value = &function.values[*v];
        if value.ty.dtype == DType::String {
            let message = format!("parameter `{}` is a string", value.name);
            found.push(Diagnostic::error("string", value.span, message, "only constants are strings"));
        }
    }
    for (_, op) in function.ops.iter() {
        let literals = op.attrs.iter().map(|(n, l)| (n, l)).chain(op.args.iter().filter_map(|(n, arg)| match arg {
            Arg::Literal(l) => Some((n, l)),
            _ => None,
        }));
        for (name, literal) in literals {
            let what = format!("`{name}` of {}", title(function, op));
            check_type(&what, &literal.ty(), true, op.span, found);
            check_literal(&what, literal, blobs, op.span, found);
        }
    }
    let total = function.values.iter().map(|(_, v)| v.ty.bytes()).fold(0, u64::saturating_add);
    if total > MAX_BYTES {
        let message = format!("the values of `{}` take {total} bytes together, more than {MAX_BYTES}", function.name);
        found.push(Diagnostic::error("size", function.span, message, "use smaller tensors"));
    }
    // Type rules do arithmetic on shapes; they need them sane.
    if found.len() == before {
        for (_, op) in function.ops.iter() {
            check_call(function, op, found);
        }
        check_results(function, found);
    }
}

fn check_type(what: &str, ty: &Type, constant: bool, span: Span, found: &mut Found) {
    let mut error = |code, message: String, help| found.push(Diagnostic::error(code, span, message, help));
    if ty.shape.contains(&0) {
        error("unknown-dimension", format!("{what} has an unknown dimension, {ty}"), "the chip knows fixed shapes only: write the length");
    }
    let limit = if constant { MAX_CONSTANT_RANK } else { MAX_RANK };
    if ty.shape.len() > limit {
        error("rank", format!("{what} has rank {}, above {limit}", ty.shape.len()), "merge axes with reshape");
    }
}

fn check_literal(what: &str, literal: &Literal, blobs: &Blobs, span: Span, found: &mut Found) {
    let mut error = |code, message: String, help: &str| found.push(Diagnostic::error(code, span, message, help));
    let count = |ty: &Type, n: usize| ty.numel() != n;
    match literal {
        Literal::Text(_) => {}
        Literal::Texts(ty, values) if count(ty, values.len()) => {
            error("literal", format!("{what} has {} elements where its type {ty} has {}", values.len(), ty.numel()), "write one for each");
        }
        Literal::Texts(..) => {}
        Literal::Ints(ty, values) if count(ty, values.len()) => {
            error("literal", format!("{what} has {} elements where its type {ty} has {}", values.len(), ty.numel()), "write one for each");
        }
        Literal::Floats(ty, values) if count(ty, values.len()) => {
            error("literal", format!("{what} has {} elements where its type {ty} has {}", values.len(), ty.numel()), "write one for each");
        }
        Literal::Ints(ty, values) => {
            if let Some(n) = values.iter().find(|n| !ty.dtype.holds(**n)) {
                error("literal", format!("{what} holds {n}, which is no value of {}", ty.dtype), "use a value in range or a wider type");
            }
        }
        Literal::Floats(ty, values) => {
            let exact = |x: f64| ty.dtype.is_float() && (x.is_nan() || ty.dtype.round(x) == x);
            if let Some(x) = values.iter().find(|x| !exact(**x)) {
                error("literal", format!("{what} holds {x}, which is no value of {}", ty.dtype), "round it first");
            }
        }
        Literal::Blob { ty, path, offset } => {
            if let Err(e) = blobs.data(path, *offset, ty) {
                error("blob", format!("{what} in `{path}`: {e}"), "");
            }
        }
    }
}

const NOT_CHECKED: &str = "there is no type rule for this op, or its shape is computed: check by hand";

/// Domains, and declared against given types.
fn check_call(function: &Function, op: &Op, found: &mut Found) {
    let name = title(function, op);
    let given = Call::new(function, op).and_then(|call| {
        check_domains(&call)?;
        call.def.infer.filter(|_| call.sizes_known()).map(|infer| infer(&call)).transpose()
    });
    let types = match given {
        Ok(Some(types)) => types,
        Ok(None) => {
            found.push(Diagnostic {
                severity: Severity::Warning,
                ..Diagnostic::error("not-checked", op.span, format!("the types of {name} are trusted as declared"), NOT_CHECKED)
            });
            return;
        }
        Err(reject) => {
            let message = if reject.param.is_empty() {
                format!("{name} {}", reject.message)
            } else {
                format!("`{}` of {name} {}", reject.param, reject.message)
            };
            let notes = given_constants(function, op, reject.param);
            found.push(Diagnostic { notes, ..Diagnostic::error("argument", op.span, message, reject.help) });
            return;
        }
    };
    if types.len() != op.results.len() {
        let message = format!("{name} declares {} results where the op gives {}", op.results.len(), types.len());
        found.push(Diagnostic::error("results", op.span, message, "declare one value for each result"));
        return;
    }
    for (v, ty) in op.results.iter().zip(types) {
        let value = &function.values[*v];
        if value.ty != ty {
            let message = format!("`{}` is declared {} where {} gives {ty}", value.name, value.ty, op.kind.name());
            found.push(Diagnostic::error("declared-type", value.span, message, format!("declare {ty}, or change the arguments")));
        }
    }
}

/// What is wrong may be a constant that was given, the one at fault or another that decides the shape: notes show them.
fn given_constants(function: &Function, op: &Op, fault: &str) -> Vec<(Span, String)> {
    let params = op.kind.def(function.opset).map_or(&[][..], |def| def.params);
    let shown = params
        .iter()
        .filter(|p| p.name == fault || (p.kind == Kind::Size && params.iter().any(|q| q.name == fault && q.kind == Kind::Size)));
    let constants = shown.filter_map(|p| match op.arg(p.name) {
        Some(Arg::Value(v)) if function.constant(*v).is_some() => Some(&function.values[*v]),
        _ => None,
    });
    constants.map(|value| (value.span, format!("`{}` is defined here", value.name))).collect()
}

fn check_results(function: &Function, found: &mut Found) {
    let mut error = |span, message: String, help: &str| found.push(Diagnostic::error("results", span, message, help));
    if function.results.is_empty() {
        error(function.span, format!("`{}` returns nothing", function.name), "return at least one value");
    }
    let mut seen = HashSet::new();
    for v in &function.results {
        let value = &function.values[*v];
        if !seen.insert(v) {
            error(value.span, format!("`{}` is returned twice", value.name), "return it once");
        }
        if function.constant(*v).is_some() {
            error(value.span, format!("`{}`, a constant, is returned", value.name), "return the result of a computation");
        }
        if value.state {
            error(value.span, format!("`{}`, a state, is returned", value.name), "states are kept, not returned: read it first");
        }
    }
}
