"""Writes crates/filetests/files/run/*.mil: programs with what they must compute, computed here with numpy.

    python oracle/filetests.py [DIR]

Arithmetic: operands are fp16; each op is computed in fp64 and rounded once, to nearest, ties to even. On top of that, what is published of
the device (ane-measurements 1.1 and 1.3): a NaN operand counts as +inf; what would be NaN is +0; a matmul or conv of 2^15 or more is inf.
`==` is asked for where that is all: arithmetic, copies, sums without rounding. Elsewhere `tol` says how far transcendental functions and sums may go.
"""
import os, sys
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "..", "crates", "filetests", "files", "run")
INFO = '[buildInfo = dict<string, string>({{"coremlc-component-MIL", "3510.2.1"}, {"coremlc-version", "3505.4.1"}, {"coremltools-component-milinternal", ""}, {"coremltools-version", "9.0"}})]'
CHIPS = ["emulator m1", "emulator m2", "emulator m3", "emulator m4", "emulator m5", "emulator m1 grid", "emulator m5 wide", "ane"]
EXACT = ["emulator", "emulator exact"]
DEVICE = ["emulator"]  # not what the language means
EVEN = [*EXACT, "emulator m1", "emulator m1 grid"]  # how M5 breaks ties is open
inf, nan = np.inf, np.nan
FUN = 2e-3  # a transcendental function in fp16
SIGMOID, SILU = 4e-3, 1e-2  # through the chip's table of 33 knots
names = set()


TYPES = {"fp16": np.float16, "fp32": np.float32, "int32": np.int32, "bool": np.bool_}


def rounded(x, dtype):
    with np.errstate(all="ignore"):
        return np.asarray(x, np.float64).astype(TYPES[dtype])


def f16(x): return rounded(x, "fp16")


def shown(x):
    x = x if isinstance(x, (np.float16, np.float32)) else np.float16(x)
    if np.isnan(x): return "nan"
    if np.isinf(x): return "inf" if x > 0 else "-inf"
    if x == int(x): return str(int(x)) if x != 0 or not np.signbit(x) else "-0"
    return np.format_float_positional(x, unique=True, trim="-") if abs(x) >= 1e-3 else np.format_float_scientific(x, unique=True, trim="-")


def listed(a):
    """As a list; a period of a flat array once, with a count."""
    flat = [shown(x) for x in np.asarray(a).ravel()]
    n = len(flat)
    for p in range(1, n // 2 + 1):
        if n % p == 0 and flat == flat[:p] * (n // p):
            return f"[{', '.join(flat[:p])}] * {n // p}"
    return f"[{', '.join(flat)}]"


def ty(shape, dtype="fp16"): return f"tensor<{dtype}, [{', '.join(map(str, shape))}]>"


class Value:
    def __init__(self, name, runs, dtype):
        self.name, self.runs, self.shape, self.ty = name, runs, runs[0].shape, ty(runs[0].shape, dtype)
        self.dtype = dtype


class Blob:
    """A constant in a weight file."""
    def __init__(self, data): self.data = f16(data)


class Case:
    def __init__(self, name, doc, targets=EXACT, opset="ios18"):
        assert name not in names, name
        names.add(name)
        self.name, self.doc, self.targets, self.opset = name, doc, targets, opset
        self.ins, self.body, self.outs, self.blobs = [], [], [], []

    def input(self, name, *runs, dtype="fp16"):
        v = Value(name, [rounded(r, dtype) for r in runs], dtype)
        self.ins.append(v)
        return v

    def const(self, name, v):
        if isinstance(v, Blob):
            path = f"@model_path/weights/{name}.bin"
            self.blobs.append(f"// blob: {path} = fp16 {listed(v.data)}")
            t, val = ty(v.data.shape), f'{ty(v.data.shape)}(BLOBFILE(path = string("{path}"), offset = uint64(64)))'
        elif isinstance(v, np.ndarray):
            t, val = ty(v.shape), f"{ty(v.shape)}([{', '.join(shown(x) for x in v.ravel())}])"
        elif isinstance(v, list):
            kind, word = ("bool", lambda x: str(x).lower()) if isinstance(v[0], bool) else ("int32", str)
            t = f"tensor<{kind}, [{len(v)}]>"
            val = f"{t}([{', '.join(map(word, v))}])"
        elif isinstance(v, bool): t, val = "bool", f"bool({str(v).lower()})"
        elif isinstance(v, int): t, val = "int32", f"int32({v})"
        elif isinstance(v, float): t, val = "fp16", f"fp16({shown(v)})"
        else: t, val = "string", f'string("{v}")'
        self.body.append(f'{t} {name} = const()[name = string("{name}"), val = {val}];')
        return name

    def op(self, kind, result, ref, to=None, **args):
        """`result`: a name or several; `ref`: arrays of the tensors among `args`, in order, to fp64 arrays; `to`: the result's type, else x's."""
        results = [result] if isinstance(result, str) else list(result)
        tensors, written = [], []
        to = to or next((v.dtype for v in args.values() if isinstance(v, Value)), "fp16")
        for param, v in args.items():
            if isinstance(v, np.ndarray): v = f16(v)
            if isinstance(v, Value):
                tensors.append(v.runs); written.append(f"{param} = {v.name}")
            elif isinstance(v, tuple):
                tensors += [x.runs for x in v]; written.append(f"{param} = ({', '.join(x.name for x in v)})")
            else:
                if isinstance(v, (np.ndarray, Blob)):
                    data = v.data if isinstance(v, Blob) else v
                    tensors.append([data] * len(self.ins[0].runs))
                written.append(f"{param} = {self.const(f'{results[0]}_{param}', v)}")
        made = []
        for run in zip(*tensors):
            with np.errstate(all="ignore"):
                seen = [np.where(np.isnan(x.astype(np.float64)), inf, x.astype(np.float64)) for x in run]
                got = ref(*seen)
            got = [got] if isinstance(result, str) else got
            made.append([rounded(np.where(np.isnan(g), 0.0, g), to) for g in got])
        values = [Value(n, [run[i] for run in made], to) for i, n in enumerate(results)]
        left = ", ".join(f"{v.ty} {v.name}" for v in values)
        self.body.append(f'{left} = {kind}({", ".join(written)})[name = string("{results[0]}")];')
        return values[0] if isinstance(result, str) else values

    def out(self, value, tol=None):
        self.outs.append((value, tol))
        return self

    def write(self):
        lines = [f"// {self.doc}", "// test: run"] + [f"// target: {t}" for t in self.targets] + self.blobs
        params = ", ".join(f"{v.ty} {v.name}" for v in self.ins)
        lines += ["program(1.3)", INFO, "{", f"    func main<{self.opset}>({params}) {{"]
        lines += ["        " + line for line in self.body]
        lines += [f"    }} -> ({', '.join(v.name for v, _ in self.outs)});", "}"]
        for i in range(len(self.ins[0].runs)):
            parts = [f"{v.name} = {listed(v.runs[i])}" for v in self.ins]
            parts += [f"{v.name} == {listed(v.runs[i])}" if tol is None else f"{v.name} ~ {listed(v.runs[i])} tol={tol:g}" for v, tol in self.outs]
            lines.append("// run: " + ", ".join(parts))
        with open(os.path.join(OUT, self.name + ".mil"), "w") as f:
            f.write("\n".join(lines) + "\n")


def wide(values, *shape):
    """A pattern repeated over a shape whose width the chip takes."""
    return np.resize(np.array(values, np.float64), shape)


def ramp(*shape, start=-3, step=1, mod=7):
    return (np.arange(np.prod(shape)) * step % mod + start).reshape(shape).astype(float)


def mac(x):
    """The port of a multiply-accumulate."""
    return np.where(np.abs(x) >= 32768, np.sign(x) * inf, x)


def unary(name, kind, ref, values, doc, tol=None, more=(), targets=CHIPS, **args):
    c = Case(name, doc, targets)
    x = c.input("x", *[wide(v, 1, 2, 1, 32) for v in (values, *more)])
    c.out(c.op(kind, "y", ref, x=x, **args), tol).write()


def binary(name, kind, ref, a, b, doc, tol=None, targets=CHIPS):
    c = Case(name, doc, targets)
    x, y = c.input("a", wide(a, 1, 2, 1, 32)), c.input("b", wide(b, 1, 2, 1, 32))
    c.out(c.op(kind, "y", ref, x=x, y=y), tol).write()


def broadcast(name, kind, ref, sx, sy, doc):
    c = Case(name, doc)
    x, y = c.input("a", ramp(*sx)), c.input("b", ramp(*sy, start=1, step=3, mod=5))
    c.out(c.op(kind, "y", ref, x=x, y=y)).write()


def elementwise():
    a, b = [1, -2, 0.5, 3.25, -1024, 0.1, 7, -0.75], [2, 0.25, -0.5, 3, 2, 0.7, 7, 16]
    binary("add", "add", np.add, a, b, "Sums, each rounded once.")
    binary("sub", "sub", np.subtract, a, b, "Differences.")
    binary("mul", "mul", np.multiply, a, b, "Products.")
    binary("real_div", "real_div", np.divide, a, b, "Quotients.")
    binary("maximum", "maximum", np.maximum, a, b, "The larger.")
    binary("minimum", "minimum", np.minimum, a, b, "The smaller.")
    binary("pow", "pow", np.power, [1, 2, 0.5, 3, 10, 4, 1.5, 9], [3, 0.5, -2, 2, 1, 0, 4, 0.5], "Powers of positive numbers.", FUN)
    broadcast("add_broadcast_row", "add", np.add, (2, 3), (3,), "The shorter shape is aligned at the last axis.")
    broadcast("add_broadcast_channel", "add", np.add, (1, 4, 2, 3), (1, 4, 1, 1), "One number a channel.")
    broadcast("sub_broadcast_both", "sub", np.subtract, (2, 1, 3), (1, 4, 1), "Both sides are stretched.")
    broadcast("mul_broadcast_rank5", "mul", np.multiply, (1, 2, 1, 2, 3), (2, 2, 1, 1, 1), "Five axes, the first stretched too.")
    broadcast("real_div_broadcast_column", "real_div", np.divide, (3, 4), (3, 1), "Every row by its own number.")
    broadcast("maximum_broadcast_scalar", "maximum", np.maximum, (2, 2, 3), (1,), "All against one number.")
    for name, kind, ref, value in [("add_scalar", "add", np.add, 0.5), ("mul_scalar", "mul", np.multiply, -0.125), ("minimum_scalar", "minimum", np.minimum, 1.0)]:
        c = Case(name, "A scalar constant as second operand.", CHIPS)
        x = c.input("x", wide([-2, 0, 0.25, 6], 1, 2, 1, 32))
        c.out(c.op(kind, "y", lambda x, v=value, r=ref: r(x, np.float64(np.float16(v))), x=x, y=value)).write()
    c = Case("sub_from_constant", "A constant as first operand: the order matters.", CHIPS)
    x = c.input("x", wide([-2, 0, 0.25, 6], 1, 2, 1, 32))
    c.out(c.op("sub", "y", lambda x: 1.0 - x, x=1.0, y=x)).write()
    c = Case("add_blob", "A constant in a weight file.", CHIPS)
    x = c.input("x", wide([1, 2, 3, 4], 1, 4, 1, 32))
    c.out(c.op("add", "y", np.add, x=x, y=Blob(np.array([10, 20, 30, 40.0]).reshape(1, 4, 1, 1)))).write()

    s = [0, 1, -1, 0.5, -4, 8, -9.5, 3]
    sig = lambda x: 1 / (1 + np.exp(-x))
    unary("sigmoid", "sigmoid", sig, s, "The logistic function.", SIGMOID)
    unary("tanh", "tanh", np.tanh, s, "Hyperbolic tangent.", FUN)
    unary("relu", "relu", lambda x: np.maximum(x, 0), s, "Negative numbers become 0.")
    unary("silu", "silu", lambda x: x * sig(x), s, "x * sigmoid(x).", SILU)
    unary("exp", "exp", np.exp, [0, 1, -1, 0.5, -8, 8, 10, -3], "The exponential.", FUN)
    unary("sqrt", "sqrt", np.sqrt, [0, 1, 4, 2, 0.25, 65504, 1e-4, 3], "Square roots, correctly rounded.", 1e-3)
    unary("rsqrt", "rsqrt", lambda x: 1 / np.sqrt(x + np.float64(np.float16(1e-3))), [1, 4, 2, 0.25, 1024, 0, 1e-3, 3], "1 / sqrt(x + epsilon).", FUN, epsilon=1e-3)
    unary("log", "log", lambda x: np.log(x + np.float64(np.float16(1e-3))), [1, 4, 2, 0.25, 1024, 0, 1e-3, 3], "log(x + epsilon).", FUN, epsilon=1e-3)
    unary("cast_same", "cast", lambda x: x, [0, 1, -1, 0.5, 65504, inf], "A cast to the type that it has is a copy.", dtype="fp16")


def special():
    """ane-measurements 1.3."""
    binary("nan_operand_add", "add", np.add, [nan, nan, 1, -5], [0, 1, nan, nan], "NaN counts as +inf.")
    binary("nan_operand_mul", "mul", np.multiply, [nan, nan, 2, -2], [1, -1, nan, nan], "NaN counts as +inf in products too.")
    binary("nan_operand_maximum", "maximum", np.maximum, [nan, 1], [3, nan], "The larger of +inf and anything.")
    binary("nan_operand_minimum", "minimum", np.minimum, [nan, 1], [3, nan], "The smaller of +inf and anything.")
    binary("inf_minus_inf", "sub", np.subtract, [inf, -inf, inf, 1], [inf, -inf, 1, inf], "What would be NaN is 0.")
    binary("zero_times_inf", "mul", np.multiply, [0, inf, -inf, inf], [inf, 0, 0, -1], "What would be NaN is 0.")
    binary("zero_by_zero", "real_div", np.divide, [0, 1, -1, 5], [0, 2, 4, inf], "0 / 0 is 0.")
    unary("nan_operand_relu", "relu", lambda x: np.maximum(x, 0), [nan, -inf, -1, inf], "NaN counts as +inf.")
    unary("nan_operand_sigmoid", "sigmoid", lambda x: 1 / (1 + np.exp(-x)), [nan, inf, -inf, 0], "NaN counts as +inf, of which the sigmoid is 1.", 4e-3)
    unary("nan_operand_tanh", "tanh", np.tanh, [nan, inf, -inf, 0], "NaN counts as +inf, of which the tanh is 1.", FUN)
    unary("nan_operand_exp", "exp", np.exp, [nan, inf, -inf, 12], "exp(12) is beyond fp16.")
    unary("sqrt_negative", "sqrt", np.sqrt, [-1, -4, -inf, 4], "Roots of negative numbers are 0.", FUN)
    unary("log_of_zero", "log", lambda x: np.where(x == 0, -45440.0, np.log(x)), [0, 1, 0, 1], "log(0) is -45440, a number.", targets=DEVICE, epsilon=0.0)
    c = Case("nan_operand_transpose", "A copy turns NaN into +inf as any op does.", DEVICE)
    x = c.input("x", np.array([[nan, 1, 2], [-inf, nan, 5]]))
    c.out(c.op("transpose", "y", lambda x: x.T, x=x, perm=[1, 0])).write()
    binary("add_ties", "add", np.add, [2048, 2048, 2050, 4096, -2048, 65504, 65504, -65504], [1, 3, 1, 2, -1, 8, 16, -16], "Ties go to the even number; 65520 and more is inf.", targets=EVEN)
    binary("mul_ties", "mul", np.multiply, [1.0009765625, 1.0009765625, 3, 1.5], [1.0009765625, 1.5, 683, 1.0009765625], "Products are exact, then rounded to even.", targets=EVEN)
    binary("mul_subnormals", "mul", np.multiply, [2.0**-14, 2.0**-14, 2.0**-24, 2.0**-24, 2.0**-14, 3 * 2.0**-24], [0.5, 2.0**-10, 0.5, 0.75, 2.0**-11, 0.5], "Subnormal results of elementwise ops are kept and rounded like others.", targets=EVEN)
    binary("overflow", "mul", np.multiply, [256, 255, -256, 300], [256, 256, 256, 300], "Elementwise ops overflow at fp16's own limit, not at 2^15.")


def products():
    def case(name, doc, sx, sy, tx=None, ty=None, targets=EXACT, fx=None, fy=None, blob=False):
        c = Case(name, doc, targets)
        dx = ramp(*sx) if fx is None else fx
        dy = ramp(*sy, start=-2, step=3, mod=5) if fy is None else fy
        x = c.input("a", dx)
        y = Blob(dy) if blob else c.input("b", dy)
        flags = {k: v for k, v in (("transpose_x", tx), ("transpose_y", ty)) if v is not None}
        def ref(x, y):
            return mac(np.matmul(np.swapaxes(x, -1, -2) if tx else x, np.swapaxes(y, -1, -2) if ty else y))
        c.out(c.op("matmul", "y", ref, x=x, y=y, **flags)).write()
    case("matmul", "Rows by columns.", (2, 3), (3, 4))
    case("matmul_flags_off", "Flags that say what is so anyway.", (2, 3), (3, 4), False, False)
    case("matmul_transpose_x", "The first operand turned.", (3, 2), (3, 4), True, False)
    case("matmul_transpose_y", "The second operand turned.", (2, 3), (4, 3), False, True)
    case("matmul_transpose_both", "Both turned.", (3, 2), (4, 3), True, True)
    case("matmul_batch", "Leading axes go pair by pair.", (2, 2, 2, 3), (2, 2, 3, 2))
    case("matmul_batch_broadcast", "A leading axis of 1 is stretched.", (2, 1, 2, 3), (1, 3, 3, 2))
    case("matmul_rank_broadcast", "A missing leading axis is stretched.", (2, 2, 3), (3, 4))
    case("matmul_one_row", "A vector as a matrix of one row.", (1, 1, 8), (1, 8, 3))
    case("matmul_weight", "A weight in a file, as stored: [out, in].", (1, 1, 32, 32), (1, 1, 2, 32), False, True, EXACT, blob=True)
    case("matmul_port", "Shapes of a training program: W x, width 64.", (1, 32, 32), (1, 32, 64), False, False, CHIPS, wide([1, 0, -1, 2], 1, 32, 32), wide([3, 1, 0, -2, 5], 1, 32, 64)[..., :])
    k = 32
    x = np.zeros((1, 4, k)); x[0, 0, :2] = [128, 128]; x[0, 1, :2] = [128, 127.875]; x[0, 2, :2] = [-128, -128]; x[0, 3, :2] = [1, 0]
    case("matmul_limit", "inf from 2^15 on; 32752 passes; negative ones likewise.", None, None, fx=x, fy=np.full((1, k, 32), 128.0), targets=CHIPS)
    case("matmul_wide_sum", "2,500 ones are not rounded on the way.", None, None, fx=np.ones((1, 1, 2500)), fy=np.ones((1, 2500, 1)))
    case("matmul_nan", "NaN counts as +inf.", None, None, targets=DEVICE, fx=np.array([[nan, 1, 2], [1, 1, 1]]), fy=np.ones((3, 2)))


def conv_ref(strides, pads, dilations, groups, bias):
    def ref(x, w, *rest):
        n, c = x.shape[:2]
        out, taps = w.shape[0], w.shape[2:]
        x = np.pad(x, [(0, 0), (0, 0)] + pads)
        size = [(d - (k - 1) * l - 1) // s + 1 for d, k, l, s in zip(x.shape[2:], taps, dilations, strides)]
        y = np.zeros((n, out, *size))
        for b, o, *at in np.ndindex(*y.shape):
            g = o // (out // groups)
            part = x[(b, slice(g * c // groups, (g + 1) * c // groups), *[slice(i * s, i * s + (k - 1) * l + 1, l) for i, s, k, l in zip(at, strides, taps, dilations)])]
            y[(b, o, *at)] = (part * w[o]).sum()
        if bias: y += rest[0].reshape(1, -1, *[1] * len(taps))
        return mac(y)
    return ref


def convolutions():
    def case(name, doc, sx, sw, bias=False, targets=EXACT, blob=True, **args):
        c = Case(name, doc, targets)
        spatial = len(sx) - 2
        strides, dilations, groups = args.get("strides", [1] * spatial), args.get("dilations", [1] * spatial), args.get("groups", 1)
        pads, kind = [(0, 0)] * spatial, args.get("pad_type", "valid")
        if kind == "custom": pads = list(zip(args["pad"][::2], args["pad"][1::2]))
        if kind.startswith("same"):
            for i, (d, k, s, l) in enumerate(zip(sx[2:], sw[2:], strides, dilations)):
                total = max(0, (-(-d // s) - 1) * s + (k - 1) * l + 1 - d)
                pads[i] = (total // 2, total - total // 2) if kind == "same" else (total - total // 2, total // 2)
        w = ramp(*sw, start=-2, step=3, mod=5)
        x = c.input("a", ramp(*sx))
        tensors = {"x": x, "weight": Blob(w) if blob else c.input("b", w)}
        if bias: tensors["bias"] = f16(np.arange(sw[0]) * 0.5 - 1)
        c.out(c.op("conv", "y", conv_ref(strides, pads, dilations, groups, bias), **tensors, **args)).write()
    case("conv_1x1", "A kernel of one tap is a matrix product.", (1, 4, 1, 6), (3, 4, 1, 1))
    case("conv_1x1_chip", "The same at a width that the chip takes.", (1, 32, 1, 64), (2, 32, 1, 1), targets=CHIPS)
    case("conv_3x3", "No padding unless asked for.", (1, 2, 5, 4), (2, 2, 3, 3))
    case("conv_stride", "Every second position.", (1, 1, 5, 6), (2, 1, 3, 2), strides=[2, 2])
    case("conv_stride_uneven", "A stride for each axis.", (1, 1, 5, 7), (1, 1, 2, 2), strides=[1, 3])
    case("conv_pad", "Zeros on all sides: top, bottom, left, right.", (1, 1, 3, 3), (1, 1, 3, 3), pad_type="custom", pad=[1, 1, 1, 1])
    case("conv_pad_uneven", "Four different pads.", (1, 1, 3, 4), (1, 1, 2, 3), pad_type="custom", pad=[0, 1, 2, 1])
    case("conv_same", "As many results as positions; an odd zero goes after.", (1, 1, 4, 5), (1, 1, 2, 4), pad_type="same")
    case("conv_same_lower", "An odd zero goes before.", (1, 1, 4, 5), (1, 1, 2, 4), pad_type="same_lower")
    case("conv_same_stride", "ceil(length / stride) results.", (1, 1, 5, 7), (1, 1, 3, 3), pad_type="same", strides=[2, 3])
    case("conv_dilation", "Taps two apart.", (1, 1, 5, 6), (1, 1, 2, 3), dilations=[2, 2])
    case("conv_stride_dilation", "Stride, dilation and padding together.", (1, 2, 6, 7), (2, 2, 2, 3), strides=[2, 1], dilations=[1, 2], pad_type="custom", pad=[1, 0, 0, 2])
    case("conv_groups", "Two groups of channels that do not see each other.", (1, 4, 3, 3), (4, 2, 2, 2), groups=2)
    case("conv_depthwise", "Each channel by itself.", (1, 3, 3, 4), (3, 1, 2, 2), groups=3)
    case("conv_bias", "One number added to each output channel.", (1, 2, 3, 3), (3, 2, 2, 2), bias=True)
    case("conv_1d", "One spatial axis.", (1, 2, 8), (3, 2, 3), strides=[2], pad_type="custom", pad=[1, 1])
    case("conv_1d_groups", "One spatial axis in groups.", (1, 4, 6), (4, 2, 2), groups=2)
    case("conv_batch", "Two images.", (2, 2, 3, 3), (2, 2, 2, 2))
    case("conv_runtime_weight", "The weight is an input.", (1, 32, 1, 64), (2, 32, 1, 1), blob=False, targets=CHIPS)


def reductions():
    x = ramp(2, 3, 4, mod=11) / 2
    x[0, 0, 0] = -7.25
    def case(name, kind, ref, doc, axes=None, keep=None, data=x, tol=None, targets=EXACT):
        c = Case(name, doc, targets)
        v = c.input("x", data)
        args = {k: a for k, a in (("axes", axes), ("keep_dims", keep)) if a is not None}
        c.out(c.op(kind, "y", lambda a: np.asarray(ref(a, axis=tuple(axes) if axes else None, keepdims=bool(keep))), x=v, **args), tol).write()
    case("reduce_sum_last", "reduce_sum", np.sum, "Over the last axis, kept.", [-1], True)
    case("reduce_sum_middle", "reduce_sum", np.sum, "Over the middle axis, dropped.", [1], False)
    case("reduce_sum_several", "reduce_sum", np.sum, "Over two axes at once.", [0, -1], True)
    case("reduce_sum_all", "reduce_sum", np.sum, "Without axes, over all, kept.", None, True)
    case("reduce_mean", "reduce_mean", np.mean, "The mean of 4 numbers in quarters is exact.", [2], True)
    case("reduce_mean_several", "reduce_mean", np.mean, "Means over two axes.", [1, 2], True, tol=1e-3)
    case("reduce_max", "reduce_max", np.max, "The largest, of negative numbers too.", [2], False, data=x - 20)
    case("reduce_max_nan", "reduce_max", np.max, "NaN counts as +inf.", [1], True, targets=DEVICE, data=np.array([[nan, 1, 2], [-inf, -3, -2]]))
    case("reduce_sum_overflow", "reduce_sum", np.sum, "A sum overflows at fp16's own limit.", [1], True, data=np.array([[60000, 5000], [60000, 6000], [-60000, -6000]]))

    def softmax(axis):
        def ref(x):
            # The maximum is taken off inside; +inf takes all.
            top = x.max(axis=axis, keepdims=True)
            e = np.where(np.isinf(top) & (top > 0), (x == top).astype(float), np.exp(x - np.where(np.isinf(top), 0, top)))
            return e / e.sum(axis=axis, keepdims=True)
        return ref
    def soft(name, doc, data, along, targets=EXACT, tol=1e-3, **args):
        c = Case(name, doc, targets)
        c.out(c.op("softmax", "y", softmax(along), x=c.input("x", data), **args), tol).write()
    soft("softmax_last", "Along the last axis.", ramp(2, 3, 5), -1, axis=-1)
    soft("softmax_default", "The axis is the last one unless named.", ramp(2, 3, 5), -1)
    soft("softmax_first", "Along the first axis.", ramp(3, 2, 2), 0, axis=0)
    soft("softmax_channels", "Along the channels.", wide([1, 2, -1, 0.5, 3], 1, 4, 1, 32), 1, CHIPS, axis=1)
    soft("softmax_negative_axis", "Axes count from the end too.", ramp(2, 3, 4), -2, axis=-2)
    soft("softmax_large", "The maximum is taken off first.", np.array([[1000.0, 1, 2, 3], [-1000, -1001, -1002, -2000]]), -1, axis=-1)
    soft("softmax_masked", "-10^4 stands for a masked score.", np.array([[1.0, 2, -1e4, -1e4], [0.5, -1e4, -1e4, -1e4]]), -1, axis=-1)
    soft("softmax_nan", "NaN counts as +inf and takes all.", np.array([[nan, 1, 2, 3], [4, 3, 2, 1]]), -1, DEVICE, axis=-1)


def moves():
    def case(name, kind, ref, doc, shape, /, targets=EXACT, result="y", data=None, **args):
        c = Case(name, doc, targets)
        x = c.input("x", np.arange(np.prod(shape)).reshape(shape).astype(float) if data is None else data)
        y = c.op(kind, result, ref, x=x, **args)
        for v in y if isinstance(y, list) else [y]: c.out(v)
        c.write()
    for name, doc, old, given, new in [
        ("reshape", "The same elements in row-major order.", (2, 6), [3, 4], (3, 4)),
        ("reshape_open", "-1 is worked out.", (2, 3, 4), [4, -1], (4, 6)),
        ("reshape_copy", "0 copies the axis of x, where there are as many as before.", (2, 3, 4), [0, 12, 1], (2, 12, 1)),
        ("reshape_copy_open", "0 and -1 together.", (2, 3, 4), [0, -1, 2], (2, 6, 2)),
        ("reshape_rank5", "Up to five axes.", (4, 6), [1, 2, 2, 3, 2], (1, 2, 2, 3, 2)),
        ("reshape_flat", "All in one axis.", (2, 2, 3), [-1], (12,)),
    ]:
        case(name, "reshape", lambda x, new=new: x.reshape(new), doc, old, shape=given)
    for name, doc, shape, perm in [
        ("transpose_matrix", "Rows become columns.", (2, 3), [1, 0]),
        ("transpose_last", "The last two axes swapped.", (1, 2, 2, 3), [0, 1, 3, 2]),
        ("transpose_cycle", "Axis i of the result is axis perm[i] of x.", (2, 3, 4), [2, 0, 1]),
        ("transpose_negative", "Axes count from the end too.", (2, 3, 4), [-1, -3, -2]),
        ("transpose_rank5", "Five axes.", (2, 1, 2, 3, 2), [4, 2, 0, 3, 1]),
    ]:
        case(name, "transpose", lambda x, p=perm: x.transpose(p), doc, shape, perm=perm)
    case("expand_dims", "expand_dims", lambda x: x[None, :, None], "Positions are those of the result.", (2, 3), axes=[0, 2])
    case("expand_dims_negative", "expand_dims", lambda x: x[..., None], "Positions count from the end too.", (2, 3), axes=[-1])
    case("squeeze", "squeeze", lambda x: x[:, 0], "The axes named.", (2, 1, 3, 1), axes=[1])
    case("squeeze_all", "squeeze", lambda x: x.squeeze(), "All of length 1 where none is named.", (2, 1, 3, 1))

    case("slice_by_size", "slice_by_size", lambda x: x[1:3, 2:4], "A window by its begin and size.", (3, 5), begin=[1, 2], size=[2, 2])
    case("slice_by_size_open", "slice_by_size", lambda x: x[:, 3:], "Size -1 runs to the end.", (3, 5), begin=[0, 3], size=[-1, -1])
    case("slice_channels", "slice_by_size", lambda x: x[:, 1:3], "Channels, at a width that the chip takes.", None, targets=CHIPS, data=wide([1, 5000, 2, -7, 60000], 1, 4, 1, 32), begin=[0, 1, 0, 0], size=[1, 2, 1, 32])
    for chips, doc, crop in [(CHIPS[:2], "On M1 and M2 numbers above 4094 become infinite behind a width offset.", True), (CHIPS[2:5], "From M3 on they do not.", False)]:
        data = wide([100, 4096, -8192, 4092], 1, 2, 1, 128)
        ref = lambda x, crop=crop: np.where(crop & (np.abs(x[..., 64:]) > 4094), np.sign(x[..., 64:]) * inf, x[..., 64:])
        case("slice_width_" + ("clamp" if crop else "clean"), "slice_by_size", ref, doc, None, targets=chips, data=data, begin=[0, 0, 0, 64], size=[1, 2, 1, 64])
    for name, doc, shape, want, args in [
        ("slice_by_index", "From begin up to end, end not included.", (4, 6), np.s_[1:3, 2:5], dict(begin=[1, 2], end=[3, 5])),
        ("slice_stride", "Every second element.", (4, 7), np.s_[0:4:2, 1:7:3], dict(begin=[0, 1], end=[4, 7], stride=[2, 3])),
        ("slice_negative", "Negative ends count from the end.", (4, 6), np.s_[-3:-1, 1:-2], dict(begin=[-3, 1], end=[-1, -2])),
        ("slice_begin_mask", "A masked begin is the start.", (4, 6), np.s_[:2, 3:6], dict(begin=[3, 3], end=[2, 6], begin_mask=[True, False])),
        ("slice_end_mask", "A masked end is the end.", (4, 6), np.s_[1:, 2:4], dict(begin=[1, 2], end=[0, 4], end_mask=[True, False])),
        ("slice_both_masks", "Both: the whole axis.", (3, 4), np.s_[:, 1:2], dict(begin=[2, 1], end=[1, 2], begin_mask=[True, False], end_mask=[True, False])),
        ("slice_backwards", "A negative stride walks down.", (2, 6), np.s_[0:2, 4:1:-1], dict(begin=[0, 4], end=[2, 1], stride=[1, -1])),
        ("slice_reverse", "The whole axis backwards.", (2, 5), np.s_[:, ::-1], dict(begin=[0, 0], end=[2, 0], stride=[1, -1], begin_mask=[False, True], end_mask=[False, True])),
        ("slice_reverse_stride", "Every second element backwards.", (6,), np.s_[5::-2], dict(begin=[5], end=[0], stride=[-2], end_mask=[True])),
        ("slice_squeeze", "A squeezed axis is dropped.", (3, 4, 2), np.s_[:, 2], dict(begin=[0, 2, 0], end=[3, 3, 2], squeeze_mask=[False, True, False])),
        ("slice_squeeze_negative", "A squeezed axis takes one element, from the end if negative.", (3, 4), np.s_[-1, 1:3], dict(begin=[-1, 1], end=[0, 3], squeeze_mask=[True, False])),
    ]:
        case(name, "slice_by_index", lambda x, w=want: x[w], doc, shape, **args)

    def join(name, doc, shapes, axis, targets=EXACT, interleave=None, ref=None):
        c = Case(name, doc, targets)
        parts = tuple(c.input("abc"[i], wide(np.arange(6) + 10 * i, *s)) for i, s in enumerate(shapes))
        args = {} if interleave is None else {"interleave": interleave}
        c.out(c.op("concat", "y", ref or (lambda *p: np.concatenate(p, axis)), values=parts, axis=axis, **args)).write()
    join("concat_channels", "Channels one after another, as programs return them.", [(1, 2, 1, 32), (1, 3, 1, 32)], 1, CHIPS, False)
    join("concat_last", "Along the last axis.", [(2, 3), (2, 1), (2, 2)], -1)
    join("concat_first", "Along the first axis.", [(1, 3), (2, 3)], 0)
    turns = lambda *p: np.stack(p, 2).reshape(p[0].shape[0], -1, *p[0].shape[2:])
    join("concat_interleave", "Slices by turns.", [(1, 3, 2), (1, 3, 2)], 1, interleave=True, ref=turns)
    case("split_equal", "split", lambda x: np.split(x, 3, 1), "Equal parts.", (2, 6), result=("y0", "y1", "y2"), num_splits=3, axis=1)
    case("split_sizes", "split", lambda x: np.split(x, [1, 4], 1), "Parts of given lengths.", (2, 6), result=("y0", "y1", "y2"), split_sizes=[1, 3, 2], axis=-1)
    case("split_channels", "split", lambda x: np.split(x, 2, 1), "Channels in two halves.", None, targets=CHIPS, data=wide([1, 2, 3, 4, 5], 1, 4, 1, 32), result=("y0", "y1"), num_splits=2, axis=1)
    case("tile", "tile", lambda x: np.tile(x, [2, 3]), "The whole repeated along each axis.", (2, 2), reps=[2, 3])
    case("tile_channels", "tile", lambda x: np.tile(x, [1, 2, 1, 1]), "Channels twice.", None, targets=CHIPS, data=wide([1, 2, 3, 4, 5], 1, 2, 1, 32), reps=[1, 2, 1, 1])


def together():
    def attend(q, k, v):
        s = f16(mac(q @ np.swapaxes(k, -1, -2))).astype(float)
        s = f16(s * np.float64(np.float32(1) / np.sqrt(np.float32(q.shape[-1])))).astype(float)
        e = np.exp(s - s.max(-1, keepdims=True))
        return f16(e / e.sum(-1, keepdims=True)).astype(float) @ v
    def sdpa(name, doc, masked):
        c = Case(name, doc, DEVICE if masked else EXACT)
        q, k, v = (c.input(n, ramp(1, 2, 3, 4, start=-2, step=s, mod=5) / 2) for n, s in (("a", 1), ("b", 3), ("c", 2)))
        args = dict(query=q, key=k, value=v)
        if masked: args["attn_mask"] = c.input("d", np.full((1, 1, 3, 3), -1e4) * np.triu(np.ones((3, 3)), 1))
        c.out(c.op("scaled_dot_product_attention", "y", lambda q, k, v, *_: attend(q, k, v), **args), 5e-3).write()
    sdpa("attention", "Attention in one op.", False)
    sdpa("attention_mask_ignored", "Its mask is ignored, as the chip does (ane-facts 5.2).", True)

    c = Case("gate", "silu(h1) * h3 as programs spell it, every step rounded.", CHIPS)
    x = c.input("x", wide([1, -2, 0.5, 3, -0.25], 1, 4, 1, 32))
    h1 = c.op("slice_by_size", "h1", lambda x: x[:, :2], x=x, begin=[0, 0, 0, 0], size=[1, 2, 1, 32])
    h3 = c.op("slice_by_size", "h3", lambda x: x[:, 2:], x=x, begin=[0, 2, 0, 0], size=[1, 2, 1, 32])
    s = c.op("sigmoid", "s", lambda x: 1 / (1 + np.exp(-x)), x=h1)
    g = c.op("mul", "g", np.multiply, x=h1, y=s)
    c.out(c.op("mul", "y", np.multiply, x=g, y=h3), SILU).write()

    c = Case("grouped_heads", "Two query heads a key head as rows: reshape, matmul, reshape.")
    q, k = c.input("a", ramp(1, 4, 3, 2)), c.input("b", ramp(1, 2, 3, 2, start=-1, step=2, mod=4))
    rows = c.op("reshape", "rows", lambda x: x.reshape(1, 2, 6, 2), x=q, shape=[1, 2, 6, 2])
    s = c.op("matmul", "s", lambda x, y: mac(x @ np.swapaxes(y, -1, -2)), x=rows, y=k, transpose_x=False, transpose_y=True)
    c.out(c.op("reshape", "y", lambda x: x.reshape(1, 4, 3, 3), x=s, shape=[1, 4, 3, 3])).write()

    c = Case("two_results", "Two results, one of which is used by the other.", CHIPS)
    x = c.input("x", wide([1, 2, -3, 4.5], 1, 2, 1, 32))
    y = c.op("add", "y", np.add, x=x, y=x)
    z = c.op("mul", "z", np.multiply, x=y, y=x)
    c.out(y).out(z).write()

    c = Case("norm", "RMSNorm without its gain: sum of squares, rsqrt, product.")
    x = c.input("x", ramp(2, 4) / 2)
    q = c.op("mul", "q", np.multiply, x=x, y=x)
    s = c.op("reduce_sum", "s", lambda x: x.sum(-1, keepdims=True), x=q, axes=[-1], keep_dims=True)
    m = c.op("mul", "m", lambda x: x * 0.25, x=s, y=0.25)
    r = c.op("rsqrt", "r", lambda x: 1 / np.sqrt(x + np.float64(np.float16(1e-3))), x=m, epsilon=1e-3)
    c.out(c.op("mul", "y", np.multiply, x=x, y=r), 3e-3).write()


def types():
    """Other element types: only the exact arithmetic has them."""
    def case(name, doc): return Case(name, doc, ["emulator exact"])
    c = case("add_fp32", "fp32 is computed in fp32.")
    x, y = c.input("a", [1, 2.0**24, 1e-3, 0.1], dtype="fp32"), c.input("b", [2.0**-20, 1, 1e5, 0.2], dtype="fp32")
    c.out(c.op("add", "y", np.add, x=x, y=y)).write()
    c = case("matmul_fp32", "A product in fp32: no 2^15, no fp16 anywhere.")
    x, y = c.input("a", [[256, 256.0], [1e-3, 1]], dtype="fp32"), c.input("b", [[256.0, 1], [256, 2048]], dtype="fp32")
    c.out(c.op("matmul", "y", np.matmul, x=x, y=y), 1e-6).write()
    c = case("cast_to_fp16", "fp32 to fp16: ties to even, 65520 and more is inf.")
    x = c.input("x", [2049, 2051, 65519, 65520, 1e-8, -3e-8, 0.1], dtype="fp32")
    c.out(c.op("cast", "y", lambda x: x, to="fp16", x=x, dtype="fp16")).write()
    c = case("cast_to_fp32", "fp16 to fp32 is exact.")
    c.out(c.op("cast", "y", lambda x: x, to="fp32", x=c.input("x", [0.1, -65504, 2.0**-24, inf]), dtype="fp32")).write()
    c = case("cast_to_int32", "To an integer towards zero, and back.")
    n = c.op("cast", "n", np.trunc, to="int32", x=c.input("x", [0.5, -0.5, 2.75, -2.75, 1000]), dtype="int32")
    c.out(c.op("cast", "y", lambda x: x, to="fp16", x=n, dtype="fp16")).write()
    c = case("integers", "Integers are computed as integers.")
    n = c.op("cast", "n", np.trunc, to="int32", x=c.input("x", [7, -7, 100, 4]), dtype="int32")
    m = c.op("mul", "m", np.multiply, x=n, y=n)
    c.out(c.op("cast", "y", lambda x: x, to="fp32", x=m, dtype="fp32")).write()
    c = case("cast_to_bool", "To a truth value and back: 0 is false, all else is true.")
    n = c.op("cast", "n", lambda x: x != 0, to="bool", x=c.input("x", [0, 1, -2, 0.5]), dtype="bool")
    c.out(c.op("cast", "y", lambda x: x, to="fp16", x=n, dtype="fp16")).write()


if __name__ == "__main__":
    os.makedirs(OUT, exist_ok=True)
    for family in (elementwise, special, products, convolutions, reductions, moves, together, types): family()
    stale = [f for f in os.listdir(OUT) if f.endswith(".mil") and f[:-4] not in names]
    for f in stale: os.remove(os.path.join(OUT, f))
    print(f"{len(names)} files in {OUT}" + (f", {len(stale)} stale ones removed" if stale else ""))
