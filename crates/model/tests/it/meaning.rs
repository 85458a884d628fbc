//! Every program of every variant, evaluated on random values, against the formulas of the field.
//!
//! Values are made without padding; the port tables alone say where they go and where results are found.

use crate::interpreter::{Tensor, run};
use model::programs::{
    Act, Attention, BlobContent, Content, FieldSpec, LayerPrograms, Options, PortSpec, ProgramKind, ProgramSpec, Weights, layer_programs,
};
use model::{Axis, Config, Layout, Role, Rope, Shape};
use std::collections::BTreeMap;

/// Unpadded values: channels by tokens (`b · seq + s`), or scores (`((b · heads + h) · seq + i)` by `j`).
#[derive(Clone)]
struct Mat {
    rows: usize,
    cols: usize,
    data: Vec<f64>,
}

impl Mat {
    fn new(rows: usize, cols: usize, f: impl FnMut((usize, usize)) -> f64) -> Mat {
        Mat { rows, cols, data: (0..rows).flat_map(|r| (0..cols).map(move |c| (r, c))).map(f).collect() }
    }

    fn at(&self, r: usize, c: usize) -> f64 {
        self.data[r * self.cols + c]
    }

    fn times(&self, other: &Mat) -> Mat {
        assert_eq!(self.cols, other.rows);
        Mat::new(self.rows, other.cols, |(r, c)| (0..self.cols).map(|k| self.at(r, k) * other.at(k, c)).sum())
    }

    fn transposed(&self) -> Mat {
        Mat::new(self.cols, self.rows, |(r, c)| self.at(c, r))
    }

    fn zip(&self, other: &Mat, f: impl Fn(f64, f64) -> f64) -> Mat {
        Mat::new(self.rows, self.cols, |(r, c)| f(self.at(r, c), other.at(r, c)))
    }

    fn plus(&self, other: &Mat) -> Mat {
        self.zip(other, |a, b| a + b)
    }
}

struct World {
    config: Config,
    layout: Layout,
    shape: Shape,
    seed: u64,
}

impl World {
    fn noise(&mut self) -> f64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 40) as f64 / (1u64 << 23) as f64 - 1.0
    }

    fn random(&mut self, rows: usize, cols: usize) -> Mat {
        Mat::new(rows, cols, |_| self.noise())
    }

    fn is_scores(act: Act) -> bool {
        matches!(act, Act::Scores | Act::Probs | Act::DProbs | Act::DScores)
    }

    fn is_attention(kind: ProgramKind) -> bool {
        use ProgramKind::*;
        matches!(kind, Qk | Pv | Attn | AttnBwd1 | AttnBwd2)
    }

    /// The unpadded channels of an activation.
    fn axis(&self, act: Act) -> Axis {
        use Act::*;
        match act {
            X | Y | Dy | Dx => self.layout.dim.clone(),
            H1 | H3 | Gate | DGate | DH1 | DH3 => self.layout.hidden.clone(),
            Q | AttnOut | DAttnOut | DQ => self.layout.q.clone(),
            K | V | DK | DV => self.layout.kv.clone(),
            Logits | DLogits => model::vocab_slices(self.config.vocab_size)[0].clone(),
            Scores | Probs | DProbs | DScores => panic!("scores have no channels"),
        }
    }

    fn values(&mut self, act: Act) -> Mat {
        let Shape { batch, seq } = self.shape;
        if World::is_scores(act) {
            return self.random(batch * self.config.n_heads * seq, seq);
        }
        self.random(self.axis(act).held(), batch * seq)
    }

    /// Where each unpadded element of `act` lies in its field: (row, column) of the value, (row, column) of the field.
    fn places(&self, kind: ProgramKind, act: Act) -> Vec<((usize, usize), (usize, usize))> {
        let Shape { batch, seq } = self.shape;
        let padded = self.shape.seq_padded();
        if World::is_scores(act) {
            let rows = (0..batch * self.config.n_heads).flat_map(|head| (0..seq).map(move |i| (head * seq + i, head * padded + i)));
            return rows.flat_map(|(from, to)| (0..seq).map(move |j| ((from, j), (to, j)))).collect();
        }
        let axis = self.axis(act);
        let channels: Vec<(usize, usize)> = axis.segments().iter().flat_map(|s| (0..s.len).map(|i| (s.from + i, s.to + i))).collect();
        let mut all = Vec::new();
        for b in 0..batch {
            for &(from, to) in &channels {
                for s in 0..seq {
                    let place = if World::is_attention(kind) { (b * axis.padded() + to, s) } else { (to, b * padded + s) };
                    all.push(((from, b * seq + s), place));
                }
            }
        }
        all
    }
}

fn put_weight(tensor: &mut Tensor, port_cols: usize, spec: &FieldSpec, weights: &BTreeMap<Role, Mat>) {
    let Content::Weight(field) = &spec.content else { return };
    assert_eq!((spec.rows, spec.cols), field.extent());
    let matrix = &weights[&field.role];
    for r in field.rows.segments() {
        for c in field.cols.segments() {
            for (i, j) in (0..r.len).flat_map(|i| (0..c.len).map(move |j| (i, j))) {
                let (row, col) = if field.transposed { (c.to + j, r.to + i) } else { (r.to + i, c.to + j) };
                tensor.data[(spec.row + row) * port_cols + spec.col + col] = matrix.at(r.from + i, c.from + j);
            }
        }
    }
}

/// Runs a program on unpadded values and gives back unpadded results.
fn execute(w: &World, spec: &ProgramSpec, acts: &BTreeMap<Act, Mat>, weights: &BTreeMap<Role, Mat>) -> BTreeMap<Act, Mat> {
    let fill = |port: &PortSpec| {
        let (rows, cols) = port.extent();
        let mut tensor = Tensor::zeros(&port.shape);
        for field in &port.fields {
            assert!(field.row + field.rows <= rows && field.col + field.cols <= cols, "{}: {field:?}", spec.kind);
            put_weight(&mut tensor, cols, field, weights);
            if let Content::Activation(act) = field.content {
                for ((r, c), (to_r, to_c)) in w.places(spec.kind, act) {
                    assert!(to_r < field.rows && to_c < field.cols);
                    tensor.data[(field.row + to_r) * cols + field.col + to_c] = acts[&act].at(r, c);
                }
            }
        }
        (port.name.clone(), tensor)
    };
    let inputs = spec.inputs.iter().map(fill).collect();
    let mut blobs = BTreeMap::new();
    for blob in &spec.blobs {
        let mut tensor = Tensor::zeros(&blob.shape);
        match &blob.content {
            BlobContent::Weights(fields) => fields.iter().for_each(|f| put_weight(&mut tensor, blob.shape[2], f, weights)),
            BlobContent::CausalMask => {
                let mask = model::programs::causal_mask(w.shape.seq_padded());
                tensor.data = mask.iter().map(|v| v.to_f64()).collect();
            }
        }
        blobs.insert(blob.path.clone(), tensor);
    }
    let outputs = run(&spec.program, &inputs, &blobs);
    let mut results = BTreeMap::new();
    for (port, tensor) in spec.outputs.iter().zip(&outputs) {
        let (_, cols) = port.extent();
        assert_eq!(tensor.shape, port.shape, "{}", spec.kind);
        for field in &port.fields {
            let Content::Activation(act) = field.content else { panic!("weights do not come out") };
            let places = w.places(spec.kind, act);
            let (rows, columns) = places.iter().fold((0, 0), |(r, c), ((i, j), _)| (r.max(i + 1), c.max(j + 1)));
            let mut out = Mat::new(rows, columns, |_| f64::NAN);
            for ((r, c), (from_r, from_c)) in places {
                out.data[r * columns + c] = tensor.data[(field.row + from_r) * cols + field.col + from_c];
            }
            results.insert(act, out);
        }
    }
    results
}

/// The formulas, head by head.
struct Heads<'a> {
    config: &'a Config,
    shape: Shape,
}

impl Heads<'_> {
    /// Channels of `head` and columns of sequence `b`.
    fn cut(&self, x: &Mat, b: usize, head: usize) -> Mat {
        let (hd, seq) = (self.config.head_dim, self.shape.seq);
        Mat::new(hd, seq, |(c, s)| x.at(head * hd + c, b * seq + s))
    }

    fn cut_scores(&self, x: &Mat, b: usize, head: usize) -> Mat {
        let seq = self.shape.seq;
        Mat::new(seq, seq, |(i, j)| x.at((b * self.config.n_heads + head) * seq + i, j))
    }

    /// Query head to key/value head: neighbours share.
    fn kv(&self, head: usize) -> usize {
        head / (self.config.n_heads / self.config.n_kv_heads)
    }

    /// Adds `part` of (sequence, head) for every query head into `heads` heads of channels.
    fn channels(&self, heads: usize, to: impl Fn(usize) -> usize, part: impl Fn(usize, usize) -> Mat) -> Mat {
        let (hd, Shape { batch, seq }) = (self.config.head_dim, self.shape);
        let mut out = Mat::new(heads * hd, batch * seq, |_| 0.0);
        for (b, h) in (0..batch).flat_map(|b| (0..self.config.n_heads).map(move |h| (b, h))) {
            let one = part(b, h);
            for (c, s) in (0..hd).flat_map(|c| (0..seq).map(move |s| (c, s))) {
                out.data[(to(h) * hd + c) * batch * seq + b * seq + s] += one.at(c, s);
            }
        }
        out
    }

    fn scores(&self, part: impl Fn(usize, usize) -> Mat) -> Mat {
        let Shape { batch, seq } = self.shape;
        let parts: Vec<Mat> = (0..batch).flat_map(|b| (0..self.config.n_heads).map(move |h| (b, h))).map(|(b, h)| part(b, h)).collect();
        Mat { rows: parts.len() * seq, cols: seq, data: parts.into_iter().flat_map(|p| p.data).collect() }
    }
}

fn sigmoid(v: f64) -> f64 {
    1.0 / (1.0 + (-v).exp())
}

fn causal_softmax(scores: &Mat) -> Mat {
    let mut p = Mat::new(scores.rows, scores.cols, |(i, j)| if j <= i { scores.at(i, j).exp() } else { 0.0 });
    for row in p.data.chunks_mut(scores.cols) {
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|v| *v /= sum);
    }
    p
}

/// What the program should give for `a`, by formula.
fn expect(w: &World, kind: ProgramKind, a: &BTreeMap<Act, Mat>, weights: &BTreeMap<Role, Mat>) -> Vec<(Act, Mat)> {
    use Act::*;
    let heads = Heads { config: &w.config, shape: w.shape };
    let forward = |role: Role, x: Act| weights[&role].times(&a[&x]);
    let backward = |role: Role, dy: Act| weights[&role].transposed().times(&a[&dy]);
    let (q, kv) = (w.config.n_heads, w.config.n_kv_heads);
    let head = |act: Act, b, h| heads.cut(&a[&act], b, h);
    let scores = |act: Act, b, h| heads.cut_scores(&a[&act], b, h);
    let qk = |b, h| head(Q, b, h).transposed().times(&head(K, b, heads.kv(h)));
    let h_grads = |dgate: &Mat| {
        let silu = |v: f64| v * sigmoid(v);
        let slope = |v: f64| sigmoid(v) * (1.0 + v * (1.0 - sigmoid(v)));
        let dh1 = dgate.zip(&a[&H3], |g, h3| g * h3).zip(&a[&H1], |g, h1| g * slope(h1));
        (dh1, dgate.zip(&a[&H1], |g, h1| g * silu(h1)))
    };
    let w13_back = |dh1: &Mat, dh3: &Mat| weights[&Role::W1].transposed().times(dh1).plus(&weights[&Role::W3].transposed().times(dh3));
    match kind {
        ProgramKind::QkvFwd => vec![(Q, forward(Role::Wq, X)), (K, forward(Role::Wk, X)), (V, forward(Role::Wv, X))],
        ProgramKind::Qk => vec![(Scores, heads.scores(qk))],
        ProgramKind::Pv => {
            let out = |b, h| head(V, b, heads.kv(h)).times(&scores(Probs, b, h).transposed());
            vec![(AttnOut, heads.channels(q, |h| h, out))]
        }
        ProgramKind::Attn => {
            let p = |b, h| causal_softmax(&qk(b, h));
            let out = |b, h| head(V, b, heads.kv(h)).times(&p(b, h).transposed());
            vec![(AttnOut, heads.channels(q, |h| h, out)), (Probs, heads.scores(p))]
        }
        ProgramKind::WoFwd => vec![(Y, forward(Role::Wo, AttnOut))],
        ProgramKind::FfnFwd => {
            let (h1, h3) = (forward(Role::W1, X), forward(Role::W3, X));
            let gate = h1.zip(&h3, |a, b| a * sigmoid(a) * b);
            vec![(Y, weights[&Role::W2].times(&gate)), (H1, h1), (H3, h3), (Gate, gate)]
        }
        ProgramKind::FfnBwdW2 => vec![(DGate, backward(Role::W2, Dy))],
        ProgramKind::FfnBwdW13 => vec![(Dx, w13_back(&a[&DH1], &a[&DH3]))],
        ProgramKind::FfnBwd => {
            let (dh1, dh3) = h_grads(&backward(Role::W2, Dy));
            vec![(Dx, w13_back(&dh1, &dh3)), (DH1, dh1), (DH3, dh3)]
        }
        ProgramKind::WoBwd => vec![(DAttnOut, backward(Role::Wo, Dy))],
        ProgramKind::AttnBwd1 => {
            let dv = |b, h| head(DAttnOut, b, h).times(&scores(Probs, b, h));
            let dp = |b, h| head(DAttnOut, b, h).transposed().times(&head(V, b, heads.kv(h)));
            vec![(DV, heads.channels(kv, |h| heads.kv(h), dv)), (DProbs, heads.scores(dp))]
        }
        ProgramKind::AttnBwd2 => {
            let dq = |b, h| head(K, b, heads.kv(h)).times(&scores(DScores, b, h).transposed());
            let dk = |b, h| head(Q, b, h).times(&scores(DScores, b, h));
            vec![(DQ, heads.channels(q, |h| h, dq)), (DK, heads.channels(kv, |h| heads.kv(h), dk))]
        }
        ProgramKind::QkvBwd => {
            vec![(Dx, backward(Role::Wq, DQ).plus(&backward(Role::Wk, DK)).plus(&backward(Role::Wv, DV)))]
        }
        ProgramKind::ClsFwd => vec![(Logits, forward(Role::Embedding, X))],
        ProgramKind::ClsDx => vec![(Dx, backward(Role::Embedding, DLogits))],
    }
}

fn check(config: &Config, shape: Shape, options: Options) -> LayerPrograms {
    let programs = layer_programs(config, shape, options).unwrap();
    let mut w = World { config: config.clone(), layout: programs.layout.clone(), shape, seed: 1 };
    let matrices = config.parameters().into_iter().filter(|p| p.decays() && p.layer.unwrap_or(0) == 0);
    let weights = matrices.map(|p| (p.role, w.random(p.shape[0], p.shape[1]))).collect();
    let slice = &programs.classifier[0];
    for spec in programs.layer().into_iter().chain([&slice.fwd, &slice.dx]) {
        let mut acts = BTreeMap::new();
        for field in spec.inputs.iter().flat_map(|p| &p.fields) {
            if let Content::Activation(act) = field.content {
                acts.insert(act, w.values(act));
            }
        }
        let got = execute(&w, spec, &acts, &weights);
        let want = expect(&w, spec.kind, &acts, &weights);
        assert_eq!(got.len(), want.len(), "{}", spec.kind);
        for (act, want) in want {
            let got = &got[&act];
            assert_eq!((got.rows, got.cols), (want.rows, want.cols), "{} {act:?}", spec.kind);
            for (i, (g, e)) in got.data.iter().zip(&want.data).enumerate() {
                assert!((g - e).abs() <= 1e-9 * (1.0 + e.abs()), "{options:?} {} {act:?}: element {i} is {g}, not {e}", spec.kind);
            }
        }
    }
    programs
}

/// Every size needs padding, query heads share key/value heads, and `n_heads · head_dim` is not `dim`.
fn awkward() -> Config {
    Config {
        dim: 40,
        hidden_dim: 44,
        n_layers: 1,
        n_heads: 4,
        n_kv_heads: 2,
        head_dim: 6,
        vocab_size: 70,
        max_seq_len: 64,
        rope_theta: 1e4,
        rope: Rope::Half,
        norm_eps: 1e-5,
        tied: true,
    }
}

const VARIANTS: [Weights; 3] = [Weights::Packed, Weights::Ports, Weights::Baked];

#[test]
fn every_program_computes_its_formula_under_padding_and_grouped_heads() {
    for weights in VARIANTS {
        for attention in [Attention::Split, Attention::Fused] {
            check(&awkward(), Shape { batch: 2, seq: 20 }, Options { weights, attention });
        }
    }
}

#[test]
fn every_program_computes_its_formula_without_groups() {
    let config = Config { n_heads: 2, n_kv_heads: 2, head_dim: 48, ..awkward() };
    for weights in VARIANTS {
        for attention in [Attention::Split, Attention::Fused] {
            check(&config, Shape { batch: 2, seq: 13 }, Options { weights, attention });
        }
    }
}

/// Weight gradients as listed: `dy · xᵀ` over the rows that the axes name.
#[test]
fn weight_gradients_name_fields_of_matching_extent() {
    for weights in VARIANTS {
        let programs = layer_programs(&awkward(), Shape { batch: 2, seq: 20 }, Options { weights, attention: Attention::Split }).unwrap();
        let mut roles: Vec<Role> = programs.grads.iter().map(|g| g.role).collect();
        for grad in &programs.grads {
            for (tap, axis) in [(grad.dy, &grad.rows), (grad.x, &grad.cols)] {
                let ports = programs.get(tap.program).unwrap().ports(tap.dir);
                let window = ports.iter().find_map(|p| p.window(tap.act)).unwrap();
                assert_eq!((window.rows, window.cols), (axis.padded(), 128), "{grad:?}");
            }
        }
        roles.sort();
        assert_eq!(roles, [Role::Wq, Role::Wk, Role::Wv, Role::Wo, Role::W1, Role::W2, Role::W3], "every matrix once");
    }
}
