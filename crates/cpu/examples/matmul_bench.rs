//! GFLOP/s of the matmul on both paths over the shapes of a training step: `matmul_bench [threads]`.
//!
//! Each figure is the median and the best of some repetitions; operands are fp16 in memory, packing is included.

use cpu::matmul::{Dims, Operand, Output, Par, Path, matmul};
use cpu::{Finish, Pool, f16};
use std::time::Instant;

/// How the factors are given: A row- or column-major, B row- or column-major, and an fp32 sum as output.
const FORMS: [(&str, bool, bool, bool); 4] =
    [("NN", false, false, false), ("TN", true, false, false), ("NT", false, true, false), ("NT fp32 +=", false, true, true)];

const SHAPES: [(usize, usize, usize, usize); 11] = [
    (1, 768, 256, 768),
    (1, 2048, 256, 768),
    (1, 4096, 256, 768),
    (1, 768, 256, 2048),
    (1, 768, 256, 4096),
    (1, 16000, 256, 768),
    (1, 768, 256, 16000),
    (1, 2048, 768, 256),
    (1, 768, 768, 256),
    (12, 256, 256, 64),
    (12, 64, 256, 256),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let threads = std::env::args().nth(1).map_or(Ok(2), |n| n.parse())?;
    let pool = Pool::new(threads)?;
    let par = if threads == 1 { Par::Serial } else { Par::Pool(&pool) };
    let paths = if Path::amx_available() { vec![Path::Amx, Path::Portable] } else { vec![Path::Portable] };
    println!("{threads} threads; batch x M x N x K; GFLOP/s median/best");
    for path in paths {
        println!("{path}");
        for (batch, m, n, k) in SHAPES {
            let fill = |len: usize| (0..len).map(|i| f16::from_f32((i * 7919 % 2001) as f32 / 1000.0 - 1.0)).collect::<Vec<_>>();
            let (a, b) = (fill(batch * m * k), fill(batch * k * n));
            let mut half = vec![f16::ZERO; batch * m * n];
            let mut single = vec![0f32; batch * m * n];
            let mut line = format!("{batch:3} x {m:5} x {n:4} x {k:5}:");
            for (name, a_columns, b_columns, sums) in FORMS {
                let operand = |data, batch_stride, rows: usize, cols: usize, columns: bool| {
                    let (row_stride, col_stride) = if columns { (1, rows) } else { (cols, 1) };
                    Operand { data, batch_stride, row_stride, col_stride }
                };
                let mut times: Vec<f64> = (0..15)
                    .map(|_| {
                        let out = if sums {
                            Output::F32 { data: &mut single, batch_stride: m * n, row_stride: n, scale: 1.0, accumulate: true }
                        } else {
                            Output::F16 { data: &mut half, batch_stride: m * n, row_stride: n, col_stride: 1, finish: Finish::MATMUL }
                        };
                        let start = Instant::now();
                        let (a, b) = (operand(&a, m * k, m, k, a_columns), operand(&b, k * n, k, n, b_columns));
                        matmul(par, path, Dims { batch, m, n, k }, a, b, out);
                        start.elapsed().as_secs_f64()
                    })
                    .collect();
                times.sort_by(f64::total_cmp);
                let flops = 2e-9 * (batch * m * n * k) as f64;
                line += &format!("  {name} {:4.0}/{:4.0}", flops / times[times.len() / 2], flops / times[0]);
            }
            println!("{line}");
        }
    }
    Ok(())
}
