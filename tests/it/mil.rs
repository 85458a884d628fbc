//! `anneal mil`: checking, running and explaining programs.

use crate::lab::{Lab, fails, ok, stderr, stdout};
use serde_json::Value;

/// A program of one op with a constant in a weight file.
const SCALED: &str = r#"program(1.3)
[buildInfo = dict<string, string>({{"coremltools-version", "9.0"}})]
{
    func main<ios18>(tensor<fp16, [1, 2, 1, 32]> x) {
        tensor<fp16, [1, 2, 1, 1]> w = const()[name = string("w"), val = tensor<fp16, [1, 2, 1, 1]>(BLOBFILE(path = string("@model_path/weights/w.bin"), offset = uint64(64)))];
        tensor<fp16, [1, 2, 1, 32]> y = mul(x = x, y = w)[name = string("y")];
    } -> (y);
}
"#;

/// A compiled model's directory with [`SCALED`] and its weight file.
fn scaled(lab: &Lab) {
    std::fs::create_dir_all(lab.path("m.mlmodelc/weights")).unwrap();
    lab.write("m.mlmodelc/model.mil", SCALED.as_bytes());
    lab.write("m.mlmodelc/weights/w.bin", &mil::blob::single_f16(&[2.0, -1.0].map(cpu::f16::from_f32)));
}

#[test]
fn check_points_at_what_is_wrong() {
    let lab = Lab::new();
    scaled(&lab);
    let clean = stdout(&ok(lab.anneal(&["mil", "check", "m.mlmodelc"])));
    assert_eq!(clean, "m.mlmodelc/model.mil: 0 errors, 0 warnings\n");
    let warned = stdout(&ok(lab.anneal(&["mil", "check", "m.mlmodelc", "--chip", "m1"])));
    assert!(warned.contains("warning[port-width-64]") && warned.ends_with("0 errors, 2 warnings\n"), "{warned}");

    lab.write("bad.mil", SCALED.replace("mul(", "mull(").as_bytes());
    let output = lab.anneal(&["mil", "check", "bad.mil"]).output().unwrap();
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in ["error[unknown-op]: there is no op `mull`", "--> bad.mil:6:41", "| ", "^^^^", "help: did you mean `mul`?"] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
    let output = lab.anneal(&["mil", "check", "bad.mil", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let wanted = serde_json::json!([{
        "severity": "error", "code": "unknown-op", "line": 6, "column": 41, "message": "there is no op `mull`", "help": "did you mean `mul`?"
    }]);
    assert_eq!(said, wanted);
    assert!(fails(lab.anneal(&["mil", "check", "none.mil"]), 2).contains("none.mil"));
    lab.write("binary.mil", &[0xFF, 0xFE]);
    assert!(fails(lab.anneal(&["mil", "check", "binary.mil"]), 2).contains("byte 0"));
}

#[test]
fn weight_files_are_read_beside_the_text_and_nowhere_else() {
    let lab = Lab::new();
    scaled(&lab);
    // The file is there, but not under the text's directory.
    lab.write("w.bin", &std::fs::read(lab.path("m.mlmodelc/weights/w.bin")).unwrap());
    for path in ["@model_path/../w.bin", "@model_path/./../w.bin", "@model_path//w.bin", "/w.bin", "w.bin"] {
        lab.write("m.mlmodelc/other.mil", SCALED.replace("@model_path/weights/w.bin", path).as_bytes());
        let output = lab.anneal(&["mil", "check", "m.mlmodelc/other.mil"]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{path}");
        assert!(stdout(&output).contains("error[blob]"), "{path}: {}", stdout(&output));
    }
    #[cfg(unix)]
    {
        std::fs::remove_file(lab.path("m.mlmodelc/weights/w.bin")).unwrap();
        std::os::unix::fs::symlink(lab.path("w.bin"), lab.path("m.mlmodelc/weights/w.bin")).unwrap();
        assert_eq!(lab.anneal(&["mil", "check", "m.mlmodelc"]).output().unwrap().status.code(), Some(1), "a link leads out");
    }
}

#[test]
fn run_takes_and_gives_arrays() {
    let lab = Lab::new();
    scaled(&lab);
    let run = |args: &[&str]| {
        let mut command = lab.anneal(&["mil", "run", "m.mlmodelc"]);
        command.args(args);
        command
    };
    let said = stdout(&ok(run(&["--input", "x=random:7", "--output", "one"])));
    assert!(said.starts_with("y  tensor<fp16, [1, 2, 1, 32]>  min "), "{said}");
    let read = |dir: &str| {
        let bytes = std::fs::read(lab.path(dir).join("y.npy")).unwrap();
        let data = &bytes[bytes.len() - 128..];
        assert_eq!((&bytes[..6], (bytes.len() - 128) % 64), (&b"\x93NUMPY"[..], 0));
        data.chunks_exact(2).map(|b| cpu::f16::from_le_bytes([b[0], b[1]]).to_f32()).collect::<Vec<f32>>()
    };
    let one = read("one");
    assert!(one.iter().any(|x| *x > 1.0) && one.iter().all(|x| x.abs() <= 2.0));
    // What came out goes in: doubled, and turned around, once more.
    for arithmetic in ["fast", "fidelity", "fidelity-wide", "exact"] {
        ok(run(&["--input", "x=one/y.npy", "--output", "two", "--arithmetic", arithmetic, "--chip", "m2"]));
        let two = read("two");
        let fits = |(i, (a, b)): (usize, (&f32, &f32))| *b == if i < 32 { 2.0 * a } else { -a };
        assert!(one.iter().zip(&two).enumerate().all(fits), "{arithmetic}: {one:?} {two:?}");
    }
    ok(run(&["--input", "x=random:7", "--output", "again", "--threads", "1"]));
    assert_eq!(read("again"), one, "the same seed, the same numbers");

    for (args, says) in [
        (&["--input", "z=random:1"] as &[&str], "inputs are x"),
        (&[], "--input x=FILE.npy"),
        (&["--input", "x=random:no"], "`no` is no seed"),
        (&["--input", "x=none.npy"], "none.npy"),
        (&["--input", "x=w.npy"], "it does not begin as a NumPy file does"),
        (&["--input", "x"], "NAME=FILE.npy"),
        (&["--input", "x=random:1", "--input", "x=random:2"], "given twice"),
    ] {
        lab.write("w.npy", b"no array");
        let said = fails(run(args), 2);
        assert!(said.contains(says), "{args:?}: {said}");
    }
    lab.write(
        "wide.mil",
        SCALED
            .replace("fp16", "fp32")
            .replace("mul(x = x, y = w)", "mul(x = x, y = x)")
            .replace("        tensor<fp32, [1, 2, 1, 1]>", "        // ")
            .as_bytes(),
    );
    assert!(fails(lab.anneal(&["mil", "run", "wide.mil", "--input", "x=random:1"]), 2).contains("--arithmetic exact"));
    ok(lab.anneal(&["mil", "run", "wide.mil", "--input", "x=random:1", "--arithmetic", "exact", "--output", "wide"]));
    assert!(std::fs::read(lab.path("wide/y.npy")).unwrap().windows(5).any(|w| w == b"'<f4'"));
    lab.write("other.mil", SCALED.replace("[1, 2, 1, 32]", "[1, 2, 1, 16]").replace("@model_path/", "@model_path/m.mlmodelc/").as_bytes());
    let said = fails(lab.anneal(&["mil", "run", "other.mil", "--input", "x=one/y.npy"]), 2);
    assert!(said.contains("has shape [1, 2, 1, 32], the port is tensor<fp16, [1, 2, 1, 16]>"), "{said}");
}

#[test]
fn emitted_programs_are_those_that_training_dumps() {
    let lab = Lab::new();
    let emit = |args: &[&str]| {
        let mut command = lab.anneal(&["mil", "emit", "--model", "stories260k"]);
        command.args(args);
        stdout(&ok(command))
    };
    ok(lab.train("run", &["--iters", "1", "--dump-mil", "mil"]));
    for name in ["qkv_fwd", "ffn_bwd", "cls_dx"] {
        let dumped = std::fs::read_to_string(lab.path("mil").join(format!("{name}.mil"))).unwrap();
        assert_eq!(emit(&["--program", name, "--batch-size", "2", "--max-seq-length", "64"]), dumped, "{name}");
    }
    let list = emit(&["--attention", "fused", "--weights", "packed"]);
    assert!(list.lines().any(|l| l.starts_with("attn ")) && list.lines().any(|l| l.starts_with("ffn_bwd_w13 ")), "{list}");
    let unknown = fails(lab.anneal(&["mil", "emit", "--program", "attn"]), 2);
    assert!(unknown.contains("attn") && unknown.contains("qkv_fwd, qk, pv"), "{unknown}");
}

#[test]
fn costs_add_up() {
    let lab = Lab::new();
    lab.write("m.mil", SCALED.as_bytes());
    let text = stdout(&ok(lab.anneal(&["mil", "cost", "m.mil"])));
    assert!(text.contains("y = mul") && text.contains("all of main"), "{text}");
    let cost: Value = serde_json::from_str(&stdout(&ok(lab.anneal(&["mil", "cost", "m.mil", "--json"])))).unwrap();
    // 64 products; x and y of 128 bytes, w of 4.
    assert_eq!((&cost["flops"], &cost["bytes"]), (&64.into(), &260.into()), "{cost}");
    assert_eq!(cost["functions"][0]["ops"][0]["op"], "mul");
}

#[test]
fn fmt_keeps_comments_and_changes_nothing_twice() {
    let lab = Lab::new();
    lab.write("m.mil", SCALED.replace("        tensor", " // a remark\ntensor").replace("x = x", "x=x").as_bytes());
    assert!(stdout(&lab.anneal(&["mil", "fmt", "--check", "m.mil"]).output().unwrap()).contains("m.mil"));
    let printed = stdout(&ok(lab.anneal(&["mil", "fmt", "--stdout", "m.mil"])));
    assert!(printed.contains("// a remark") && printed.contains("mul(x = x, y = w)"), "{printed}");
    ok(lab.anneal(&["mil", "fmt", "m.mil"]));
    assert_eq!(std::fs::read_to_string(lab.path("m.mil")).unwrap(), printed);
    ok(lab.anneal(&["mil", "fmt", "--check", "m.mil"]));
    lab.write("bad.mil", b"program(1.3) {");
    assert!(fails(lab.anneal(&["mil", "fmt", "bad.mil"]), 2).contains("error[syntax]"));
}

#[test]
fn blobs_are_listed() {
    let lab = Lab::new();
    let mut file = mil::blob::Writer::new();
    file.push(mil::blob::BlobType::I4, 3, &[0; 2]).unwrap();
    file.push(mil::blob::BlobType::F32, 5, &[0; 20]).unwrap();
    lab.write("w.bin", &file.finish());
    let list = stdout(&ok(lab.anneal(&["mil", "blobs", "w.bin"])));
    let rows: Vec<Vec<&str>> = list.lines().skip(1).map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(rows, [["64", "int4", "3", "2"], ["192", "fp32", "5", "20"]]);
    lab.write("not.bin", b"no weights");
    let said = lab.anneal(&["mil", "blobs", "not.bin"]).output().unwrap();
    assert_eq!(said.status.code(), Some(2));
    assert!(stderr(&said).contains("not.bin is no weight file"), "{}", stderr(&said));
}
