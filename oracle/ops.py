"""Writes crates/filetests/files/ops/*.mil: one program for each op that only the exact and the chip's arithmetic run, with what
PyTorch or numpy say it gives.

    python oracle/ops.py     (needs torch and numpy)

Inputs are small and written out; results are computed in fp64 and asked for within a few units of fp16's last place.
"""

import pathlib

import numpy as np
import torch
import torch.nn.functional as F

OUT = pathlib.Path(__file__).resolve().parent.parent / "crates" / "filetests" / "files" / "ops"
rng = np.random.default_rng(3)
NAMES = {np.float16: "fp16", np.float32: "fp32", np.int32: "int32", np.int8: "int8", np.uint8: "uint8", np.bool_: "bool"}


def shown(x):
    if isinstance(x, (bool, np.bool_)):
        return "true" if x else "false"
    if isinstance(x, (int, np.integer)):
        return str(int(x))
    x = float(x)
    if np.isinf(x):
        return "inf" if x > 0 else "-inf"
    return str(int(x)) if x == int(x) else np.format_float_positional(np.float32(x), unique=True, trim="-")


def listed(a):
    return "[" + ", ".join(shown(x) for x in np.asarray(a).ravel()) + "]"


def lit(a, dtype=None):
    """A literal as the text has it."""
    if isinstance(a, str):
        return f'string("{a}")'
    a = np.asarray(a, dtype)
    a = a.astype(np.float16) if a.dtype == np.float64 else a.astype(np.int32) if a.dtype == np.int64 else a
    kind = NAMES[a.dtype.type]
    if a.ndim == 0:
        return f"{kind}({number(a.item(), kind)})"
    def nest(a):
        return "[" + ", ".join(number(x, kind) if a.ndim == 1 else nest(x) for x in a) + "]"
    return f"tensor<{kind}, [{', '.join(map(str, a.shape))}]>({nest(a)})"


def number(x, kind):
    if kind == "bool":
        return "true" if x else "false"
    return float(x).hex() if kind in ("fp16", "fp32") else str(int(x))


def typed(a, kind):
    return f"tensor<{kind}, [{', '.join(map(str, np.shape(a)))}]>"


def case(name, doc, ins, lines, outs, tol=2e-3, kind="fp16", opset="ios18"):
    """`lines`: statements as (type and name, call); `outs`: name -> values."""
    params = ", ".join(f"{typed(v, kind)} {n}" for n, v in ins.items())
    body = "\n".join(f'        {t} = {call}[name = string("{t.split()[-1]}")];' for t, call in lines)
    runs = ", ".join([f"{n} = {listed(v)}" for n, v in ins.items()] + [f"{n} ~ {listed(v)} tol={tol:g}" if tol else f"{n} == {listed(v)}" for n, v in outs.items()])
    (OUT / f"{name}.mil").write_text(f"""// {doc}
// test: run
// target: emulator exact
program(1.3)
[buildInfo = dict<string, string>({{{{"coremlc-component-MIL", "3510.2.1"}}}})]
{{
    func main<{opset}>({params}) {{
{body}
    }} -> ({", ".join(outs)});
}}
// run: {runs}
""")


def half(*shape, scale=2.0):
    return (rng.standard_normal(shape) * scale).astype(np.float16)


def wide(a):
    return torch.tensor(np.asarray(a, np.float64))


def one(name, f, doc, args="", x=None, tol=2e-3):
    x = half(2, 4) if x is None else np.asarray(x, np.float16)
    y = np.asarray(f(wide(x)))
    case(name, doc, {"a": x}, [(f"{typed(y, 'fp16')} y", f"{name}(x = a{args})")], {"y": y}, tol)


def args(**kw):
    return "".join(f", {k} = {lit(v)}" for k, v in kw.items())


def pointwise():
    one("abs", torch.abs, "Absolute value.")
    for name in ("acos", "asin", "atanh"):
        one(name, getattr(torch, name), f"`{name}` inside its domain.", x=[-0.875, -0.25, 0, 0.5, 0.75])
    for name in ("atan", "cos", "sin", "tan", "erf", "ceil", "floor", "sign", "square", "exp2"):
        one(name, getattr(torch, name), f"`{name}` of both signs.", x=[-3.5, -1.25, -0.5, 0, 0.75, 1, 2.5])
    for name in ("cosh", "sinh"):
        one(name, getattr(torch, name), f"`{name}` of both signs.", x=[-2, -0.5, 0, 1.5])
    one("round", torch.round, "Ties go to the even number.", x=[-2.5, -1.5, -0.5, 0.5, 1.5, 2.25, 1025], tol=0)
    one("inverse", lambda x: 1 / (x + 0.5), "`epsilon` is added first.", args(epsilon=0.5), x=[0, 0.5, 1.5, 7.5])
    one("clip", lambda x: x.clamp(-1, 1.5), "Both ends.", args(alpha=-1.0, beta=1.5))
    one("threshold", lambda x: x.clamp(min=0.5), "Nothing is below alpha.", args(alpha=0.5))


def activations():
    x = [-6, -2.5, -1, -0.25, 0, 0.25, 1, 2.5, 7]
    one("relu6", F.relu6, "Clamped at both ends.", x=x)
    one("softplus", F.softplus, "Near zero and far from it.", x=[*x, 30])
    one("softsign", F.softsign, "x / (1 + |x|).", x=x)
    one("elu", lambda v: F.elu(v, 0.5), "alpha scales the negative side.", args(alpha=0.5), x)
    one("leaky_relu", lambda v: F.leaky_relu(v, 0.125), "alpha scales the negative side.", args(alpha=0.125), x)
    one("linear_activation", lambda v: 2 * v - 1, "alpha x + beta.", args(alpha=2.0, beta=-1.0), x)
    one("scaled_tanh", lambda v: 2 * torch.tanh(0.5 * v), "alpha tanh(beta x).", args(alpha=2.0, beta=0.5), x)
    one("sigmoid_hard", lambda v: (0.25 * v + 0.5).clamp(0, 1), "A line between two ends.", args(alpha=0.25, beta=0.5), x)
    one("thresholded_relu", lambda v: torch.where(v >= 0.25, v, 0), "Zero below alpha.", args(alpha=0.25), x)
    one("clamped_relu", lambda v: torch.where(v >= 0, v, 0.5 * v).clamp(max=2), "A slope and an end.", args(alpha=0.5, beta=2.0), x)
    v = wide(x)
    for mode, y in (("EXACT", F.gelu(v)), ("TANH_APPROXIMATION", F.gelu(v, approximate="tanh")), ("SIGMOID_APPROXIMATION", v * torch.sigmoid(1.702 * v))):
        case(f"gelu_{mode.split('_')[0].lower()}", f"gelu, {mode}.", {"a": np.array(x, np.float16)}, [(f"{typed(y, 'fp16')} y", f"gelu(x = a{args(mode=mode)})")], {"y": y})
    a = half(1, 3, 4)
    slope, steep = np.array([0.5, 0.25, -1], np.float16), np.array([1, 2, 0.5], np.float16)
    col = lambda s: wide(s)[None, :, None]
    y = torch.where(wide(a) >= 0, wide(a), wide(a) * col(slope))
    case("prelu", "A slope for each channel.", {"a": a}, [(f"{typed(y, 'fp16')} y", f"prelu(x = a{args(alpha=slope)})")], {"y": y})
    y = col(slope) * F.softplus(wide(a) * col(steep))
    case("softplus_parametric", "Two numbers for each channel.", {"a": a}, [(f"{typed(y, 'fp16')} y", f"softplus_parametric(x = a{args(alpha=slope, beta=steep)})")], {"y": y})


def two():
    a, b = np.array([[-7, -3, 5, 8]], np.float16), np.array([[2], [-3]], np.float16)
    for name, y in (("floor_div", np.floor(a / b.astype(float))), ("mod", a.astype(float) - b * np.floor(a / b.astype(float)))):
        case(name, "Towards minus infinity, broadcast.", {"a": a, "b": b}, [(f"{typed(y, 'fp16')} y", f"{name}(x = a, y = b)")], {"y": y}, 0)
    a, b = np.array([1, 2, 3, -0.0], np.float16), np.array([2, 2, 2, 0], np.float16)
    for name, y in (("equal", a == b), ("not_equal", a != b), ("greater", a > b), ("greater_equal", a >= b), ("less", a < b), ("less_equal", a <= b)):
        case(name, "As 0 and 1.", {"a": a, "b": b}, [("tensor<bool, [4]> t", f"{name}(x = a, y = b)"), ("tensor<fp16, [4]> y", 'cast(x = t, dtype = string("fp16"))')], {"y": y.astype(float)}, 0)
    big, even = "greater(x = a, y = fp16(0x1.8p+0))", "less(x = b, y = fp16(0x1p+0))"
    for name, y in (("logical_and", (a > 1.5) & (b < 1)), ("logical_or", (a > 1.5) | (b < 1)), ("logical_xor", (a > 1.5) ^ (b < 1))):
        case(name, "Of two comparisons.", {"a": a, "b": b}, [("tensor<bool, [4]> s", big), ("tensor<bool, [4]> t", even), ("tensor<bool, [4]> u", f"{name}(x = s, y = t)"), ("tensor<fp16, [4]> y", 'cast(x = u, dtype = string("fp16"))')], {"y": y.astype(float)}, 0)
    y = np.where(a > 1.5, a, b)
    case("select", "Element by element.", {"a": a, "b": b}, [("tensor<bool, [4]> s", big), ("tensor<fp16, [4]> y", "select(cond = s, a = a, b = b)")], {"y": y}, 0)
    case("logical_not", "Of a comparison.", {"a": a}, [("tensor<bool, [4]> s", big), ("tensor<bool, [4]> t", "logical_not(x = s)"), ("tensor<fp16, [4]> y", 'cast(x = t, dtype = string("fp16"))')], {"y": (~(a > 1.5)).astype(float)}, 0)


def reductions():
    a = half(2, 3, 4)
    v = wide(a)
    for name, f in {
        "reduce_min": lambda v: v.amin((0, 2), True), "reduce_l1_norm": lambda v: v.abs().sum((0, 2), True),
        "reduce_l2_norm": lambda v: (v * v).sum((0, 2), True).sqrt(), "reduce_sum_square": lambda v: (v * v).sum((0, 2), True),
        "reduce_log_sum_exp": lambda v: v.logsumexp((0, 2), True),
    }.items():
        y = f(v)
        case(name, "Over two axes, kept.", {"a": a}, [(f"{typed(y, 'fp16')} y", f"{name}(x = a{args(axes=[0, -1], keep_dims=np.True_)})")], {"y": y}, 4e-3)
    b = np.abs(half(2, 3)) + np.float16(0.5)
    for name, f in {"reduce_prod": lambda v: v.prod(1), "reduce_log_sum": lambda v: v.sum(1).log()}.items():
        y = f(wide(b))
        case(name, "Over the last axis, dropped.", {"a": b}, [(f"{typed(y, 'fp16')} y", f"{name}(x = a{args(axes=[1])})")], {"y": y}, 4e-3)
    c = np.array([[1, 5, 5, -2], [0, -9, 3, -9]], np.float16)
    for name, y in (("reduce_argmax", c.argmax(1)), ("reduce_argmin", c.argmin(1))):
        case(name, "The first of equals.", {"a": c}, [("tensor<int32, [2]> p", f"{name}(x = a{args(axis=1)})"), ("tensor<fp16, [2]> y", 'cast(x = p, dtype = string("fp16"))')], {"y": y}, 0)
    for name, kw, y in (
        ("cumsum", {}, c.cumsum(1)),
        ("cumsum_exclusive", {"exclusive": np.True_}, c.cumsum(1) - c),
        ("cumsum_reverse", {"reverse": np.True_, "exclusive": np.True_}, c[:, ::-1].cumsum(1)[:, ::-1] - c),
    ):
        case(name, "Along the last axis.", {"a": c}, [("tensor<fp16, [2, 4]> y", f"cumsum(x = a{args(axis=1, **kw)})")], {"y": y}, 0)


def norms():
    a = half(2, 3, 4)
    gain, shift = half(3), half(3)
    y = F.batch_norm(wide(a), wide(shift) / 2, wide(np.abs(gain)), wide(gain), wide(shift), eps=0.125)
    case("batch_norm", "By channel.", {"a": a}, [(f"{typed(a, 'fp16')} y", f"batch_norm(x = a{args(mean=(shift / 2).astype(np.float16), variance=np.abs(gain), gamma=gain, beta=shift, epsilon=0.125)})")], {"y": y}, 4e-3)
    y = F.instance_norm(wide(a), weight=wide(gain), bias=wide(shift), eps=0.125)
    case("instance_norm", "By sample and channel.", {"a": a}, [(f"{typed(a, 'fp16')} y", f"instance_norm(x = a{args(gamma=gain, beta=shift, epsilon=0.125)})")], {"y": y}, 4e-3)
    g, s = half(3, 4), half(3, 4)
    y = F.layer_norm(wide(a), (3, 4), wide(g), wide(s), 0.125)
    case("layer_norm", "Over two axes, with a scale and an offset.", {"a": a}, [(f"{typed(a, 'fp16')} y", f"layer_norm(x = a{args(axes=[1, 2], gamma=g, beta=s, epsilon=0.125)})")], {"y": y}, 4e-3)
    y = wide(a) / ((wide(a) ** 2).sum((1, 2), True) + 0.125).sqrt()
    case("l2_norm", "Over all axes but the first.", {"a": a}, [(f"{typed(a, 'fp16')} y", f"l2_norm(x = a{args(epsilon=0.125)})")], {"y": y})


def moves():
    a = np.arange(24).reshape(2, 3, 4).astype(np.float16)
    for mode, pad in (("constant", [0, 0, 1, 2, 2, 1]), ("reflect", [0, 0, 1, 2, 3, 1]), ("replicate", [1, 0, 1, 2, 3, 1])):
        pairs = np.array(pad).reshape(3, 2)
        y = np.pad(a, pairs, constant_values=-1) if mode == "constant" else np.pad(a, pairs, mode="edge" if mode == "replicate" else mode)
        case(f"pad_{mode}", f"{mode}, different at the ends.", {"a": a}, [(f"{typed(y, 'fp16')} y", f"pad(x = a{args(pad=pad, mode=mode, constant_val=-1.0)})")], {"y": y}, 0)
    y = np.pad(a, [(0, 0), (0, 0), (0, 2)], mode="reflect")
    case("pad_last_axes", "Only the last axis is named.", {"a": a}, [(f"{typed(y, 'fp16')} y", f"pad(x = a{args(pad=[0, 2], mode='reflect')})")], {"y": y}, 0)
    y = np.stack([a, -a], 1)
    case("stack", "A new axis in the middle.", {"a": a}, [(f"{typed(a, 'fp16')} b", "mul(x = a, y = fp16(-0x1p+0))"), (f"{typed(y, 'fp16')} y", f"stack(values = (a, b){args(axis=1)})")], {"y": y}, 0)
    y = a[::-1, :, ::-1]
    case("reverse", "Along two axes.", {"a": a}, [(f"{typed(y, 'fp16')} y", f"reverse(x = a{args(axes=[0, 2])})")], {"y": y}, 0)
    case("flatten2d", "Axes before and from 2 on.", {"a": a}, [("tensor<fp16, [6, 4]> y", f"flatten2d(x = a{args(axis=2)})")], {"y": a}, 0)
    case("identity", "Itself.", {"a": a}, [(f"{typed(a, 'fp16')} y", "identity(x = a)")], {"y": a}, 0)
    case("fill", "Added to the input.", {"a": a}, [("tensor<fp16, [3, 4]> f", f"fill(shape = {lit([3, 4])}, value = fp16(0x1.8p+0))"), (f"{typed(a, 'fp16')} y", "add(x = a, y = f)")], {"y": a + 1.5}, 0)
    case("fill_like", "The shape of the input.", {"a": a}, [(f"{typed(a, 'fp16')} f", "fill_like(ref_tensor = a, value = fp16(0x1.8p+0))"), (f"{typed(a, 'fp16')} y", "add(x = a, y = f)")], {"y": a + 1.5}, 0)
    case("shape", "The lengths, cast.", {"a": a}, [("tensor<int32, [3]> s", "shape(x = a)"), ("tensor<fp16, [3]> y", 'cast(x = s, dtype = string("fp16"))')], {"y": [2, 3, 4]}, 0)
    y = a[:, [2, 0, 2, 1]]
    case("gather", "Rows, one twice.", {"a": a}, [(f"{typed(y, 'fp16')} y", f"gather(x = a, indices = {lit([2, 0, 2, 1])}{args(axis=1, batch_dims=0)})")], {"y": y}, 0)
    index = np.array([[3, 0], [1, 2]])
    y = np.stack([a[b][:, index[b]] for b in range(2)])
    case("gather_batch", "Other columns for each sample.", {"a": a}, [(f"{typed(y, 'fp16')} y", f"gather(x = a, indices = {lit(index)}{args(axis=2, batch_dims=1)})")], {"y": y}, 0)
    index = np.array([[[0, 2, 1, -1]], [[1, 1, 0, 2]]])
    y = np.take_along_axis(a, index, 1)
    case("gather_along_axis", "A row for each column; negative counts from the end.", {"a": a}, [(f"{typed(y, 'fp16')} y", f"gather_along_axis(x = a, indices = {lit(index)}{args(axis=1)})")], {"y": y}, 0)


def products():
    a, w, b = half(2, 3), half(4, 3), half(4)
    y = F.linear(wide(a), wide(w), wide(b))
    case("linear", "With a bias.", {"a": a}, [(f"{typed(y, 'fp16')} y", f"linear(x = a{args(weight=w, bias=b)})")], {"y": y}, 4e-3)
    steps, batch, inputs, hidden = 3, 2, 2, 3
    single = lambda *s: (rng.standard_normal(s) * 0.7).astype(np.float32)
    x, h, c = single(steps, batch, inputs), single(batch, hidden), single(batch, hidden)
    order = lambda w: np.concatenate([w[:hidden], w[hidden : 2 * hidden], w[3 * hidden :], w[2 * hidden : 3 * hidden]])  # i f g o -> i f o g
    def ours(name, both, sequence):
        net = torch.nn.LSTM(inputs, hidden, bidirectional=both).double()
        n = 2 if both else 1
        weights = {}
        with torch.no_grad():
            for tail, ours in (("", ""), ("_reverse", "_back"))[:n]:
                parts = {}
                for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                    p = getattr(net, f"{kind}_l0{tail}")
                    p.copy_(torch.tensor(single(*p.shape)))
                    parts[kind] = p.numpy()
                weights |= {f"weight_ih{ours}": order(parts["weight_ih"]), f"weight_hh{ours}": order(parts["weight_hh"]), f"bias{ours}": order(parts["bias_ih"] + parts["bias_hh"])}
            h0, c0 = (np.concatenate([s] * n, 1) for s in (h, c))
            split = lambda s: wide(s).reshape(batch, n, hidden).transpose(0, 1).contiguous()
            y, (last_h, last_c) = net(wide(x), (split(h0), split(c0)))
        join = lambda s: s.transpose(0, 1).reshape(batch, n * hidden)
        y = y if sequence else join(last_h)[None]
        given = "".join(f", {k} = {lit(v.astype(np.float32))}" for k, v in weights.items())
        given += args(direction="bidirectional" if both else "forward", output_sequence=np.bool_(sequence))
        types = ", ".join(f"{typed(v, 'fp32')} {k}" for k, v in (("y", y), ("last_h", join(last_h)), ("last_c", join(last_c))))
        case(name, "Gates in the order input, forget, output, cell." if not both else "Two directions side by side.", {"a": x, "h": h0, "c": c0},
             [(types, f"lstm(x = a, initial_h = h, initial_c = c{given})")], {"y": y, "last_h": join(last_h), "last_c": join(last_c)}, 1e-5, "fp32")
    ours("lstm", False, True)
    ours("lstm_last", False, False)
    ours("lstm_bidirectional", True, True)


def encoded():
    a = np.array([[-3, -0.75, 0.25, 100], [0.5, 1.5, -200, 2]], np.float16)
    scale, zero = np.array([0.5, 1], np.float16), np.array([1, -2], np.int8)
    q = np.clip(np.round(a.astype(float) / scale[:, None]) + zero[:, None], -128, 127)
    line = ("tensor<int8, [2, 4]> q", f"quantize(input = a{args(scale=scale, zero_point=zero, axis=0, output_dtype='int8')})")
    case("quantize", "Rounded to even, moved into range; seen through a cast.", {"a": a}, [line, ("tensor<fp16, [2, 4]> y", 'cast(x = q, dtype = string("fp16"))')], {"y": q}, 0)
    y = (q - zero[:, None]) * scale[:, None]
    case("dequantize", "There and back.", {"a": a}, [line, ("tensor<fp16, [2, 4]> y", f"dequantize(input = q{args(scale=scale, zero_point=zero, axis=0)})")], {"y": y}, 0)
    x = np.ones((2, 4), np.float16)
    data = np.array([[1, -2, 3, 4], [5, 6, -7, 8]], np.int8)
    use = ("tensor<fp16, [2, 4]> y", "mul(x = a, y = w)")
    y = (data.astype(float) - zero[:, None]) * scale[:, None]
    case("constexpr_affine_dequantize", "By row.", {"a": x}, [("tensor<fp16, [2, 4]> w", f"constexpr_affine_dequantize(quantized_data = {lit(data)}{args(zero_point=zero, scale=scale, axis=0)})"), use], {"y": y}, 0)
    blocks, offset = np.array([[0.5, 2], [1, 0.25]], np.float16), np.array([[1, 0], [-1, 2]], np.int8)
    y = (data.astype(float) - offset.repeat(2, 1)) * blocks.repeat(2, 1)
    case("constexpr_blockwise_shift_scale", "Blocks of two.", {"a": x}, [("tensor<fp16, [2, 4]> w", f"constexpr_blockwise_shift_scale(data = {lit(data)}{args(scale=blocks, offset=offset)})"), use], {"y": y}, 0)
    case("constexpr_cast", "From fp16.", {"a": x.astype(np.float32)}, [("tensor<fp32, [4]> w", f"constexpr_cast(source_val = {lit(np.array([0.5, 1, -2, 3], np.float16))}{args(output_dtype='fp32')})"), ("tensor<fp32, [2, 4]> y", "mul(x = a, y = w)")], {"y": [0.5, 1, -2, 3] * 2}, 0, "fp32")
    table, index = np.array([0.5, -1, 2, 8], np.float16), np.array([0, 3, 1, 2, 2, 1, 0, 3])
    packed = np.array([sum(int(v) << (2 * i) for i, v in enumerate(index[k : k + 4])) for k in (0, 4)], np.uint8)
    case("constexpr_lut_to_dense", "Two bits an index, packed from the low bits up.", {"a": x}, [("tensor<fp16, [2, 4]> w", f"constexpr_lut_to_dense(indices = {lit(packed)}{args(lut=table)}, shape = tensor<uint32, [2]>([2, 4]))"), use], {"y": table[index]}, 0, opset="ios16")
    mask = np.array([1, 0, 0, 1, 0, 1, 1, 0])
    values = np.array([3, -1, 0.5, 7], np.float16)
    y = np.zeros(8)
    y[mask == 1] = values
    case("constexpr_sparse_to_dense", "One bit an element.", {"a": x}, [("tensor<fp16, [2, 4]> w", f"constexpr_sparse_to_dense(nonzero_data = {lit(values)}, mask = {lit(np.packbits(mask, bitorder='little'))}, shape = tensor<uint32, [2]>([2, 4]))"), use], {"y": y}, 0, opset="ios16")


if __name__ == "__main__":
    torch.manual_seed(0)
    for make in (pointwise, activations, two, reductions, norms, moves, products, encoded):
        make()
    print(len(list(OUT.glob("*.mil"))), "files")
