//! The older dialect, and what the grammar has that this project does not write.

use mil::{Arg, Blobs, Literal, Profile};
use std::path::PathBuf;

/// One of everything: canonical in its dialect.
const OLD: &str = r#"program(1.0)
[buildInfo = dict<tensor<string, []>, tensor<string, []>>({{"coremlc-version", "3500.32.1"}})]
{
    func main<ios16>(tensor<fp32, [1, 4]> x, tensor<int32, [1, ?]> ids) [FlexibleShapeInformation = tuple<tuple<tensor<string, []>, dict<tensor<string, []>, tensor<int32, [?]>>>, tuple<tensor<string, []>, dict<tensor<string, []>, list<tensor<int32, [2]>, ?>>>>((("DefaultShapes", {{"ids", [1, 1]}}), ("RangeDims", {{"ids", [[1, 1], [1, 2048]]}}))), flag = tensor<bool, []>(true)] {
        tensor<fp16, []> one = const()[name = tensor<string, []>("one"), val = tensor<fp16, []>(0x1p+0)];
        tensor<int32, [4]> pads = const()[name = tensor<string, []>("pads"), val = tensor<int32, [4]>([0, 0, 0, 1])];
        tensor<string, [2]> words = const()[val = tensor<string, [2]>(["a", "b"])];
        tensor<fp16, [2, 4]> w = constexpr_affine_dequantize()[axis = tensor<int32, []>(0), quantized_data = tensor<int8, [2, 4]>(BLOBFILE(path = tensor<string, []>("@model_path/weights/weight.bin"), offset = tensor<uint64, []>(64))), scale = tensor<fp16, []>(0x1p-3), zero_point = tensor<int8, []>(-1), name = tensor<string, []>("w")];
        tensor<fp32, [1, 2]> a, tensor<fp32, [1, 2]> b = split(x = x, num_splits = tensor<int32, []>(2), axis = tensor<int32, []>(1));
        tensor<fp32, [1, 4]> y = concat(values = (a, b), axis = tensor<int32, []>(1));
    } -> (y);
    func other<ios15>() {
    } -> ();
}
"#;

const NEW: &str = r#"program(1.3)
[buildInfo = dict<string, string>({{"coremltools-version", "9.0"}})]
{
    func main<ios18>(state<tensor<fp16, [1, 4]>> cache, tensor<fp16, [1, 4]> x) {
        tensor<uint4, [2, 2]> q = const()[val = tensor<uint4, [2, 2]>([[1, 2], [3, 15]])];
        tensor<int4, [2, 2]> p = const()[val = tensor<int4, [2, 2]>(BLOBFILE(path = string("@model_path/weights/w.bin"), offset = uint64(64)))];
        tensor<fp16, [2, 2]> w = constexpr_blockwise_shift_scale(data = q, scale = p);
        tensor<fp16, [1, 4]> old = read_state(input = cache)[name = string("old")];
        tensor<fp16, [1, 4]> y = add(x = old, y = tensor<fp16, [1, 4]>(BLOBFILE(path = string("@model_path/weights/v.bin"), offset = uint64(64))));
        write_state(input = cache, data = y)[name = string("write")];
    } -> (y);
}
"#;

#[test]
fn canonical_text_of_both_dialects_prints_as_it_is() {
    for text in [OLD, NEW] {
        let program = mil::parse(text).unwrap_or_else(|e| panic!("{}", e.render("t", text)));
        assert_eq!(mil::print(&program), text);
        assert_eq!(mil::fmt(text).unwrap(), text);
    }
}

#[test]
fn a_program_of_one_dialect_is_the_same_written_in_the_other() {
    for text in [OLD, NEW] {
        let mut program = mil::parse(text).unwrap();
        program.version = if program.version == (1, 0) { (1, 3) } else { (1, 0) };
        let printed = mil::print(&program);
        assert_eq!(mil::parse(&printed).unwrap(), program);
        assert_eq!(printed.contains("tensor<string, []>"), program.version == (1, 0));
    }
}

#[test]
fn constants_that_are_decoded_have_arguments_wherever_they_are_written() {
    let program = mil::parse(OLD).unwrap();
    let op = program.functions[0].ops.iter().map(|(_, op)| op).find(|op| op.kind == mil::ops::OpKind::ConstexprAffineDequantize).unwrap();
    assert!(matches!(op.arg("axis"), Some(Arg::Literal(Literal::Ints(_, axis))) if axis == &[0]));
    assert_eq!(op.attrs.len(), 1);
}

#[test]
fn what_the_grammar_allows_and_the_verifier_does_not() {
    let verify = |text: &str| {
        let mut program = mil::parse(text).unwrap();
        program.functions.truncate(1);
        mil::verify(program, Blobs::default(), Profile::Language).map(|_| ()).unwrap_err()
    };
    assert!(crate::codes(&verify(OLD)).contains(&"unknown-dimension"));
    assert!(verify(NEW).0.iter().all(|d| d.code == "blob"), "{}", verify(NEW));
    let misused = NEW.replace("read_state(input = cache)", "read_state(input = x)").replace("x = old", "x = cache");
    assert_eq!(crate::codes(&verify(&misused)), ["state", "state"]);
}

/// The models of the corpus, if it is there.
fn corpus() -> Vec<PathBuf> {
    let root =
        std::env::var_os("ANNEAL_CORPUS").map_or(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"), PathBuf::from);
    let mut found = Vec::new();
    let mut dirs = vec![root];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|e| e == "mil") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn every_model_of_the_corpus_reads_prints_and_is_verified() {
    let models = corpus();
    if models.is_empty() {
        eprintln!("skipped: no corpus; ANNEAL_CORPUS names its directory");
    }
    for path in models {
        let text = std::fs::read_to_string(&path).unwrap();
        let program = mil::parse(&text).unwrap_or_else(|e| panic!("{}", e.render(&path.to_string_lossy(), &text)));
        assert_eq!(mil::parse(&mil::print(&program)).as_ref(), Ok(&program), "{}", path.display());
        let formatted = mil::fmt(&text).unwrap();
        assert_eq!(mil::parse(&formatted).as_ref(), Ok(&program));
        assert_eq!(mil::fmt(&formatted).as_ref(), Ok(&formatted));
        // Weights lie beside the program, as it says.
        let weights = path.with_file_name("weights").join("weight.bin");
        let file = std::fs::read(weights).ok().map(|bytes| ("@model_path/weights/weight.bin".to_string(), bytes.into()));
        let verified = mil::verify(program, Blobs(file.into_iter().collect()), Profile::Language);
        let verified = verified.unwrap_or_else(|e| panic!("{}", e.render(&path.to_string_lossy(), &text)));
        assert!(verified.warnings().0.is_empty(), "{}", verified.warnings());
    }
}
