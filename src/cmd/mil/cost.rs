//! `anneal mil cost`: what each op computes and moves.

use super::source::Source;
use crate::args::MilCostArgs;
use crate::failure::Outcome;
use mil::ops::{Call, Cost, OpKind};
use mil::{Function, Type};
use serde::Serialize;

#[derive(Serialize)]
struct OpCost<'a> {
    name: &'a str,
    op: &'static str,
    flops: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct FunctionCost<'a> {
    name: &'a str,
    flops: u64,
    bytes: u64,
    ops: Vec<OpCost<'a>>,
}

pub(super) fn run(args: &MilCostArgs) -> Outcome {
    let source = Source::open(&args.file)?;
    let program = source.parse()?;
    let functions: Vec<FunctionCost<'_>> = program.functions.iter().map(of_function).collect();
    let sum = |of: fn(&FunctionCost<'_>) -> u64| functions.iter().map(of).fold(0, u64::saturating_add);
    let (flops, bytes) = (sum(|f| f.flops), sum(|f| f.bytes));
    if args.json {
        super::say(&format!("{}\n", serde_json::json!({ "flops": flops, "bytes": bytes, "functions": functions })))?;
        return Ok(0);
    }
    let mut out = format!("{:>16} {:>16}  op\n", "FLOPs", "bytes");
    for function in &functions {
        for op in &function.ops {
            out += &format!("{:>16} {:>16}  {} = {}\n", op.flops, op.bytes, op.name, op.op);
        }
        out += &format!("{:>16} {:>16}  all of {}\n", function.flops, function.bytes, function.name);
    }
    if functions.len() > 1 {
        out += &format!("{flops:>16} {bytes:>16}  all functions\n");
    }
    super::say(&out)?;
    Ok(0)
}

/// All ops but constants, which cost nothing to make.
fn of_function(function: &Function) -> FunctionCost<'_> {
    let mut ops = Vec::new();
    for (_, op) in function.ops.iter().filter(|(_, op)| op.kind != OpKind::Const) {
        let results: Vec<Type> = op.results.iter().map(|v| function.values[*v].ty.clone()).collect();
        // What does not resolve costs nothing that is known; `mil check` says why.
        let cost = Call::new(function, op).map_or(Cost::default(), |call| (call.def.cost)(&call, &results));
        let name = op.results.first().map_or("", |v| function.values[*v].name.as_str());
        ops.push(OpCost { name, op: op.kind.name(), flops: cost.flops, bytes: cost.bytes });
    }
    let sum = |of: fn(&OpCost<'_>) -> u64| ops.iter().map(of).fold(0, u64::saturating_add);
    FunctionCost { name: &function.name, flops: sum(|op| op.flops), bytes: sum(|op| op.bytes), ops }
}
