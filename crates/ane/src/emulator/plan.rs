//! From a graph to steps: where every value lies, what runs over which views, and which memory is reused when.

use super::exec::map::{ChainArg, Link};
use super::exec::{self, Kernel};
use super::fuse::{Unit, units};
use super::graph::{Graph, MapArg, Node, NodeOp, Source, ValueId};
use super::memory::{Buf, Span};
use super::place::{Loc, Placement};
use super::view::View;
use cpu::f16;
use std::sync::Arc;

/// Temporaries begin on a cache line: 32 fp16 elements.
const LINE: usize = 32;

/// What a step counts as in a call's statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Matmul,
    Elementwise,
    Copy,
}

/// One step: a kernel and the memory that it touches.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) kernel: Kernel,
    pub(super) reads: Vec<Span>,
    pub(super) writes: Vec<Span>,
}

impl Step {
    /// What it counts as.
    pub(super) fn kind(&self) -> Kind {
        match self.kernel {
            Kernel::Matmul(_) | Kernel::Conv(_) => Kind::Matmul,
            Kernel::Map(_) | Kernel::Softmax(_) | Kernel::Reduce(_) => Kind::Elementwise,
            Kernel::Copy(_) => Kind::Copy,
        }
    }
}

/// A planned function.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) consts: Vec<Arc<[f16]>>,
    /// Elements of scratch memory.
    pub(super) arena: usize,
}

/// Plans a graph whose ports lie as given.
///
/// Values are placed where their consumers want them, as far as possible; where a step cannot work that way (its result would
/// lie between elements it still reads, say), that value gets memory of its own and planning starts over.
///
/// # Errors
/// Never for a graph that lowering made; the text is for the report of a bug.
pub(super) fn plan(graph: &Graph, inputs: &[View], outputs: &[View]) -> Result<Plan, String> {
    let units = units(graph);
    let mut own = vec![false; graph.values.len()];
    loop {
        let placement = Placement::new(graph, &units, outputs, &own);
        match Planner::new(graph, inputs, placement).run(&units, outputs) {
            Ok(plan) => return Ok(plan),
            Err(value) if !own[value] => own[value] = true,
            Err(value) if own.iter().all(|&o| o) => return Err(format!("no plan for value {value} of {:?}", graph.values[value].dims)),
            Err(_) => own.fill(true),
        }
    }
}

struct Planner<'a> {
    graph: &'a Graph,
    placement: Placement,
    /// Where each value can be read, best first.
    at: Vec<Vec<Loc>>,
    /// The value whose making wrote the memory that a value's first place shows.
    root: Vec<ValueId>,
    consts: Vec<Arc<[f16]>>,
    steps: Vec<Step>,
}

/// The value that must get memory of its own.
type Replan = ValueId;

impl<'a> Planner<'a> {
    fn new(graph: &'a Graph, inputs: &[View], placement: Placement) -> Planner<'a> {
        let mut consts = Vec::new();
        let at = graph.values.iter().map(|value| match &value.source {
            Source::Input(i) => vec![Loc { buf: Buf::Input(*i), view: inputs[*i].clone() }],
            Source::Const(data) => {
                consts.push(data.clone());
                vec![Loc { buf: Buf::Const(consts.len() - 1), view: View::dense(&value.dims) }]
            }
            Source::Node(_) => Vec::new(),
        });
        let at = at.collect();
        Planner { graph, placement, at, root: (0..graph.values.len()).collect(), consts, steps: Vec::new() }
    }

    fn run(mut self, units: &[Unit], outputs: &[View]) -> Result<Plan, Replan> {
        let graph = self.graph;
        for unit in units {
            match unit {
                Unit::Fused(nodes) => self.fused(nodes, units)?,
                Unit::Single(n) => self.single(&graph.nodes[*n])?,
            }
        }
        for (i, &value) in graph.outputs.iter().enumerate() {
            self.settle(value, Loc { buf: Buf::Output(i), view: outputs[i].clone() })?;
        }
        let arena = assign(&mut self.steps, &self.placement.temps);
        Ok(Plan { steps: self.steps, consts: self.consts, arena })
    }

    fn dims(&self, value: ValueId) -> &'a [usize] {
        &self.graph.values[value].dims
    }

    /// Where to read a value.
    fn loc(&self, value: ValueId) -> Loc {
        self.at[value][0].clone()
    }

    /// Where a value goes: where it was placed, else memory of its own.
    fn destination(&mut self, value: ValueId) -> Loc {
        let dims = self.dims(value);
        self.placement.of[value].clone().unwrap_or_else(|| self.placement.temporary(dims))
    }

    /// Adds a step. `culprit` is the value to replan when the step's memory clashes.
    fn step(&mut self, kernel: Kernel, reads: &[Loc], writes: &[Loc], culprit: impl Fn(usize) -> ValueId) -> Result<(), Replan> {
        let spans = |locs: &[Loc]| locs.iter().map(Loc::span).collect::<Vec<_>>();
        let (reads, writes) = (spans(reads), spans(writes));
        for (i, w) in writes.iter().enumerate() {
            if reads.iter().chain(&writes[..i]).any(|s| s.overlaps(w)) {
                return Err(culprit(i));
            }
        }
        self.steps.push(Step { kernel, reads, writes });
        Ok(())
    }

    /// Copies between equally shaped places; `of` is the value that lies at `from`.
    fn copy(&mut self, from: &Loc, to: &Loc, of: ValueId) -> Result<(), Replan> {
        let root = self.root[of];
        let kernel = exec::Copy::new(&to.based(), &from.based()).map_err(|_| root)?;
        self.step(Kernel::Copy(kernel), std::slice::from_ref(from), std::slice::from_ref(to), |_| root)
    }

    /// Makes a value readable at `to` too, by a copy unless it is there.
    fn settle(&mut self, value: ValueId, to: Loc) -> Result<(), Replan> {
        if !self.at[value].contains(&to) {
            self.copy(&self.loc(value), &to, value)?;
            self.at[value].push(to);
        }
        Ok(())
    }

    fn single(&mut self, node: &Node) -> Result<(), Replan> {
        match &node.op {
            NodeOp::Reshape | NodeOp::Permute(_) | NodeOp::Window { .. } | NodeOp::Broadcast => self.view(node),
            NodeOp::Concat { axis } => self.concat(node, *axis),
            NodeOp::Map { .. } => Ok(()), // always in a group
            NodeOp::Matmul { transpose_x, transpose_y } => {
                let reads = node.inputs.iter().map(|&v| self.forward(v)).collect::<Result<Vec<Loc>, _>>()?;
                self.compute(node, reads, |out, views| {
                    let lead = &out.dims[..out.dims.len() - 2];
                    let operand = |i: usize, swap| matrices(&views[i], swap, lead);
                    let (a, b) = (operand(0, *transpose_x), operand(1, *transpose_y));
                    exec::Matmul::new(out, &a, &b, views.get(2)).map(Kernel::Matmul)
                })
            }
            NodeOp::Conv(geometry) => {
                let mut reads = node.inputs.iter().map(|&v| self.forward(v)).collect::<Result<Vec<Loc>, _>>()?;
                if !exec::Conv::takes_weight(&reads[1].view) {
                    reads[1] = self.dense(node.inputs[1])?;
                }
                self.compute(node, reads, |out, views| exec::Conv::new(geometry, out, &views[0], &views[1], views.get(2)).map(Kernel::Conv))
            }
            NodeOp::Softmax => {
                let from = self.loc(node.inputs[0]);
                self.compute(node, vec![from], |out, views| exec::Softmax::new(out, &views[0]).map(Kernel::Softmax))
            }
            NodeOp::Reduce(how) => {
                let from = self.loc(node.inputs[0]);
                self.compute(node, vec![from], |out, views| exec::Reduce::new(*how, out, &views[0]).map(Kernel::Reduce))
            }
        }
    }

    /// A step that makes the node's output from `reads`.
    fn compute(
        &mut self,
        node: &Node,
        reads: Vec<Loc>,
        kernel: impl FnOnce(&View, &[View]) -> Result<Kernel, usize>,
    ) -> Result<(), Replan> {
        let out = node.output;
        let to = self.destination(out);
        let kernel = kernel(&to.based(), &based(&reads)).map_err(|_| out)?;
        self.step(kernel, &reads, std::slice::from_ref(&to), |_| out)?;
        self.at[out].push(to);
        Ok(())
    }

    fn concat(&mut self, node: &Node, axis: usize) -> Result<(), Replan> {
        let whole = self.destination(node.output);
        let mut begin = 0;
        for &part in &node.inputs {
            let len = self.dims(part)[axis];
            self.settle(part, Loc { buf: whole.buf, view: whole.view.narrow(axis, begin, len) })?;
            begin += len;
        }
        self.at[node.output].push(whole);
        Ok(())
    }

    /// The value copied to dense memory of its own.
    fn dense(&mut self, value: ValueId) -> Result<Loc, Replan> {
        let to = self.placement.temporary(self.dims(value));
        self.settle(value, to.clone())?;
        Ok(to)
    }

    /// Where to read a value without walking backwards or standing still.
    fn forward(&mut self, value: ValueId) -> Result<Loc, Replan> {
        let loc = self.loc(value);
        let walks = loc.view.strides.iter().zip(&loc.view.dims).all(|(&s, &d)| s > 0 || d == 1);
        if walks { Ok(loc) } else { self.dense(value) }
    }

    /// A value that shows another's elements.
    fn view(&mut self, node: &Node) -> Result<(), Replan> {
        let (input, out) = (node.inputs[0], node.output);
        let from = self.loc(input);
        let dims = self.dims(out);
        let shown = match &node.op {
            NodeOp::Permute(perm) => Some(from.view.permute(perm)),
            NodeOp::Window { begin, step } => Some(from.view.window(begin, step, dims)),
            NodeOp::Broadcast => Some(from.view.broadcast(dims)),
            _ => from.view.reshape(dims),
        };
        self.root[out] = self.root[input];
        match shown {
            Some(view) => self.at[out].push(Loc { buf: from.buf, view }),
            None => {
                // A reshape that strides cannot say: copy into the new extents' memory, seen under the old ones.
                let to = self.destination(out);
                let (to, seen) = match to.view.reshape(self.dims(input)) {
                    Some(seen) => (to.clone(), Loc { buf: to.buf, view: seen }),
                    None => {
                        let to = self.placement.temporary(dims);
                        let seen = Loc { buf: to.buf, view: View::dense(self.dims(input)) };
                        (to, seen)
                    }
                };
                self.copy(&from, &seen, input)?;
                self.root[out] = out;
                self.at[out].push(to);
            }
        }
        if let Some(wanted) = self.placement.of[out].clone() {
            self.settle(out, wanted)?;
        }
        Ok(())
    }

    fn fused(&mut self, nodes: &[usize], units: &[Unit]) -> Result<(), Replan> {
        let graph = self.graph;
        let made: Vec<ValueId> = nodes.iter().map(|&n| graph.nodes[n].output).collect();
        let dims = self.dims(made[0]);
        let (mut reads, mut writes, mut links): (Vec<Loc>, Vec<Loc>, Vec<Link>) = (Vec::new(), Vec::new(), Vec::new());
        let mut stored = Vec::new();
        for &n in nodes {
            let node = &graph.nodes[n];
            let NodeOp::Map { fun, args } = &node.op else { continue };
            let mut chain = Vec::new();
            for arg in args {
                chain.push(match *arg {
                    MapArg::Scalar(x) => ChainArg::Scalar(x),
                    MapArg::Input(i) => match made.iter().position(|&m| m == node.inputs[i]) {
                        Some(n) => ChainArg::Result(n),
                        None => {
                            let loc = self.loc(node.inputs[i]);
                            let loc = Loc { buf: loc.buf, view: loc.view.broadcast(dims) };
                            let known = reads.iter().position(|r| *r == loc);
                            ChainArg::Read(known.unwrap_or_else(|| {
                                reads.push(loc);
                                reads.len() - 1
                            }))
                        }
                    },
                });
            }
            let wanted = graph.outputs.contains(&node.output) || used_outside(graph, units, nodes, node.output);
            let store = wanted.then(|| {
                writes.push(self.destination(node.output));
                stored.push(node.output);
                writes.len() - 1
            });
            links.push(Link { fun: *fun, args: chain, store });
        }
        let (to, from) = (based(&writes), based(&reads));
        let kernel = exec::Map::new(&links, &to.iter().collect::<Vec<_>>(), &from.iter().collect::<Vec<_>>());
        // An output that lies in another order than the first: if it has memory of its own already, the first one must move.
        let kernel = kernel.map_err(|i| if self.placement.of[stored[i]].is_some() { stored[i] } else { stored[0] })?;
        self.step(Kernel::Map(kernel), &reads, &writes, |i| stored[i])?;
        for (value, loc) in stored.into_iter().zip(writes) {
            self.at[value].push(loc);
        }
        Ok(())
    }
}

/// The views within their spans.
fn based(locs: &[Loc]) -> Vec<View> {
    locs.iter().map(Loc::based).collect()
}

/// The matrices of an operand, its last two axes swapped or not, repeated over leading axes.
fn matrices(view: &View, swap: bool, lead: &[usize]) -> View {
    let last = view.dims.len() - 1;
    let mut perm: Vec<usize> = (0..=last).collect();
    if swap {
        perm.swap(last - 1, last);
    }
    let view = view.permute(&perm);
    view.broadcast(&[lead, &view.dims[last - 1..]].concat())
}

/// Whether a live node outside of `group` reads `value`.
fn used_outside(graph: &Graph, units: &[Unit], group: &[usize], value: ValueId) -> bool {
    let reads = |n: usize| !group.contains(&n) && graph.nodes[n].inputs.contains(&value);
    units.iter().any(|unit| match unit {
        Unit::Single(n) => reads(*n),
        Unit::Fused(nodes) => nodes.iter().any(|&n| reads(n)),
    })
}

/// Places temporaries of `sizes` elements in one arena, those that are not alive together on top of each other, and rewrites the steps'
/// spans. Returns the arena's size.
fn assign(steps: &mut [Step], sizes: &[usize]) -> usize {
    // First and last step that touches each.
    let mut life: Vec<Option<(usize, usize)>> = vec![None; sizes.len()];
    for (i, step) in steps.iter().enumerate() {
        for span in step.reads.iter().chain(&step.writes) {
            if let Buf::Temp(t) = span.buf {
                let first = life[t].map_or(i, |(first, _)| first);
                life[t] = Some((first, i));
            }
        }
    }
    let mut order: Vec<usize> = (0..sizes.len()).filter(|&t| life[t].is_some()).collect();
    order.sort_by_key(|&t| std::cmp::Reverse(sizes[t]));
    let mut placed: Vec<(usize, usize, usize)> = Vec::new(); // temporary, begin, end
    let mut offsets = vec![0; sizes.len()];
    let mut arena = 0;
    for t in order {
        let together = |u: usize| match (life[t], life[u]) {
            (Some((a, b)), Some((c, d))) => a <= d && c <= b,
            _ => false,
        };
        let mut taken: Vec<(usize, usize)> = placed.iter().filter(|(u, _, _)| together(*u)).map(|&(_, b, e)| (b, e)).collect();
        taken.sort_unstable();
        let size = sizes[t].next_multiple_of(LINE);
        let mut begin = 0;
        for (b, e) in taken {
            if begin + size <= b {
                break;
            }
            begin = begin.max(e);
        }
        placed.push((t, begin, begin + size));
        offsets[t] = begin;
        arena = arena.max(begin + size);
    }
    for step in steps {
        for span in step.reads.iter_mut().chain(&mut step.writes) {
            if let Buf::Temp(t) = span.buf {
                *span = Span { buf: Buf::Arena, low: span.low + offsets[t], ..*span };
            }
        }
    }
    arena
}
