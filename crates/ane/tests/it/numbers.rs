//! The arithmetic: rounding, overflow, special values.

use crate::rig::{evaluate, language, options, paths};
use ane::emulator::EmulatorOptions;
use half::f16;
use mil::{Blobs, BuildError, Builder, Chip, Opset, Profile, Val, verify};

/// `f(a, b)` on two inputs `[1, 1, 1, n]`.
fn elementwise(f: impl Fn(&mut Builder, Val, Val) -> Result<Val, BuildError>, a: &[f32], b: &[f32]) -> Vec<f32> {
    let mut builder = Builder::new(Opset::Ios18);
    let x = builder.input("a", &[1, 1, 1, a.len()]).unwrap();
    let y = builder.input("b", &[1, 1, 1, b.len()]).unwrap();
    let z = f(&mut builder, x, y).unwrap();
    let seen = builder.add(x, y).unwrap();
    let program = language(builder.finish(&[("r", z), ("s", seen)]).unwrap(), Blobs::default());
    let inputs = [a, b].map(|x| x.iter().map(|&x| f16::from_f32(x)).collect());
    evaluate(options(1), &program, &inputs)[0].iter().map(|x| x.to_f32()).collect()
}

const INF: f32 = f32::INFINITY;
const NAN: f32 = f32::NAN;

#[test]
fn elementwise_ops_have_fp16s_range_and_give_no_nan() {
    assert_eq!(elementwise(|b, x, y| b.add(x, y), &[65504.0, 65504.0, 2048.0, -0.0], &[8.0, 16.0, 1.0, 0.0]), [65504.0, INF, 2048.0, 0.0]);
    assert_eq!(elementwise(|b, x, y| b.mul(x, y), &[0.0, INF, 6e-8, 256.0], &[INF, -1.0, 1.0, 256.0]), [0.0, -INF, 5.9604645e-8, INF]);
    assert_eq!(elementwise(|b, x, y| b.sub(x, y), &[INF, NAN, 1.0], &[INF, 1.0, NAN]), [0.0, INF, -INF]);
    assert_eq!(elementwise(|b, x, y| b.real_div(x, y), &[0.0, 1.0, 1.0], &[0.0, 0.0, -0.0])[..2], [0.0, INF]);
    assert_eq!(elementwise(|b, x, _| b.sqrt(x), &[-1.0, 4.0], &[0.0; 2]), [0.0, 2.0]);
    assert_eq!(elementwise(|b, x, _| b.rsqrt(x, 0.0), &[-1.0, -0.0, 4.0], &[0.0; 3]), [0.0, INF, 0.5]);
    assert_eq!(elementwise(|b, x, _| b.log(x, 0.0), &[-1.0, 0.0, 1.0], &[0.0; 3]), [0.0, -45440.0, 0.0]);
    assert_eq!(elementwise(|b, x, _| b.sigmoid(x), &[NAN, -INF, 0.0], &[0.0; 3]), [1.0, 0.0, 0.5]);
    assert_eq!(elementwise(|b, x, _| b.silu(x), &[NAN, -INF, 0.0], &[0.0; 3]), [INF, 0.0, 0.0]);
    assert_eq!(elementwise(|b, x, _| b.relu(x), &[NAN, -INF, -1.0], &[0.0; 3]), [INF, 0.0, 0.0]);
    assert_eq!(elementwise(|b, x, _| b.reduce_sum(x, &[3], true), &[60000.0, 5000.0], &[0.0; 2]), [64992.0]);
}

#[test]
fn copies_and_softmax_see_nan_as_infinity() {
    assert_eq!(elementwise(|b, x, _| b.transpose(x, &[0, 1, 3, 2]), &[NAN, 1.0], &[0.0; 2]), [INF, 1.0]);
    assert_eq!(elementwise(|b, x, _| b.softmax(x, 3), &[NAN, 1.0, 2.0], &[0.0; 3]), [1.0, 0.0, 0.0]);
    assert_eq!(elementwise(|b, x, _| b.softmax(x, 3), &[1000.0, 1.0, 2.0, 3.0], &[0.0; 4]), [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(elementwise(|b, x, _| b.softmax(x, 3), &[-INF, -INF], &[0.0; 2]), [0.5, 0.5]);
}

/// `a · b` of one row and one column.
fn dot(options: EmulatorOptions, chip: Option<Chip>, a: &[f32], b: &[f32]) -> f32 {
    let mut builder = Builder::new(Opset::Ios18);
    let k = a.len();
    // Padded to shapes that every chip takes; the sum is element 0.
    let x = builder.input("a", &[1, 32, k]).unwrap();
    let y = builder.input("b", &[1, k, 32]).unwrap();
    let z = builder.matmul(x, false, y, false).unwrap();
    let program = verify(builder.finish(&[("r", z)]).unwrap(), Blobs::default(), chip.map_or(Profile::Language, Profile::Chip)).unwrap();
    let (mut x, mut y) = (vec![f16::ZERO; 32 * k], vec![f16::ZERO; 32 * k]);
    for i in 0..k {
        x[i] = f16::from_f32(a[i]);
        y[32 * i] = f16::from_f32(b[i]);
    }
    evaluate(options, &program, &[x, y])[0][0].to_f32()
}

#[test]
fn a_matmul_is_wide_inside_and_ends_at_two_to_the_fifteen() {
    for path in paths() {
        let mac = |a: &[f32], b: &[f32]| {
            let mut options = options(1);
            (options.chip, options.matmul) = (Chip::H17, path);
            dot(options, None, a, b)
        };
        assert_eq!(mac(&[1.0; 16000], &[1.0; 16000]), 16000.0, "{path}");
        assert_eq!(mac(&[128.0, 0.0], &[255.75, 0.0]), 32736.0, "{path}");
        assert_eq!(mac(&[128.0, 0.0], &[256.0, 0.0]), INF, "{path}");
        assert_eq!(mac(&[-128.0, -1.0], &[256.0, 1.0]), -INF, "{path}");
        assert_eq!(mac(&[INF, 1.0], &[0.0, 1.0]), 0.0, "{path}");
        assert_eq!(mac(&[INF, 1.0], &[1.0, 1.0]), INF, "{path}");
        assert_eq!(mac(&[NAN, 1.0], &[-1.0, 1.0]), -INF, "{path}");
        assert_eq!(mac(&[1e-7, 0.0], &[1.0, 0.0]), 1.1920929e-7, "{path}");
    }
}

#[test]
fn subnormal_products_survive_only_where_they_were_seen_to() {
    for (chip, wanted) in [(Chip::H13, 0.0), (Chip::H16, 0.0), (Chip::H17, 2f32.powi(-20))] {
        let options = EmulatorOptions { chip, any_profile: false, ..options(1) };
        let (mut a, mut b) = ([0.0; 64], [0.0; 64]);
        (a[0], b[0]) = (2f32.powi(-10), 2f32.powi(-10));
        assert_eq!(dot(options, Some(chip), &a, &b), wanted, "{chip:?}");
    }
}

#[test]
fn a_slice_at_a_width_offset_clips_on_m1_and_m2() {
    for (chip, wanted) in [(Chip::H13, INF), (Chip::H14, INF), (Chip::H15, 4096.0), (Chip::H16, 4096.0)] {
        let mut builder = Builder::new(Opset::Ios18);
        let x = builder.input("x", &[1, 32, 1, 128]).unwrap();
        let (near, far) = (builder.slice(x, &[0; 4], &[1, 32, 1, 64]).unwrap(), builder.slice(x, &[0, 0, 0, 64], &[1, 32, 1, 64]).unwrap());
        let y = builder.maximum(near, far).unwrap();
        let program = verify(builder.finish(&[("y", y)]).unwrap(), Blobs::default(), Profile::Chip(chip)).unwrap();
        let mut data = vec![f16::ZERO; 32 * 128];
        (data[64], data[65], data[0]) = (f16::from_f32(4096.0), f16::from_f32(4092.0), f16::from_f32(100.0));
        data[66] = f16::from_f32(-8192.0);
        data[2] = f16::NEG_INFINITY;
        let options = EmulatorOptions { chip, any_profile: false, ..options(1) };
        let y = &evaluate(options, &program, &[data])[0];
        assert_eq!((y[0].to_f32(), y[1].to_f32()), (wanted, 4092.0), "{chip:?}");
        assert_eq!(y[2].to_f32(), if wanted == INF { -INF } else { -8192.0 }, "{chip:?}");
    }
}

#[test]
fn attention_ignores_its_mask() {
    let run = |masked: bool| {
        let mut builder = Builder::new(Opset::Ios18);
        let q = builder.input("q", &[1, 2, 4, 8]).unwrap();
        let m = builder.input("z", &[1, 1, 4, 4]).unwrap();
        let y = builder.attention(q, q, q, masked.then_some(m)).unwrap();
        let seen = builder.relu(m).unwrap();
        let program = language(builder.finish(&[("r", y), ("s", seen)]).unwrap(), Blobs::default());
        let data = (0..64).map(|i| f16::from_f32((i % 7) as f32 - 3.0)).collect();
        evaluate(options(1), &program, &[data, vec![f16::from_f32(-1e4); 16]])[0].clone()
    };
    assert_eq!(run(true), run(false));
}
