//! Every call of a save, of a pruning and of a small file's replacement fails once in every way.

use crate::common::{Snapshot, State, config, recover, run};
use model::Rope;
use std::path::Path;
use std::sync::Arc;
use store::{Cut, Fault, FaultFs, FaultKind, FileSystem, MemFs, Retention, StoreError, checkpoint, prune, write_atomic};

/// Bytes that one write takes: small, so that a save is many calls.
const MAX_WRITE: usize = 700;
const CUTS: [Cut; 8] =
    [Cut::Nothing, Cut::NamesOnly, Cut::Random(1), Cut::Random(2), Cut::Random(3), Cut::Random(4), Cut::Random(5), Cut::Random(6)];

/// One way in which a call goes wrong, and what is left of the files then.
#[derive(Clone, Copy, Debug)]
struct Mishap {
    kind: FaultKind,
    /// The power goes after the operation ended, well or not.
    cut: Option<Cut>,
}

fn mishaps() -> Vec<Mishap> {
    let mut all = Vec::new();
    for kind in [FaultKind::Error, FaultKind::ShortWrite, FaultKind::NoSpace] {
        all.push(Mishap { kind, cut: None });
        all.extend(CUTS.map(|cut| Mishap { kind, cut: Some(cut) }));
    }
    // A dying process alone leaves everything that was done; a power cut less.
    all.push(Mishap { kind: FaultKind::PowerOff, cut: None });
    all.extend(CUTS.map(|cut| Mishap { kind: FaultKind::PowerOff, cut: Some(cut) }));
    all
}

/// Runs `operation` once for every call that it makes and every mishap, each time from `start`; `check` sees the files
/// afterwards and whether the operation said that it worked. Returns the number of calls and of cases.
fn walk(
    start: &MemFs,
    operation: impl Fn(&dyn FileSystem) -> Result<(), StoreError>,
    check: impl Fn(&MemFs, Result<(), StoreError>, Mishap),
) -> (u64, u64) {
    let counter = FaultFs::new(Arc::new(start.snapshot()), None);
    operation(&counter).unwrap();
    let calls = counter.calls();
    let mut cases = 0;
    for at in 1..=calls {
        for mishap in mishaps() {
            let fs = start.snapshot();
            let faulty = FaultFs::new(Arc::new(fs.clone()), Some(Fault { at, kind: mishap.kind }));
            let result = operation(&faulty);
            assert!(mishap.kind != FaultKind::ShortWrite || result.is_ok(), "a short write at call {at} is no error: {result:?}");
            if let Some(cut) = mishap.cut {
                fs.cut_power(cut);
            }
            check(&fs, result, mishap);
            cases += 1;
        }
    }
    (calls, cases)
}

/// Whether a run's newest checkpoint is exactly `want`.
fn holds(fs: &MemFs, want: &Snapshot, step: u64) -> bool {
    recover(fs, run()).is_some_and(|found| {
        found.step() == step && checkpoint::load::<State>(fs, &found, &want.config).is_ok_and(|loaded| want.equals(&loaded))
    })
}

/// Saves `new` over a run that holds `previous`, in every mishap; afterwards one of them is there, whole, and the next
/// save works.
fn save_walk(start: &MemFs, previous: Option<(&Snapshot, u64)>, new: &Snapshot, step: u64) -> (u64, u64) {
    let next = Snapshot::new(config(Rope::Half, true), 99);
    walk(
        start,
        |fs| new.save(fs, run(), step).map(|_| ()),
        |fs, result, mishap| {
            let saved = holds(fs, new, step);
            if result.is_ok() {
                assert!(saved, "the save said it worked, and {mishap:?} undid it");
            }
            if !saved {
                match previous {
                    Some((previous, at)) => {
                        assert!(holds(fs, previous, at), "neither the previous nor the new checkpoint after {mishap:?}")
                    }
                    None => assert!(recover(fs, run()).is_none(), "something else appeared after {mishap:?}"),
                }
            }
            next.save(fs, run(), step + 1).unwrap();
            assert!(holds(fs, &next, step + 1));
        },
    )
}

#[test]
fn a_save_that_fails_anywhere_leaves_the_previous_or_the_new_checkpoint() {
    let (one, two, other) = (
        Snapshot::new(config(Rope::Half, true), 1),
        Snapshot::new(config(Rope::Interleaved, true), 2),
        Snapshot::new(config(Rope::Interleaved, true), 3),
    );
    let start = MemFs::new(MAX_WRITE);
    let first = save_walk(&start, None, &one, 100);

    one.save(&start, run(), 100).unwrap();
    let second = save_walk(&start.snapshot(), Some((&one, 100)), &two, 200);

    // The run was rolled back and comes by step 200 again, with other numbers, and then with the same.
    two.save(&start, run(), 200).unwrap();
    let replaced = save_walk(&start.snapshot(), Some((&two, 200)), &other, 200);
    let again = save_walk(&start.snapshot(), Some((&two, 200)), &two, 200);

    for (what, (calls, cases)) in [("first", first), ("next", second), ("replacing", replaced), ("same again", again)] {
        println!("fault walk, {what} save: N = {calls} calls, {cases} cases");
        assert!(calls > 40, "{what}: only {calls} calls");
    }
}

/// A save over another of the same step fails at every call; then the next attempt loses the power at every call of its own:
/// after a death it sweeps and saves again, in the same process it just saves, the same or something else.
#[test]
fn a_second_attempt_that_fails_anywhere_too_loses_nothing() {
    let [old, new, newer] = [1, 2, 3].map(|seed| Snapshot::new(config(Rope::Half, true), seed));
    let start = MemFs::default();
    old.save(&start, run(), 200).unwrap();
    let counter = FaultFs::new(Arc::new(start.snapshot()), None);
    new.save(&counter, run(), 200).unwrap();
    let mut cases = 0;
    for (kind, again) in [(FaultKind::PowerOff, &new), (FaultKind::Error, &new), (FaultKind::Error, &newer)] {
        for first in 1..=counter.calls() {
            // Not a snapshot each: what the first attempt had not synced is still in danger.
            let attempts = |second: u64, cut: Cut| {
                let fs = MemFs::default();
                old.save(&fs, run(), 200).unwrap();
                let fail = |at, kind| FaultFs::new(Arc::new(fs.clone()), Some(Fault { at, kind }));
                let _ = new.save(&fail(first, kind), run(), 200);
                let faulty = fail(second, FaultKind::PowerOff);
                let swept = if kind == FaultKind::PowerOff { store::sweep(&faulty, run()) } else { Ok(()) };
                let saved = swept.and_then(|()| again.save(&faulty, run(), 200)).is_ok();
                fs.cut_power(cut);
                let whole = holds(&fs, again, 200) || !saved && (holds(&fs, &new, 200) || holds(&fs, &old, 200));
                assert!(whole, "nothing left after {kind:?} at {first}, the power gone at {second}, {cut:?}");
                faulty.calls() >= second
            };
            let mut second = 1;
            while attempts(second, Cut::Nothing) {
                attempts(second, Cut::Random(first * 1000 + second));
                cases += 2;
                second += 1;
            }
        }
    }
    println!("fault walk, second attempts: {cases} cases");
}

#[test]
fn pruning_that_fails_anywhere_keeps_what_is_kept() {
    let start = MemFs::new(MAX_WRITE);
    let all: Vec<Snapshot> = (0..5).map(|i| Snapshot::new(config(Rope::Half, true), i)).collect();
    for (i, snapshot) in all.iter().enumerate() {
        snapshot.save(&start, run(), 10 * (i as u64 + 1)).unwrap();
    }
    let retention = Retention { keep_last: 1, keep_every: Some(20), keep: vec![10] };
    let (calls, cases) = walk(
        &start,
        |fs| prune(fs, run(), &retention).map(|gone| assert_eq!(gone, [30])),
        |fs, result, mishap| {
            assert!(holds(fs, &all[4], 50), "{mishap:?}");
            let left = store::list_steps(fs, run()).unwrap();
            for step in &left {
                let found = checkpoint::verify(fs, &checkpoint::path(run(), *step)).unwrap();
                all[*step as usize / 10 - 1].assert_is(fs, &found);
            }
            assert!([10, 20, 40, 50].iter().all(|s| left.contains(s)), "{mishap:?} left {left:?}");
            assert!(result.is_err() || left.len() == 4);
            assert_eq!(prune(fs, run(), &retention).unwrap().len(), left.len() - 4);
        },
    );
    println!("fault walk, prune: N = {calls} calls, {cases} cases");
}

#[test]
fn a_small_file_is_the_old_or_the_new_one() {
    let start = MemFs::new(10);
    let path = Path::new("/runs/run.json");
    let (old, new) = ("the old content\n".repeat(3), "the new and longer content\n".repeat(4));
    start.put(path, old.as_bytes()).unwrap();
    let (calls, cases) = walk(
        &start,
        |fs| write_atomic(fs, path, new.as_bytes()),
        |fs, result, mishap| {
            let now = fs.read(path).unwrap();
            assert!(now == new.as_bytes() || result.is_err() && now == old.as_bytes(), "{mishap:?} left {now:?}");
        },
    );
    println!("fault walk, small file: N = {calls} calls, {cases} cases");
}

#[test]
fn a_full_disk_is_seen_before_anything_is_written() {
    let fs = MemFs::default();
    let one = Snapshot::new(config(Rope::Half, true), 1);
    one.save(&fs, run(), 1).unwrap();
    fs.set_free_space(1 << 20);
    let error = one.save(&fs, run(), 2).unwrap_err();
    assert!(error.is_no_space() && error.to_string().contains("only 1048576 are free"), "{error}");
    assert!(fs.list(&run().join("checkpoints")).unwrap().iter().all(|e| e.name == "step-00000001"));
    assert!(holds(&fs, &one, 1));
}

/// The power cut of the memory file system is real: an ordinary save without syncs would not survive it.
#[test]
fn what_is_not_synced_is_lost() {
    use std::io::Write as _;
    let fs = MemFs::default();
    let (a, b) = (Path::new("/a"), Path::new("/b"));
    fs.put(a, b"old").unwrap();
    let mut file = fs.create(b).unwrap();
    file.write_all(b"new").unwrap();
    fs.rename(b, a).unwrap();
    assert_eq!(fs.read(a).unwrap(), b"new");
    let unsynced = fs.clone();
    unsynced.cut_power(Cut::NamesOnly);
    assert_eq!(unsynced.read(a).unwrap(), b"", "a name without its content");

    fs.put(a, b"old").unwrap();
    let mut file = fs.create(b).unwrap();
    file.write_all(b"new").unwrap();
    file.sync().unwrap();
    fs.rename(b, a).unwrap();
    fs.cut_power(Cut::Nothing);
    assert_eq!((fs.read(a).unwrap(), fs.kind(b).unwrap()), (b"old".to_vec(), None));
}
