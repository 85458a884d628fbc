//! Which elementwise nodes run together, in one pass over blocks that stay in the first-level cache.

use super::exec::map::MAX_FUSED;
use super::graph::{Graph, NodeOp, ValueId};

/// Nodes that run as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// One node.
    Single(usize),
    /// Elementwise nodes of equal extents, in order.
    Fused(Vec<usize>),
}

/// The live nodes in an order of execution, elementwise ones of equal extents joined.
///
/// A group stays open past nodes that do not depend on it, and runs when something else needs it. Joining changes no bit: each
/// function's result is rounded in the group as it would be alone.
pub(super) fn units(graph: &Graph) -> Vec<Unit> {
    let live = graph.live();
    let mut units = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let close = |open: &mut Vec<usize>, units: &mut Vec<Unit>| {
        if !open.is_empty() {
            units.push(Unit::Fused(std::mem::take(open)));
        }
    };
    let dims = |v: ValueId| &graph.values[v].dims;
    for (i, node) in graph.nodes.iter().enumerate().filter(|(i, _)| live[*i]) {
        let is_map = matches!(node.op, NodeOp::Map { .. });
        let same = |open: &[usize]| open.first().is_none_or(|&f| dims(graph.nodes[f].output) == dims(node.output));
        let depends = |open: &[usize]| open.iter().any(|&m| node.inputs.contains(&graph.nodes[m].output));
        let joins = is_map && same(&open) && open.len() < MAX_FUSED;
        if joins {
            open.push(i);
        } else {
            if is_map || depends(&open) {
                close(&mut open, &mut units);
            }
            if is_map { open.push(i) } else { units.push(Unit::Single(i)) }
        }
    }
    close(&mut open, &mut units);
    units
}
