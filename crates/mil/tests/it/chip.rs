//! The rules of chips: each on a program that breaks it, and all silent on one that does not.

use crate::{codes, program};
use mil::{Blobs, Chip, Profile, Severity};
use std::collections::BTreeSet;

fn found(text: &str, chip: Chip) -> (bool, Vec<&'static str>) {
    let file = mil::blob::single_f16(&[half::f16::ONE; 1024]);
    let path = |p: &str| (p.to_string(), file.clone().into());
    let blobs = Blobs([path("@model_path/w.bin"), path("w.bin")].into());
    match mil::verify(mil::parse(text).unwrap_or_else(|d| panic!("{}", d.render("test", text))), blobs, Profile::Chip(chip)) {
        Ok(verified) => (true, codes(verified.warnings())),
        Err(diagnostics) => (false, codes(&diagnostics)),
    }
}

/// The program breaks exactly these rules on this chip. Ports of unequal sizes are mentioned only where they are what matters.
pub(crate) fn breaks(rules: &[&str], chip: Chip, text: &str) {
    let (ok, codes) = found(text, chip);
    let broken: BTreeSet<&str> = codes.into_iter().filter(|c| *c != "port-bytes" || rules.contains(c)).collect();
    assert_eq!(broken, rules.iter().copied().collect(), "{text}");
    let errors = rules.contains(&"argument") || mil::LINTS.iter().any(|l| rules.contains(&l.code) && l.severity == Severity::Error);
    assert_eq!(ok, !errors);
}

pub(crate) const X: &str = "tensor<fp16, [1, 32, 1, 64]> x";
pub(crate) const EXP: &str = "tensor<fp16, [1, 32, 1, 64]> y = exp(x = x);";

pub(crate) fn int(name: &str, value: i64) -> String {
    format!("int32 {name} = const()[val = int32({value})];\n")
}

pub(crate) fn ints(name: &str, values: &[i64]) -> String {
    format!("tensor<int32, [{n}]> {name} = const()[val = tensor<int32, [{n}]>({values:?})];\n", n = values.len())
}

pub(crate) fn blob(name: &str, shape: &str) -> String {
    format!(
        "tensor<fp16, {shape}> {name} = const()[val = tensor<fp16, {shape}>(BLOBFILE(path = string(\"@model_path/w.bin\"), offset = uint64(64)))];\n"
    )
}

#[test]
fn a_plain_program_breaks_none() {
    for chip in Chip::ALL {
        breaks(&[], chip, &program(X, EXP, "y"));
    }
}

#[test]
fn axes_and_ports() {
    let wide =
        |n: usize| program(&format!("tensor<fp16, [1, 32, 1, {n}]> x"), &format!("tensor<fp16, [1, 32, 1, {n}]> y = exp(x = x);"), "y");
    breaks(&[], Chip::H13, &wide(16_384));
    breaks(&["axis-cap"], Chip::H15, &wide(16_448));
    breaks(&[], Chip::H16, &wide(16_448));
    breaks(&["axis-cap"], Chip::H17, &wide(65_600));
    let deep =
        |n: usize| program(&format!("tensor<fp16, [1, {n}, 1, 64]> x"), &format!("tensor<fp16, [1, {n}, 1, 64]> y = exp(x = x);"), "y");
    breaks(&[], Chip::H13, &deep(65_536));
    breaks(&["axis-cap"], Chip::H13, &deep(65_537));
    breaks(&["port-width"], Chip::H16, &wide(48));
    breaks(&["port-width-64"], Chip::H16, &wide(96));
    let two = "tensor<fp16, [1, 32, 1, 64]> a = exp(x = x);\ntensor<fp16, [1, 32, 1, 64]> b = tanh(x = x);";
    breaks(&[], Chip::H16, &program(X, two, "a, b"));
    breaks(&["port-order"], Chip::H16, &program(X, two, "b, a"));
    let pair = "tensor<fp16, [1, 32, 1, 64]> y, tensor<fp16, [1, 32, 1, 64]> x";
    breaks(&["port-order"], Chip::H16, &program(pair, "tensor<fp16, [1, 32, 1, 64]> z = add(x = x, y = y);", "z"));
    breaks(&["returned-input"], Chip::H16, &program(X, EXP, "x, y"));
    breaks(&["dead-result"], Chip::H16, &program(X, &format!("{EXP}\ntensor<fp16, [1, 32, 1, 64]> z = exp(x = x);"), "y"));
    breaks(&["build-info"], Chip::H16, &program(X, EXP, "y").replace("[buildInfo = dict<string, string>({{\"k\", \"v\"}})]", ""));
}

#[test]
fn constants() {
    breaks(&["inline-literal"], Chip::H16, &program(X, "tensor<fp16, [1, 32, 1, 64]> y = softmax(x = x, axis = int32(-1));", "y"));
    breaks(&[], Chip::H16, &program(X, &format!("{}tensor<fp16, [1, 32, 1, 64]> y = softmax(x = x, axis = a);", int("a", -1)), "y"));
    let with = |n: usize| {
        let mut body = String::new();
        let mut last = "x".to_string();
        for i in 0..n {
            body += &blob(&format!("w{i}"), "[1, 32, 1, 32]");
            body += &format!("tensor<fp16, [1, 32, 1, 32]> y{i} = add(x = {last}, y = w{i});\n");
            last = format!("y{i}");
        }
        program("tensor<fp16, [1, 32, 1, 32]> x", &body, &last)
    };
    breaks(&["port-width-64"], Chip::H16, &with(16));
    breaks(&["port-width-64", "blob-count"], Chip::H16, &with(17));
    let one = with(1);
    breaks(&["port-width-64", "blob-path"], Chip::H16, &one.replace("@model_path/w.bin", "w.bin"));
    let file = {
        let mut writer = mil::blob::Writer::new();
        for _ in 0..2 {
            writer.push(mil::blob::BlobType::F16, 1024, &[0; 2048]).unwrap();
        }
        writer.finish()
    };
    let second = one.replace("uint64(64)", "uint64(2176)");
    let blobs = Blobs([("@model_path/w.bin".to_string(), file.into())].into());
    let verified = mil::verify(mil::parse(&second).unwrap(), blobs, Profile::Chip(Chip::H16)).unwrap();
    assert!(codes(verified.warnings()).contains(&"blob-offset"));
}

#[test]
fn element_types() {
    let cast = "string d = const()[val = string(\"int32\")];\nstring e = const()[val = string(\"fp16\")];\n\
                tensor<int32, [1, 32, 1, 64]> i = cast(x = x, dtype = d);\ntensor<fp16, [1, 32, 1, 64]> y = cast(x = i, dtype = e);";
    breaks(&["compute-type"], Chip::H16, &program(X, cast, "y"));
    breaks(
        &["compute-type"],
        Chip::H16,
        &program(
            "tensor<int32, [1, 32, 1, 64]> x",
            "string e = const()[val = string(\"fp16\")];\ntensor<fp16, [1, 32, 1, 64]> y = cast(x = x, dtype = e);",
            "y",
        ),
    );
    breaks(
        &["port-type"],
        Chip::H16,
        &program(
            "tensor<fp32, [1, 32, 1, 64]> x",
            "string e = const()[val = string(\"fp16\")];\ntensor<fp16, [1, 32, 1, 64]> y = cast(x = x, dtype = e);",
            "y",
        ),
    );
}

#[test]
fn ops_that_do_otherwise() {
    let five = "tensor<fp16, [1, 1, 1, 64, 64]> x";
    breaks(&["matmul-rank"], Chip::H16, &program(five, "tensor<fp16, [1, 1, 1, 64, 64]> y = matmul(x = x, y = x);", "y"));

    let qkv = "tensor<fp16, [1, 2, 64, 32]> k, tensor<fp16, [1, 1, 64, 64]> m, tensor<fp16, [1, 2, 64, 32]> q";
    let sdpa = "tensor<fp16, [1, 2, 64, 32]> y = scaled_dot_product_attention(query = q, key = k, value = k, attn_mask = m);";
    breaks(&["attention-mask"], Chip::H16, &program(qkv, sdpa, "y"));
    breaks(&["attention-mask", "attention-length"], Chip::H16, &program(&qkv.replace("64", "512"), &sdpa.replace("64", "512"), "y"));

    let slice = |begin: i64| {
        let consts = ints("b", &[0, 0, 0, begin]) + &ints("s", &[1, 32, 1, 64]);
        program(
            "tensor<fp16, [1, 32, 1, 128]> x",
            &format!("{consts}tensor<fp16, [1, 32, 1, 64]> y = slice_by_size(x = x, begin = b, size = s);"),
            "y",
        )
    };
    breaks(&["slice-width-clamp"], Chip::H13, &slice(64));
    breaks(&["slice-width-clamp"], Chip::H14, &slice(64));
    breaks(&[], Chip::H16, &slice(64));
    breaks(&[], Chip::H13, &slice(0));

    let product = "tensor<fp16, [1, 64, 48]> a, tensor<fp16, [1, 48, 64]> b";
    let product = program(product, "tensor<fp16, [1, 64, 64]> y = matmul(x = a, y = b);", "y");
    breaks(&["port-width", "contraction"], Chip::H13, &product);
    breaks(&["port-width"], Chip::H14, &product);

    breaks(
        &["reduce-mean"],
        Chip::H16,
        &program(
            X,
            &format!(
                "{}bool t = const()[val = bool(true)];\ntensor<fp16, [1, 1, 1, 64]> y = reduce_mean(x = x, axes = a, keep_dims = t);",
                ints("a", &[1])
            ),
            "y",
        ),
    );
    breaks(&["epsilon"], Chip::H16, &program(X, &EXP.replace("exp", "rsqrt"), "y"));
    breaks(&["epsilon"], Chip::H16, &program(X, &EXP.replace("exp", "log"), "y"));
    breaks(
        &[],
        Chip::H16,
        &program(X, &("fp16 e = const()[val = fp16(0.001)];\n".to_string() + &EXP.replace("exp(x = x)", "log(x = x, epsilon = e)")), "y"),
    );
}

#[test]
fn convolutions() {
    let conv = |before: &str, x: &str, weight: &str, args: &str, y: &str| {
        let ports = format!("tensor<fp16, {weight}> w, tensor<fp16, {x}> x");
        program(&ports, &format!("{before}tensor<fp16, {y}> y = conv(x = x, weight = w{args});"), "y")
    };
    let plain = |x, weight, y| conv("", x, weight, "", y);
    breaks(&[], Chip::H16, &plain("[1, 64, 1, 64]", "[32, 64, 1, 1]", "[1, 32, 1, 64]"));
    breaks(&["runtime-conv"], Chip::H16, &plain("[2, 64, 1, 64]", "[32, 64, 1, 1]", "[2, 32, 1, 64]"));
    breaks(&["runtime-conv"], Chip::H16, &conv(&int("g", 2), "[1, 64, 1, 64]", "[32, 32, 1, 1]", ", groups = g", "[1, 32, 1, 64]"));
    breaks(&["conv-channels"], Chip::H16, &plain("[1, 32000, 1, 64]", "[32, 32000, 1, 1]", "[1, 32, 1, 64]"));
    breaks(&["conv-kernel"], Chip::H13, &plain("[1, 64, 1, 128]", "[32, 64, 1, 65]", "[1, 32, 1, 64]"));
    let baked = program(
        "tensor<fp16, [2, 32, 1, 64]> x",
        &(blob("w", "[32, 32, 1, 1]") + "tensor<fp16, [2, 32, 1, 64]> y = conv(x = x, weight = w);"),
        "y",
    );
    breaks(&[], Chip::H16, &baked);
    let bias = program(
        "tensor<fp16, [1, 32, 1, 64]> x",
        &(blob("w", "[32, 32, 1, 1]")
            + "tensor<fp16, [32]> c = const()[val = tensor<fp16, [32]>(["
            + &vec!["0"; 32].join(", ")
            + "])];\ntensor<fp16, [1, 32, 1, 64]> y = conv(x = x, weight = w, bias = c);"),
        "y",
    );
    breaks(&["conv-bias"], Chip::H16, &bias);
}

#[test]
fn size() {
    let chain = |n: usize| {
        let mut body = String::new();
        for i in 0..n {
            let from = if i == 0 { "x".to_string() } else { format!("v{}", i - 1) };
            body += &format!("tensor<fp16, [1, 32, 1, 64]> v{i} = exp(x = {from});\n");
        }
        program(X, &body, &format!("v{}", n - 1))
    };
    breaks(&[], Chip::H16, &chain(3200));
    breaks(&["program-size"], Chip::H16, &chain(3201));
}

#[test]
fn rules_have_names_of_their_own_and_say_what_to_do() {
    let names: BTreeSet<&str> = mil::LINTS.iter().map(|l| l.code).collect();
    assert_eq!(names.len(), mil::LINTS.len());
    assert!(mil::LINTS.iter().all(|l| !l.doc.is_empty() && !l.help.is_empty() && !l.source.is_empty()));
}
