//! Restart by exec, and a device that fails.

use crate::lab::{Lab, fails, ok, stdout};
use serde_json::Value;

#[test]
fn a_run_that_needs_three_restarts_is_the_same_run() {
    let lab = Lab::new();
    let plan = ["--iters", "26", "--weights", "baked", "--steps-per-eval", "0"];
    let with = |more: &[&'static str]| -> Vec<&str> { plan.iter().chain(more).copied().collect() };
    ok(lab.train("unlimited", &with(&["--compile-budget", "none"])));
    let report: Value = serde_json::from_str(&stdout(&ok(lab.train("limited", &with(&["--compile-budget", "119", "--json"]))))).unwrap();
    assert!(report["restarts"].as_u64().unwrap() >= 3, "{report}");
    assert_eq!(report["steps"], 26);
    lab.assert_same("unlimited", "limited", 26);
    let record = lab.record("limited");
    for process in record["processes"].as_array().unwrap() {
        assert!(process["compiles"].as_u64().unwrap() <= 119, "{record}");
    }
    assert!(!lab.path("limited/restart.json").exists(), "a finished restart leaves no state file");
}

#[test]
fn a_program_that_never_compiles_stops_after_two_restarts_with_the_compilers_words() {
    let lab = Lab::new();
    let said = fails(lab.train("run", &["--iters", "4", "--fault", "compile@1+=fail"]), 1);
    assert!(said.contains("error: 2 restarts") && said.contains("ANECCompile() FAILED"), "{said}");
    assert_eq!(lab.record("run")["processes"].as_array().unwrap().len(), 3, "the first process and two restarts");
}

#[test]
fn a_compile_that_fails_in_an_update_goes_back_to_the_last_checkpoint() {
    let lab = Lab::new();
    let plan = ["--iters", "6", "--weights", "baked", "--steps-per-eval", "0", "--save-every", "2", "--compile-budget", "none"];
    ok(lab.train("straight", &plan));
    // Compile 60 is in an early update; the process after the restart does not have the fault.
    ok(lab.train("failed", &[&plan[..], &["--fault", "compile@60=fail"]].concat()));
    assert_eq!(lab.record("failed")["processes"].as_array().unwrap().len(), 2);
    lab.assert_same("straight", "failed", 6);
}

#[test]
fn an_evaluation_that_fails_once_is_tried_again() {
    let lab = Lab::new();
    ok(lab.train("straight", &["--iters", "4"]));
    ok(lab.train("retried", &["--iters", "4", "--fault", "evaluate@70=fail"]));
    lab.assert_same("straight", "retried", 4);
    assert_eq!(lab.record("retried")["processes"][0]["retries"], 1);
}

#[test]
fn an_evaluation_that_keeps_failing_stops_the_run_and_its_output_is_never_used() {
    let lab = Lab::new();
    ok(lab.train("straight", &["--iters", "4", "--save-every", "1", "--keep-last", "9"]));
    let said = fails(lab.train("failed", &["--iters", "4", "--save-every", "0", "--fault", "evaluate@70+=fail"]), 1);
    assert!(said.contains("error: step ") && said.contains("0x1d"), "{said}");
    let done = lab.metrics("failed").len() as u64;
    assert!((1..4).contains(&done), "{done}");
    for name in crate::lab::PURE {
        let read = |run| std::fs::read(lab.checkpoint(run, done).join(name)).unwrap();
        assert!(read("straight") == read("failed"), "{name}: what was learnt before the failure is saved, and nothing else");
    }
    // On a device that works, the run goes on as if nothing had happened.
    ok(lab.resume("failed", &[]));
    assert_eq!(lab.metrics("straight"), lab.metrics("failed"));
}

#[test]
fn overflow_skips_the_update_halves_the_scale_and_is_recorded() {
    let lab = Lab::new();
    // The last evaluation of the first step is a dx program's.
    let per_step = {
        let output = ok(lab.train("plan", &["--dry-run", "--json"]));
        let plan: Value = serde_json::from_str(&stdout(&output)).unwrap();
        plan["cost"]["dispatches_per_step"].as_u64().unwrap()
    };
    ok(lab.train("run", &["--iters", "3", "--steps-per-eval", "0", "--fault", &format!("evaluate@{per_step}=inf")]));
    let rows: Vec<Value> = lab.metrics("run").iter().map(|row| serde_json::from_str(row).unwrap()).collect();
    assert_eq!(rows[0]["skipped"], true);
    assert_eq!(rows[1].get("skipped"), None);
    let scale = |n: usize| rows[n]["loss_scale"].as_f64().unwrap();
    assert_eq!(scale(1), scale(0) / 2.0);
    let state: Value = serde_json::from_slice(&std::fs::read(lab.checkpoint("run", 3).join("state.json")).unwrap()).unwrap();
    assert_eq!(state["state"]["adam_t"], 2, "Adam does not count a skipped update");
    assert_eq!(lab.record("run")["processes"][0]["skipped"], 1);
}

/// Waits out the bound on an evaluation, half a minute.
#[test]
#[ignore = "takes half a minute of waiting"]
fn a_device_that_hangs_is_left_behind_by_a_restart() {
    let lab = Lab::new();
    ok(lab.train("straight", &["--iters", "4"]));
    ok(lab.train("hung", &["--iters", "4", "--fault", "evaluate@70=hang"]));
    assert_eq!(lab.record("hung")["processes"].as_array().unwrap().len(), 2);
    lab.assert_same("straight", "hung", 4);
}
