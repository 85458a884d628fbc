//! The rules of chips that are about forms of ops, numbers and patterns: each on a program that breaks it, and silent beside.

use crate::chip::{EXP, X, blob, breaks, int, ints};
use crate::program;
use mil::Chip;

const T: &str = "tensor<fp16, [1, 32, 1, 64]>";

/// A program of one op on `x`, after constants.
fn one(consts: &str, op: &str) -> String {
    program(X, &format!("{consts}{T} y = {op};"), "y")
}

fn scalar(name: &str, value: &str) -> String {
    format!("fp16 {name} = const()[val = fp16({value})];\n")
}

#[test]
fn ops_without_a_form() {
    breaks(&["refused-op"], Chip::H17, &one("", "mod(x = x, y = x)"));
    let band = int("a", 0);
    breaks(&["refused-op"], Chip::H13, &one(&band, "band_part(x = x, lower = a, upper = a)"));
    breaks(&["no-native-form"], Chip::H14, &one("", "sin(x = x)"));
    breaks(&[], Chip::H15, &one("", "sin(x = x)"));
    breaks(&["route"], Chip::H16, &one(&int("a", 3), "cumsum(x = x, axis = a)"));
    breaks(&["unproven-op"], Chip::H16, &one("", "erf(x = x)"));
    let transform = "tensor<fp16, [1, 6]> m, tensor<fp16, [1, 32, 64, 64]> x";
    let affine = int("n", 64)
        + &scalar("zero", "0")
        + "string s = const()[val = string(\"bilinear\")];\nbool t = const()[val = bool(true)];\n\
           tensor<fp16, [1, 32, 64, 64]> y = affine(x = x, transform_matrix = m, output_height = n, output_width = n, sampling_mode = s, \
           padding_mode = s, padding_value = zero, coordinates_mode = s, align_corners = t);";
    let affine = program(transform, &affine, "y");
    breaks(&["not-checked", "port-width", "refused-op-m1"], Chip::H13, &affine);
    breaks(&["not-checked", "port-width"], Chip::H14, &affine);
    let lstm = "tensor<fp16, [1, 64]> c, tensor<fp16, [1, 64]> h, tensor<fp16, [3, 1, 64]> x";
    let zeros = |name: &str, rows: usize| {
        let row = format!("[{}]", vec!["0"; 64].join(", "));
        format!("tensor<fp16, [{rows}, 64]> {name} = const()[val = tensor<fp16, [{rows}, 64]>([{}])];\n", vec![row; rows].join(", "))
    };
    let body = zeros("w", 256)
        + "tensor<fp16, [1, 1, 64]> a, tensor<fp16, [1, 64]> b, tensor<fp16, [1, 64]> d = \
           lstm(x = x, initial_h = h, initial_c = c, weight_ih = w, weight_hh = w);";
    breaks(&["refused-op"], Chip::H16, &program(lstm, &body, "a, b, d"));
}

#[test]
fn states_and_computed_shapes() {
    let body = format!("{T} v = read_state(input = s);\n{T} y = add(x = v, y = x);\nwrite_state(input = s, data = y);");
    breaks(&["state"], Chip::H16, &program(&format!("state<{T}> s, {T} x"), &body, "y"));
    let reshape = "tensor<fp16, [1, 64, 1, 32]> y = reshape(x = x, shape = s);";
    let text = program(&format!("tensor<int32, [4]> s, {T} x"), reshape, "y");
    breaks(&["not-checked", "compute-type", "port-width", "port-width-64", "computed-size"], Chip::H16, &text);
}

#[test]
fn bytes_pass_through_quantize_and_dequantize_only() {
    let consts = scalar("s", "0.5") + "string d = const()[val = string(\"int8\")];\n";
    let i8 = T.replace("fp16", "int8");
    let both = format!("{consts}{i8} q = quantize(input = x, scale = s, output_dtype = d);\n{T} y = dequantize(input = q, scale = s);");
    breaks(&[], Chip::H16, &program(X, &both, "y"));
    let port = format!("{}{T} y = dequantize(input = x, scale = s);", scalar("s", "0.5"));
    breaks(&[], Chip::H16, &program(&format!("{i8} x"), &port, "y"));
    let cast = format!("string d = const()[val = string(\"fp16\")];\n{T} y = cast(x = x, dtype = d);");
    breaks(&["compute-type"], Chip::H16, &program(&format!("{i8} x"), &cast, "y"));
}

#[test]
fn counts() {
    let many = |n: usize| {
        let mut params: Vec<String> = (0..n).map(|i| format!("{T} p{i:03}")).collect();
        params.sort();
        let mut body = String::new();
        let mut last = "p000".to_string();
        for i in 1..n {
            body += &format!("{T} s{i} = add(x = {last}, y = p{i:03});\n");
            last = format!("s{i}");
        }
        program(&params.join(", "), &body, &last)
    };
    breaks(&[], Chip::H16, &many(255));
    breaks(&["port-count"], Chip::H16, &many(256));
    let join = |n: usize| {
        let consts = int("a", 1) + "bool f = const()[val = bool(false)];\n";
        let values = vec!["x"; n].join(", ");
        let y = format!("tensor<fp16, [1, {}, 1, 64]> y = concat(values = ({values}), axis = a, interleave = f);", 32 * n);
        program(X, &(consts + &y), "y")
    };
    breaks(&[], Chip::H16, &join(11));
    breaks(&["branches"], Chip::H16, &join(12));
    let functions = |n: usize| {
        let funcs: String = (0..n).map(|i| format!("func f{i}<ios18>({X}) {{ {EXP} }} -> (y);\n")).collect();
        format!("program(1.3)\n[buildInfo = dict<string, string>({{{{\"k\", \"v\"}}}})]\n{{\n{funcs}}}")
    };
    breaks(&[], Chip::H16, &functions(100));
    breaks(&["program-count"], Chip::H16, &functions(101));
    let two = program(
        &format!("{T} a, tensor<fp16, [1, 32, 1, 1024]> b"),
        &format!("{T} y = exp(x = a);\ntensor<fp16, [1, 32, 1, 1024]> z = exp(x = b);"),
        "y, z",
    );
    breaks(&["port-bytes"], Chip::H16, &two);
}

#[test]
fn arguments_that_the_compiler_wants() {
    breaks(&["gelu-mode"], Chip::H16, &one("", "gelu(x = x)"));
    breaks(&[], Chip::H16, &one("string m = const()[val = string(\"EXACT\")];\n", "gelu(x = x, mode = m)"));
    let concat = int("a", 1) + "tensor<fp16, [1, 64, 1, 64]> y = concat(values = (x, x), axis = a);";
    breaks(&["concat-interleave"], Chip::H16, &program(X, &concat, "y"));
    let tile = |n: i64| {
        let y = format!("tensor<fp16, [1, {}, 1, 64]> y = tile(x = x, reps = r);", 32 * n);
        program(X, &(ints("r", &[1, n, 1, 1]) + &y), "y")
    };
    breaks(&[], Chip::H16, &tile(12));
    breaks(&["tile-factor"], Chip::H16, &tile(5));
    let slice = |end: i64| one(&(ints("b", &[0; 4]) + &ints("e", &[1, end, 1, 64])), "slice_by_index(x = x, begin = b, end = e)");
    breaks(&[], Chip::H16, &slice(32));
    breaks(&["slice-bounds"], Chip::H16, &slice(33));
    let deep = blob("w", "[1, 1, 1, 32, 32]") + "tensor<fp16, [1, 1, 64, 33, 33]> y = conv(x = x, weight = w);";
    let text = program("tensor<fp16, [1, 1, 64, 64, 64]> x", &deep, "y");
    breaks(&["conv-rank", "conv-kernel", "port-width"], Chip::H16, &text);
}

#[test]
fn layer_norm() {
    let axes = ints("a", &[3]);
    let gamma = format!("tensor<fp16, [64]> g = const()[val = tensor<fp16, [64]>([{}])];\n", vec!["1"; 64].join(", "));
    let norm = |epsilon: &str| one(&format!("{axes}{gamma}{epsilon}"), "layer_norm(x = x, axes = a, gamma = g, epsilon = e)");
    breaks(&["layer-norm"], Chip::H16, &norm(&scalar("e", "0.001")));
    // An epsilon of another type than gamma is no language already.
    breaks(&["argument"], Chip::H16, &norm("fp32 e = const()[val = fp32(0.001)];\n"));
}

#[test]
fn numbers_that_the_device_loses() {
    breaks(&["small-scalar"], Chip::H16, &one(&scalar("e", "0x1p-15"), "rsqrt(x = x, epsilon = e)"));
    breaks(&[], Chip::H16, &one(&scalar("e", "0x1p-14"), "rsqrt(x = x, epsilon = e)"));
    breaks(&["zero-scale"], Chip::H16, &one(&scalar("z", "0"), "mul(x = x, y = z)"));
    let product = |scale: &str| {
        let body = scalar("s", scale)
            + "tensor<fp16, [1, 1, 64, 64]> p = sigmoid(x = x);\ntensor<fp16, [1, 1, 64, 64]> q = mul(x = p, y = s);\n\
               tensor<fp16, [1, 1, 64, 64]> y = matmul(x = q, y = p);";
        program("tensor<fp16, [1, 1, 64, 64]> x", &body, "y")
    };
    breaks(&[], Chip::H16, &product("511"));
    breaks(&["overflow"], Chip::H16, &product("512"));
}

#[test]
fn attention_as_it_fails() {
    let ports = "tensor<fp16, [1, 2, 64, 64]> k, tensor<fp16, [1, 2, 64, 64]> q";
    let t = "tensor<fp16, [1, 2, 64, 64]>";
    let scores = |scaled: &str| {
        let softmax = format!("{t} p = softmax(x = {scaled}, axis = a);");
        scalar("s", "0.125") + &int("a", -1) + &format!("{t} m = matmul(x = q, y = k);\n") + &softmax
    };
    breaks(&[], Chip::H16, &program(ports, &scores("m").replace("fp16 s = const()[val = fp16(0.125)];\n", ""), "p"));
    let after = scores("c").replace(&format!("{t} p ="), &format!("{t} c = mul(x = m, y = s);\n{t} p ="));
    breaks(&["score-scale"], Chip::H16, &program(ports, &after, "p"));

    let ports = format!("{t} d, {t} k, {t} q, {t} v");
    let backward = format!(
        "{}{t} m = matmul(x = q, y = k);\n{t} p = softmax(x = m, axis = a);\n{t} gv = matmul(x = p, y = d);\n{t} gp = matmul(x = d, y = v);\n\
         {t} gs = mul(x = p, y = gp);\n{t} gq = matmul(x = gs, y = k);\n{t} gk = matmul(x = gs, y = q);",
        int("a", -1)
    );
    breaks(&["softmax-backward"], Chip::H16, &program(&ports, &backward, "gk, gq, gv"));
    // With the probabilities passed in there is nothing to say.
    let saved = format!(
        "{t} gv = matmul(x = p, y = d);\n{t} gp = matmul(x = d, y = v);\n{t} gs = mul(x = p, y = gp);\n\
         {t} gq = matmul(x = gs, y = k);\n{t} gk = matmul(x = gs, y = q);"
    );
    breaks(&[], Chip::H16, &program(&format!("{t} d, {t} k, {t} p, {t} q, {t} v"), &saved, "gk, gq, gv"));
}

#[test]
fn the_last_axis() {
    // Packed weights lie behind the activation: no remark, since all that they do is to be factors.
    let cut = |name: &str, begin: i64| {
        ints(&format!("{name}b"), &[0, 0, 0, begin])
            + &ints(&format!("{name}s"), &[1, 1, 64, 64])
            + &format!("tensor<fp16, [1, 1, 64, 64]> {name} = slice_by_size(x = x, begin = {name}b, size = {name}s);\n")
    };
    let packed = |x: i64, w: i64| {
        let body = cut("a", x) + &cut("w", w) + "tensor<fp16, [1, 1, 64, 64]> y = matmul(x = a, y = w);";
        program("tensor<fp16, [1, 1, 64, 192]> x", &body, "y")
    };
    breaks(&[], Chip::H13, &packed(0, 64));
    breaks(&["slice-width-clamp"], Chip::H13, &packed(64, 128));

    let half = |name: &str, begin: i64| {
        ints(&format!("{name}b"), &[0, 0, 0, begin])
            + &ints(&format!("{name}s"), &[1, 32, 1, 32])
            + &format!("tensor<fp16, [1, 32, 1, 32]> {name} = slice_by_size(x = x, begin = {name}b, size = {name}s);\n")
    };
    let rotate = half("l", 0)
        + &half("r", 32)
        + &scalar("m", "-1")
        + &int("a", -1)
        + "bool f = const()[val = bool(false)];\ntensor<fp16, [1, 32, 1, 32]> n = mul(x = r, y = m);\n"
        + &format!("{T} y = concat(values = (n, l), axis = a, interleave = f);");
    breaks(&["width-reshape"], Chip::H15, &program(X, &rotate, "y"));
    breaks(&[], Chip::H16, &program(X, &rotate, "y"));
    let pairs = ints("s", &[1, 32, 32, 2])
        + &ints("o", &[0, 1, 3, 2])
        + &ints("t", &[1, 32, 1, 64])
        + "tensor<fp16, [1, 32, 32, 2]> p = reshape(x = x, shape = s);\ntensor<fp16, [1, 32, 2, 32]> q = transpose(x = p, perm = o);\n"
        + &format!("{T} y = reshape(x = q, shape = t);");
    breaks(&["width-reshape"], Chip::H15, &program(X, &pairs, "y"));
}
