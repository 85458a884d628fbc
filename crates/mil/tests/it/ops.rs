//! Type rules: what each op gives, and what it refuses.

use crate::{check, program};

/// A statement over `x` (and `y`, `z`) whose declared type is right.
pub(crate) fn gives(params: &str, statement: &str) {
    let text = program(params, statement, result_of(statement));
    // Results of integers cannot be returned; what matters here is that nothing else is wrong.
    if let Err(d) = check(&text) {
        assert!(d.0.iter().all(|d| d.code == "results" && d.message.contains("is returned")), "{}", d.render("test", &text));
    }
}

/// A statement that is refused with this in the message.
pub(crate) fn refuses(params: &str, statement: &str, message: &str) {
    let text = program(params, statement, result_of(statement));
    let error = check(&text).expect_err(statement).to_string();
    assert!(error.contains(message), "{statement}: {error}");
}

/// The first name that a statement defines: the last word before the first comma outside brackets, or `=`.
fn result_of(statement: &str) -> &str {
    let head = statement.split(" = ").next().unwrap();
    head.split(">, ").next().unwrap().split_whitespace().next_back().unwrap().split(',').next().unwrap()
}

const X: &str = "tensor<fp16, [2, 6, 1, 8]> x";

pub(crate) fn ints(values: &[i64]) -> String {
    format!("tensor<int32, [{}]>({values:?})", values.len())
}

#[test]
fn matmul() {
    let p = "tensor<fp16, [2, 1, 3, 4]> x, tensor<fp16, [5, 4, 6]> y";
    gives(p, "tensor<fp16, [2, 5, 3, 6]> r = matmul(x = x, y = y);");
    gives(p, "tensor<fp16, [2, 5, 3, 6]> r = matmul(x = x, y = y, transpose_x = bool(false));");
    refuses(
        p,
        "tensor<fp16, [2, 5, 3, 6]> r = matmul(x = x, y = y, transpose_x = bool(true));",
        "`y` of `r` (matmul) has inner length 4 where x has 3",
    );
    refuses("tensor<fp16, [4]> x", "tensor<fp16, [4]> r = matmul(x = x, y = x);", "has rank 1");
    refuses("tensor<fp16, [2, 3, 4]> x, tensor<fp16, [3, 4, 4]> y", "tensor<fp16, [2, 3, 4]> r = matmul(x = x, y = y);", "leading axes");
    refuses(
        "tensor<fp16, [4, 4]> x, tensor<int8, [4, 4]> y",
        "tensor<fp16, [4, 4]> r = matmul(x = x, y = y);",
        "elements of int8, not of fp16, fp32, int32",
    );
}

#[test]
fn elementwise() {
    for op in ["add", "sub", "mul", "real_div", "maximum", "minimum", "pow"] {
        gives("tensor<fp16, [2, 1, 3]> x, tensor<fp16, [4, 1]> y", &format!("tensor<fp16, [2, 4, 3]> r = {op}(x = x, y = y);"));
        refuses(
            "tensor<fp16, [2, 3]> x, tensor<fp16, [2]> y",
            &format!("tensor<fp16, [2, 3]> r = {op}(x = x, y = y);"),
            "must be equal or 1",
        );
        refuses("tensor<bool, [2]> x", &format!("tensor<bool, [2]> r = {op}(x = x, y = x);"), "has elements of bool");
    }
    for op in ["sigmoid", "tanh", "relu", "silu", "exp", "sqrt", "rsqrt", "log"] {
        gives(X, &format!("tensor<fp16, [2, 6, 1, 8]> r = {op}(x = x);"));
        refuses("tensor<int32, [2]> x", &format!("tensor<int32, [2]> r = {op}(x = x);"), "has elements of int32");
    }
    gives(X, "tensor<fp16, [2, 6, 1, 8]> r = rsqrt(x = x, epsilon = fp16(0x1p-10));");
    refuses(X, "tensor<fp16, [2, 6, 1, 8]> r = log(x = x, epsilon = fp16(-0x1p-10));", "not negative");
    gives(X, "tensor<int32, [2, 6, 1, 8]> r = cast(x = x, dtype = string(\"int32\"));");
    refuses(X, "tensor<fp64, [2, 6, 1, 8]> r = cast(x = x, dtype = string(\"fp64\"));", "is \"fp64\"");
}

#[test]
fn reductions_and_softmax() {
    for op in ["reduce_sum", "reduce_mean", "reduce_max"] {
        gives(X, &format!("tensor<fp16, [2, 1, 8]> r = {op}(x = x, axes = {});", ints(&[1])));
        gives(X, &format!("tensor<fp16, [2, 6, 1, 1]> r = {op}(x = x, axes = {}, keep_dims = bool(true));", ints(&[-1, 2])));
        gives(X, &format!("fp16 r = {op}(x = x);"));
        refuses(X, &format!("fp16 r = {op}(x = x, axes = {});", ints(&[4])), "is axis 4, of a tensor with 4 axes");
        refuses(X, &format!("fp16 r = {op}(x = x, axes = {});", ints(&[1, -3])), "names axis 1 twice");
    }
    gives(X, "tensor<fp16, [2, 6, 1, 8]> r = softmax(x = x, axis = int32(-4));");
    refuses(X, "tensor<fp16, [2, 6, 1, 8]> r = softmax(x = x, axis = int32(-5));", "is axis -5");
    refuses(X, &format!("tensor<fp16, [2, 6, 1, 8]> r = softmax(x = x, axis = {});", ints(&[1, 2])), "must be one integer");
}

#[test]
fn reshape() {
    let reshape = |shape: &[i64]| format!("reshape(x = x, shape = {});", ints(shape));
    gives(X, &format!("tensor<fp16, [4, 24]> r = {}", reshape(&[4, 24])));
    gives(X, &format!("tensor<fp16, [2, 48]> r = {}", reshape(&[0, -1])));
    gives(X, &format!("tensor<fp16, [96]> r = {}", reshape(&[-1])));
    refuses(X, &format!("tensor<fp16, [4, 23]> r = {}", reshape(&[4, 23])), "does not hold the 96 elements");
    refuses(X, &format!("tensor<fp16, [5, 19]> r = {}", reshape(&[5, -1])), "does not hold");
    refuses(X, &format!("tensor<fp16, [5, 19]> r = {}", reshape(&[-1, -1])), "more than one -1");
    refuses(X, &format!("tensor<fp16, [5, 19]> r = {}", reshape(&[-2, 48])), "length -2");
    refuses(X, &format!("tensor<fp16, [5]> r = {}", reshape(&[2, 6, 1, 8, 0])), "0 at axis 4");
    refuses(X, &format!("tensor<fp16, [5]> r = {}", reshape(&[i64::from(i32::MAX); 4])), "does not hold");
    // A computed shape is the language's, not the chip's: the declared type is trusted, and said so.
    let text = program("tensor<fp16, [2]> x, tensor<int32, [1]> y", "tensor<fp16, [2]> r = reshape(x = x, shape = y);", "r");
    assert_eq!(crate::codes(check(&text).unwrap().warnings()), ["not-checked"]);
}

#[test]
fn axes_moved_added_and_removed() {
    gives(X, &format!("tensor<fp16, [8, 2, 6, 1]> r = transpose(x = x, perm = {});", ints(&[-1, 0, 1, 2])));
    refuses(X, &format!("tensor<fp16, [8, 2, 6, 1]> r = transpose(x = x, perm = {});", ints(&[0, 1, 2])), "has 3 entries where 4");
    refuses(X, &format!("tensor<fp16, [8, 2, 6, 1]> r = transpose(x = x, perm = {});", ints(&[0, 1, 2, -2])), "names axis 2 twice");
    gives("tensor<fp16, [3, 4]> x", &format!("tensor<fp16, [1, 3, 4, 1]> r = expand_dims(x = x, axes = {});", ints(&[0, -1])));
    refuses("tensor<fp16, [3, 4]> x", &format!("tensor<fp16, [1, 3, 4]> r = expand_dims(x = x, axes = {});", ints(&[3])), "is axis 3");
    gives(X, &format!("tensor<fp16, [2, 6, 8]> r = squeeze(x = x, axes = {});", ints(&[2])));
    gives("tensor<fp16, [1, 3, 1]> x", "tensor<fp16, [3]> r = squeeze(x = x);");
    refuses(X, &format!("tensor<fp16, [2, 1, 8]> r = squeeze(x = x, axes = {});", ints(&[1])), "axis 1, of length 6");
}

#[test]
fn slices() {
    let by_size = |begin: &[i64], size: &[i64]| format!("slice_by_size(x = x, begin = {}, size = {});", ints(begin), ints(size));
    gives(X, &format!("tensor<fp16, [1, 6, 1, 4]> r = {}", by_size(&[1, 0, 0, 4], &[1, -1, 1, 4])));
    let bad = "tensor<fp16, [1, 6, 1, 4]> r =";
    refuses(X, &format!("{bad} {}", by_size(&[1, 0, 0, 4], &[1, 6, 1, 5])), "is 5 on axis 3, which has 4 elements from 4 on");
    refuses(X, &format!("{bad} {}", by_size(&[2, 0, 0, 4], &[1, 6, 1, 4])), "is 2 on axis 0, of length 2");
    refuses(X, &format!("{bad} {}", by_size(&[-1, 0, 0, 4], &[1, 6, 1, 4])), "begin must lie inside");
    refuses(X, &format!("{bad} {}", by_size(&[1, 0, 0, 4], &[1, 6, 1, 0])), "is 0 on axis 3");
    refuses(X, &format!("{bad} {}", by_size(&[1, 0, 0], &[1, 6, 1, 0])), "has 3 entries where 4");

    let by_index = |b: &[i64], e: &[i64], rest: &str| format!("slice_by_index(x = x, begin = {}, end = {}{rest});", ints(b), ints(e));
    let strides = |s: &[i64]| format!(", stride = {}", ints(s));
    gives(X, &format!("tensor<fp16, [1, 5, 1, 3]> r = {}", by_index(&[1, 0, 0, 1], &[2, -1, 1, 7], &strides(&[1, 1, 1, 2]))));
    gives(X, &format!("tensor<fp16, [2, 3, 1, 8]> r = {}", by_index(&[0, 5, 0, 0], &[2, -6, 1, 8], &strides(&[1, -2, 1, 1]))));
    gives(
        X,
        &format!(
            "tensor<fp16, [6, 1, 8]> r = {}",
            by_index(
                &[-1, 3, 0, 0],
                &[0, 0, 1, 8],
                ", begin_mask = tensor<bool, [4]>([false, true, false, false]), end_mask = tensor<bool, [4]>([false, true, false, false]), squeeze_mask = tensor<bool, [4]>([true, false, false, false])"
            )
        ),
    );
    gives(
        X,
        &format!(
            "tensor<fp16, [2, 6, 1, 8]> r = {}",
            by_index(
                &[0, 0, 0, 0],
                &[0, 0, 0, 0],
                &format!(
                    "{}, begin_mask = tensor<bool, [4]>([true, true, true, true]), end_mask = tensor<bool, [4]>([true, true, true, true])",
                    strides(&[1, -1, 1, -1])
                )
            )
        ),
    );
    // Ends beyond the axis are clamped to it, and so are negative begins.
    gives(X, &format!("tensor<fp16, [2, 4, 1, 8]> r = {}", by_index(&[0, 2, 0, -9], &[2, 60, 1, 9], &strides(&[1, 1, 1, 1]))));
    for (b, e, s, message) in [
        ([0, 4, 0, 0], [2, 4, 1, 8], [1, 1, 1, 1], "is empty"),
        ([0, 6, 0, 0], [2, 6, 1, 8], [1, 1, 1, 1], "begin must lie inside"),
        ([0, 0, 0, 0], [2, -7, 1, 8], [1, 1, 1, 1], "is empty"),
        ([0, 0, 0, 0], [2, 6, 1, 8], [1, 0, 1, 1], "is 0 on axis 1"),
        ([0, 0, 0, 0], [2, 6, 1, 8], [1, -1, 1, 1], "is empty"),
    ] {
        refuses(X, &format!("tensor<fp16, [2, 6, 1, 8]> r = {}", by_index(&b, &e, &strides(&s))), message);
    }
}

#[test]
fn joined_parted_and_repeated() {
    let p = "tensor<fp16, [2, 3]> x, tensor<fp16, [2, 4]> y";
    gives(p, "tensor<fp16, [2, 7]> r = concat(values = (x, y), axis = int32(-1), interleave = bool(false));");
    gives(p, "tensor<fp16, [4, 3]> r = concat(values = (x, x), axis = int32(0), interleave = bool(true));");
    refuses(p, "tensor<fp16, [4, 3]> r = concat(values = (x, y), axis = int32(0));", "has [2, 4] at position 1 where the first has [2, 3]");
    refuses(p, "tensor<fp16, [2, 7]> r = concat(values = (x, y), axis = int32(1), interleave = bool(true));", "has [2, 4]");
    refuses(p, "tensor<fp16, [2, 7]> r = concat(values = (), axis = int32(1));", "is empty");
    refuses(
        "tensor<fp16, [2]> x, tensor<fp32, [2]> y",
        "tensor<fp16, [4]> r = concat(values = (x, y), axis = int32(0));",
        "elements of fp32",
    );
    refuses(p, "tensor<fp16, [2, 7]> r = concat(values = fp16(1), axis = int32(0));", "is a literal");

    gives(X, "tensor<fp16, [2, 3, 1, 8]> r, tensor<fp16, [2, 3, 1, 8]> s = split(x = x, num_splits = int32(2), axis = int32(1));");
    gives(
        X,
        &format!(
            "tensor<fp16, [2, 2, 1, 8]> r, tensor<fp16, [2, 4, 1, 8]> s = split(x = x, split_sizes = {}, axis = int32(1));",
            ints(&[2, 4])
        ),
    );
    let two = "tensor<fp16, [2, 3, 1, 8]> r, tensor<fp16, [2, 3, 1, 8]> s =";
    refuses(X, &format!("{two} split(x = x, num_splits = int32(4), axis = int32(1));"), "is 4 for an axis of length 6");
    refuses(X, &format!("{two} split(x = x, num_splits = int32(3), axis = int32(1));"), "declares 2 results where the op gives 3");
    refuses(X, &format!("{two} split(x = x, split_sizes = {}, axis = int32(1));", ints(&[3, 2])), "for an axis of length 6");
    refuses(
        X,
        &format!("{two} split(x = x, split_sizes = {}, num_splits = int32(3), axis = int32(1));", ints(&[3, 3])),
        "where split_sizes has 2",
    );
    refuses(X, &format!("{two} split(x = x, axis = int32(1));"), "num_splits too");

    gives("tensor<fp16, [2, 3]> x", &format!("tensor<fp16, [4, 3]> r = tile(x = x, reps = {});", ints(&[2, 1])));
    refuses("tensor<fp16, [2, 3]> x", &format!("tensor<fp16, [4, 3]> r = tile(x = x, reps = {});", ints(&[0, 1])), "at least once");
}

#[test]
fn conv() {
    let p = "tensor<fp16, [2, 6, 9, 8]> x, tensor<fp16, [4, 6, 3, 1]> y, tensor<fp16, [4, 3, 3, 1]> z";
    gives(p, "tensor<fp16, [2, 4, 7, 8]> r = conv(x = x, weight = y);");
    gives(p, "tensor<fp16, [2, 4, 7, 8]> r = conv(x = x, weight = z, groups = int32(2));");
    gives(
        p,
        &format!(
            "tensor<fp16, [2, 4, 4, 8]> r = conv(x = x, weight = y, strides = {}, pad_type = string(\"custom\"), pad = {});",
            ints(&[2, 1]),
            ints(&[0, 1, 0, 0])
        ),
    );
    gives(p, &format!("tensor<fp16, [2, 4, 5, 8]> r = conv(x = x, weight = y, dilations = {});", ints(&[2, 1])));
    gives(p, &format!("tensor<fp16, [2, 4, 5, 4]> r = conv(x = x, weight = y, strides = {}, pad_type = string(\"same\"));", ints(&[2, 2])));
    gives(
        "tensor<fp16, [1, 6, 9]> x, tensor<fp16, [4, 6, 9]> y, tensor<fp16, [4]> z",
        "tensor<fp16, [1, 4, 1]> r = conv(x = x, weight = y, bias = z);",
    );
    let bad = "tensor<fp16, [2, 4, 7, 8]> r =";
    refuses(p, &format!("{bad} conv(x = x, weight = z);"), "takes 3 channels in 1 group(s) where x has 6");
    refuses(p, &format!("{bad} conv(x = x, weight = y, groups = int32(0));"), "is 0");
    refuses(p, &format!("{bad} conv(x = x, weight = y, strides = {});", ints(&[0, 1])), "is [0, 1]");
    refuses(p, &format!("{bad} conv(x = x, weight = y, dilations = {});", ints(&[5, 1])), "reaches beyond spatial axis 0");
    refuses(p, &format!("{bad} conv(x = x, weight = y, pad_type = string(\"full\"));"), "is \"full\"");
    refuses(p, &format!("{bad} conv(x = x, weight = y, pad_type = string(\"custom\"), pad = {});", ints(&[0, -1, 0, 0])), "not negative");
    refuses("tensor<fp16, [2, 6]> x", "tensor<fp16, [2, 6]> r = conv(x = x, weight = x);", "has rank 2");
}

#[test]
fn attention() {
    let p = "tensor<fp16, [2, 3, 5, 4]> x, tensor<fp16, [2, 3, 7, 4]> y, tensor<fp16, [2, 3, 7, 6]> z, tensor<fp16, [5, 7]> m, tensor<fp16, [2, 1, 7, 4]> o";
    gives(p, "tensor<fp16, [2, 3, 5, 6]> r = scaled_dot_product_attention(query = x, key = y, value = z, attn_mask = m);");
    let bad = "tensor<fp16, [2, 3, 5, 6]> r = scaled_dot_product_attention";
    refuses(p, &format!("{bad}(query = x, key = z, value = z);"), "rows of length 6 where query has 4");
    refuses(p, &format!("{bad}(query = x, key = y, value = x);"), "has 5 rows where key has 7");
    refuses(p, &format!("{bad}(query = x, key = y, value = z, attn_mask = y);"), "must broadcast to the scores");
    refuses(p, &format!("{bad}(query = x, key = y, value = m);"), "same rank");
    refuses(p, &format!("{bad}(query = x, key = o, value = z);"), "`key` of `r` (scaled_dot_product_attention) has leading axes [2, 1]");
    let text = program(p, &format!("{bad}(query = x, key = y, value = z);"), "r").replace("ios18", "ios17");
    assert!(check(&text).unwrap_err().to_string().contains("does not exist in ios17"));
}

/// What `look` sees of the one op of a program.
fn seen<T>(params: &str, statement: &str, look: impl Fn(&mil::ops::Call<'_>) -> T) -> T {
    let verified = check(&program(params, statement, "r")).unwrap();
    let function = &verified.program().functions[0];
    look(&mil::ops::Call::new(function, function.ops.iter().next().unwrap().1).unwrap())
}

#[test]
fn windows_of_conv_are_resolved() {
    let window = |kernel: usize, strides: i64, pad_type: &str, out: usize| {
        let params = format!("tensor<fp16, [1, 2, 9]> x, tensor<fp16, [4, 2, {kernel}]> y");
        let args = format!("x = x, weight = y, strides = {}, pad_type = string(\"{pad_type}\")", ints(&[strides]));
        seen(&params, &format!("tensor<fp16, [1, 4, {out}]> r = conv({args});"), |call| mil::ops::Window::of(call).unwrap())
    };
    assert_eq!(window(3, 2, "valid", 4).pads, [(0, 0)]);
    assert_eq!(window(3, 2, "same", 5).pads, [(1, 1)]);
    assert_eq!(window(2, 1, "same", 9).pads, [(0, 1)]);
    assert_eq!(window(2, 1, "same_lower", 9).pads, [(1, 0)]);
    let plain = window(1, 3, "same", 3);
    assert_eq!((plain.strides, plain.dilations, plain.pads, plain.groups), (vec![3], vec![1], vec![(0, 0)], 1));
}

#[test]
fn windows_of_slices_are_resolved() {
    let args = format!("x = x, begin = {}, end = {}, stride = {}", ints(&[-1, 1]), ints(&[-6, 0]), ints(&[-2, 1]));
    let statement = format!("tensor<fp16, [3]> r = slice_by_index({args}, squeeze_mask = tensor<bool, [2]>([false, true]));");
    let cuts = seen("tensor<fp16, [6, 2]> x", &statement, |call| mil::ops::Cut::of(call).unwrap());
    let cut = |begin, step, len, squeeze| mil::ops::Cut { begin, step, len, squeeze };
    assert_eq!(cuts, [cut(5, -2, 3, false), cut(1, 1, 1, true)]);
    let statement = format!("tensor<fp16, [2, 1]> r = slice_by_size(x = x, begin = {}, size = {});", ints(&[4, 1]), ints(&[-1, 1]));
    let cuts = seen("tensor<fp16, [6, 2]> x", &statement, |call| mil::ops::Cut::of(call).unwrap());
    assert_eq!(cuts, [cut(4, 1, 2, false), cut(1, 1, 1, false)]);
}

#[test]
fn costs_count_arithmetic_and_bytes() {
    let cost = |params: &str, statement: &str| {
        let verified = check(&program(params, statement, "r")).unwrap();
        let cost = mil::ops::program_cost(&verified.program().functions[0]);
        (cost.flops, cost.bytes)
    };
    let p = "tensor<fp16, [2, 3, 4]> x, tensor<fp16, [2, 4, 5]> y";
    assert_eq!(cost(p, "tensor<fp16, [2, 3, 5]> r = matmul(x = x, y = y);"), (2 * 2 * 3 * 4 * 5, 2 * (24 + 40 + 30)));
    assert_eq!(cost(X, "tensor<fp16, [2, 6, 1, 8]> r = sigmoid(x = x);"), (96, 4 * 96));
    assert_eq!(
        cost("tensor<fp32, [8]> x", &format!("tensor<fp32, [1]> r = reduce_sum(x = x, axes = {}, keep_dims = bool(true));", ints(&[0]))),
        (8, 36)
    );
    assert_eq!(cost(X, "tensor<fp16, [2, 12, 1, 8]> r = concat(values = (x, x), axis = int32(1));"), (0, 2 * 2 * 192));
    let window = format!("slice_by_size(x = x, begin = {}, size = {});", ints(&[0; 4]), ints(&[1, 1, 1, 4]));
    assert_eq!(cost(X, &format!("tensor<fp16, [1, 1, 1, 4]> r = {window}")), (0, 16));
    let p = "tensor<fp16, [1, 6, 1, 8]> x, tensor<fp16, [4, 6, 1, 1]> y";
    assert_eq!(cost(p, "tensor<fp16, [1, 4, 1, 8]> r = conv(x = x, weight = y);"), (2 * 6 * 32, 2 * (48 + 24 + 32)));
}

#[test]
fn the_page_of_ops_names_every_op_and_parameter() {
    let page = mil::ops::markdown();
    for (kind, defs) in mil::ops::OPS {
        assert!(page.contains(&format!("| `{}` |", kind.name())), "{}", kind.name());
        for param in defs.iter().flat_map(|d| d.params) {
            assert!(page.contains(&format!("`{}` (", param.name)), "{}", param.name);
        }
        assert_eq!(mil::ops::OpKind::from_name(kind.name()), Some(*kind));
    }
    assert!(page.contains("`transpose_x` (const bool) = false"));
    assert!(page.contains("`epsilon` (const fp16, fp32) = 1e-12"));
}
