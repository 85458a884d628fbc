//! The op table as a page of the docs.

use super::{Domain, Kind, Lit, Need, OPS, Param};
use std::fmt::Write;

/// The op table as a Markdown table: name, parameters, opsets, meaning.
pub fn markdown() -> String {
    let mut out = String::from("| op | parameters | opsets | meaning |\n|---|---|---|---|\n");
    for def in OPS.iter().flat_map(|(_, defs)| defs.iter()) {
        let params: Vec<String> = def.params.iter().map(param).collect();
        let params = if params.is_empty() { "–".into() } else { params.join("<br>") };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "| `{}` | {params} | {}–{} | {} |", def.name, def.opsets.0, def.opsets.1, def.doc.replace('|', "\\|"));
    }
    out
}

fn param(param: &Param) -> String {
    let letter = match param.domain {
        Domain::T(_) => "T: ",
        Domain::U(_) => "U: ",
        Domain::Free(_) => "",
    };
    let dtypes: Vec<&str> = param.domain.dtypes().iter().map(|d| d.word()).collect();
    let kind = match param.kind {
        Kind::Tensor => "",
        Kind::Size => "size ",
        Kind::Const => "const ",
        Kind::List => "list of ",
    };
    let need = match param.need {
        Need::Required => String::new(),
        Need::Optional => ", optional".into(),
        Need::Default(Lit::False) => " = false".into(),
        Need::Default(Lit::True) => " = true".into(),
        Need::Default(Lit::Int(n)) => format!(" = {n}"),
        Need::Default(Lit::Float(x)) => format!(" = {x:e}"),
        Need::Default(Lit::Ones) => " = 1 on each axis".into(),
        Need::Default(Lit::Falses) => " = false on each axis".into(),
        Need::Default(Lit::Text(s)) => format!(" = \"{s}\""),
    };
    format!("`{}` ({kind}{letter}{}){need}", param.name, dtypes.join(", "))
}
