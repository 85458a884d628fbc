//! The same bits, however a run is made: any number of threads, any cutting into pieces.

use crate::lab::{Lab, ok, start, stdout, wait_for_steps};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Child;

const STEPS: u64 = 24;

/// Two micro-batches a step, and measurements on the way; checkpoints are kept.
fn plan() -> Vec<&'static str> {
    vec![
        "--iters",
        "24",
        "--grad-accumulation-steps",
        "2",
        "--steps-per-eval",
        "6",
        "--val-batches",
        "2",
        "--save-every",
        "5",
        "--keep-last",
        "9",
    ]
}

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    plan().into_iter().chain(more.iter().copied()).collect()
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(child.id() as i32).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn threads_do_not_matter() {
    let lab = Lab::new();
    for threads in ["1", "2", "4"] {
        ok(lab.train(threads, &with(&["--threads", threads])));
    }
    lab.assert_same("1", "2", STEPS);
    lab.assert_same("1", "4", STEPS);
    // The seed does, so the comparison is not of runs that learn nothing.
    ok(lab.train("seed", &with(&["--seed", "1"])));
    assert_ne!(lab.metrics("1"), lab.metrics("seed"));
}

#[test]
fn pieces_do_not_matter() {
    let lab = Lab::new();
    ok(lab.train("whole", &plan()));

    ok(lab.train("resumed", &with(&["--stop-at", "7", "--threads", "1"])));
    assert_eq!(lab.metrics("resumed").len(), 7);
    ok(lab.resume("resumed", &["--stop-at", "10", "--threads", "2"]));
    ok(lab.resume("resumed", &["--threads", "0"]));
    lab.assert_same("whole", "resumed", STEPS);

    // From a checkpoint further back: what came after it is moved away, not deleted.
    let back = lab.checkpoint("resumed", 10).display().to_string();
    ok(lab.resume(&back, &[]));
    assert!(lab.path("resumed/discarded/step-00000024").is_dir());
    lab.assert_same("whole", "resumed", STEPS);
}

#[test]
fn sigint_and_sigterm_save_and_exit() {
    let lab = Lab::new();
    ok(lab.train("whole", &plan()));
    for (run, kind, code) in [("int", Signal::INT, 130), ("term", Signal::TERM, 143)] {
        let mut child = start(lab.train(run, &plan()));
        wait_for_steps(&lab, run, 2);
        signal(&child, kind);
        let status = child.wait().unwrap();
        let done = lab.metrics(run).len() as u64;
        // On a fast machine the run may be over before the signal comes.
        if done < STEPS {
            assert_eq!(status.code(), Some(code));
            assert!(lab.checkpoint(run, done).is_dir(), "the step that was under way is finished and saved");
            ok(lab.resume(run, &[]));
        }
        lab.assert_same("whole", run, STEPS);
    }
}

#[test]
fn kill_9_loses_only_what_was_not_saved() {
    let lab = Lab::new();
    ok(lab.train("whole", &plan()));
    let mut child = start(lab.train("killed", &plan()));
    for steps in [1, 8, 14] {
        wait_for_steps(&lab, "killed", steps);
        child.kill().unwrap();
        child.wait().unwrap();
        child = start(lab.resume("killed", &[]));
    }
    child.wait().unwrap();
    ok(lab.resume("killed", &[]));
    lab.assert_same("whole", "killed", STEPS);
}

#[test]
fn time_that_is_over_saves_and_stops() {
    let lab = Lab::new();
    ok(lab.train("run", &["--iters", "1000000", "--wall-time", "1"]));
    let done = lab.metrics("run").len() as u64;
    assert!(lab.checkpoint("run", done).is_dir());
    ok(lab.resume("run", &["--stop-at", &(done + 1).to_string()]));
    assert_eq!(lab.metrics("run").len() as u64, done + 1);
}

#[test]
fn a_finished_run_resumed_is_finished_at_once() {
    let lab = Lab::new();
    ok(lab.train("run", &["--iters", "3"]));
    let report = stdout(&ok(lab.resume("run", &["--json"])));
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["steps"], 3);
    assert_eq!(lab.metrics("run").len(), 3);
    ok(lab.resume("run", &["--iters", "5"]));
    assert_eq!(lab.metrics("run").len(), 5);
}
