//! Norms, softmax, RoPE, elementwise passes and statistics: by hand, by fp64, and by finite differences.

use crate::Random;
use cpu::norm::{rmsnorm, rmsnorm_backward};
use cpu::rope::{Rope, Style};
use cpu::softmax::{causal_softmax, softmax_backward};
use cpu::stats::{Watch, sum_of_squares, watch};
use cpu::{Pool, View, ViewMut, elementwise, f16};

fn pools() -> Vec<Pool> {
    [1, 2, 4].into_iter().map(|n| Pool::new(n).unwrap()).collect()
}

fn halves(x: &[f32]) -> Vec<f16> {
    x.iter().map(|x| f16::from_f32(*x)).collect()
}

fn singles(x: &[f16]) -> Vec<f32> {
    x.iter().map(|x| x.to_f32()).collect()
}

/// The same call on every pool must give the same bits; returns them.
fn same_bits<T: PartialEq + std::fmt::Debug>(f: impl Fn(&Pool) -> T) -> T {
    let mut results = pools().iter().map(f).collect::<Vec<_>>();
    let first = results.swap_remove(0);
    assert!(results.iter().all(|r| *r == first), "the result depends on the number of threads");
    first
}

#[test]
fn views_refuse_what_does_not_fit() {
    let mut data = vec![f16::ZERO; 10];
    assert!(View::new(&data, 2, 4, 6).is_some());
    assert!(View::new(&data, 2, 5, 6).is_none(), "ends past the data");
    assert!(View::new(&data, 3, 4, 3).is_none(), "rows overlap");
    assert!(View::new(&data, usize::MAX, 4, usize::MAX).is_none());
    assert!(View::new(&data, 0, 4, 6).is_some());
    assert!(View::dense(&data, 3).is_none());
    let mut view = ViewMut::new(&mut data, 2, 4, 6).unwrap();
    view.row_mut(1)[3] = f16::ONE;
    let (top, bottom) = view.split_rows(1);
    assert_eq!((top.rows, bottom.rows), (1, 1));
    assert_eq!(bottom.sub_cols(2..4).row_mut(0), [f16::ZERO, f16::ONE]);
    assert_eq!(View::new(&data, 2, 4, 6).unwrap().sub_rows(1..2).row(0)[3], f16::ONE);
}

#[test]
fn parallel_rows_leave_the_gaps_alone() {
    let (rows, cols, stride) = (1000, 37, 41);
    same_bits(|pool| {
        let mut data = vec![f16::NEG_ONE; (rows - 1) * stride + cols];
        ViewMut::new(&mut data, rows, cols, stride).unwrap().par_rows_mut(pool, |r, row| row.fill(f16::from_f32(r as f32)));
        for (i, x) in data.iter().enumerate() {
            let want = if i % stride < cols { (i / stride) as f32 } else { -1.0 };
            assert_eq!(x.to_f32(), want);
        }
        data
    });
}

#[test]
fn rmsnorm_by_hand() {
    // One column (3, 4): mean square 12.5.
    let pool = Pool::new(1).unwrap();
    let (mut out, mut inv) = (vec![f16::ONE; 6], [0.0]);
    rmsnorm(&pool, &[3.0, 4.0], 1, &[1.0, 2.0], 0.0, ViewMut::new(&mut out, 3, 1, 2).unwrap(), &mut inv);
    assert!((inv[0] - 0.282_842_7).abs() < 1e-7);
    assert_eq!(singles(&out), [f16::from_f32(0.848_528_1).to_f32(), 1.0, f16::from_f32(2.262_741_7).to_f32(), 1.0, 1.0, 1.0]);
}

#[test]
fn rmsnorm_backward_is_the_derivative() {
    let (d, t, eps, weight) = (70, 131, 1e-5, 0.5);
    let mut random = Random::new(3);
    let x: Vec<f32> = (0..d * t).map(|_| random.unit() * 2.0).collect();
    let gain: Vec<f32> = (0..d).map(|_| 1.0 + random.unit() * 0.5).collect();
    let dy = random.halves(d * t);
    let start = vec![0.25f32; d * t];
    let (dx, dgain, inv, y) = same_bits(|pool| {
        let (mut y, mut inv) = (vec![f16::ZERO; d * t], vec![0.0; t]);
        rmsnorm(pool, &x, t, &gain, eps, ViewMut::dense(&mut y, t).unwrap(), &mut inv);
        let (mut dx, mut dgain) = (start.clone(), vec![1.0; d]);
        rmsnorm_backward(pool, &x, &inv, &gain, View::dense(&dy, t).unwrap(), &mut dx, &mut dgain, weight);
        (dx, dgain, inv, y)
    });
    // The loss Σ dy·y of one column in fp64, and its differences.
    let column = |x: &[f32], gain: &[f32], c: usize, nudge: Option<(usize, f64)>| {
        let at = |r: usize| f64::from(x[r * t + c]) + nudge.filter(|n| n.0 == r).map_or(0.0, |n| n.1);
        let square: f64 = (0..d).map(|r| at(r) * at(r)).sum();
        let inv = 1.0 / (square / d as f64 + f64::from(eps)).sqrt();
        (0..d).map(|r| dy[r * t + c].to_f64() * at(r) * inv * f64::from(gain[r])).sum::<f64>()
    };
    for (r, c) in [(0, 0), (3, 64), (69, 130), (35, 63), (12, 100)] {
        let h = 1e-4;
        let slope = (column(&x, &gain, c, Some((r, h))) - column(&x, &gain, c, Some((r, -h)))) / (2.0 * h);
        let got = f64::from(dx[r * t + c]) - 0.25;
        assert!((got - slope).abs() < 1e-5, "dx[{r},{c}]: {got} for {slope}");
        let want = f64::from(x[r * t + c] * gain[r]) * f64::from(inv[c]);
        assert!((y[r * t + c].to_f64() - want).abs() < 2e-3);
    }
    for r in [0, 31, 69] {
        let slope: f64 = (0..t).map(|c| dy[r * t + c].to_f64() * f64::from(x[r * t + c]) * f64::from(inv[c])).sum();
        let got = f64::from(dgain[r]) - 1.0;
        assert!((got - 0.5 * slope).abs() < 1e-5, "dgain[{r}]: {got} for {}", 0.5 * slope);
    }
}

#[test]
fn softmax_by_hand() {
    // Query 0 sees key 0; query 1 sees 0 and ln 3: 1/4, 3/4. What is masked is NaN and must not be read.
    let n = f32::NAN;
    let scores = halves(&[5.0, n, n, 0.0, 1.098_612_3, n, 0.0, 0.0, 0.0]);
    let mut probs = vec![f16::NAN; 9];
    let pool = Pool::new(2).unwrap();
    causal_softmax(&pool, View::dense(&scores, 3).unwrap(), ViewMut::dense(&mut probs, 3).unwrap(), 3);
    let third = f16::from_f32(1.0 / 3.0).to_f32();
    let got = singles(&probs);
    for (got, want) in got.iter().zip([1.0, 0.0, 0.0, 0.25, 0.75, 0.0, third, third, third]) {
        assert!((got - want).abs() <= 3e-4 * want, "{got} for {want}");
    }
    let dp = halves(&[1.0, n, n, 4.0, 8.0, n, 3.0, 6.0, 9.0]);
    let mut ds = vec![f16::NAN; 9];
    let p = halves(&[1.0, n, n, 0.25, 0.75, n, 0.25, 0.25, 0.5]);
    softmax_backward(&pool, View::dense(&p, 3).unwrap(), View::dense(&dp, 3).unwrap(), ViewMut::dense(&mut ds, 3).unwrap(), 3);
    assert_eq!(singles(&ds), [0.0, 0.0, 0.0, -0.75, 0.75, 0.0, -0.9375, -0.1875, 1.125]);
}

#[test]
fn softmax_of_every_length_sums_to_one_and_survives_infinity() {
    let seq = 70;
    let mut random = Random::new(4);
    let mut scores: Vec<f16> = (0..2 * seq * seq).map(|_| f16::from_f32(random.unit() * 9.0)).collect();
    scores[(seq + 40) * seq + 3] = f16::INFINITY;
    scores[(seq + 41) * seq..(seq + 42) * seq].fill(f16::NEG_INFINITY);
    let probs = same_bits(|pool| {
        let mut probs = vec![f16::ZERO; 2 * seq * seq];
        causal_softmax(pool, View::dense(&scores, seq).unwrap(), ViewMut::dense(&mut probs, seq).unwrap(), seq);
        probs
    });
    for (r, row) in probs.chunks(seq).enumerate() {
        let (seen, masked) = row.split_at(r % seq + 1);
        assert!(masked.iter().all(|p| p.to_bits() == 0));
        let sum: f32 = singles(seen).iter().sum();
        assert!((sum - 1.0).abs() < 5e-3, "row {r} sums to {sum}");
        let row_scores = singles(&scores[r * seq..][..seen.len()]);
        if r != seq + 40 && r != seq + 41 {
            let sum: f64 = row_scores.iter().map(|s| f64::from(*s).exp()).sum();
            for (p, s) in seen.iter().zip(row_scores) {
                let want = f64::from(s).exp() / sum;
                assert!((p.to_f64() - want).abs() <= want * 6e-4 + 4e-8, "row {r}: {p} for {want}");
            }
        }
    }
    assert_eq!(probs[(seq + 40) * seq + 3], f16::ONE);
}

#[test]
fn softmax_backward_is_the_derivative() {
    let seq = 33;
    let mut random = Random::new(5);
    let (scores, dp) = (random.halves(seq * seq), random.halves(seq * seq));
    let softmax = |row: usize, nudge: Option<(usize, f64)>| {
        let e: Vec<f64> =
            (0..=row).map(|j| (scores[row * seq + j].to_f64() + nudge.filter(|n| n.0 == j).map_or(0.0, |n| n.1)).exp()).collect();
        let sum: f64 = e.iter().sum();
        e.into_iter().map(|e| e / sum).collect::<Vec<_>>()
    };
    let loss = |row, nudge| softmax(row, nudge).iter().enumerate().map(|(j, p)| p * dp[row * seq + j].to_f64()).sum::<f64>();
    let mut p = vec![f16::ZERO; seq * seq];
    for r in 0..seq {
        for (j, v) in softmax(r, None).into_iter().enumerate() {
            p[r * seq + j] = f16::from_f64(v);
        }
    }
    let ds = same_bits(|pool| {
        let mut ds = vec![f16::ZERO; seq * seq];
        softmax_backward(pool, View::dense(&p, seq).unwrap(), View::dense(&dp, seq).unwrap(), ViewMut::dense(&mut ds, seq).unwrap(), seq);
        ds
    });
    for (r, j) in [(0, 0), (5, 3), (16, 16), (32, 0), (32, 32), (15, 7)] {
        let slope = (loss(r, Some((j, 1e-4))) - loss(r, Some((j, -1e-4)))) / 2e-4;
        assert!((ds[r * seq + j].to_f64() - slope).abs() < 3e-4, "{r},{j}");
    }
}

#[test]
fn rope_by_hand() {
    // head_dim 4, theta 100: pair 0 turns by p, pair 1 by p/10. Two heads of stride 5; column p is position 2 + p.
    let (stride, t) = (5, 3);
    let mut random = Random::new(6);
    let src = random.halves(2 * stride * t);
    let pool = Pool::new(2).unwrap();
    for style in [Style::Half, Style::Interleaved] {
        let rope = Rope::new(4, 100.0, 2..5, style);
        let mut dst = vec![f16::NAN; 2 * stride * t];
        rope.rotate(&pool, View::dense(&src, t).unwrap(), ViewMut::dense(&mut dst, t).unwrap(), 2, stride, 0.5);
        for head in 0..2 {
            for (pair, rate) in [(0, 1.0), (1, 0.1)] {
                let (a, b) = if style == Style::Half { (pair, pair + 2) } else { (2 * pair, 2 * pair + 1) };
                for p in 0..t {
                    let (sin, cos) = ((p + 2) as f64 * rate).sin_cos();
                    let at = |r: usize| (head * stride + r) * t + p;
                    let (x, y) = (src[at(a)].to_f64(), src[at(b)].to_f64());
                    assert!((dst[at(a)].to_f64() - 0.5 * (x * cos - y * sin)).abs() < 5e-4);
                    assert!((dst[at(b)].to_f64() - 0.5 * (y * cos + x * sin)).abs() < 5e-4);
                }
            }
            assert!(dst[(head * stride + 4) * t..][..t].iter().all(|x| x.to_bits() == 0), "padding is zero");
        }
    }
}

/// ⟨R q, d⟩ = ⟨q, Rᵀ d⟩ with the same scale.
#[test]
fn rotating_back_is_the_transpose() {
    let (hd, stride, heads, t) = (8, 32, 12, 150);
    let mut random = Random::new(7);
    let (q, d) = (random.halves(heads * stride * t), random.halves(heads * stride * t));
    for style in [Style::Half, Style::Interleaved] {
        let rope = Rope::new(hd, 10_000.0, 0..t, style);
        let turn = |back: bool, x: &[f16]| {
            same_bits(|pool| {
                let mut out = vec![f16::ZERO; x.len()];
                let (src, dst) = (View::dense(x, t).unwrap(), ViewMut::dense(&mut out, t).unwrap());
                if back {
                    rope.rotate_back(pool, src, dst, heads, stride, 0.25)
                } else {
                    rope.rotate(pool, src, dst, heads, stride, 0.25)
                }
                out
            })
        };
        let (rq, rd) = (turn(false, &q), turn(true, &d));
        let dot = |x: &[f16], y: &[f16]| {
            let real = |i: usize| i / t % stride < hd;
            (0..x.len()).filter(|i| real(*i)).map(|i| x[i].to_f64() * y[i].to_f64()).sum::<f64>()
        };
        let (forward, back) = (dot(&rq, &d), dot(&q, &rd));
        assert!((forward - back).abs() < 0.05 && forward.abs() > 0.5, "{style:?}: {forward} and {back}");
    }
}

#[test]
fn embedding_and_its_gradient() {
    let (v, d, tokens) = (9, 130, [4u32, 0, 4, 8, 4, 0]);
    let t = tokens.len();
    let mut random = Random::new(8);
    let table: Vec<f32> = (0..v * d).map(|_| random.unit()).collect();
    let dx: Vec<f32> = (0..d * t).map(|_| random.unit()).collect();
    let (x, grad) = same_bits(|pool| {
        let (mut x, mut grad) = (vec![0.0; d * t], vec![1.0; v * d]);
        elementwise::embed(pool, &table, &tokens, &mut x);
        elementwise::scatter_add(pool, &mut grad, &tokens, &dx, 0.5);
        (x, grad)
    });
    for c in 0..d {
        for (p, token) in tokens.iter().enumerate() {
            assert_eq!(x[c * t + p], table[*token as usize * d + c]);
        }
        for token in 0..v {
            // In the order of the tokens, in fp32.
            let want = tokens.iter().enumerate().filter(|(_, k)| **k as usize == token).fold(1f32, |g, (p, _)| g + 0.5 * dx[c * t + p]);
            assert_eq!(grad[token * d + c], want);
        }
    }
}

#[test]
fn adding_and_rounding_rows() {
    let (rows, t, stride) = (300, 130, 140);
    let mut random = Random::new(9);
    let y = random.halves(rows * stride);
    let x: Vec<f32> = (0..(rows - 10) * t).map(|_| random.unit()).collect();
    let (sum, out) = same_bits(|pool| {
        let mut sum = x.clone();
        elementwise::add_into(pool, &mut sum, View::new(&y, rows, t, stride).unwrap());
        let mut out = vec![f16::NEG_ONE; rows * stride];
        elementwise::round_into(pool, &x, ViewMut::new(&mut out, rows, t, stride).unwrap());
        (sum, out)
    });
    for r in 0..rows {
        for c in 0..stride {
            let inside = r < rows - 10 && c < t;
            let want = if inside { f16::from_f32(x[r * t + c]) } else { f16::NEG_ONE };
            assert_eq!(out[r * stride + c], want);
            if inside {
                assert_eq!(sum[r * t + c], x[r * t + c] + y[r * stride + c].to_f32());
            }
        }
    }
}

#[test]
fn sums_of_squares_and_watches() {
    let mut random = Random::new(10);
    let x: Vec<f32> = (0..200_003).map(|_| random.unit()).collect();
    let sum = same_bits(|pool| sum_of_squares(pool, &x));
    let want: f64 = x.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
    assert!((sum / want - 1.0).abs() < 1e-12);
    assert_eq!(sum_of_squares(&Pool::new(1).unwrap(), &[3.0, -4.0]), 25.0);

    let (rows, cols, stride) = (700, 300, 333);
    let mut data = vec![f16::INFINITY; rows * stride];
    for r in 0..rows {
        data[r * stride..][..cols].copy_from_slice(&random.halves(cols));
    }
    let start = same_bits(|pool| watch(pool, View::new(&data, rows, cols, stride).unwrap()));
    assert_eq!((start.infinite, start.count), (0, rows * cols));
    data[5] = f16::NEG_INFINITY;
    data[699 * stride + 299] = f16::NAN;
    data[400 * stride..400 * stride + 10].fill(f16::NEG_ZERO);
    data[77 * stride + 1] = f16::from_f32(-123.0);
    let found = same_bits(|pool| watch(pool, View::new(&data, rows, cols, stride).unwrap()));
    assert_eq!(found.infinite, 2);
    assert_eq!(found.amax, 123.0);
    assert!(found.zeros >= 10 && found.zeros <= start.zeros + 10);
    assert_eq!(found.and(Watch::EMPTY), found);
}
