//! What the verifier refuses of any program: broken by text where text can say it, by hand where it cannot.

use crate::{check, codes, program};
use mil::{Arg, Blobs, Builder, Def, Handle, Opset, Profile, Program};

fn refused(params: &str, body: &str, results: &str, code: &str) {
    let text = program(params, body, results);
    let found = check(&text).unwrap_err();
    assert!(codes(&found).contains(&code), "{code} not in {}", found.render("test", &text));
}

const X: &str = "tensor<fp16, [2, 3]> x";
const EXP: &str = "tensor<fp16, [2, 3]> r = exp(x = x);";

#[test]
fn names_arguments_and_attributes() {
    refused(X, &format!("{EXP}\ntensor<fp16, [2, 3]> r = tanh(x = x);"), "r", "duplicate-name");
    refused(&format!("{X}, {X}"), EXP, "r", "duplicate-name");
    refused(X, "tensor<fp16, [2, 3]> true = exp(x = x);", "r", "undefined");
    refused("tensor<fp16, [2, 3]> nan", "tensor<fp16, [2, 3]> r = exp(x = nan);", "r", "value-name");
    refused(X, "tensor<fp16, [2, 3]> r = exp(x = x, alpha = x);", "r", "unknown-argument");
    refused(X, "tensor<fp16, [2, 3]> r = exp(x = x, x = x);", "r", "duplicate-argument");
    refused(X, "tensor<fp16, [2, 3]> r = exp();", "r", "missing-argument");
    refused(X, "tensor<fp16, [2, 3]> r = exp(x = (x, x));", "r", "list");
    refused(X, "tensor<fp16, [2, 3]> r = exp(x = x)[axis = int32(1)];", "r", "attribute");
    refused(X, "tensor<fp16, [2, 3]> r = exp(x = x)[name = int32(1)];", "r", "attribute");
    refused(X, "tensor<fp16, [2, 3]> r = exp(x = x)[name = string(\"r\"), name = string(\"r\")];", "r", "attribute");
    refused(X, &format!("int32 c = const();\n{EXP}"), "r", "constant");
    refused(&format!("int32 a, {X}"), "tensor<fp16, [2, 3]> r = softmax(x = x, axis = a);", "r", "constant");
}

#[test]
fn types_and_values() {
    refused("tensor<fp16, [?, 3]> x", "tensor<fp16, [?, 3]> r = exp(x = x);", "r", "unknown-dimension");
    refused("tensor<fp16, [1, 1, 1, 1, 2, 3]> x", "tensor<fp16, [1, 1, 1, 1, 2, 3]> r = exp(x = x);", "r", "rank");
    refused("tensor<fp16, [18446744073709551615, 3]> x", "tensor<fp16, [18446744073709551615, 3]> r = exp(x = x);", "r", "size");
    refused(X, "tensor<fp16, [3, 2]> r = exp(x = x);", "r", "declared-type");
    refused(X, "tensor<fp32, [2, 3]> r = exp(x = x);", "r", "declared-type");
    refused(X, &format!("tensor<int32, [2]> c = const()[val = tensor<int32, [2]>([1])];\n{EXP}"), "r", "literal");
    refused(X, &format!("tensor<int32, [2]> c = const()[val = tensor<int32, [3]>([1, 2, 3])];\n{EXP}"), "r", "declared-type");
    refused(X, "tensor<fp16, [2, 3]> r, tensor<fp16, [2, 3]> s = exp(x = x);", "r", "results");
    refused("string x", "string r = exp(x = x);", "r", "string");
    let blob = "tensor<fp16, [2, 3]> c = const()[val = tensor<fp16, [2, 3]>(BLOBFILE(path = string(\"@model_path/c.bin\"), offset = uint64(64)))];";
    refused(X, &format!("{blob}\ntensor<fp16, [2, 3]> r = add(x = x, y = c);"), "r", "blob");
}

#[test]
fn results() {
    refused(X, EXP, "", "results");
    refused(X, EXP, "r, r", "results");
    refused(X, &format!("fp16 c = const()[val = fp16(1)];\n{EXP}"), "c, r", "results");
    refused("state<tensor<fp16, [2, 3]>> s", "tensor<fp16, [2, 3]> r = read_state(input = s);", "r, s", "results");
    check(&program(X, "tensor<int32, [2, 3]> r = cast(x = x, dtype = string(\"int32\"));", "r")).unwrap();
    check(&program(X, EXP, "r, x")).unwrap();
}

fn built() -> Program {
    let mut b = Builder::new(Opset::Ios18);
    let x = b.input("x", &[1, 32, 1, 64]).unwrap();
    let one = b.scalar(1.0).unwrap();
    let y = b.add(x, one).unwrap();
    let y = b.exp(y).unwrap();
    b.finish(&[("y", y)]).unwrap()
}

#[test]
fn broken_by_hand() {
    type Break = fn(&mut Program);
    let breaks: &[(&str, Break)] = &[
        ("no-function", |p| p.functions.clear()),
        ("version", |p| p.version = (9, 9)),
        ("function-name", |p| p.functions[0].name = "a b".into()),
        ("function-name", |p| p.functions.push(p.functions[0].clone())),
        ("value-name", |p| p.functions[0].values[Handle::new(0)].name = "x; }".into()),
        ("definition", |p| p.functions[0].params.push(Handle::new(99))),
        ("definition", |p| p.functions[0].params.push(Handle::new(2))),
        ("definition", |p| p.functions[0].values[Handle::new(0)].def = Def::Param(5)),
        ("definition", |p| p.functions[0].values[Handle::new(1)].def = Def::Op(Handle::new(77), 0)),
        ("definition", |p| p.functions[0].ops[Handle::new(1)].results.push(Handle::new(0))),
        ("definition", |p| p.functions[0].ops[Handle::new(1)].results.clear()),
        ("results", |p| p.functions[0].results = vec![Handle::new(50)]),
        ("use-before-definition", |p| p.functions[0].ops[Handle::new(1)].args[0].1 = Arg::Value(Handle::new(2))),
        ("use-before-definition", |p| p.functions[0].ops[Handle::new(1)].args[0].1 = Arg::Value(Handle::new(3))),
        ("use-before-definition", |p| p.functions[0].ops[Handle::new(1)].args[0].1 = Arg::List(vec![Handle::new(99)])),
        ("unknown-dimension", |p| p.functions[0].values[Handle::new(0)].ty.shape = vec![0, u64::MAX]),
        ("size", |p| p.functions[0].values[Handle::new(0)].ty.shape = vec![u64::MAX, u64::MAX]),
        ("literal", |p| p.functions[0].ops[Handle::new(0)].attrs[1].1 = mil::Literal::Ints(mil::Type::scalar(mil::DType::I8), vec![128])),
        ("literal", |p| {
            p.functions[0].ops[Handle::new(0)].attrs[1].1 = mil::Literal::Floats(mil::Type::scalar(mil::DType::F16), vec![0.1])
        }),
        ("literal", |p| p.functions[0].ops[Handle::new(0)].attrs[1].1 = mil::Literal::Floats(mil::Type::scalar(mil::DType::F16), vec![])),
        ("literal", |p| p.functions[0].ops[Handle::new(0)].attrs[1].1 = mil::Literal::Ints(mil::Type::f16(&[]), vec![1])),
    ];
    mil::verify(built(), Blobs::default(), Profile::Language).unwrap();
    for (i, (code, broken)) in breaks.iter().enumerate() {
        let mut program = built();
        broken(&mut program);
        let found = mil::verify(program, Blobs::default(), Profile::Language).unwrap_err();
        assert!(codes(&found).contains(code), "break {i}: {code} not in {found}");
    }
}
