//! Cross-entropy and AdamW against fp64.

use crate::Random;
use cpu::adamw::{Hyper, Step, update};
use cpu::loss::{IGNORE, Slice, cross_entropy, nll_only};
use cpu::{Pool, View, ViewMut, f16};

#[test]
fn cross_entropy_by_hand() {
    // Tokens 0, 1 in slice one (a padding row of NaN after them), token 2 in slice two. Column 0: logits 0, 0, ln 2.
    let h = |x: &[f32]| x.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>();
    let n = f32::NAN;
    let (one, two) = (h(&[0.0, 1.0, 0.0, 2.0, n, n]), h(&[std::f32::consts::LN_2, 3.0]));
    let slices = [Slice { logits: View::dense(&one, 2).unwrap(), valid: 2 }, Slice { logits: View::dense(&two, 2).unwrap(), valid: 1 }];
    let pool = Pool::new(2).unwrap();
    let (mut d1, mut d2) = (h(&[9.0; 6]), h(&[9.0; 2]));
    let out = vec![ViewMut::dense(&mut d1, 2).unwrap(), ViewMut::dense(&mut d2, 2).unwrap()];
    let loss = cross_entropy(&pool, &slices, &[2, IGNORE], 8.0, out);
    assert_eq!(loss.targets, 1);
    assert!((loss.nll - std::f64::consts::LN_2).abs() < 3e-4);
    for (got, want) in d1.iter().chain(&d2).zip([2.0, 0.0, 2.0, 0.0, 0.0, 0.0, -4.0, 0.0]) {
        assert!((got.to_f32() - want).abs() < 4e-3, "{got} for {want}");
    }
    assert_eq!(d1[1..].iter().step_by(2).chain(&d2[1..]).map(|d| d.to_bits()).collect::<Vec<_>>(), [0; 4], "exact zeros");
    assert_eq!(d1[4].to_bits(), 0, "padding is zero");
    assert_eq!(nll_only(&pool, &slices, &[2, IGNORE]), loss);
}

#[test]
fn cross_entropy_against_fp64_in_slices() {
    let (rows, valid, t, stride, factor) = ([700, 320], [690, 311], 77, 80, 256.0);
    let mut random = Random::new(2);
    let data: Vec<Vec<f16>> = rows.iter().map(|r| (0..r * stride).map(|_| f16::from_f32(random.unit() * 12.0)).collect()).collect();
    let slices: Vec<Slice<'_>> =
        (0..2).map(|s| Slice { logits: View::new(&data[s], rows[s], t, stride).unwrap(), valid: valid[s] }).collect();
    let targets: Vec<u32> = (0..t).map(|c| if c % 10 == 3 { IGNORE } else { (random.next() % 1001) as u32 }).collect();
    let run = |threads| {
        let pool = Pool::new(threads).unwrap();
        let mut d: Vec<Vec<f16>> = rows.iter().map(|r| vec![f16::NAN; r * t]).collect();
        let out = d.iter_mut().map(|d| ViewMut::dense(d, t).unwrap()).collect();
        let loss = cross_entropy(&pool, &slices, &targets, factor, out);
        let bits: Vec<Vec<u16>> = d.iter().map(|d| d.iter().map(|d| d.to_bits()).collect()).collect();
        (loss, bits)
    };
    let (loss, bits) = run(1);
    for threads in [2, 4] {
        let (other, other_bits) = run(threads);
        assert!(loss.nll.to_bits() == other.nll.to_bits() && bits == other_bits, "{threads} threads");
    }
    let mut nll = 0.0;
    for c in 0..t {
        let column: Vec<f64> =
            (0..2).flat_map(|s| (0..valid[s]).map(move |r| (s, r))).map(|(s, r)| data[s][r * stride + c].to_f64()).collect();
        let sum: f64 = column.iter().map(|x| x.exp()).sum();
        if targets[c] != IGNORE {
            nll += sum.ln() - column[targets[c] as usize];
        }
        for (token, x) in column.iter().enumerate() {
            let (s, r) = if token < valid[0] { (0, token) } else { (1, token - valid[0]) };
            let got = f16::from_bits(bits[s][r * t + c]).to_f64();
            let hit = f64::from(targets[c] == token as u32);
            let want = if targets[c] == IGNORE { 0.0 } else { (x.exp() / sum - hit) * f64::from(factor) };
            assert!((got - want).abs() <= want.abs() * 6e-4 + 1e-5, "column {c}, token {token}: {got} for {want}");
        }
    }
    assert!((loss.nll / nll - 1.0).abs() < 1e-7, "{} for {nll}", loss.nll);
    assert_eq!(loss.targets, targets.iter().filter(|t| **t != IGNORE).count());
}

#[test]
#[should_panic(expected = "target 3 is no token")]
fn targets_past_the_vocabulary_are_refused() {
    let x = [f16::ONE; 3];
    nll_only(&Pool::new(1).unwrap(), &[Slice { logits: View::dense(&x, 1).unwrap(), valid: 3 }], &[3]);
}

const HYPER: Hyper = Hyper { lr: 1e-2, beta1: 0.9, beta2: 0.95, eps: 1e-8, weight_decay: 0.1 };

#[test]
fn adamw_by_hand() {
    // First step: m/bias1 = g, √v/√bias2 = |g|, so p moves by lr · sign g after the decay.
    let (mut p, mut m, mut v, mut staged) = ([1.0f32, -2.0], [0.0f32; 2], [0.0f32; 2], [f16::ZERO; 2]);
    update(&Step::new(1, HYPER, 0.5), &mut p, &[4.0, -1.0], &mut m, &mut v, Some(&mut staged));
    for (got, want) in p.iter().zip([0.999 - 0.01, -1.998 + 0.01]) {
        assert!((got - want).abs() < 1e-6, "{got} for {want}");
    }
    assert!((m[0] - 0.2).abs() < 1e-7 && (v[0] - 0.2).abs() < 1e-7 && (m[1] + 0.05).abs() < 1e-8);
    assert_eq!(staged, [f16::from_f32(p[0]), f16::from_f32(p[1])]);
}

/// Ten steps of PyTorch's formula in fp64, and the same bits however the slice is cut.
#[test]
fn adamw_follows_the_formula_and_ignores_cuts() {
    let n = 1337;
    let mut random = Random::new(6);
    let start: Vec<f32> = (0..n).map(|_| random.unit()).collect();
    let grads: Vec<Vec<f32>> = (0..10).map(|_| (0..n).map(|_| random.unit() * 3.0).collect()).collect();
    let run = |cut: usize| {
        let (mut p, mut m, mut v, mut staged) = (start.clone(), vec![0.0; n], vec![0.0; n], vec![f16::ZERO; n]);
        for (i, g) in grads.iter().enumerate() {
            let step = Step::new(i as u64 + 1, HYPER, 0.25);
            let pieces = p.chunks_mut(cut).zip(g.chunks(cut)).zip(m.chunks_mut(cut)).zip(v.chunks_mut(cut)).zip(staged.chunks_mut(cut));
            for ((((p, g), m), v), s) in pieces {
                update(&step, p, g, m, v, Some(s));
            }
        }
        (p, staged)
    };
    let (p, staged) = run(n);
    for cut in [1, 7, 64, 1000] {
        assert!(run(cut) == (p.clone(), staged.clone()), "cut every {cut}");
    }
    for i in 0..n {
        let (mut want, mut m, mut v) = (f64::from(start[i]), 0.0, 0.0);
        for (s, g) in grads.iter().enumerate() {
            let g = f64::from(g[i]) * 0.25;
            want *= 1.0 - HYPER.lr * HYPER.weight_decay;
            m = HYPER.beta1 * m + (1.0 - HYPER.beta1) * g;
            v = HYPER.beta2 * v + (1.0 - HYPER.beta2) * g * g;
            let (bias1, bias2) = (1.0 - HYPER.beta1.powi(s as i32 + 1), 1.0 - HYPER.beta2.powi(s as i32 + 1));
            want -= HYPER.lr / bias1 * m / (v.sqrt() / bias2.sqrt() + HYPER.eps);
        }
        assert!((f64::from(p[i]) - want).abs() < 2e-6, "{} for {want}", p[i]);
        assert_eq!(staged[i], f16::from_f32(p[i]));
    }
}
