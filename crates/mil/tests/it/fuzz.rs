//! Properties: nothing that is read or built makes the crate panic, and text and programs turn into each other.

use mil::{Blobs, Builder, Chip, Opset, Profile, Program, Val};
use proptest::prelude::*;
use proptest::test_runner::Config;

/// Everything that can be done with a text.
fn survive(text: &str) {
    match mil::parse(text) {
        Err(diagnostics) => {
            assert!(diagnostics.has_errors());
            diagnostics.render("t.mil", text);
        }
        Ok(program) => {
            let printed = mil::print(&program);
            // NaN, the one value that differs from itself, is compared as it prints.
            assert_eq!(mil::parse(&printed).map(|p| mil::print(&p)).as_ref(), Ok(&printed));
            let formatted = mil::fmt(text).unwrap();
            assert_eq!(mil::fmt(&formatted).as_ref(), Ok(&formatted));
            assert_eq!(mil::parse(&formatted).map(|p| mil::print(&p)).as_ref(), Ok(&printed));
            for profile in [Profile::Language, Profile::Chip(Chip::H13), Profile::Chip(Chip::H17)] {
                match mil::verify(program.clone(), Blobs::default(), profile) {
                    Ok(verified) => {
                        mil::ops::program_cost(&verified.program().functions[0]);
                    }
                    Err(diagnostics) => {
                        diagnostics.render("t.mil", text);
                    }
                }
            }
        }
    }
}

/// A program over random ops and shapes: arguments that do not fit are left out.
fn random_program(steps: &[(u8, u8, u8, Vec<usize>)]) -> Program {
    let mut b = Builder::new(Opset::Ios18);
    let mut values: Vec<Val> = vec![b.input("a", &[1, 4, 2, 6]).unwrap(), b.input("b", &[4, 6, 1, 1]).unwrap()];
    for (op, i, j, dims) in steps {
        let before = (b.clone(), values.len());
        let (x, y) = (values[*i as usize % values.len()], values[*j as usize % values.len()]);
        let signed: Vec<i64> = dims.iter().map(|&d| d as i64 - 2).collect();
        let axis = i64::from(*j % 6) - 3;
        let made = match op % 24 {
            0 => b.add(x, y),
            1 => b.mul(x, y),
            2 => b.matmul(x, j & 1 != 0, y, j & 2 != 0),
            3 => b.sigmoid(x),
            4 => b.softmax(x, axis),
            5 => b.reshape(x, dims),
            6 => b.transpose(x, dims),
            7 => b.concat(&[x, y], axis),
            8 => b.slice(x, &vec![0; dims.len()], dims),
            9 => b.reduce_sum(x, &[axis], j & 1 != 0),
            10 => b.expand_dims(x, &[axis]),
            11 => b.squeeze(x, &[axis]),
            12 => b.tile(x, dims),
            13 => b.conv1x1(x, y),
            14 => b.scalar(f32::from(*j) - 99.5),
            15 => b.blob("@model_path/w.bin", &[4, 4, 1, 1]),
            16 => b.slice_by_index(x, &signed, &signed, &vec![1; dims.len()]),
            17 => b.attention(x, y, y, None),
            18 => b.rsqrt(x, 0.01),
            19 => b.cast(x, if j & 1 != 0 { mil::DType::F32 } else { mil::DType::I32 }),
            20 => b.split(x, dims, axis).map(|parts| {
                values.extend(&parts[1..]);
                parts[0]
            }),
            21 => b.pow(x, y),
            22 => b.reduce_max(x, &signed, false),
            _ => b.real_div(x, y),
        };
        values.extend(made);
        // A step back where tensors grow beyond what is worth testing.
        if values[before.1..].iter().any(|v| b.shape(*v).iter().product::<usize>() > 1 << 20) {
            b = before.0;
            values.truncate(before.1);
        }
    }
    // Everything that nothing else uses is brought together in one result.
    let mut sum = None;
    for v in values {
        let v = b.cast(v, mil::DType::F16).unwrap();
        let count = b.shape(v).iter().product();
        let flat = b.reshape(v, &[count]).unwrap();
        let one = b.reduce_sum(flat, &[0], true).unwrap();
        sum = Some(match sum {
            None => one,
            Some(sum) => b.add(sum, one).unwrap(),
        });
    }
    b.finish(&[("out", sum.unwrap())]).unwrap()
}

fn steps() -> impl Strategy<Value = Vec<(u8, u8, u8, Vec<usize>)>> {
    prop::collection::vec((any::<u8>(), any::<u8>(), any::<u8>(), prop::collection::vec(0usize..7, 0..5)), 1..24)
}

/// What mutations are made of.
const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    ",",
    ";",
    "=",
    "?",
    "->",
    "\"",
    "tensor",
    "fp16",
    "int32",
    "bool",
    "string",
    "const",
    "matmul",
    "split",
    "reshape",
    "0",
    "1",
    "-1",
    "9223372036854775807",
    "18446744073709551615",
    "0x1p+2000",
    "nan",
    "-inf",
    "x",
    "a",
    "val",
    "BLOBFILE",
    "func",
    "program",
    "state",
    "dict",
    "list",
    "tuple",
    "1.0",
    "constexpr_affine_dequantize",
    "write_state",
    "gather",
    "uint3",
    "\n\n",
    "// c\n",
    "// ",
    "\\",
    "é",
    "\u{0}",
    "true",
];

#[test]
fn long_and_deep_texts_are_read_in_reasonable_time() {
    let many = |piece: &str| piece.repeat(100_000);
    let statement = |text: String| crate::program("tensor<fp16, [2, 3]> x", &text, "x");
    survive(&many("("));
    survive(&statement(format!("fp16 c = const()[val = fp16({})];", many("["))));
    survive(&statement(format!("tensor<fp16, [{}1]> c = const()[val = tensor<fp16, [1]>([1])];", many("1, "))));
    survive(&statement(format!("tensor<fp16, [2, 3]> y = exp({}x = x);", many("x = x, "))));
    survive(&statement(format!("tensor<fp16, [2, 3]> y = exp(x = x)[{}name = int32(1)];", many("a = int32(1), "))));
    survive(&statement(format!("tensor<fp16, [6]> y = concat(values = ({}x), axis = int32(0));", many("x, "))));
    let axes = format!("tensor<int32, [100000]>([{}0])", (1..100_000).map(|i| format!("{i}, ")).collect::<String>());
    for op in ["expand_dims(x = x, axes =", "reshape(x = x, shape =", "transpose(x = x, perm =", "reduce_sum(x = x, axes ="] {
        survive(&statement(format!("tensor<fp16, [2, 3]> y = {op} {axes});")));
    }
    survive(&crate::program("tensor<fp16, [2, 3]> x", "tensor<fp16, [2, 3]> y = exp(x = x);", &(many("y, ") + "y")));
    survive(&many("\"\\"));
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::with_cases(256) })]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        survive(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_pieces(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..60)) {
        survive(&pieces.join(" "));
        survive(&crate::program("tensor<fp16, [2, 3]> x", &pieces.join(" "), "x"));
        survive(&crate::program("tensor<fp16, [2, 3]> x", &format!("tensor<fp16, [2, 3]> y = {};", pieces.join("")), "x"));
    }

    #[test]
    fn built_programs_read_back(steps in steps()) {
        let program = random_program(&steps);
        let text = mil::print(&program);
        let parsed = mil::parse(&text).unwrap();
        prop_assert_eq!(&parsed, &program);
        prop_assert_eq!(mil::print(&parsed), text);
        let file = mil::blob::single_f16(&[half::f16::ONE; 16]);
        let blobs = Blobs([("@model_path/w.bin".to_string(), file.into())].into());
        // The builder and the verifier judge by the same table.
        prop_assert_eq!(mil::verify(program, blobs, Profile::Language).err(), None);
    }

    #[test]
    fn mutated_programs(
        steps in steps(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0u8..4, prop::sample::select(PIECES)), 1..6),
    ) {
        let mut tokens = tokens(&mil::print(&random_program(&steps)));
        for (at, edit, piece) in edits {
            let at = at.index(tokens.len());
            match edit {
                0 => tokens.insert(at, piece.into()),
                1 => { tokens.remove(at); }
                2 => tokens[at] = piece.into(),
                _ => { let other = (at * 7 + 3) % tokens.len(); tokens.swap(at, other); }
            }
        }
        survive(&tokens.concat());
    }

    #[test]
    fn hostile_weight_files(mut bytes in prop::collection::vec(any::<u8>(), 0..400), patch in any::<bool>(), offset in 0u64..400) {
        if patch && bytes.len() >= 96 {
            bytes[4..8].copy_from_slice(&[2, 0, 0, 0]);
            let code = bytes[68] % 18;
            bytes[64..69].copy_from_slice(&[0xEF, 0xBE, 0xAD, 0xDE, code]);
            for at in [72, 80] {
                bytes[at + 1..at + 8].fill(0);
            }
        }
        for blob in mil::blob::read(&bytes).unwrap_or_default() {
            prop_assert!(blob.data.end <= bytes.len());
        }
        if let Ok(blob) = mil::blob::read_at(&bytes, offset) {
            prop_assert!(blob.data.end <= bytes.len());
        }
    }

    #[test]
    fn half_precision_numbers_survive_text(bits in any::<u16>()) {
        let x = half::f16::from_bits(bits);
        prop_assume!(!x.is_nan());
        let text = crate::program("", &format!("fp16 c = const()[val = fp16({})];", hex(x.to_f64())), "c");
        let program = mil::parse(&text).unwrap();
        let written = mil::print(&program);
        let read = mil::parse(&written).unwrap();
        let constant = read.functions[0].ops.iter().next().unwrap().1.attr("val").cloned();
        let Some(mil::Literal::Floats(_, values)) = constant else { panic!("{constant:?}") };
        prop_assert_eq!(values[0].to_bits(), x.to_f64().to_bits());
    }
}

/// A number as plain decimal digits, exactly.
fn hex(x: f64) -> String {
    if x.is_infinite() { if x > 0.0 { "inf".into() } else { "-inf".into() } } else { format!("{x:.30}") }
}

/// Words, blanks and single marks: joined they give the text back.
fn tokens(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for c in text.chars() {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        match out.last_mut() {
            Some(last) if word(c) && last.chars().all(word) => last.push(c),
            _ => out.push(c.into()),
        }
    }
    out
}
