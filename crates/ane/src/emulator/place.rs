//! Where computed values go, decided from the results backwards: a value that is only moved into an output is made there.

use super::fuse::Unit;
use super::graph::{Graph, Node, NodeOp, Source, ValueId};
use super::memory::{Buf, Span};
use super::view::View;

/// A view of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Loc {
    pub(super) buf: Buf,
    pub(super) view: View,
}

impl Loc {
    /// The elements from its first to its last.
    pub(super) fn span(&self) -> Span {
        let (low, high) = self.view.span();
        Span { buf: self.buf, low, len: high - low }
    }

    /// The view within its span.
    pub(super) fn based(&self) -> View {
        self.view.rebase(self.view.span().0)
    }
}

/// The wanted place of each value.
#[derive(Clone, Debug)]
pub(super) struct Placement {
    /// `None`: nobody wants it anywhere; memory of its own will do.
    pub(super) of: Vec<Option<Loc>>,
    /// Elements of each temporary handed out so far.
    pub(super) temps: Vec<usize>,
}

/// A slice of a value that is wanted somewhere.
struct Demand<'a> {
    begin: &'a [usize],
    step: &'a [isize],
    at: Loc,
}

impl Placement {
    /// Goes through `units` backwards. Values marked in `own` are wanted nowhere.
    pub(super) fn new(graph: &Graph, units: &[Unit], outputs: &[View], own: &[bool]) -> Placement {
        let mut placement = Placement { of: vec![None; graph.values.len()], temps: Vec::new() };
        let mut demands: Vec<Vec<Demand<'_>>> = graph.values.iter().map(|_| Vec::new()).collect();
        let made = |v: ValueId| matches!(graph.values[v].source, Source::Node(_)) && !own[v];
        let want = |placement: &mut Placement, v: ValueId, at: Loc| {
            if made(v) && placement.of[v].is_none() {
                placement.of[v] = Some(at);
            }
        };
        for (i, &v) in graph.outputs.iter().enumerate() {
            want(&mut placement, v, Loc { buf: Buf::Output(i), view: outputs[i].clone() });
        }
        for unit in units.iter().rev() {
            let Unit::Single(n) = unit else {
                let Unit::Fused(nodes) = unit else { continue };
                for &n in nodes {
                    let out = graph.nodes[n].output;
                    if let Some(at) = from_slices(&graph.values[out].dims, &demands[out]) {
                        want(&mut placement, out, at);
                    }
                }
                continue;
            };
            let Node { op, inputs, output } = &graph.nodes[*n];
            if let Some(at) = from_slices(&graph.values[*output].dims, &demands[*output]) {
                want(&mut placement, *output, at);
            }
            match op {
                NodeOp::Concat { axis } => {
                    if placement.of[*output].is_none() {
                        placement.of[*output] = Some(placement.temporary(&graph.values[*output].dims));
                    }
                    let Some(whole) = placement.of[*output].clone() else { continue };
                    let mut begin = 0;
                    for &part in inputs {
                        let len = graph.values[part].dims[*axis];
                        want(&mut placement, part, Loc { buf: whole.buf, view: whole.view.narrow(*axis, begin, len) });
                        begin += len;
                    }
                }
                NodeOp::Reshape | NodeOp::Permute(_) => {
                    let Some(at) = placement.of[*output].clone() else { continue };
                    let view = match op {
                        NodeOp::Permute(perm) => Some(at.view.unpermute(perm)),
                        _ => at.view.reshape(&graph.values[inputs[0]].dims),
                    };
                    if let Some(view) = view {
                        want(&mut placement, inputs[0], Loc { buf: at.buf, view });
                    }
                }
                NodeOp::Window { begin, step } => {
                    if let Some(at) = placement.of[*output].clone() {
                        demands[inputs[0]].push(Demand { begin, step, at });
                    }
                }
                _ => {}
            }
        }
        placement
    }

    /// Dense memory of its own.
    pub(super) fn temporary(&mut self, dims: &[usize]) -> Loc {
        let view = View::dense(dims);
        self.temps.push(view.numel());
        Loc { buf: Buf::Temp(self.temps.len() - 1), view }
    }
}

/// The place of a whole value whose slices along one axis are wanted side by side and leave nothing out.
fn from_slices(dims: &[usize], demands: &[Demand<'_>]) -> Option<Loc> {
    let first = demands.first()?;
    let axis = (0..dims.len()).find(|&a| first.at.view.dims[a] != dims[a])?;
    let mut slices: Vec<&Demand<'_>> = demands.iter().collect();
    slices.sort_by_key(|d| d.begin[axis]);
    let (head, next) = (slices.first()?, slices.get(1)?);
    let stride = match head.at.view.dims[axis] {
        1 => (next.at.view.offset as isize - head.at.view.offset as isize) / (next.begin[axis] as isize - head.begin[axis] as isize).max(1),
        _ => head.at.view.strides[axis],
    };
    let mut strides = head.at.view.strides.clone();
    strides[axis] = stride;
    let whole = Loc { buf: head.at.buf, view: View::new(dims.to_vec(), strides, head.at.view.offset) };
    let mut covered = 0;
    for d in slices {
        let len = d.at.view.dims[axis];
        let others_whole = (0..dims.len()).all(|a| d.step[a] == 1 && (a == axis || (d.begin[a] == 0 && d.at.view.dims[a] == dims[a])));
        if !others_whole || d.begin[axis] != covered || d.at.buf != whole.buf || whole.view.narrow(axis, covered, len) != d.at.view {
            return None;
        }
        covered += len;
    }
    (covered == dims[axis]).then_some(whole)
}
