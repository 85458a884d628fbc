//! What the results of a function need.

use crate::arena::Handle;
use crate::ir::{Arg, Function, Value};

/// Values that no result needs, in order of declaration: results of ops that nothing reads, and unused parameters. Of an
/// op with several results, one that is needed keeps the others.
pub(crate) fn dead_values(function: &Function) -> Vec<Handle<Value>> {
    let mut live = vec![false; function.values.len()];
    for value in &function.results {
        live[value.index()] = true;
    }
    // Ops stand after what they read, so one pass from the last to the first sees every use before the definition.
    for (_, op) in function.ops.iter().rev() {
        // An op without results is there for what it does: it writes a state.
        if !op.results.is_empty() && !op.results.iter().any(|v| live[v.index()]) {
            continue;
        }
        for value in op.results.iter().chain(op.args.iter().flat_map(|(_, arg)| values(arg))) {
            live[value.index()] = true;
        }
    }
    function.values.iter().map(|(v, _)| v).filter(|v| !live[v.index()]).collect()
}

/// The values that an argument names.
pub(crate) fn values(arg: &Arg) -> &[Handle<Value>] {
    match arg {
        Arg::Value(v) => std::slice::from_ref(v),
        Arg::List(vs) => vs,
        Arg::Literal(_) => &[],
    }
}
