//! Form and arguments: what everything else takes for granted.

use super::{Found, title};
use crate::arena::Handle;
use crate::diagnostic::Diagnostic;
use crate::ir::{Arg, DType, Def, Function, Literal, Op, Program, Span, Value};
use crate::live::values;
use crate::ops::{Call, Kind, Need, OpKind};
use crate::word;
use std::collections::BTreeSet;

pub(super) fn check(program: &Program, found: &mut Found) {
    if program.functions.is_empty() {
        found.push(Diagnostic::error("no-function", Span::default(), "the program has no function", "write `func main<ios18>(…)`"));
    }
    if !matches!(program.version, (1, 0) | (1, 3)) {
        let message = format!("program({}.{}) is not known", program.version.0, program.version.1);
        found.push(Diagnostic::error("version", Span::default(), message, "write program(1.3), or program(1.0)"));
    }
    let mut names = BTreeSet::new();
    for function in &program.functions {
        if !word::is_identifier(&function.name) || !names.insert(&function.name) {
            let message = format!("function name `{}` is no identifier, or taken", function.name);
            found.push(Diagnostic::error("function-name", function.span, message, "use letters, digits and _, once each"));
        }
        let before = found.len();
        check_values(function, found);
        check_uses(function, found);
        if found.len() == before {
            for (_, op) in function.ops.iter() {
                check_op(function, op, found);
            }
        }
    }
}

/// Names, and that parameters, ops and values point at each other.
fn check_values(function: &Function, found: &mut Found) {
    let mut names = BTreeSet::new();
    let mut error = |code, span, message: String, help: &str| found.push(Diagnostic::error(code, span, message, help));
    for (handle, value) in function.values.iter() {
        if !word::is_free_name(&value.name) {
            error(
                "value-name",
                value.span,
                format!("`{}` is no name of a value", value.name),
                "use letters, digits and _, and no word of the language",
            );
        }
        if !names.insert(value.name.as_str()) {
            error("duplicate-name", value.span, format!("`{}` is defined twice", value.name), "give each value a name of its own");
        }
        let at_home = match value.def {
            Def::Param(i) => function.params.get(i) == Some(&handle),
            Def::Op(op, i) => function.ops.get(op).is_some_and(|op| op.results.get(i) == Some(&handle)),
        };
        if !at_home {
            error("definition", value.span, format!("`{}` is not where its definition says", value.name), "define each value once");
        }
    }
    let defined = |values: &[Handle<Value>], def: &dyn Fn(usize) -> Def| {
        values.iter().enumerate().all(|(i, v)| function.values.get(*v).is_some_and(|v| v.def == def(i)))
    };
    if !defined(&function.params, &Def::Param) {
        error("definition", function.span, format!("a parameter of `{}` is no value of it", function.name), "define each value once");
    }
    for (handle, op) in function.ops.iter() {
        if !defined(&op.results, &|i| Def::Op(handle, i)) {
            error("definition", op.span, format!("a result of {} is no value of the function", op.kind.name()), "define each value once");
        }
    }
}

/// That everything used is defined before.
fn check_uses(function: &Function, found: &mut Found) {
    for (handle, op) in function.ops.iter() {
        for (param, value) in op.args.iter().flat_map(|(param, arg)| values(arg).iter().map(move |v| (param, *v))) {
            let message = match function.values.get(value) {
                None => format!("`{param}` of {} is no value of the function", title(function, op)),
                Some(v) if matches!(v.def, Def::Op(at, _) if at >= handle) => {
                    format!("`{param}` of {} is `{}`, which is defined later", title(function, op), v.name)
                }
                Some(_) => continue,
            };
            found.push(Diagnostic::error("use-before-definition", op.span, message, "define values before they are used"));
        }
    }
    if function.results.iter().any(|v| function.values.get(*v).is_none()) {
        let message = format!("`{}` returns something that is no value of it", function.name);
        found.push(Diagnostic::error("results", function.span, message, "return values of the function"));
    }
}

/// Arguments and attributes of one op.
fn check_op(function: &Function, op: &Op, found: &mut Found) {
    let mut error = |code, message: String, help: &str| found.push(Diagnostic::error(code, op.span, message, help));
    let call = match Call::new(function, op) {
        Ok(call) => call,
        Err(reject) => return error("opset", reject.message, reject.help),
    };
    let op_name = title(function, op);
    // Among more arguments than there are parameters, the first ones hold an unknown or a repeated one already.
    for (i, (name, _)) in op.args.iter().enumerate().take(call.def.params.len() + 1) {
        if !call.def.params.iter().any(|p| p.name == name) {
            let known: Vec<&str> = call.def.params.iter().map(|p| p.name).collect();
            error("unknown-argument", format!("{op_name} has no parameter `{name}`"), &format!("it has: {}", known.join(", ")));
        }
        if op.args[..i].iter().any(|(n, _)| n == name) {
            error("duplicate-argument", format!("{op_name} is given `{name}` twice"), "give it once");
        }
    }
    for (i, param) in call.def.params.iter().enumerate() {
        match call.arg(i) {
            None if matches!(param.need, Need::Required) => {
                error("missing-argument", format!("{op_name} lacks `{}`", param.name), "give it");
            }
            Some(Arg::List(_)) if param.kind != Kind::List => {
                error("list", format!("`{}` of {op_name} is a tuple", param.name), "give one value");
            }
            Some(Arg::Literal(_)) if param.kind == Kind::List => {
                error("list", format!("`{}` of {op_name} is a literal", param.name), "give a tuple of values");
            }
            Some(Arg::Value(v)) if param.kind == Kind::Const && !function.is_constant(*v) => {
                error("constant", format!("`{}` of {op_name} is not known at compile time", param.name), "give a value made by `const`");
            }
            _ => {}
        }
    }
    for (i, (name, literal)) in op.attrs.iter().enumerate().take(3) {
        match (name.as_str(), literal) {
            ("name", Literal::Text(_)) => {}
            ("name", _) => error("attribute", format!("attribute `name` of {op_name} is no string"), "write name = string(\"…\")"),
            ("val", _) if matches!(op.kind, OpKind::Const | OpKind::ConstSymbolic) => {}
            _ => error("attribute", format!("{op_name} has no attribute `{name}`"), "arguments stand in the parentheses"),
        }
        if op.attrs[..i].iter().any(|(n, _)| n == name) {
            error("attribute", format!("{op_name} has attribute `{name}` twice"), "give it once");
        }
    }
    if op.kind == OpKind::Const && op.attr("val").is_none() {
        error("constant", format!("{op_name} has no value"), "write val = …");
    }
    let state = |v: &Handle<Value>| function.values[*v].state;
    for (i, param) in call.def.params.iter().enumerate() {
        let wanted = i == 0 && matches!(op.kind, OpKind::ReadState | OpKind::WriteState);
        if let Some(given) = call.arg(i)
            && (values(given).iter().any(state) != wanted)
        {
            let (message, help) = if wanted {
                (format!("`{}` of {op_name} is no state", param.name), "give a parameter of type state<…>")
            } else {
                (format!("`{}` of {op_name} is a state", param.name), "read it with read_state first")
            };
            error("state", message, help);
        }
    }
    let string = |v: &Handle<Value>| function.values[*v].ty.dtype == DType::String;
    if op.kind != OpKind::Const && op.results.iter().any(string) {
        error("string", format!("{op_name} makes a string"), "only constants are strings");
    }
}
