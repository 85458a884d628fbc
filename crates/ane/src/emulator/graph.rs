//! The emulator's own representation: few kinds of nodes, shapes known, no parameters left to look up.

use super::exec::map::Fun;
use half::f16;
use std::sync::Arc;

/// Index of a value in [`Graph::values`].
pub(super) type ValueId = usize;

/// Where a value's elements come from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// The n-th input port.
    Input(usize),
    /// Constant elements, row-major.
    Const(Arc<[f16]>),
    /// The node of this index.
    Node(usize),
}

/// A value.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) dims: Vec<usize>,
    pub(super) source: Source,
}

/// One function, lowered. Nodes are in order of execution.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    pub(super) values: Vec<Value>,
    pub(super) nodes: Vec<Node>,
    /// Results, in order of the output ports.
    pub(super) outputs: Vec<ValueId>,
}

/// One operation.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) op: NodeOp,
    pub(super) inputs: Vec<ValueId>,
    pub(super) output: ValueId,
}

/// What a node does.
#[derive(Clone, Debug)]
pub(super) enum NodeOp {
    /// The same elements under the output's extents.
    Reshape,
    /// Axis `i` of the output is axis `perm[i]` of the input.
    Permute(Vec<usize>),
    /// Every `step[i]`-th element from `begin[i]`.
    Window {
        /// First index.
        begin: Vec<usize>,
        /// Distance; negative walks backwards.
        step: Vec<isize>,
    },
    /// One-element axes repeated to the output's extents.
    Broadcast,
    /// The inputs one after another along an axis.
    Concat {
        /// The axis.
        axis: usize,
    },
    /// A function of each element.
    Map {
        /// The function.
        fun: Fun,
        /// Its arguments.
        args: Vec<MapArg>,
    },
    /// Matrix product of the last two axes, leading axes broadcast; then, if there is a third input, a bias per row is added before
    /// the one rounding.
    Matmul {
        /// The first operand's last two axes are swapped.
        transpose_x: bool,
        /// The second operand's last two axes are swapped.
        transpose_y: bool,
    },
    /// Inputs: x `[N, C, spatial…]`, weight `[O, C/groups, kernel…]`, optionally bias `[O]`.
    Conv(Conv),
    /// Along the last axis.
    Softmax,
    /// Over the last axis, which the output lacks.
    Reduce(Reduce),
}

/// An argument of an elementwise function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum MapArg {
    /// The n-th input of the node.
    Input(usize),
    /// A number that an fp16 can hold.
    Scalar(f32),
}

/// Geometry of a convolution, one entry per spatial axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conv {
    pub(super) strides: Vec<usize>,
    pub(super) dilations: Vec<usize>,
    /// Zeros before the first element.
    pub(super) pad: Vec<usize>,
    pub(super) groups: usize,
}

/// How an axis is folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reduce {
    Sum,
    Mean,
    Max,
}

impl Graph {
    /// Adds a value that no node makes.
    pub(super) fn leaf(&mut self, dims: Vec<usize>, source: Source) -> ValueId {
        self.values.push(Value { dims, source });
        self.values.len() - 1
    }

    /// Adds a node and returns its output.
    pub(super) fn push(&mut self, op: NodeOp, inputs: Vec<ValueId>, dims: Vec<usize>) -> ValueId {
        let output = self.leaf(dims, Source::Node(self.nodes.len()));
        self.nodes.push(Node { op, inputs, output });
        output
    }

    /// The node that makes a value.
    pub(super) fn maker(&self, value: ValueId) -> Option<usize> {
        match self.values[value].source {
            Source::Node(n) => Some(n),
            _ => None,
        }
    }

    /// Whether each node contributes to a result.
    pub(super) fn live(&self) -> Vec<bool> {
        let mut live = vec![false; self.nodes.len()];
        let mut wanted: Vec<ValueId> = self.outputs.clone();
        while let Some(v) = wanted.pop() {
            if let Some(n) = self.maker(v).filter(|&n| !live[n]) {
                live[n] = true;
                wanted.extend(&self.nodes[n].inputs);
            }
        }
        live
    }
}
