//! The builder: what it refuses, and that what it makes is verified.

use mil::{Blobs, BuildError, Builder, Chip, DType, Opset, Profile, Val};
use std::collections::BTreeSet;
use std::sync::Arc;

fn builder() -> (Builder, Val) {
    let mut b = Builder::new(Opset::Ios18);
    let x = b.input("x", &[1, 64, 1, 64]).unwrap();
    (b, x)
}

fn refused<T: std::fmt::Debug>(result: Result<T, BuildError>, message: &str) {
    let error = result.unwrap_err().to_string();
    assert!(error.contains(message), "{error}");
}

#[test]
fn mistakes_are_errors_of_the_call() {
    let (mut b, x) = builder();
    assert_eq!(
        b.reshape(x, &[1, 63, 64]).unwrap_err().to_string(),
        "reshape: `shape` is [1, 63, 64], which does not hold the 4096 elements of x [1, 64, 1, 64]; keep the number of elements"
    );
    refused(b.reshape(x, &[0, 64]), "at least one element");
    refused(b.slice(x, &[0, 0, 0, 32], &[1, 64, 1, 33]), "slice_by_size: `size` is 33 on axis 3");
    refused(b.slice(x, &[0, 0, 0, usize::MAX], &[1, 64, 1, 33]), "begin must lie inside");
    refused(b.transpose(x, &[0, 1, 2, 2]), "twice");
    refused(b.softmax(x, 4), "is axis 4");
    refused(b.concat(&[], 1), "is empty");
    refused(b.scalar(1e6), "which fp16 does not hold");
    refused(b.blob("/etc/passwd", &[1]), "no path of a weight file");
    refused(b.blob("@model_path/../x.bin", &[1]), "no path of a weight file");
    refused(b.input("a", &[1]), "is declared after `x`");
    refused(b.input("x", &[1]), "is declared after `x`");
    refused(b.input("y z", &[1]), "is no name");
    refused(b.input("y", &[0]), "at least one element");
    refused(b.input("y", &[1; 6]), "one to five axes");
    refused(b.expand_dims(x, &[0, 1]), "makes 6 axes");
    refused(b.reshape(x, &[1, 1, 1, 1, 64, 64]), "of rank 6");
    refused(b.input("y\"); }", &[1]), "is no name");
    let mut earlier = Builder::new(Opset::Ios17);
    let x = earlier.input("x", &[1, 4, 4]).unwrap();
    refused(earlier.attention(x, x, x, None), "does not exist in ios17");
}

#[test]
fn finish_checks_the_ports() {
    let finish = |results: fn(&mut Builder, Val) -> Vec<(&'static str, Val)>| {
        let (mut b, x) = builder();
        let results = results(&mut b, x);
        b.finish(&results)
    };
    refused(finish(|_, _| vec![]), "nothing is returned");
    refused(finish(|_, x| vec![("y", x)]), "returns an input");
    refused(finish(|b, x| vec![("x", b.exp(x).unwrap())]), "name of an input");
    refused(finish(|b, x| vec![("b", b.exp(x).unwrap()), ("a", b.tanh(x).unwrap())]), "returned after `b`");
    refused(finish(|b, x| vec![("a", b.exp(x).unwrap()), ("a", b.tanh(x).unwrap())]), "returned after `a`");
    refused(finish(|b, x| vec![("fp16", b.exp(x).unwrap())]), "is no name");
    refused(finish(|b, x| vec![("y", b.cast(x, DType::I32).unwrap())]), "has elements of int32");
    refused(
        finish(|b, x| {
            let y = b.exp(x).unwrap();
            vec![("a", y), ("b", y)]
        }),
        "returned already",
    );
    refused(
        finish(|b, x| {
            b.tanh(x).unwrap();
            vec![("y", b.exp(x).unwrap())]
        }),
        "`tanh_0` is never used",
    );
    refused(
        finish(|b, x| {
            b.input("z", &[1]).unwrap();
            vec![("y", b.exp(x).unwrap())]
        }),
        "`z` is never used",
    );
    finish(|b, x| vec![("y", b.exp(x).unwrap())]).unwrap();
}

#[test]
fn ports_keep_their_names_and_others_give_way() {
    let mut b = Builder::new(Opset::Ios18);
    let x = b.input("a_x", &[1, 32, 1, 64]).unwrap();
    let first = b.exp(x).unwrap();
    let second = b.exp(first).unwrap();
    // Values of these names exist already.
    let z = b.input("exp_1", &[1, 32, 1, 64]).unwrap();
    let sum = b.add(second, z).unwrap();
    let program = b.finish(&[("exp_0", sum)]).unwrap();
    let function = &program.functions[0];
    let names: Vec<&str> = function.values.iter().map(|(_, v)| v.name.as_str()).collect();
    assert_eq!(names, ["a_x", "exp_0_", "exp_1_", "exp_1", "exp_0"]);
    for (_, op) in function.ops.iter() {
        let named = op.attr("name").unwrap().clone();
        assert_eq!(named, mil::Literal::Text(function.values[op.results[0]].name.clone()));
    }
    mil::verify(program, Blobs::default(), Profile::Chip(Chip::H13)).unwrap();
}

/// One of every op that the builder makes.
fn everything() -> mil::Program {
    let mut b = Builder::new(Opset::Ios18);
    let x = b.input("a", &[1, 64, 1, 64]).unwrap();
    let w = b.input("b", &[32, 64, 1, 1]).unwrap();
    let m = b.blob("@model_path/weights/m.bin", &[64, 64]).unwrap();
    let h = b.scalar(0.5).unwrap();
    let mut y = b.add(x, h).unwrap();
    y = b.sub(y, x).unwrap();
    y = b.mul(y, h).unwrap();
    y = b.real_div(y, h).unwrap();
    y = b.maximum(y, h).unwrap();
    y = b.minimum(y, h).unwrap();
    y = b.pow(y, h).unwrap();
    y = b.sigmoid(y).unwrap();
    y = b.tanh(y).unwrap();
    y = b.relu(y).unwrap();
    y = b.silu(y).unwrap();
    y = b.exp(y).unwrap();
    y = b.sqrt(y).unwrap();
    y = b.rsqrt(y, 1e-3).unwrap();
    y = b.log(y, 1e-3).unwrap();
    y = b.cast(y, DType::F32).unwrap();
    y = b.cast(y, DType::F16).unwrap();
    y = b.softmax(y, -1).unwrap();
    let parts = b.split(y, &[16, 48], 1).unwrap();
    y = b.concat(&[parts[1], parts[0]], 1).unwrap();
    y = b.slice(y, &[0; 4], &[1, 64, 1, 64]).unwrap();
    y = b.slice_by_index(y, &[0; 4], &[1, 64, 1, 64], &[1; 4]).unwrap();
    y = b.squeeze(y, &[0]).unwrap();
    y = b.expand_dims(y, &[0]).unwrap();
    y = b.transpose(y, &[0, 2, 1, 3]).unwrap();
    y = b.matmul(y, false, m, true).unwrap();
    y = b.reshape(y, &[1, 64, 1, 64]).unwrap();
    let conv = b.conv1x1(y, w).unwrap();
    let sum = b.reduce_sum(y, &[1], true).unwrap();
    let mean = b.reduce_mean(y, &[1], true).unwrap();
    let max = b.reduce_max(y, &[1], true).unwrap();
    let stats = b.concat(&[sum, mean, max], 1).unwrap();
    let flat = b.reshape(y, &[1, 1, 64, 64]).unwrap();
    let attention = b.attention(flat, flat, flat, None).unwrap();
    let tiled = b.tile(attention, &[1, 2, 1, 1]).unwrap();
    b.finish(&[("conv", conv), ("stats", stats), ("tiled", tiled)]).unwrap()
}

#[test]
fn every_op_that_the_builder_makes_is_verified_and_reads_back() {
    let program = everything();
    let kinds: BTreeSet<&str> = program.functions[0].ops.iter().map(|(_, op)| op.kind.name()).collect();
    assert_eq!(kinds.len(), 33, "the builder has a word for 33 ops: {kinds:?}");
    assert_eq!(mil::parse(&mil::print(&program)).unwrap(), program);

    let data = vec![half::f16::ONE; 64 * 64];
    let file: Arc<[u8]> = mil::blob::single_f16(&data).into();
    let blobs = Blobs([("@model_path/weights/m.bin".to_string(), file)].into());
    let verified = mil::verify(program, blobs, Profile::Chip(Chip::H16)).unwrap();
    assert_eq!(crate::codes(verified.warnings()), ["port-bytes", "port-bytes", "reduce-mean"]);
    let function = &verified.program().functions[0];
    let constant = |name: &str| function.ops.iter().find(|(_, op)| function.values[op.results[0]].name == name).unwrap().1;
    assert_eq!(verified.constant_data(constant("w_m")).unwrap().as_ref(), data);
    assert_eq!(verified.constant_data(constant("f_0_5")).unwrap().as_ref(), [half::f16::from_f32(0.5)]);
    assert!(verified.constant_data(constant("b_true")).is_none());
}
