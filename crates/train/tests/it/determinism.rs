//! Same seed, same bits.

use crate::support::{Golden, paths, variants};
use train::{LossScaler, step};

#[test]
fn threads_change_no_bit() {
    let golden = Golden::load("gqa256");
    for path in paths() {
        for options in variants() {
            let run = |threads: usize| {
                let mut net = golden.net(options, path, threads);
                let (mut opt, mut scaler) = (golden.optimizer(), LossScaler::new(golden.config.n_layers));
                let outcomes: Vec<_> =
                    golden.steps().iter().take(3).map(|parts| step(&mut net, &mut opt, &mut scaler, parts, golden.lr()).unwrap()).collect();
                (outcomes, net.params().to_vec(), opt.m, opt.v)
            };
            let one = run(1);
            for threads in [2, 4] {
                assert!(one == run(threads), "{options:?} {path:?}: {threads} threads give other bits than one");
            }
        }
    }
}
