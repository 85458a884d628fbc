//! Random programs: slices, reshapes, transposes, joins and arithmetic in any order, against the reference.

use crate::reference;
use crate::rig::{Rng, STRIDES, evaluate, language, options, paths};
use half::f16;
use mil::{Blobs, Builder, Opset, Val, Verified};

/// A value of the program in the making.
#[derive(Clone)]
struct Item {
    val: Val,
    /// Bound of the magnitude, while all values are integers.
    bound: f64,
    used: bool,
}

/// What a program may use.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Numbers {
    /// Integers up to 2048: every correct evaluator gives the same bits.
    Integers,
    /// Anything.
    Reals,
}

struct Generator {
    rng: Rng,
    builder: Builder,
    pool: Vec<Item>,
    numbers: Numbers,
}

impl Generator {
    fn pick(&mut self) -> (usize, Vec<usize>) {
        let i = self.rng.below(self.pool.len());
        (i, self.builder.shape(self.pool[i].val))
    }

    fn add(&mut self, from: &[usize], val: Val, bound: f64) {
        from.iter().for_each(|&i| self.pool[i].used = true);
        self.pool.push(Item { val, bound, used: false });
    }

    fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut perm: Vec<usize> = (0..n).collect();
        (1..n).rev().for_each(|i| perm.swap(i, self.rng.below(i + 1)));
        perm
    }

    fn factors(&mut self, mut n: usize) -> Vec<usize> {
        let mut dims = Vec::new();
        while dims.len() < 3 {
            let divisors: Vec<usize> = (1..=n).filter(|d| n.is_multiple_of(*d)).collect();
            let d = divisors[self.rng.below(divisors.len())];
            dims.push(d);
            n /= d;
        }
        dims.push(n);
        dims
    }

    /// Adds one op, or nothing where the drawn one does not fit.
    fn step(&mut self) {
        let (i, dims) = self.pick();
        let (x, bound) = (self.pool[i].val, self.pool[i].bound);
        let rank = dims.len();
        let axis = self.rng.below(rank);
        let reals = self.numbers == Numbers::Reals;
        let fits = |b: f64| reals || b <= 2048.0;
        match self.rng.below(if reals { 18 } else { 14 }) {
            0 | 1 => {
                let begin: Vec<usize> = dims.iter().map(|&d| self.rng.below(d)).collect();
                let size: Vec<usize> = dims.iter().zip(&begin).map(|(&d, &b)| 1 + self.rng.below(d - b)).collect();
                let y = self.builder.slice(x, &begin, &size).unwrap();
                self.add(&[i], y, bound);
            }
            2 => {
                // Backwards along one axis, every second along another.
                let (mut begin, mut end, mut stride) = (vec![0i64; rank], vec![0i64; rank], vec![1i64; rank]);
                for a in 0..rank {
                    (begin[a], end[a]) = (0, dims[a] as i64);
                }
                if dims[axis] > 1 {
                    (begin[axis], end[axis], stride[axis]) = (dims[axis] as i64 - 1, 0, -1);
                }
                let other = self.rng.below(rank);
                if other != axis {
                    stride[other] = 2;
                }
                let y = self.builder.slice_by_index(x, &begin, &end, &stride).unwrap();
                self.add(&[i], y, bound);
            }
            3 | 4 => {
                let shape = self.factors(dims.iter().product());
                let y = self.builder.reshape(x, &shape).unwrap();
                self.add(&[i], y, bound);
            }
            5 | 6 => {
                let perm = self.permutation(rank);
                let y = self.builder.transpose(x, &perm).unwrap();
                self.add(&[i], y, bound);
            }
            7 | 8 => {
                let (j, others) = self.pick();
                let joins = others.len() == rank && (0..rank).all(|a| a == axis || dims[a] == others[a]);
                let (j, other) = if joins { (j, self.pool[j].val) } else { (i, x) };
                if dims.iter().product::<usize>() <= 4096 {
                    let y = self.builder.concat(&[x, other], axis as i64).unwrap();
                    let bound = bound.max(self.pool[j].bound);
                    self.add(&[i, j], y, bound);
                }
            }
            9 if dims[axis] > 1 => {
                let first = 1 + self.rng.below(dims[axis] - 1);
                let parts = self.builder.split(x, &[first, dims[axis] - first], axis as i64).unwrap();
                // The parts meet again, in order or not, so that the whole may lie where they go.
                let order = if self.rng.below(2) == 0 { [0, 1] } else { [1, 0] };
                let y = self.builder.concat(&order.map(|p| parts[p]), axis as i64).unwrap();
                self.add(&[i], y, bound);
            }
            10 => {
                let (j, others) = self.pick();
                let equal = others == dims;
                let (j, other) = if equal { (j, self.pool[j].val) } else { (i, x) };
                let b = self.pool[j].bound;
                let (y, bound) = match self.rng.below(4) {
                    0 if fits(bound + b) => (self.builder.add(x, other), bound + b),
                    1 if fits(bound + b) => (self.builder.sub(x, other), bound + b),
                    2 if fits(bound * b) => (self.builder.mul(x, other), bound * b),
                    _ => (self.builder.maximum(x, other), bound.max(b)),
                };
                self.add(&[i, j], y.unwrap(), bound);
            }
            11 => {
                // Against one row of itself.
                let mut size = dims.clone();
                size[axis] = 1;
                let row = self.builder.slice(x, &vec![0; rank], &size).unwrap();
                let y = self.builder.minimum(row, x).unwrap();
                self.add(&[i], y, bound);
            }
            12 => {
                let (flip, k) = if self.rng.below(2) == 0 { (false, dims[rank - 1]) } else { (true, dims[rank - 2]) };
                let bound = bound * bound * k as f64;
                if fits(bound) {
                    let y = self.builder.matmul(x, flip, x, !flip).unwrap();
                    self.add(&[i], y, bound);
                }
            }
            13 if fits(bound * dims[axis] as f64) => {
                let keep = self.rng.below(2) == 0 || rank < 3;
                let (y, bound) = match self.rng.below(2) {
                    0 => (self.builder.reduce_sum(x, &[axis as i64], keep), bound * dims[axis] as f64),
                    _ => (self.builder.reduce_max(x, &[axis as i64], keep), bound),
                };
                self.add(&[i], y.unwrap(), bound);
            }
            14 => {
                let y = self.builder.sigmoid(x).unwrap();
                self.add(&[i], y, 1.0);
            }
            15 => {
                let y = self.builder.tanh(x).unwrap();
                self.add(&[i], y, 1.0);
            }
            16 => {
                let y = self.builder.softmax(x, axis as i64).unwrap();
                self.add(&[i], y, 1.0);
            }
            17 => {
                let y = self.builder.reduce_mean(x, &[axis as i64], true).unwrap();
                self.add(&[i], y, bound);
            }
            _ => {}
        }
    }
}

/// A program and its inputs.
pub(crate) fn generate(seed: u64, numbers: Numbers) -> (Verified, Vec<Vec<f16>>) {
    let mut rng = Rng(seed);
    let mut builder = Builder::new(Opset::Ios18);
    let (mut pool, mut inputs) = (Vec::new(), Vec::new());
    for name in ["a", "b"] {
        let dims = [1, 1 + rng.below(12), 1 + rng.below(3), 1 + rng.below(40)];
        let val = builder.input(name, &dims).unwrap();
        pool.push(Item { val, bound: 2.0, used: false });
        inputs.push(rng.fill(dims.iter().product(), |r| if numbers == Numbers::Reals { 2.0 * r.unit() } else { r.below(5) as f32 - 2.0 }));
    }
    let mut generator = Generator { rng, builder, pool, numbers };
    for _ in 0..14 {
        generator.step();
        let large = |i: &Item| numbers == Numbers::Integers && i.bound > 2048.0;
        assert!(!generator.pool.iter().any(large), "integers must stay exact");
    }
    let Generator { mut builder, pool, .. } = generator;
    let results: Vec<Val> = pool
        .iter()
        .enumerate()
        .filter(|(_, item)| !item.used)
        // An input cannot be a result.
        .map(|(i, item)| if i < 2 { builder.relu(item.val).unwrap() } else { item.val })
        .collect();
    let names: Vec<String> = (0..results.len()).map(|i| format!("r{i:02}")).collect();
    let results: Vec<(&str, Val)> = names.iter().map(String::as_str).zip(results).collect();
    (language(builder.finish(&results).unwrap(), Blobs::default()), inputs)
}

#[test]
fn programs_of_integers_are_exact() {
    let paths = paths();
    for seed in 0..600 {
        let (program, inputs) = generate(seed, Numbers::Integers);
        let wanted = reference::run(&program, &inputs);
        let mut options = options(2);
        options.stride = STRIDES[seed as usize % 3];
        options.matmul = paths[seed as usize / 3 % paths.len()];
        for (n, (got, want)) in evaluate(options, &program, &inputs).iter().zip(&wanted).enumerate() {
            for (i, (g, w)) in got.iter().zip(&want.data).enumerate() {
                assert_eq!(g.to_f64(), *w, "seed {seed}, result {n}, element {i}\n{}", mil::print(program.program()));
            }
        }
    }
}

#[test]
fn programs_of_reals_are_close() {
    let paths = paths();
    for seed in 1000..1400 {
        let (program, inputs) = generate(seed, Numbers::Reals);
        let wanted = reference::run(&program, &inputs);
        let mut options = options(2);
        options.stride = STRIDES[seed as usize % 3];
        options.matmul = paths[seed as usize / 3 % paths.len()];
        for (n, (got, want)) in evaluate(options, &program, &inputs).iter().zip(&wanted).enumerate() {
            let amax = want.data.iter().filter(|x| x.is_finite()).fold(1e-3f64, |a, x| a.max(x.abs()));
            for (i, (g, &w)) in got.iter().zip(&want.data).enumerate() {
                let g = g.to_f64();
                // Where the reference overflows, a last bit may decide.
                let close = g == w
                    || (g - w).abs() <= amax / 128.0
                    || (w.is_infinite() && g.abs() > 30000.0)
                    || (g.is_infinite() && w.abs() > 30000.0);
                assert!(close, "seed {seed}, result {n}, element {i}: {g} for {w}\n{}", mil::print(program.program()));
            }
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    for path in paths() {
        for seed in 2000..2060 {
            let (program, inputs) = generate(seed, Numbers::Reals);
            let run = |threads| {
                let mut options = options(threads);
                options.matmul = path;
                evaluate(options, &program, &inputs).into_iter().flatten().map(f16::to_bits).collect::<Vec<_>>()
            };
            let one = run(1);
            assert_eq!(one, run(2), "seed {seed}");
            assert_eq!(one, run(4), "seed {seed}");
        }
    }
}
