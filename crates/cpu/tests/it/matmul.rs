//! Both paths against fp64, over shapes, strides, transposes and batches.

use crate::Random;
use cpu::matmul::{Choice, Dims, Operand, Output, Par, Path, PathError, matmul};
use cpu::{Finish, Pool, f16};

/// The paths of this machine.
fn paths() -> Vec<Path> {
    if !Path::amx_available() {
        eprintln!("skipped on the AMX path: this CPU has none");
        return vec![Path::Portable];
    }
    vec![Path::Portable, Path::Amx]
}

/// How a factor or the result lies in memory.
#[derive(Clone, Copy, Debug)]
enum Order {
    Rows,
    Columns,
    Spread,
}

const ORDERS: [Order; 3] = [Order::Rows, Order::Columns, Order::Spread];

/// (batch, row, column) strides and the length of `batch` matrices, with gaps between lines and matrices.
fn layout(order: Order, batch: usize, rows: usize, cols: usize) -> (usize, usize, usize, usize) {
    let (row, col) = match order {
        Order::Rows => (cols + 3, 1),
        Order::Columns => (1, rows + 5),
        Order::Spread => (2 * cols + 1, 2),
    };
    let one = (rows - 1) * row + (cols - 1) * col + 1;
    (one + 7, row, col, (batch - 1) * (one + 7) + one)
}

struct Case {
    dims: Dims,
    a: Vec<f16>,
    b: Vec<f16>,
    strides: [(usize, usize, usize); 2],
}

impl Case {
    fn new(dims: Dims, orders: [Order; 2], broadcast_a: bool, seed: u64) -> Case {
        let mut random = Random::new(seed);
        let (mut ab, ar, ac, mut an) = layout(orders[0], dims.batch, dims.m, dims.k);
        if broadcast_a {
            (ab, an) = (0, layout(orders[0], 1, dims.m, dims.k).3);
        }
        let (bb, br, bc, bn) = layout(orders[1], dims.batch, dims.k, dims.n);
        Case { dims, a: random.halves(an), b: random.halves(bn), strides: [(ab, ar, ac), (bb, br, bc)] }
    }

    fn operands(&self) -> (Operand<'_>, Operand<'_>) {
        let operand = |data, (batch_stride, row_stride, col_stride)| Operand { data, batch_stride, row_stride, col_stride };
        (operand(&self.a, self.strides[0]), operand(&self.b, self.strides[1]))
    }

    /// The exact product, and Σ |a·b| for the tolerance.
    fn exact(&self, batch: usize, i: usize, j: usize) -> (f64, f64) {
        let [(ab, ar, ac), (bb, br, bc)] = self.strides;
        let mut sums = (0.0, 0.0);
        for l in 0..self.dims.k {
            let p = self.a[batch * ab + i * ar + l * ac].to_f64() * self.b[batch * bb + l * br + j * bc].to_f64();
            sums = (sums.0 + p, sums.1 + p.abs());
        }
        sums
    }

    fn half(&self, par: Par<'_>, path: Path, order: Order, finish: Finish) -> Vec<f16> {
        let (batch_stride, row_stride, col_stride, len) = layout(order, self.dims.batch, self.dims.m, self.dims.n);
        let mut data = vec![f16::from_f32(-7.5); len];
        let (a, b) = self.operands();
        matmul(par, path, self.dims, a, b, Output::F16 { data: &mut data, batch_stride, row_stride, col_stride, finish });
        data
    }

    fn single(&self, par: Par<'_>, path: Path, start: f32, scale: f32, accumulate: bool) -> Vec<f32> {
        let (batch_stride, row_stride, _, len) = layout(Order::Rows, self.dims.batch, self.dims.m, self.dims.n);
        let mut data = vec![start; len];
        let (a, b) = self.operands();
        matmul(par, path, self.dims, a, b, Output::F32 { data: &mut data, batch_stride, row_stride, scale, accumulate });
        data
    }

    fn check_half(&self, path: Path, order: Order, got: &[f16]) {
        let (bs, rs, cs, len) = layout(order, self.dims.batch, self.dims.m, self.dims.n);
        let mut touched = vec![false; len];
        for batch in 0..self.dims.batch {
            for i in 0..self.dims.m {
                for j in 0..self.dims.n {
                    let (want, size) = self.exact(batch, i, j);
                    let at = batch * bs + i * rs + j * cs;
                    touched[at] = true;
                    let error = (got[at].to_f64() - want).abs();
                    let allowed = want.abs() * 2f64.powi(-11) + size * 2f64.powi(-15) + 2f64.powi(-25);
                    assert!(error <= allowed, "{path} {:?} {order:?} at {batch},{i},{j}: {} for {want}", self.dims, got[at]);
                }
            }
        }
        for (at, got) in got.iter().enumerate().filter(|(at, _)| !touched[*at]) {
            assert_eq!(got.to_f32(), -7.5, "{path} {:?} {order:?} wrote the gap at {at}", self.dims);
        }
    }
}

#[test]
fn every_order_of_every_edge_size() {
    let pool = Pool::new(2).unwrap();
    let sizes = [(1, 1, 1), (1, 33, 172), (31, 33, 32), (33, 31, 1), (64, 32, 96), (172, 65, 33), (40, 172, 64), (96, 128, 31)];
    for (s, (m, n, k)) in sizes.into_iter().enumerate() {
        for oa in ORDERS {
            for ob in ORDERS {
                let case = Case::new(Dims { batch: 1, m, n, k }, [oa, ob], false, s as u64 + 1);
                for path in paths() {
                    for order in ORDERS {
                        case.check_half(path, order, &case.half(Par::Pool(&pool), path, order, Finish::MATMUL));
                    }
                }
            }
        }
    }
}

#[test]
fn batches_and_repeated_operands() {
    let pool = Pool::new(2).unwrap();
    for (batch, m, n, k, repeat) in [(12, 64, 64, 32, false), (3, 33, 40, 65, true), (5, 128, 96, 48, true), (6, 160, 256, 64, false)] {
        for orders in [[Order::Rows, Order::Rows], [Order::Columns, Order::Rows], [Order::Rows, Order::Columns]] {
            let case = Case::new(Dims { batch, m, n, k }, orders, repeat, 77);
            for path in paths() {
                case.check_half(path, Order::Rows, &case.half(Par::Pool(&pool), path, Order::Rows, Finish::MATMUL));
                case.check_half(path, Order::Columns, &case.half(Par::Serial, path, Order::Columns, Finish::MATMUL));
            }
        }
    }
}

/// Heads that lie interleaved in the output: the batch axis steps less than a row.
#[test]
fn interleaved_batches() {
    let (batch, m, n, k) = (4, 40, 8, 16);
    let case = Case::new(Dims { batch, m, n, k }, [Order::Rows, Order::Rows], false, 5);
    for path in paths() {
        let mut data = vec![f16::ZERO; batch * m * n];
        let (a, b) = case.operands();
        let out = Output::F16 { data: &mut data, batch_stride: n, row_stride: batch * n, col_stride: 1, finish: Finish::MATMUL };
        matmul(Par::Serial, path, case.dims, a, b, out);
        for (i, row) in data.chunks(batch * n).enumerate() {
            for (at, got) in row.iter().enumerate() {
                let (want, size) = case.exact(at / n, i, at % n);
                assert!((got.to_f64() - want).abs() <= size * 2f64.powi(-11) + 1e-6, "{path} {i},{at}");
            }
        }
    }
}

/// Long contractions and wide results go through several stretches and blocks; the bits must not depend on threads.
#[test]
fn equal_bits_for_any_thread_count() {
    let pools: Vec<Pool> = [1, 2, 4].into_iter().map(|n| Pool::new(n).unwrap()).collect();
    for (batch, m, n, k) in [(1, 200, 64, 2500), (1, 64, 1300, 70), (1, 333, 290, 300), (1, 96, 40, 5000), (9, 70, 130, 64)] {
        for orders in [[Order::Rows, Order::Rows], [Order::Columns, Order::Rows], [Order::Rows, Order::Columns]] {
            let case = Case::new(Dims { batch, m, n, k }, orders, false, 3);
            for path in paths() {
                let half = case.half(Par::Serial, path, Order::Rows, Finish::MATMUL);
                case.check_half(path, Order::Rows, &half);
                let single = case.single(Par::Serial, path, 0.25, 0.5, true);
                for pool in &pools {
                    assert_eq!(bits(&half), bits(&case.half(Par::Pool(pool), path, Order::Rows, Finish::MATMUL)), "{path} {m} {n} {k}");
                    let again = case.single(Par::Pool(pool), path, 0.25, 0.5, true);
                    assert!(single.iter().zip(&again).all(|(a, b)| a.to_bits() == b.to_bits()), "{path} {m} {n} {k} fp32");
                }
            }
        }
    }
}

fn bits(x: &[f16]) -> Vec<u16> {
    x.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn fp32_output_scales_and_accumulates() {
    let dims = Dims { batch: 2, m: 65, n: 33, k: 96 };
    for orders in [[Order::Rows, Order::Columns], [Order::Columns, Order::Rows]] {
        let case = Case::new(dims, orders, false, 9);
        let (bs, rs, ..) = layout(Order::Rows, dims.batch, dims.m, dims.n);
        for path in paths() {
            for (start, accumulate) in [(3.0, true), (f32::NAN, false)] {
                let got = case.single(Par::Serial, path, start, -0.5, accumulate);
                for (b, i, j) in [(0, 0, 0), (0, 64, 32), (1, 31, 5), (1, 64, 32), (1, 32, 31)] {
                    let (want, size) = case.exact(b, i, j);
                    let want = if accumulate { 3.0 } else { 0.0 } - 0.5 * want;
                    let error = (f64::from(got[b * bs + i * rs + j]) - want).abs();
                    assert!(error <= (size + 3.0) * 2f64.powi(-16), "{path} {accumulate} {b},{i},{j}: off by {error}");
                }
            }
        }
    }
}

/// ane-measurements 1.1: 32752 passes, 32768 is infinite, elementwise range is fp16's own.
#[test]
fn results_at_two_to_the_fifteen_are_infinite() {
    let dims = Dims { batch: 1, m: 1, n: 4, k: 64 };
    let a: Vec<f16> = (0..64).map(|i| f16::from_f32(if i == 0 { 128.0 } else { 1.0 })).collect();
    // Column sums 128·255 + 112 = 32752, 32768, −32768 and 128·312 + 64 = 40000.
    let mut b = vec![f16::ZERO; 64 * 4];
    for (j, (first, second)) in [(255.0, 112.0), (256.0, 0.0), (-256.0, 0.0), (312.0, 64.0)].into_iter().enumerate() {
        b[j] = f16::from_f32(first);
        b[4 + j] = f16::from_f32(second);
    }
    for path in paths() {
        for (finish, want) in [
            (Finish::MATMUL, [32752.0, f32::INFINITY, f32::NEG_INFINITY, f32::INFINITY]),
            (Finish::ELEMENTWISE, [32752.0, 32768.0, -32768.0, 40000.0]),
        ] {
            let mut c = [f16::ZERO; 4];
            let out = Output::F16 { data: &mut c, batch_stride: 0, row_stride: 4, col_stride: 1, finish };
            matmul(Par::Serial, path, dims, Operand::rows(&a, 64), Operand::rows(&b, 4), out);
            assert_eq!(c.map(f16::to_f32), want, "{path}");
        }
    }
}

/// Infinite operands behave as in fp32, NaN counts as +inf for an fp16 result, NaN results become 0, and both paths agree bit for bit
/// since one computes them.
#[test]
fn operands_that_are_not_finite_take_the_fp32_path_as_a_whole() {
    let pool = Pool::new(2).unwrap();
    for bad in [f16::INFINITY, f16::NEG_INFINITY, f16::NAN] {
        let mut case = Case::new(Dims { batch: 1, m: 300, n: 80, k: 1100 }, [Order::Rows, Order::Rows], false, 21);
        let row = case.strides[0].1;
        case.a[290 * row + 1090] = bad;
        case.b[1090 * case.strides[1].1 + 7] = f16::ZERO;
        let portable = case.half(Par::Pool(&pool), Path::Portable, Order::Rows, Finish::MATMUL);
        let out_row = layout(Order::Rows, 1, 300, 80).1;
        assert_eq!(portable[290 * out_row + 7].to_bits(), 0, "0 · {bad} must leave as +0");
        let other = portable[290 * out_row + 8];
        assert!(other.is_infinite(), "{bad} gave {other}");
        for path in paths() {
            assert_eq!(bits(&portable), bits(&case.half(Par::Pool(&pool), path, Order::Rows, Finish::MATMUL)), "{path}");
            let sums = case.single(Par::Pool(&pool), path, 1.0, 1.0, true);
            let same = case.single(Par::Serial, Path::Portable, 1.0, 1.0, true);
            assert!(sums.iter().zip(&same).all(|(a, b)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()), "{path} fp32");
        }
    }
}

/// Every fp16 value times one comes back: the split in halves is exact, subnormals included.
#[test]
fn the_split_is_exact() {
    let finite: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).filter(|x| x.is_finite()).collect();
    let one = [f16::ONE];
    for path in paths() {
        let mut c = vec![f16::NAN; finite.len()];
        let dims = Dims { batch: 1, m: finite.len(), n: 1, k: 1 };
        let out = Output::F16 { data: &mut c, batch_stride: 0, row_stride: 1, col_stride: 1, finish: Finish::PLAIN };
        matmul(Par::Serial, path, dims, Operand::rows(&finite, 1), Operand::rows(&one, 1), out);
        for (got, want) in c.iter().zip(&finite) {
            assert_eq!(got.to_f32(), want.to_f32(), "{path}");
        }
    }
}

#[test]
fn an_empty_contraction_gives_zero() {
    for path in paths() {
        let mut c = [f16::ONE; 6];
        let out = Output::F16 { data: &mut c, batch_stride: 0, row_stride: 3, col_stride: 1, finish: Finish::MATMUL };
        matmul(Par::Serial, path, Dims { batch: 1, m: 2, n: 3, k: 0 }, Operand::rows(&[], 0), Operand::rows(&[], 3), out);
        assert_eq!(c, [f16::ZERO; 6], "{path}");
    }
}

#[test]
#[should_panic(expected = "overlap")]
fn outputs_that_share_a_place_are_refused() {
    let x = [f16::ONE; 4];
    let mut c = [f16::ONE; 16];
    let out = Output::F16 { data: &mut c, batch_stride: 0, row_stride: 1, col_stride: 1, finish: Finish::MATMUL };
    matmul(Par::Serial, Path::Portable, Dims { batch: 1, m: 2, n: 2, k: 2 }, Operand::rows(&x, 2), Operand::rows(&x, 2), out);
}

#[test]
#[should_panic(expected = "ends past")]
fn outputs_that_end_past_their_data_are_refused() {
    let x = [f16::ONE; 4];
    let mut c = [f16::ONE; 3];
    let out = Output::F16 { data: &mut c, batch_stride: 0, row_stride: 2, col_stride: 1, finish: Finish::MATMUL };
    matmul(Par::Serial, Path::Portable, Dims { batch: 1, m: 2, n: 2, k: 2 }, Operand::rows(&x, 2), Operand::rows(&x, 2), out);
}

#[test]
fn paths_by_name() {
    assert_eq!("auto".parse::<Choice>().unwrap().resolve().unwrap(), Path::detect());
    assert_eq!("portable".parse::<Choice>().unwrap().resolve().unwrap(), Path::Portable);
    let amx = "amx".parse::<Choice>().unwrap().resolve();
    assert_eq!(amx, if Path::amx_available() { Ok(Path::Amx) } else { Err(PathError::NoAmx) });
    assert!("mkl".parse::<Choice>().unwrap_err().to_string().contains("auto, amx or portable"));
}
