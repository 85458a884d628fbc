//! The programs of a training step in small: right against f64, planned without copies.

use crate::rig::{Rig, Rng, language, options, paths};
use ane::emulator::{Emulator, EmulatorOptions};
use ane::{CallStats, Device};
use half::f16;
use mil::{Blobs, Builder, Opset, Verified, blob};
use std::time::Duration;

/// W2(silu(W1 x) ∘ W3 x) with weights as ports; y|h1|h3|gate come out.
pub(crate) fn ffn(dim: usize, hidden: usize, s: usize) -> Verified {
    let mut b = Builder::new(Opset::Ios18);
    let x = b.input("a_x", &[1, dim, 1, s]).unwrap();
    let w13 = b.input("b_w13", &[1, 2 * hidden, dim]).unwrap();
    let w2 = b.input("c_w2", &[1, dim, hidden]).unwrap();
    let x3 = b.reshape(x, &[1, dim, s]).unwrap();
    let h = b.matmul(w13, false, x3, false).unwrap();
    let h1 = b.slice(h, &[0, 0, 0], &[1, hidden, s]).unwrap();
    let h3 = b.slice(h, &[0, hidden, 0], &[1, hidden, s]).unwrap();
    let sig = b.sigmoid(h1).unwrap();
    let silu = b.mul(h1, sig).unwrap();
    let gate = b.mul(silu, h3).unwrap();
    let y = b.matmul(w2, false, gate, false).unwrap();
    let all = b.concat(&[y, h1, h3, gate], 1).unwrap();
    let out = b.reshape(all, &[1, dim + 3 * hidden, 1, s]).unwrap();
    language(b.finish(&[("out", out)]).unwrap(), Blobs::default())
}

/// The same from weights packed beside the activation.
fn ffn_packed(dim: usize, hidden: usize, s: usize) -> Verified {
    let mut b = Builder::new(Opset::Ios18);
    let packed = b.input("x", &[1, dim, 1, s + 3 * hidden]).unwrap();
    let x = b.slice(packed, &[0; 4], &[1, dim, 1, s]).unwrap();
    let x = b.reshape(x, &[1, 1, dim, s]).unwrap();
    let xt = b.transpose(x, &[0, 1, 3, 2]).unwrap();
    let w13 = b.slice(packed, &[0, 0, 0, s], &[1, dim, 1, 2 * hidden]).unwrap();
    let w13 = b.reshape(w13, &[1, 1, dim, 2 * hidden]).unwrap();
    let h = b.matmul(xt, false, w13, false).unwrap();
    let h = b.transpose(h, &[0, 1, 3, 2]).unwrap();
    let h = b.reshape(h, &[1, 2 * hidden, 1, s]).unwrap();
    let h1 = b.slice(h, &[0; 4], &[1, hidden, 1, s]).unwrap();
    let h3 = b.slice(h, &[0, hidden, 0, 0], &[1, hidden, 1, s]).unwrap();
    let sig = b.sigmoid(h1).unwrap();
    let silu = b.mul(h1, sig).unwrap();
    let gate = b.mul(silu, h3).unwrap();
    let w2 = b.slice(packed, &[0, 0, 0, s + 2 * hidden], &[1, dim, 1, hidden]).unwrap();
    let w2 = b.reshape(w2, &[1, 1, dim, hidden]).unwrap();
    let g = b.reshape(gate, &[1, 1, hidden, s]).unwrap();
    let y = b.matmul(w2, false, g, false).unwrap();
    let y = b.reshape(y, &[1, dim, 1, s]).unwrap();
    let out = b.concat(&[y, h1, h3, gate], 1).unwrap();
    language(b.finish(&[("out", out)]).unwrap(), Blobs::default())
}

/// In f64 from fp16 operands, no rounding: y, h1, h3, gate in one.
fn ffn_exact(dim: usize, hidden: usize, s: usize, x: &[f16], w13: &[f16], w2: &[f16]) -> Vec<f64> {
    let product = |w: &[f64], x: &[f64], rows: usize, k: usize| {
        let mut y = vec![0f64; rows * s];
        for r in 0..rows {
            for i in 0..k {
                for c in 0..s {
                    y[r * s + c] += w[r * k + i] * x[i * s + c];
                }
            }
        }
        y
    };
    let wide = |x: &[f16]| x.iter().map(|x| x.to_f64()).collect::<Vec<f64>>();
    let h = product(&wide(w13), &wide(x), 2 * hidden, dim);
    let (h1, h3) = h.split_at(hidden * s);
    let gate: Vec<f64> = h1.iter().zip(h3).map(|(a, b)| a / (1.0 + (-a).exp()) * b).collect();
    let y = product(&wide(w2), &gate, dim, hidden);
    [y.as_slice(), &h, &gate].concat()
}

fn close(got: &[f16], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    let amax = want.iter().fold(0f64, |a, x| a.max(x.abs()));
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!((g.to_f64() - w).abs() <= tolerance * amax, "element {i}: {g} for {w}, of at most {amax}");
    }
}

#[test]
fn the_ffn_is_right_and_copies_nothing() {
    let (dim, hidden, s) = (96, 224, 64);
    let mut rng = Rng(3);
    let x = rng.fill(dim * s, |r| r.unit());
    let w13 = rng.fill(2 * hidden * dim, |r| 0.2 * r.unit());
    let w2 = rng.fill(dim * hidden, |r| 0.2 * r.unit());
    let want = ffn_exact(dim, hidden, s, &x, &w13, &w2);
    // Column c of the packed input: x, W1ᵀ, W3ᵀ, W2.
    let packed: Vec<f16> = (0..dim)
        .flat_map(|d| {
            let across = (0..2 * hidden).map(|h| w13[h * dim + d]).collect::<Vec<_>>();
            [&x[d * s..][..s], &across, &w2[d * hidden..][..hidden]].concat()
        })
        .collect();
    for path in paths() {
        let emulator = Emulator::new(EmulatorOptions { matmul: path, ..options(2) });
        let ports = Rig::new(&emulator, &emulator.compile("ports", &ffn(dim, hidden, s)).unwrap());
        close(&ports.run(&[x.clone(), w13.clone(), w2.clone()])[0], &want, 2e-3);
        assert_eq!(ports.go().copy, Duration::ZERO, "weights as ports");
        let beside = Rig::new(&emulator, &emulator.compile("packed", &ffn_packed(dim, hidden, s)).unwrap());
        close(&beside.run(std::slice::from_ref(&packed))[0], &want, 2e-3);
        assert_eq!(beside.go().copy, Duration::ZERO, "weights packed");
    }
}

/// Scores, mask, softmax, ·V; the probabilities come out too. `kv` heads serve `heads`.
fn attention(heads: usize, kv: usize, width: usize, s: usize) -> Verified {
    let (q_rows, k_rows, group) = (heads * width, kv * width, heads / kv);
    let mut b = Builder::new(Opset::Ios18);
    let x = b.input("x", &[1, q_rows + 2 * k_rows, 1, s]).unwrap();
    let mask = b.blob("@model_path/weights/mask.bin", &[1, 1, s, s]).unwrap();
    let q = b.slice(x, &[0; 4], &[1, q_rows, 1, s]).unwrap();
    let k = b.slice(x, &[0, q_rows, 0, 0], &[1, k_rows, 1, s]).unwrap();
    let v = b.slice(x, &[0, q_rows + k_rows, 0, 0], &[1, k_rows, 1, s]).unwrap();
    let q = b.reshape(q, &[1, heads, width, s]).unwrap();
    let q = b.transpose(q, &[0, 1, 3, 2]).unwrap();
    let q = b.reshape(q, &[1, kv, group * s, width]).unwrap();
    let k = b.reshape(k, &[1, kv, width, s]).unwrap();
    let v = b.reshape(v, &[1, kv, width, s]).unwrap();
    let scores = b.matmul(q, false, k, false).unwrap();
    let scores = b.reshape(scores, &[1, heads, s, s]).unwrap();
    let scores = b.add(scores, mask).unwrap();
    let p = b.softmax(scores, -1).unwrap();
    let grouped = b.reshape(p, &[1, kv, group * s, s]).unwrap();
    let o = b.matmul(grouped, false, v, true).unwrap();
    let o = b.reshape(o, &[1, heads, s, width]).unwrap();
    let o = b.transpose(o, &[0, 1, 3, 2]).unwrap();
    let o = b.reshape(o, &[1, q_rows, 1, s]).unwrap();
    let p = b.reshape(p, &[1, heads * s, 1, s]).unwrap();
    let out = b.concat(&[o, p], 1).unwrap();
    let mask: Vec<f16> = (0..s * s).map(|i| f16::from_f32(if i % s > i / s { -1e4 } else { 0.0 })).collect();
    let mut blobs = Blobs::default();
    blobs.0.insert("@model_path/weights/mask.bin".into(), blob::single_f16(&mask).into());
    language(b.finish(&[("out", out)]).unwrap(), blobs)
}

#[test]
fn attention_is_right_and_copies_only_what_grouping_forces() {
    for (heads, kv) in [(3, 3), (4, 2)] {
        let (width, s) = (32, 64);
        let group = heads / kv;
        let mut rng = Rng(5);
        let x = rng.fill((heads + 2 * kv) * width * s, |r| r.unit());
        let at = |row: usize, c: usize| x[row * s + c].to_f64();
        let (mut out, mut probs) = (vec![0f64; heads * width * s], Vec::new());
        for h in 0..heads {
            let (k, v) = ((heads + h / group) * width, (heads + kv + h / group) * width);
            for i in 0..s {
                let scores: Vec<f64> = (0..=i).map(|j| (0..width).map(|w| at(h * width + w, i) * at(k + w, j)).sum::<f64>()).collect();
                let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let total: f64 = scores.iter().map(|x| (x - top).exp()).sum();
                let p: Vec<f64> = (0..s).map(|j| if j <= i { (scores[j] - top).exp() / total } else { 0.0 }).collect();
                for w in 0..width {
                    out[(h * width + w) * s + i] = (0..s).map(|j| p[j] * at(v + w, j)).sum();
                }
                probs.extend(p);
            }
        }
        out.extend(probs);
        for path in paths() {
            let emulator = Emulator::new(EmulatorOptions { matmul: path, ..options(2) });
            let rig = Rig::new(&emulator, &emulator.compile("attn", &attention(heads, kv, width, s)).unwrap());
            close(&rig.run(std::slice::from_ref(&x))[0], &out, 4e-3);
            let copied = rig.go().copy != Duration::ZERO;
            assert_eq!(copied, group > 1, "only q of grouped heads lies in no single stride");
        }
    }
}

#[test]
fn large_programs_give_the_same_bits_on_any_number_of_threads() {
    let (dim, hidden, s) = (192, 512, 128);
    for path in paths() {
        let run = |threads| {
            let mut rng = Rng(11);
            let inputs = [dim * s, 2 * hidden * dim, dim * hidden].map(|n| rng.fill(n, |r| 0.3 * r.unit()));
            let emulator = Emulator::new(EmulatorOptions { matmul: path, ..options(threads) });
            Rig::new(&emulator, &emulator.compile("ffn", &ffn(dim, hidden, s)).unwrap()).run(&inputs)
        };
        let one = run(1);
        assert_eq!(one, run(2), "{path}");
        assert_eq!(one, run(4), "{path}");
    }
}

/// `cargo test --release -p anneal-ane -- --ignored --nocapture speed`: Stories110M's programs.
#[test]
#[ignore = "a measurement"]
fn speed() {
    let (dim, hidden, s, heads, width) = (768, 2048, 256, 12, 64);
    let mut rng = Rng(1);
    for path in paths() {
        let emulator = Emulator::new(EmulatorOptions { matmul: path, ..options(0) });
        for (name, program) in
            [("ffn_fwd", ffn(dim, hidden, s)), ("ffn_fwd packed", ffn_packed(dim, hidden, s)), ("attn", attention(heads, heads, width, s))]
        {
            let rig = Rig::new(&emulator, &emulator.compile(name, &program).unwrap());
            let inputs: Vec<Vec<f16>> =
                rig.ports.iter().filter(|p| p.dir == ane::Dir::In).map(|p| rng.fill(p.ty.numel(), |r| 0.05 * r.unit())).collect();
            rig.run(&inputs);
            let mut runs: Vec<CallStats> = (0..15).map(|_| rig.go()).collect();
            runs.sort_by_key(|r| r.elapsed);
            println!("{path} {name}: {:?}", runs[7]);
        }
    }
}
