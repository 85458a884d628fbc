//! Every op of the table runs, and gives what the reference gives.

use crate::reference;
use crate::rig::{Rng, STRIDES, evaluate, language, options, paths};
use ane::emulator::Arithmetic;
use half::f16;
use mil::ops::{OPS, OpKind};
use mil::{Arg, Blobs, BuildError, Builder, Conv, DType, Function, Handle, Literal, Op, Opset, Program, Val};

/// A program around one op, of inputs `a` `[2, 6, 4, 8]` and `b` `[2, 1, 4, 8]`.
fn sample(b: &mut Builder, kind: OpKind, x: Val, y: Val) -> Result<Vec<Val>, BuildError> {
    let one = |v: Result<Val, BuildError>| v.map(|v| vec![v]);
    match kind {
        OpKind::Const => {
            let c = b.scalar(1.5)?;
            one(b.add(x, c))
        }
        OpKind::Matmul => Ok(vec![b.matmul(x, false, y, true)?, b.matmul(y, true, x, false)?]),
        OpKind::Conv => {
            let w1 = b.slice(x, &[0; 4], &[2, 6, 1, 1])?;
            let w3 = b.reshape(y, &[8, 2, 1, 4]).and_then(|w| b.slice(w, &[0; 4], &[6, 2, 1, 4]))?;
            let groups = Conv { strides: vec![1, 1], pads: vec![(0, 0); 2], dilations: vec![1, 1], groups: 3 };
            let w = b.reshape(y, &[4, 2, 2, 4])?;
            let narrow = b.slice(x, &[0; 4], &[2, 2, 4, 8])?;
            let strided = Conv { strides: vec![2, 3], pads: vec![(1, 2), (0, 1)], dilations: vec![2, 1], groups: 1 };
            // The last two are given this as bias.
            let bias = b.slice(y, &[0; 4], &[1, 1, 4, 1]).and_then(|v| b.reshape(v, &[4])).and_then(|v| b.relu(v))?;
            let w4 = b.slice(x, &[0; 4], &[1, 4, 2, 1]).and_then(|v| b.reshape(v, &[4, 2, 1, 1]))?;
            Ok(vec![b.conv1x1(x, w1)?, b.conv(x, w3, &groups)?, bias, b.conv(narrow, w, &strided)?, b.conv1x1(narrow, w4)?])
        }
        OpKind::Add => one(b.add(x, y)),
        OpKind::Sub => one(b.sub(x, y)),
        OpKind::Mul => one(b.mul(x, y)),
        OpKind::RealDiv => one(b.real_div(x, y)),
        OpKind::Maximum => one(b.maximum(x, y)),
        OpKind::Minimum => one(b.minimum(x, y)),
        OpKind::Pow => one(b.pow(x, y)),
        OpKind::Sigmoid => one(b.sigmoid(x)),
        OpKind::Tanh => one(b.tanh(x)),
        OpKind::Relu => one(b.relu(x)),
        OpKind::Silu => one(b.silu(x)),
        OpKind::Exp => one(b.exp(x)),
        OpKind::Sqrt => one(b.sqrt(x)),
        OpKind::Rsqrt => one(b.rsqrt(x, 0.125)),
        OpKind::Log => one(b.log(x, 0.125)),
        OpKind::Cast => one(b.cast(x, DType::F16)),
        OpKind::Softmax => Ok(vec![b.softmax(x, -1)?, b.softmax(x, 1)?]),
        OpKind::ReduceSum => Ok(vec![b.reduce_sum(x, &[1], false)?, b.reduce_sum(x, &[0, 3], true)?]),
        OpKind::ReduceMean => one(b.reduce_mean(x, &[2, 1], false)),
        OpKind::ReduceMax => one(b.reduce_max(x, &[-1], true)),
        OpKind::Reshape => one(b.reshape(x, &[4, 3, 32])),
        OpKind::Transpose => one(b.transpose(x, &[3, 1, 0, 2])),
        OpKind::ExpandDims => one(b.expand_dims(x, &[0])),
        OpKind::Squeeze => one(b.squeeze(y, &[1])),
        OpKind::SliceBySize => one(b.slice(x, &[0, 2, 1, 3], &[2, 3, 2, 5])),
        OpKind::SliceByIndex => one(b.slice_by_index(x, &[1, 0, 3, 7], &[2, 6, 0, 0], &[1, 2, -1, -3])),
        // The second is made to interleave.
        OpKind::Concat => Ok(vec![b.concat(&[x, y, x], 1)?, b.concat(&[x, x], 1)?]),
        OpKind::Split => b.split(x, &[1, 3, 2], 1),
        OpKind::Tile => one(b.tile(y, &[1, 3, 1, 2])),
        OpKind::ScaledDotProductAttention => {
            let mask = b.slice(x, &[0; 4], &[1, 1, 4, 4])?;
            one(b.attention(x, x, x, Some(mask)))
        }
        other => panic!("{} is emulated and has no sample", other.name()),
    }
}

/// What the builder has no words for: the bias of a convolution, and a concatenation by turns.
fn edit(program: &mut Program) {
    let function = &mut program.functions[0];
    let handles: Vec<Handle<Op>> = function.ops.iter().map(|(h, _)| h).collect();
    let named = |function: &Function, name: &str| function.values.iter().find(|(_, v)| v.name == name).map(|(h, _)| h);
    let bias = named(function, "r2");
    for h in handles {
        let result = function.ops[h].results[0];
        let name = function.values[result].name.clone();
        let op = &mut function.ops[h];
        match (op.kind, name.as_str(), bias) {
            (OpKind::Conv, "r3" | "r4", Some(bias)) => op.args.push(("bias".into(), Arg::Value(bias))),
            (OpKind::Concat, "r1", _) => {
                op.args.retain(|(n, _)| n != "interleave");
                op.args.push(("interleave".into(), Arg::Literal(Literal::bool(true))));
            }
            _ => {}
        }
    }
}

#[test]
fn every_op_of_the_table_runs() {
    let mut rng = Rng(7);
    for &(kind, _) in OPS.iter().filter(|(kind, _)| kind.is_emulated()) {
        let mut builder = Builder::new(Opset::Ios18);
        let x = builder.input("a", &[2, 6, 4, 8]).unwrap();
        let y = builder.input("b", &[2, 1, 4, 8]).unwrap();
        let mut values = sample(&mut builder, kind, x, y).unwrap_or_else(|e| panic!("{}: {e}", kind.name()));
        // Both inputs are used.
        values.push(builder.add(x, y).unwrap());
        let names: Vec<String> = (0..values.len()).map(|i| format!("r{i}")).collect();
        let results: Vec<(&str, Val)> = names.iter().map(String::as_str).zip(values).collect();
        let mut program = builder.finish(&results).unwrap();
        edit(&mut program);
        let program = language(program, Blobs::default());
        // Positive, so that powers, roots and logarithms say something.
        let inputs = [384, 64].map(|n| rng.fill(n, |r| 1.0 + r.unit() * 0.9));
        let wanted = reference::run(&program, &inputs);
        let fast = paths().into_iter().map(|p| (p, Arithmetic::Fast));
        let both = fast.chain([(paths()[0], Arithmetic::Exact)]);
        for ((path, arithmetic), stride) in both.flat_map(|p| STRIDES.map(|s| (p, s))) {
            // The chip, and so the fast arithmetic, ignores the mask.
            if arithmetic == Arithmetic::Exact && kind == OpKind::ScaledDotProductAttention {
                continue;
            }
            let mut options = options(2);
            (options.matmul, options.stride, options.arithmetic) = (path, stride, arithmetic);
            for (got, want) in evaluate(options, &program, &inputs).iter().zip(&wanted) {
                for (g, w) in got.iter().zip(&want.data) {
                    // One fp16 step, for sums whose exact value lies near a tie.
                    let step = f16::from_f64(w.abs()).to_f64() / 1024.0 + 1e-7;
                    assert!((g.to_f64() - w).abs() <= step, "{}: {g} for {w}", kind.name());
                }
            }
        }
    }
}

#[test]
fn every_op_of_the_second_evaluator_is_in_a_filetest() {
    let files = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../filetests/files");
    let mut seen = std::collections::BTreeSet::new();
    for path in ["run", "ops"].iter().flat_map(|family| std::fs::read_dir(files.join(family)).unwrap()).map(|e| e.unwrap().path()) {
        let program = mil::parse(&std::fs::read_to_string(&path).unwrap()).unwrap_or_else(|e| panic!("{}: {e:?}", path.display()));
        seen.extend(program.functions.iter().flat_map(|f| f.ops.iter().map(|(_, op)| op.kind)));
    }
    let runs = |kind| Arithmetic::Exact.runs(kind);
    let missing: Vec<&str> = OPS.iter().filter(|(kind, _)| runs(*kind) && !seen.contains(kind)).map(|(kind, _)| kind.name()).collect();
    assert!(missing.is_empty(), "no file runs {missing:?}");
    // Nothing that the fast one runs is left out.
    assert!(OPS.iter().all(|(kind, _)| runs(*kind) || !Arithmetic::Fast.runs(*kind)));
}
