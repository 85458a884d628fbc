//! Type rules of ops that this project does not send but others do, each as coremltools works it out.

use crate::ops::{gives, ints, refuses};
use crate::{check, program};
use mil::{Arg, Blobs, Profile};

/// Two axes of x.
const X: &str = "tensor<fp16, [2, 6]> x";
/// Channels and two spatial axes.
const IMAGE: &str = "tensor<fp16, [1, 8, 6, 4]> x";

#[test]
fn comparisons_and_choices() {
    for op in ["equal", "not_equal", "greater", "greater_equal", "less", "less_equal"] {
        gives("tensor<fp16, [2, 1]> x, tensor<fp16, [3]> y", &format!("tensor<bool, [2, 3]> r = {op}(x = x, y = y);"));
    }
    let p = "tensor<bool, [2, 1]> x, tensor<fp16, [2, 3]> a, tensor<fp16, []> b";
    gives(p, "tensor<fp16, [2, 3]> r = select(cond = x, a = a, b = b);");
    gives(p, "tensor<bool, [2, 1]> r = logical_and(x = x, y = x);");
    gives(p, "tensor<bool, [2, 1]> r = logical_not(x = x);");
    refuses(p, "tensor<fp16, [2, 3]> r = select(cond = a, a = a, b = b);", "elements of fp16, not of bool");
    let other = "tensor<bool, [4]> x, tensor<fp16, [2, 3]> a, tensor<fp16, []> b";
    refuses(other, "tensor<fp16, [2, 3]> r = select(cond = x, a = a, b = b);", "has shape [2, 3] where cond has [4]");
}

#[test]
fn functions_of_one_number() {
    for op in ["abs", "ceil", "erf", "exp2", "floor", "round", "sign", "sin", "square", "softplus", "softsign", "relu6"] {
        gives(X, &format!("tensor<fp16, [2, 6]> r = {op}(x = x);"));
    }
    gives(X, "tensor<fp16, [2, 6]> r = clip(x = x, alpha = fp16(0), beta = fp16(6));");
    refuses(X, "tensor<fp16, [2, 6]> r = clip(x = x, alpha = fp16(7), beta = fp16(6));", "is 6 where alpha is 7");
    gives(X, "tensor<fp16, [2, 6]> r = leaky_relu(x = x, alpha = fp32(0.1));");
    gives(X, "tensor<fp16, [2, 6]> r = gelu(x = x, mode = string(\"TANH_APPROXIMATION\"));");
    refuses(X, "tensor<fp16, [2, 6]> r = gelu(x = x, mode = string(\"tanh\"));", "is \"tanh\"");
    gives(IMAGE, &format!("tensor<fp16, [1, 8, 6, 4]> r = prelu(x = x, alpha = tensor<fp16, [8]>({:?}));", [1; 8]));
    refuses(IMAGE, &format!("tensor<fp16, [1, 8, 6, 4]> r = prelu(x = x, alpha = tensor<fp16, [6]>({:?}));", [1; 6]), "8 channels");
}

#[test]
fn positions_and_running_sums() {
    gives(X, "tensor<int32, [2]> r = reduce_argmax(x = x);");
    gives(
        X,
        "tensor<uint16, [1, 6]> r = reduce_argmin(x = x, axis = int32(0), keep_dims = bool(true), output_dtype = string(\"uint16\"));",
    );
    refuses(X, "tensor<int8, [2]> r = reduce_argmax(x = x, output_dtype = string(\"int8\"));", "is \"int8\"");
    gives(X, "tensor<fp16, [2, 6]> r = cumsum(x = x, axis = int32(1), exclusive = bool(true));");
    refuses(X, "tensor<fp16, [2, 6]> r = cumsum(x = x, axis = int32(2));", "is axis 2");
    gives(X, "tensor<int32, [2, 6]> r = argsort(x = x);");
    gives(X, "tensor<int32, [2]> r = shape(x = x);");
}

#[test]
fn padding() {
    let pad = |pads: &[i64], mode: &str| format!("pad(x = x, pad = {}, mode = string(\"{mode}\"), constant_val = fp16(0));", ints(pads));
    gives(X, &format!("tensor<fp16, [2, 9]> r = {}", pad(&[1, 2], "reflect")));
    gives(X, &format!("tensor<fp16, [4, 9]> r = {}", pad(&[1, 1, 1, 2], "constant")));
    gives(X, &format!("tensor<fp16, [2, 30]> r = {}", pad(&[12, 12], "replicate")));
    refuses(X, &format!("tensor<fp16, [2, 18]> r = {}", pad(&[6, 6], "reflect")), "is (6, 6) on axis 1, of length 6");
    refuses(X, &format!("tensor<fp16, [2, 5]> r = {}", pad(&[0, -1], "constant")), "not negative");
    refuses(X, &format!("tensor<fp16, [2, 7]> r = {}", pad(&[1], "constant")), "has 1 entries for 2 axes");
    refuses(X, &format!("tensor<fp16, [2, 7]> r = {}", pad(&[0, 1], "wrap")), "is \"wrap\"");
}

#[test]
fn stacks_and_windows() {
    let p = "tensor<fp16, [2, 6]> x, tensor<fp16, [2, 6]> y";
    gives(p, "tensor<fp16, [2, 6, 2]> r = stack(values = (x, y), axis = int32(-1));");
    gives(p, "tensor<fp16, [3, 2, 6]> r = stack(values = (x, y, x), axis = int32(0));");
    refuses(p, "tensor<fp16, [2, 6, 2]> r = stack(values = (x, y), axis = int32(3));", "is axis 3");
    refuses(
        "tensor<fp16, [2]> x, tensor<fp16, [1]> y",
        "tensor<fp16, [2, 2]> r = stack(values = (x, y), axis = int32(0));",
        "has [1] at position 1",
    );
    gives(X, "tensor<fp16, [2, 3, 2]> r = sliding_windows(x = x, axis = int32(1), size = int32(2), stride = int32(2));");
    gives(X, "tensor<fp16, [2, 3, 2]> r = sliding_windows(x = x, axis = int32(1), size = int32(2), stride = int32(2));");
    refuses(X, "tensor<fp16, [2, 1, 7]> r = sliding_windows(x = x, axis = int32(1), size = int32(7));", "is 7 on an axis of length 6");
}

#[test]
fn shapes() {
    gives("tensor<fp16, [2, 3, 4]> x", "tensor<fp16, [6, 4]> r = flatten2d(x = x, axis = int32(2));");
    gives("tensor<fp16, [2, 3, 4]> x", "tensor<fp16, [24, 1]> r = flatten2d(x = x, axis = int32(3));");
    gives(X, &format!("tensor<fp16, [2, 6]> r = reverse(x = x, axes = {});", ints(&[1])));
    gives(IMAGE, "tensor<fp16, [1, 2, 12, 8]> r = pixel_shuffle(x = x, upscale_factor = int32(2));");
    gives(IMAGE, "tensor<fp16, [1, 2, 12, 8]> r = depth_to_space(x = x, block_size = int32(2));");
    gives(IMAGE, "tensor<fp16, [1, 32, 3, 2]> r = space_to_depth(x = x, block_size = int32(2));");
    gives(IMAGE, "tensor<fp16, [1, 32, 3, 2]> r = pixel_unshuffle(x = x, downscale_factor = uint32(2));");
    refuses(IMAGE, "tensor<fp16, [1, 8, 6, 4]> r = pixel_shuffle(x = x, upscale_factor = int32(3));", "does not divide 8 channels");
    refuses(IMAGE, "tensor<fp16, [1, 8, 6, 4]> r = space_to_depth(x = x, block_size = int32(3));", "does not divide 6 and 4");
    gives(X, &format!("tensor<fp32, [3, 4]> r = fill(shape = {});", ints(&[3, 4])));
    gives(X, &format!("tensor<bool, [3]> r = fill(shape = {}, value = bool(true));", ints(&[3])));
    gives(X, "tensor<int32, [2, 6]> r = fill_like(ref_tensor = x, value = int32(3));");
    refuses(X, &format!("tensor<fp32, [3, 4]> r = fill(shape = {});", ints(&[3, 0])), "lengths are positive");
}

#[test]
fn gathers() {
    let p = "tensor<fp16, [2, 6, 5]> x, tensor<int32, [2, 3]> i, tensor<int32, []> one, tensor<int32, [4, 2]> n";
    gives(p, "tensor<fp16, [2, 2, 3, 5]> r = gather(x = x, indices = i, axis = int32(1));");
    gives(p, "tensor<fp16, [2, 3, 5]> r = gather(x = x, indices = i, axis = int32(1), batch_dims = int32(1));");
    gives(p, "tensor<fp16, [6, 5]> r = gather(x = x, indices = one);");
    refuses(p, "tensor<fp16, [2, 3, 5]> r = gather(x = x, indices = i, axis = int32(0), batch_dims = int32(1));", "among 1 batch axes");
    refuses(p, "tensor<fp16, [2, 3, 5]> r = gather(x = x, indices = i, axis = int32(2), batch_dims = int32(2));", "must be equal");
    gives(p, "tensor<fp16, [4, 5]> r = gather_nd(x = x, indices = n);");
    let along = "tensor<fp16, [2, 6]> x, tensor<int32, [2, 3]> i";
    gives(along, "tensor<fp16, [2, 3]> r = gather_along_axis(x = x, indices = i, axis = int32(1));");
    refuses(along, "tensor<fp16, [2, 3]> r = gather_along_axis(x = x, indices = i, axis = int32(0));", "all axes but the gathered one");
}

#[test]
fn products_and_norms() {
    let weight = "tensor<fp16, [3, 6]> w = const()[val = tensor<fp16, [3, 6]>(BLOBFILE(path = string(\"w\"), offset = uint64(64)))];\n";
    let file = mil::blob::single_f16(&[half::f16::ONE; 18]);
    let linear = |r: &str, bias: &str| {
        let body = format!("{weight}tensor<fp16, {r}> r = linear(x = x, weight = w{bias});");
        let blobs = Blobs([("w".to_string(), file.clone().into())].into());
        mil::verify(mil::parse(&program(X, &body, "r")).unwrap(), blobs, Profile::Language).map(|_| ()).map_err(|d| d.to_string())
    };
    assert_eq!(linear("[2, 3]", ""), Ok(()));
    assert_eq!(linear("[2, 3]", ", bias = tensor<fp16, [3]>([1, 2, 3])"), Ok(()));
    assert!(linear("[2, 3]", ", bias = tensor<fp16, [2]>([1, 2])").unwrap_err().contains("bias is [out]"));
    let vector = |n: usize| format!("tensor<fp16, [{n}]>({:?})", vec![1; n]);
    gives(X, &format!("tensor<fp16, [2, 6]> r = layer_norm(x = x, axes = {}, gamma = {});", ints(&[1]), vector(6)));
    refuses(X, &format!("tensor<fp16, [2, 6]> r = layer_norm(x = x, axes = {}, gamma = {});", ints(&[1]), vector(2)), "has shape [2]");
    gives(IMAGE, &format!("tensor<fp16, [1, 8, 6, 4]> r = batch_norm(x = x, mean = {}, variance = {});", vector(8), vector(8)));
    refuses(
        IMAGE,
        &format!("tensor<fp16, [1, 8, 6, 4]> r = batch_norm(x = x, mean = {}, variance = {});", vector(8), vector(4)),
        "8 channels",
    );
    gives(IMAGE, "tensor<fp16, [1, 8, 6, 4]> r = instance_norm(x = x);");
}

#[test]
fn pools() {
    let pool = |op: &str, more: &str| format!("{op}(x = x, kernel_sizes = {}, pad_type = string(\"valid\"){more});", ints(&[3, 2]));
    gives(IMAGE, &format!("tensor<fp16, [1, 8, 4, 3]> r = {}", pool("max_pool", "")));
    gives(IMAGE, &format!("tensor<fp16, [1, 8, 2, 2]> r = {}", pool("avg_pool", &format!(", strides = {}", ints(&[2, 2])))));
    let ceil = format!(", strides = {}, ceil_mode = bool(true)", ints(&[2, 2]));
    gives(IMAGE, &format!("tensor<fp16, [1, 8, 3, 2]> r = {}", pool("l2_pool", &ceil)));
    let same = pool("max_pool", &format!(", strides = {}", ints(&[4, 4]))).replace("valid", "same");
    gives(IMAGE, &format!("tensor<fp16, [1, 8, 2, 1]> r = {same}"));
    refuses(
        IMAGE,
        &format!("tensor<fp16, [1, 8, 1, 1]> r = max_pool(x = x, kernel_sizes = {}, pad_type = string(\"valid\"));", ints(&[7, 2])),
        "of length 6",
    );
}

/// `[rows, cols]` of a constant, zeros.
fn zeros(dtype: &str, rows: usize, cols: usize) -> String {
    format!("tensor<{dtype}, [{rows}, {cols}]>([{}])", vec![format!("{:?}", vec![0; cols]); rows].join(", "))
}

#[test]
fn recurrent_networks() {
    let p = "tensor<fp32, [7, 2, 3]> x, tensor<fp32, [2, 4]> h, tensor<fp32, [2, 8]> hh";
    let weights = |gates: usize| format!("weight_ih = {}, weight_hh = {}", zeros("fp32", gates * 4, 3), zeros("fp32", gates * 4, 4));
    let three = |steps: usize, width: usize| {
        format!("tensor<fp32, [{steps}, 2, {width}]> r, tensor<fp32, [2, {width}]> s, tensor<fp32, [2, {width}]> t")
    };
    let one = format!("lstm(x = x, initial_h = h, initial_c = h, {}", weights(4));
    gives(p, &format!("{} = {one});", three(1, 4)));
    gives(p, &format!("{} = {one}, output_sequence = bool(true));", three(7, 4)));
    gives(p, &format!("{} = {one}, direction = string(\"reverse\"));", three(1, 4)));
    refuses(p, &format!("{} = {one}, direction = string(\"backward\"));", three(1, 4)), "is \"backward\"");
    refuses(p, &format!("{} = {one}, direction = string(\"bidirectional\"));", three(1, 8)), "both directions");
    let back = format!("weight_ih_back = {}, weight_hh_back = {}", zeros("fp32", 16, 3), zeros("fp32", 16, 4));
    let both = format!("lstm(x = x, initial_h = hh, initial_c = hh, {}, {back}, direction = string(\"bidirectional\"));", weights(4));
    gives(p, &format!("{} = {both}", three(1, 8)));
    refuses(p, &format!("{} = {one}, bias = tensor<fp32, [4]>([0, 0, 0, 0]));", three(1, 4)), "has shape [4], not [16]");
    refuses(p, &format!("{} = {one}, activation = string(\"gelu\"));", three(1, 4)), "is \"gelu\"");
    let two = "tensor<fp32, [7, 2, 4]> r, tensor<fp32, [2, 4]> s";
    gives(p, &format!("{two} = rnn(x = x, initial_h = h, {}, output_sequence = bool(true));", weights(1)));
    gives(p, &format!("{two} = gru(x = x, initial_h = h, {}, output_sequence = bool(true));", weights(3)));
    refuses(p, &format!("{two} = gru(x = x, initial_h = h, {}, output_sequence = bool(true));", weights(4)), "gates × hidden");
}

#[test]
fn bytes_and_back() {
    let p = "tensor<fp16, [2, 3]> x, tensor<int8, [2, 3]> q";
    gives(p, "tensor<int8, [2, 3]> r = quantize(input = x, scale = fp16(0.5), output_dtype = string(\"int8\"));");
    gives(p, "tensor<fp16, [2, 3]> r = dequantize(input = q, scale = fp16(0.5), zero_point = int8(3));");
    gives(p, "tensor<fp16, [2, 3]> r = dequantize(input = q, scale = tensor<fp16, [3]>([1, 2, 3]), axis = int32(1));");
    refuses(p, "tensor<fp16, [2, 3]> r = dequantize(input = q, scale = tensor<fp16, [3]>([1, 2, 3]), axis = int32(0));", "not [2]");
    refuses(p, "tensor<fp16, [2, 3]> r = dequantize(input = q, scale = fp16(0.5), axis = int32(0));", "scale is a scalar");
    refuses(
        p,
        "tensor<uint8, [2, 3]> r = quantize(input = x, scale = fp16(1), output_dtype = string(\"uint8\"), zero_point = int8(3));",
        "output_dtype is uint8",
    );
}

/// Decoded constants are added to an input, so that they are no results themselves.
fn decodes(opset: &str, shape: &str, call: &str) -> Result<(), String> {
    let body = format!("tensor<fp16, {shape}> w = {call};\ntensor<fp16, {shape}> r = add(x = x, y = w);");
    let text = program(&format!("tensor<fp16, {shape}> x"), &body, "r").replace("ios18", opset);
    check(&text).map(|_| ()).map_err(|d| d.to_string())
}

#[test]
fn decoded_constants() {
    let affine = |scale: &str, axis: i64| {
        format!(
            "constexpr_affine_dequantize()[quantized_data = {}, zero_point = int8(0), scale = {scale}, axis = int32({axis})]",
            zeros("int8", 2, 3)
        )
    };
    assert_eq!(decodes("ios16", "[2, 3]", &affine("fp16(0.5)", 0)), Ok(()));
    assert_eq!(decodes("ios16", "[2, 3]", &affine("tensor<fp16, [3]>([1, 2, 3])", 1)), Ok(()));
    assert!(decodes("ios16", "[2, 3]", &affine("tensor<fp16, [3]>([1, 2, 3])", 0)).unwrap_err().contains("axis 0 has 2 elements"));

    let blocks = |scale: &str| format!("constexpr_blockwise_shift_scale(data = {}, scale = {scale})", zeros("int4", 2, 4));
    assert_eq!(decodes("ios18", "[2, 4]", &blocks("tensor<fp16, [2, 2]>([[1, 2], [3, 4]])")), Ok(()));
    assert!(decodes("ios18", "[2, 4]", &blocks("tensor<fp16, [2, 3]>([[1, 2, 3], [4, 5, 6]])")).unwrap_err().contains("divides"));
    assert!(decodes("ios17", "[2, 4]", &blocks("tensor<fp16, [2, 1]>([[1], [3]])")).unwrap_err().contains("does not exist in ios17"));

    // 2 bits for each of 6 elements are 2 bytes.
    let old = |bytes: usize| {
        format!(
            "constexpr_lut_to_dense()[indices = tensor<uint8, [{bytes}]>({:?}), lut = tensor<fp16, [4]>([1, 2, 3, 4]), shape = tensor<uint32, [2]>([2, 3])]",
            vec![0; bytes]
        )
    };
    assert_eq!(decodes("ios16", "[2, 3]", &old(2)), Ok(()));
    assert!(decodes("ios16", "[2, 3]", &old(3)).unwrap_err().contains("where 2 bytes are wanted"));
    let new =
        format!("constexpr_lut_to_dense(indices = {}, lut = tensor<fp16, [1, 1, 4, 1]>([[[[1], [2], [3], [4]]]]))", zeros("uint2", 2, 3));
    assert_eq!(decodes("ios18", "[2, 3]", &new), Ok(()));
    let vectors = new
        .replace("[1, 1, 4, 1]>([[[[1], [2], [3], [4]]]])", "[1, 1, 4, 2]>([[[[1, 1], [2, 2], [3, 3], [4, 4]]]]), vector_axis = int32(0)");
    assert_eq!(decodes("ios18", "[4, 3]", &vectors), Ok(()));
    assert!(decodes("ios18", "[2, 3]", &new.replace("uint2", "uint4")).unwrap_err().contains("2^bits"));

    let sparse = "constexpr_sparse_to_dense()[nonzero_data = tensor<fp16, [2]>([1, 2]), mask = tensor<uint8, [1]>([3]), shape = tensor<uint32, [2]>([2, 3])]";
    assert_eq!(decodes("ios16", "[2, 3]", sparse), Ok(()));
    let sparse = format!("constexpr_sparse_to_dense(nonzero_data = tensor<fp16, [2]>([1, 2]), mask = {})", zeros("uint1", 2, 3));
    assert_eq!(decodes("ios18", "[2, 3]", &sparse), Ok(()));
}

#[test]
fn a_decoded_constant_is_a_constant() {
    let w = format!(
        "tensor<fp16, [2, 6]> w = constexpr_affine_dequantize()[quantized_data = {}, zero_point = int8(0), scale = fp16(1), axis = int32(0)];\n",
        zeros("int8", 2, 6)
    );
    let text = program(X, &(w + "tensor<fp16, [2, 2]> r = linear(x = x, weight = w);"), "r");
    let verified = check(&text).unwrap_or_else(|d| panic!("{}", d.render("t", &text)));
    let f = &verified.program().functions[0];
    let (_, linear) = f.ops.iter().last().unwrap();
    assert!(matches!(linear.arg("weight"), Some(Arg::Value(w)) if f.is_constant(*w) && f.constant(*w).is_none()));
}

#[test]
fn older_opsets_take_older_forms() {
    let with = |opset: &str, params: &str, statement: &str| {
        check(&program(params, statement, "r").replace("ios18", opset)).map(|_| ()).map_err(|d| d.to_string())
    };
    let mixed = "tensor<fp16, [1, 2, 4]> x, tensor<fp32, [2, 2, 1]> w";
    let conv = "tensor<fp16, [1, 2, 4]> r = conv(x = x, weight = w);";
    assert_eq!(with("ios17", mixed, conv), Ok(()));
    assert!(with("ios16", mixed, conv).unwrap_err().contains("elements of fp32 where another argument has fp16"));
    let cast = "tensor<int8, [2, 6]> r = cast(x = x, dtype = string(\"int8\"));";
    assert_eq!(with("ios17", X, cast), Ok(()));
    assert!(with("ios15", X, cast).unwrap_err().contains("before ios17"));
    let batch = "tensor<fp16, [2, 6]> x, tensor<int32, [2, 3]> i";
    let gather = "tensor<fp16, [2, 3]> r = gather(x = x, indices = i, axis = int32(1), batch_dims = int32(1));";
    assert_eq!(with("ios16", batch, gather), Ok(()));
    assert!(with("ios15", batch, gather).unwrap_err().contains("has no parameter `batch_dims`"));
}
