//! A run directory: the lock, retention, leftovers, and the metrics file.

use crate::common::{Snapshot, config, recover, run};
use model::Rope;
use std::path::Path;
use store::{FileSystem, JsonLines, MemFs, RealFs, Retention, RunLock, StoreError, Truncated, checkpoint, list_steps, prune, sweep};

#[test]
fn a_second_trainer_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mem = MemFs::default();
    let cases: [(&dyn FileSystem, &Path); 2] = [(&RealFs, &dir.path().join("new/run")), (&mem, run())];
    for (fs, run) in cases {
        let first = RunLock::acquire(fs, run).unwrap();
        let error = RunLock::acquire(fs, run).err().unwrap();
        assert!(matches!(error, StoreError::Locked { .. }));
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
        drop(first);
        RunLock::acquire(fs, run).unwrap();
    }
}

#[test]
fn retention_keeps_the_last_the_round_and_the_named() {
    let fs = MemFs::default();
    let one = Snapshot::new(config(Rope::Half, true), 1);
    for step in 1..=12 {
        one.save(&fs, run(), step).unwrap();
    }
    let keep = |keep_last, keep_every, keep: &[u64]| Retention { keep_last, keep_every, keep: keep.to_vec() };
    assert_eq!(prune(&fs, run(), &keep(20, None, &[])).unwrap(), [0; 0]);
    assert_eq!(prune(&fs, run(), &keep(3, Some(5), &[1, 7])).unwrap(), [2, 3, 4, 6, 8, 9]);
    assert_eq!(list_steps(&fs, run()).unwrap(), [1, 5, 7, 10, 11, 12]);
    // Nothing goes while the newest is damaged.
    let state = checkpoint::path(run(), 12).join("state.json");
    let whole = fs.read(&state).unwrap();
    fs.put(&state, &whole[1..]).unwrap();
    assert!(prune(&fs, run(), &keep(1, None, &[])).is_err());
    assert_eq!(list_steps(&fs, run()).unwrap().len(), 6);
    fs.put(&state, &whole).unwrap();
    // The newest is always kept.
    assert_eq!(prune(&fs, run(), &keep(0, Some(0), &[])).unwrap(), [1, 5, 7, 10, 11]);
    assert_eq!(recover(&fs, run()).unwrap().step(), 12);
}

#[test]
fn leftovers_are_swept_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let (fs, run) = (&RealFs, dir.path());
    let one = Snapshot::new(config(Rope::Half, true), 1);
    let path = one.save(fs, run, 1).unwrap();
    let all = run.join("checkpoints");
    std::fs::create_dir_all(all.join(".tmp-step-00000002/deep")).unwrap();
    std::fs::write(all.join(".tmp-step-00000002/deep/file"), "x").unwrap();
    std::fs::create_dir(all.join(".trash-step-00000000")).unwrap();
    std::fs::write(run.join(".tmp-latest"), "x").unwrap();
    std::fs::write(run.join("notes.txt"), "mine").unwrap();
    // A link in the litter is removed, what it points to is not.
    #[cfg(unix)]
    std::os::unix::fs::symlink(run.join("notes.txt"), all.join(".trash-step-00000000/link")).unwrap();
    std::fs::rename(&path, all.join(".old-step-00000001")).unwrap();
    sweep(fs, run).unwrap();
    let names = |dir: &Path| fs.list(dir).unwrap().into_iter().map(|e| e.name).collect::<Vec<_>>();
    assert_eq!(names(&all), ["step-00000001"]);
    assert_eq!(names(run), ["checkpoints", "latest", "notes.txt"]);
    assert_eq!(std::fs::read_to_string(run.join("notes.txt")).unwrap(), "mine");
    one.assert_is(fs, &recover(fs, run).unwrap());
}

#[test]
fn a_state_that_json_cannot_hold_is_refused() {
    let fs = MemFs::default();
    let mut one = Snapshot::new(config(Rope::Half, true), 1);
    one.state.best = f64::NAN;
    let error = one.save(&fs, run(), 1).unwrap_err();
    assert!(error.to_string().contains("does not survive JSON"), "{error}");
    // Every finite number does, to the last bit.
    for bits in [1u64, 0x3fb9_9999_9999_999a, 0x7fef_ffff_ffff_ffff, 0x3cb0_0000_0000_0001, 0x0010_0000_0000_0000] {
        one.state.best = f64::from_bits(bits);
        one.state.loss_scale = f32::from_bits((bits >> 32) as u32 & 0x7f7f_ffff);
        one.save(&fs, run(), 2).unwrap();
        one.assert_is(&fs, &recover(&fs, run()).unwrap());
    }
}

#[test]
fn metrics_are_cut_back_to_the_resumed_step() {
    let path = Path::new("/runs/metrics.jsonl");
    let row = |step: u64| format!("{{\"step\":{step},\"loss\":{}.5}}\n", 9 - step);
    let rows = |steps: &[u64]| steps.iter().map(|s| row(*s)).collect::<String>();
    let done = |kept, dropped, last, missing| Truncated { kept, dropped, last_step: Some(last), missing };
    let cases = [
        (rows(&[1, 2, 3, 4, 5]), 3, rows(&[1, 2, 3]), done(3, 2, 3, 0)),
        (rows(&[1, 2, 3]), 3, rows(&[1, 2, 3]), done(3, 0, 3, 0)),
        (rows(&[1, 2, 3]) + "{\"step\":4,\"lo", 3, rows(&[1, 2, 3]), done(3, 1, 3, 0)),
        (rows(&[1, 2, 3, 2, 3, 4]), 4, rows(&[1, 2, 3, 4]), done(4, 2, 4, 0)),
        (rows(&[1, 2]) + "\0\0\0\n" + &rows(&[4]), 5, rows(&[1, 2, 4]), done(3, 1, 4, 2)),
        (rows(&[1]) + "[1]\n{}\n{\"step\":-1}\n{\"step\":\"2\"}\n", 1, rows(&[1]), done(1, 4, 1, 0)),
        (rows(&[1, 2]), 0, String::new(), Truncated { dropped: 2, ..Truncated::default() }),
        (String::new(), 7, String::new(), Truncated::default()),
    ];
    for (before, step, after, report) in cases {
        let fs = MemFs::default();
        fs.put(path, before.as_bytes()).unwrap();
        assert_eq!(JsonLines::truncate_to_step(&fs, path, step).unwrap(), report, "{before}");
        assert_eq!(fs.read(path).unwrap(), after.as_bytes(), "{before}");
    }
    // Cut and continued is the same file as never interrupted.
    let fs = MemFs::default();
    fs.put(Path::new("/runs/x"), b"").unwrap();
    assert_eq!(JsonLines::truncate_to_step(&fs, path, 3).unwrap(), Truncated::default());
    let write = |steps: std::ops::RangeInclusive<u64>| {
        let mut log = JsonLines::append_to(&fs, path).unwrap();
        steps.for_each(|step| log.push(&serde_json::json!({ "step": step, "loss": 0.5 })).unwrap());
        log.sync().unwrap();
    };
    write(1..=9);
    let straight = fs.read(path).unwrap();
    fs.remove_file(path).unwrap();
    write(1..=7);
    JsonLines::truncate_to_step(&fs, path, 4).unwrap();
    write(5..=9);
    assert_eq!(fs.read(path).unwrap(), straight);
}
