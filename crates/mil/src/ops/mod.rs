//! The op table: one entry per op and range of opsets, and the only list of ops.
//!
//! An entry says what the op is called, what it takes (names, kinds, element types, what is optional), what it gives
//! (a rule from arguments to result types) and what it costs. Parser, verifier, builder, emulator and docs read it;
//! nothing else in the workspace knows an op by name. Entries lie in files by family.
//!
//! Names, parameters, what is optional and element types are those of coremltools, form by form; a test compares them with
//! a digest made from it. Parameters that decide a shape (`begin`, `size`, `shape`, `reps`) may be computed in the language;
//! then the declared type is trusted, and said so. The chip wants constants (ane-facts 5.2).

mod activation;
mod attention;
mod binary;
mod call;
mod constexpr;
mod control;
mod conv;
mod cost;
mod def;
mod domains;
mod fill;
mod gather;
mod image;
mod join;
mod markdown;
mod matmul;
mod normalize;
mod pad;
mod pool;
mod quantize;
mod recurrent;
mod reduce;
mod rules;
mod shape;
mod slice;
mod sort;
mod unary;

pub use call::Call;
pub use conv::Window;
pub use cost::{Cost, program_cost};
pub use def::{Domain, Infer, Kind, Lit, Need, OpDef, Param, Reject};
pub use domains::check_domains;
pub use markdown::markdown;
pub use pad::{PadMode, Padding};
pub use pool::Pool;
pub use rules::broadcast;
pub use slice::Cut;

use def::{constant, list, op, optional, sizes, tensor};
use domains::*;
use rules::{one_flop, per_channel, same, two_flops};

use crate::ir::Opset;
use std::collections::HashMap;
use std::sync::LazyLock;

impl OpKind {
    /// MIL's name.
    pub fn name(self) -> &'static str {
        OPS[self as usize].1[0].name
    }

    /// The op called `name`.
    pub fn from_name(name: &str) -> Option<OpKind> {
        static NAMES: LazyLock<HashMap<&str, OpKind>> = LazyLock::new(|| OPS.iter().map(|(kind, defs)| (defs[0].name, *kind)).collect());
        NAMES.get(name).copied()
    }

    /// The form that `opset` has of this op.
    pub fn def(self, opset: Opset) -> Option<&'static OpDef> {
        OPS[self as usize].1.iter().copied().find(|d| d.opsets.0 <= opset && opset <= d.opsets.1)
    }

    /// Whether it makes a constant: `const`, and ops that decode one when the program is compiled.
    pub fn makes_constant(self) -> bool {
        self == OpKind::Const || self.name().starts_with("constexpr_")
    }
}

/// The only list of ops, by name. A kind without an entry does not compile. `runs` says that the emulator executes the op,
/// which its tests hold it to; `known` that programs with it are read, typed and printed, but not run.
macro_rules! ops { ($($kind:ident = $state:ident [$($def:path),+]),* $(,)?) => {
    /// Every op of the table.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(u16)]
    #[allow(missing_docs)]
    pub enum OpKind { $($kind),* }
    /// Every op with its forms, oldest opset first.
    pub static OPS: &[(OpKind, &[&OpDef])] = &[$((OpKind::$kind, &[$(&$def),+])),*];
    impl OpKind {
        /// Whether the emulator executes it; it refuses programs with others as "not emulated".
        pub fn is_emulated(self) -> bool {
            match self { $(OpKind::$kind => emulated!($state)),* }
        }
    }
} }
macro_rules! emulated {
    (runs) => {
        true
    };
    (known) => {
        false
    };
}

ops! {
    Abs = known [unary::ABS],
    Acos = known [unary::ACOS],
    Asin = known [unary::ASIN],
    Atan = known [unary::ATAN],
    Atanh = known [unary::ATANH],
    Ceil = known [unary::CEIL],
    Cos = known [unary::COS],
    Cosh = known [unary::COSH],
    Erf = known [unary::ERF],
    Exp = runs [unary::EXP],
    Exp2 = known [unary::EXP2],
    Floor = known [unary::FLOOR],
    Round = known [unary::ROUND],
    Sign = known [unary::SIGN],
    Sin = known [unary::SIN],
    Sinh = known [unary::SINH],
    Sqrt = runs [unary::SQRT],
    Square = known [unary::SQUARE],
    Tan = known [unary::TAN],
    Tanh = runs [unary::TANH],
    LogicalNot = known [unary::LOGICAL_NOT],
    Inverse = known [unary::INVERSE_15, unary::INVERSE],
    Rsqrt = runs [unary::RSQRT_15, unary::RSQRT],
    Log = runs [unary::LOG_15, unary::LOG],
    Clip = known [unary::CLIP],
    Threshold = known [unary::THRESHOLD],
    Cast = runs [unary::CAST_15, unary::CAST],
    Add = runs [binary::ADD],
    Sub = runs [binary::SUB],
    Mul = runs [binary::MUL],
    RealDiv = runs [binary::REAL_DIV],
    FloorDiv = known [binary::FLOOR_DIV],
    Mod = known [binary::MOD],
    Maximum = runs [binary::MAXIMUM],
    Minimum = runs [binary::MINIMUM],
    Pow = runs [binary::POW],
    Equal = known [binary::EQUAL],
    NotEqual = known [binary::NOT_EQUAL],
    Greater = known [binary::GREATER],
    GreaterEqual = known [binary::GREATER_EQUAL],
    Less = known [binary::LESS],
    LessEqual = known [binary::LESS_EQUAL],
    LogicalAnd = known [binary::LOGICAL_AND],
    LogicalOr = known [binary::LOGICAL_OR],
    LogicalXor = known [binary::LOGICAL_XOR],
    Select = known [binary::SELECT],
    Sigmoid = runs [activation::SIGMOID],
    Relu = runs [activation::RELU],
    Relu6 = known [activation::RELU6],
    Silu = runs [activation::SILU],
    Softplus = known [activation::SOFTPLUS],
    Softsign = known [activation::SOFTSIGN],
    ClampedRelu = known [activation::CLAMPED_RELU_15, activation::CLAMPED_RELU],
    Elu = known [activation::ELU_15, activation::ELU],
    LeakyRelu = known [activation::LEAKY_RELU_15, activation::LEAKY_RELU],
    LinearActivation = known [activation::LINEAR_ACTIVATION_15, activation::LINEAR_ACTIVATION],
    ScaledTanh = known [activation::SCALED_TANH_15, activation::SCALED_TANH],
    SigmoidHard = known [activation::SIGMOID_HARD_15, activation::SIGMOID_HARD],
    ThresholdedRelu = known [activation::THRESHOLDED_RELU_15, activation::THRESHOLDED_RELU],
    Gelu = known [activation::GELU],
    Prelu = known [activation::PRELU_15, activation::PRELU],
    SoftplusParametric = known [activation::SOFTPLUS_PARAMETRIC_15, activation::SOFTPLUS_PARAMETRIC],
    ReduceSum = runs [reduce::REDUCE_SUM],
    ReduceMean = runs [reduce::REDUCE_MEAN],
    ReduceMax = runs [reduce::REDUCE_MAX],
    ReduceMin = known [reduce::REDUCE_MIN],
    ReduceProd = known [reduce::REDUCE_PROD],
    ReduceL1Norm = known [reduce::REDUCE_L1_NORM],
    ReduceL2Norm = known [reduce::REDUCE_L2_NORM],
    ReduceLogSum = known [reduce::REDUCE_LOG_SUM],
    ReduceLogSumExp = known [reduce::REDUCE_LOG_SUM_EXP],
    ReduceSumSquare = known [reduce::REDUCE_SUM_SQUARE],
    ReduceArgmax = known [reduce::REDUCE_ARGMAX_15, reduce::REDUCE_ARGMAX],
    ReduceArgmin = known [reduce::REDUCE_ARGMIN_15, reduce::REDUCE_ARGMIN],
    Softmax = runs [reduce::SOFTMAX],
    Cumsum = known [reduce::CUMSUM],
    BatchNorm = known [normalize::BATCH_NORM_15, normalize::BATCH_NORM],
    InstanceNorm = known [normalize::INSTANCE_NORM_15, normalize::INSTANCE_NORM],
    L2Norm = known [normalize::L2_NORM_15, normalize::L2_NORM],
    LayerNorm = known [normalize::LAYER_NORM_15, normalize::LAYER_NORM],
    LocalResponseNorm = known [normalize::LOCAL_RESPONSE_NORM_15, normalize::LOCAL_RESPONSE_NORM],
    Reshape = runs [shape::RESHAPE_15, shape::RESHAPE],
    ReshapeLike = known [shape::RESHAPE_LIKE_16, shape::RESHAPE_LIKE],
    Transpose = runs [shape::TRANSPOSE_15, shape::TRANSPOSE],
    ExpandDims = runs [shape::EXPAND_DIMS_15, shape::EXPAND_DIMS],
    Squeeze = runs [shape::SQUEEZE_15, shape::SQUEEZE],
    Flatten2d = known [shape::FLATTEN2D],
    Identity = known [shape::IDENTITY],
    Reverse = known [shape::REVERSE_15, shape::REVERSE],
    ReverseSequence = known [shape::REVERSE_SEQUENCE_15, shape::REVERSE_SEQUENCE],
    DepthToSpace = known [shape::DEPTH_TO_SPACE],
    SpaceToDepth = known [shape::SPACE_TO_DEPTH],
    PixelShuffle = known [shape::PIXEL_SHUFFLE],
    PixelUnshuffle = known [shape::PIXEL_UNSHUFFLE],
    SpaceToBatch = known [shape::SPACE_TO_BATCH],
    BatchToSpace = known [shape::BATCH_TO_SPACE],
    Shape = known [shape::SHAPE],
    SliceBySize = runs [slice::SLICE_BY_SIZE_15, slice::SLICE_BY_SIZE],
    SliceByIndex = runs [slice::SLICE_BY_INDEX_15, slice::SLICE_BY_INDEX],
    SliceUpdate = known [slice::SLICE_UPDATE],
    SlidingWindows = known [slice::SLIDING_WINDOWS_15, slice::SLIDING_WINDOWS],
    Concat = runs [join::CONCAT],
    Stack = known [join::STACK],
    Split = runs [join::SPLIT],
    Tile = runs [join::TILE],
    Pad = known [pad::PAD],
    Fill = known [fill::FILL],
    FillLike = known [fill::FILL_LIKE],
    Range1d = known [fill::RANGE_1D],
    OneHot = known [fill::ONE_HOT],
    BandPart = known [fill::BAND_PART],
    RandomBernoulli = known [fill::RANDOM_BERNOULLI],
    RandomCategorical = known [fill::RANDOM_CATEGORICAL],
    RandomNormal = known [fill::RANDOM_NORMAL],
    RandomUniform = known [fill::RANDOM_UNIFORM],
    Gather = known [gather::GATHER_15, gather::GATHER_16, gather::GATHER],
    GatherAlongAxis = known [gather::GATHER_ALONG_AXIS_15, gather::GATHER_ALONG_AXIS_16, gather::GATHER_ALONG_AXIS],
    GatherNd = known [gather::GATHER_ND_15, gather::GATHER_ND_16, gather::GATHER_ND],
    Scatter = known [gather::SCATTER_15, gather::SCATTER],
    ScatterAlongAxis = known [gather::SCATTER_ALONG_AXIS_15, gather::SCATTER_ALONG_AXIS],
    ScatterNd = known [gather::SCATTER_ND_15, gather::SCATTER_ND],
    Argsort = known [sort::ARGSORT],
    Topk = known [sort::TOPK_15, sort::TOPK_16, sort::TOPK],
    NonZero = known [sort::NON_ZERO],
    NonMaximumSuppression = known [sort::NON_MAXIMUM_SUPPRESSION_15, sort::NON_MAXIMUM_SUPPRESSION],
    Matmul = runs [matmul::MATMUL_15, matmul::MATMUL],
    Linear = known [matmul::LINEAR_15, matmul::LINEAR],
    Einsum = known [matmul::EINSUM],
    Conv = runs [conv::CONV_15, conv::CONV],
    ConvQuantized = known [conv::CONV_QUANTIZED],
    ConvTranspose = known [conv::CONV_TRANSPOSE_15, conv::CONV_TRANSPOSE],
    AvgPool = known [pool::AVG_POOL],
    MaxPool = known [pool::MAX_POOL],
    L2Pool = known [pool::L2_POOL],
    Lstm = known [recurrent::LSTM_15, recurrent::LSTM],
    Gru = known [recurrent::GRU_15, recurrent::GRU_17, recurrent::GRU],
    Rnn = known [recurrent::RNN_15, recurrent::RNN],
    ScaledDotProductAttention = runs [attention::SCALED_DOT_PRODUCT_ATTENTION],
    Quantize = known [quantize::QUANTIZE],
    Dequantize = known [quantize::DEQUANTIZE],
    ConstexprAffineDequantize = known [constexpr::CONSTEXPR_AFFINE_DEQUANTIZE],
    ConstexprBlockwiseShiftScale = known [constexpr::CONSTEXPR_BLOCKWISE_SHIFT_SCALE],
    ConstexprCast = known [constexpr::CONSTEXPR_CAST],
    ConstexprLutToDense = known [constexpr::CONSTEXPR_LUT_TO_DENSE_16, constexpr::CONSTEXPR_LUT_TO_DENSE],
    ConstexprLutToSparse = known [constexpr::CONSTEXPR_LUT_TO_SPARSE],
    ConstexprSparseBlockwiseShiftScale = known [constexpr::CONSTEXPR_SPARSE_BLOCKWISE_SHIFT_SCALE],
    ConstexprSparseToDense = known [constexpr::CONSTEXPR_SPARSE_TO_DENSE_16, constexpr::CONSTEXPR_SPARSE_TO_DENSE],
    Affine = known [image::AFFINE],
    Crop = known [image::CROP],
    CropResize = known [image::CROP_RESIZE_15, image::CROP_RESIZE_16, image::CROP_RESIZE],
    Resample = known [image::RESAMPLE_15, image::RESAMPLE_16, image::RESAMPLE],
    Resize = known [image::RESIZE],
    ResizeBilinear = known [image::RESIZE_BILINEAR],
    ResizeNearestNeighbor = known [image::RESIZE_NEAREST_NEIGHBOR],
    UpsampleBilinear = known [image::UPSAMPLE_BILINEAR_15, image::UPSAMPLE_BILINEAR],
    UpsampleNearestNeighbor = known [image::UPSAMPLE_NEAREST_NEIGHBOR],
    ConstSymbolic = known [control::CONST_SYMBOLIC],
    Const = runs [control::CONST],
    Classify = known [control::CLASSIFY],
    Cond = known [control::COND],
    WhileLoop = known [control::WHILE_LOOP],
    MakeList = known [control::MAKE_LIST],
    ListGather = known [control::LIST_GATHER],
    ListLength = known [control::LIST_LENGTH],
    ListRead = known [control::LIST_READ],
    ListScatter = known [control::LIST_SCATTER],
    ListWrite = known [control::LIST_WRITE],
    ReadState = known [control::READ_STATE],
    WriteState = known [control::WRITE_STATE],
}
