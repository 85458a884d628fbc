//! Files made to harm: refused with a message, never a panic, never more memory than the file holds.

use crate::common::{Snapshot, config, run};
use model::Rope;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use store::hf::{SpecialTokens, config_json, read_config};
use store::safetensors::Reader;
use store::{MemFs, checkpoint, llama2c, open_model};

fn put(bytes: &[u8]) -> (MemFs, &'static Path) {
    let fs = MemFs::default();
    let path = Path::new("/model/file");
    fs.put(path, bytes).unwrap();
    (fs, path)
}

fn safetensors(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(header.as_bytes());
    bytes.resize(bytes.len() + data, 0);
    bytes
}

fn refused(bytes: &[u8]) -> String {
    let (fs, path) = put(bytes);
    Reader::open(&fs, path).err().map(|e| e.to_string()).expect("the file must be refused")
}

#[test]
fn safetensors_attacks_are_refused() {
    let tensor = |shape: &str, from: u64, to: u64| format!(r#"{{"dtype":"F32","shape":{shape},"data_offsets":[{from},{to}]}}"#);
    assert!(refused(b"").contains("0 bytes long"));
    assert!(refused(&u64::MAX.to_le_bytes()).contains("header"));
    assert!(refused(&[&100_000_001u64.to_le_bytes()[..], &[b' '; 100]].concat()).contains("header"));
    for header in [
        "".into(),
        "[]".into(),
        "{".into(),
        "{\"a\":1}".into(),
        "[".repeat(10_000),
        format!("{{\"a\":{}}}", tensor("[4]", 0, 12)),
        format!("{{\"a\":{}}}", tensor("[4]", 16, 0)),
        format!("{{\"a\":{}}}", tensor("[2]", 8, 16)),
        format!("{{\"a\":{},\"b\":{}}}", tensor("[4]", 0, 16), tensor("[4]", 0, 16)),
        format!("{{\"a\":{}}}", tensor("[18446744073709551615,18446744073709551615]", 0, 16)),
        format!("{{\"a\":{}}}", tensor("[4611686018427387904]", 0, 0)),
        format!("{{\"a\":{}}}", tensor("[1152921504606846976]", 0, 4_611_686_018_427_387_904)),
        format!("{{\"a\":{},\"a\":{}}}", tensor("[4]", 0, 16), tensor("[4]", 0, 16)),
        format!("{{\"a\":{}}}", tensor("[5]", 0, 20)),
        format!("{{\"a\":{}}}", tensor("[3]", 0, 12)),
    ] {
        let message = refused(&safetensors(&header, 16));
        assert!(message.contains("/model/file"), "{message}");
    }
    let twice = format!("{{\"a\":{},\"a\":{}}}", tensor("[4]", 0, 16), tensor("[4]", 0, 16));
    assert!(refused(&safetensors(&twice, 16)).contains("tensor `a` is listed twice"));
    let (fs, path) = put(&safetensors(r#"{"a":{"dtype":"I64","shape":[2],"data_offsets":[0,16]}}"#, 16));
    let error = Reader::open(&fs, path).unwrap().read("a", &[2]).unwrap_err().to_string();
    assert!(error.contains("`a`") && error.contains("I64"), "{error}");
    let error = Reader::open(&fs, path).unwrap().read("a", &[1, 2]).unwrap_err().to_string();
    assert!(error.contains("[2]") && error.contains("[1, 2]"), "{error}");
}

/// The configuration of a small model as a JSON object.
fn config_value() -> Value {
    serde_json::from_slice(&config_json(&config(Rope::Half, true), SpecialTokens::default(), "float32").unwrap()).unwrap()
}

fn read(value: &Value) -> Result<model::Config, String> {
    let (fs, path) = put(value.to_string().as_bytes());
    read_config(&fs, path).map(|(c, _)| c).map_err(|e| e.to_string())
}

#[test]
fn configurations_old_and_new_are_read() {
    let want = config(Rope::Half, true);
    assert_eq!(read(&config_value()), Ok(want.clone()));
    let mut old = config_value();
    let map = old.as_object_mut().unwrap();
    for gone in ["rope_parameters", "head_dim", "mlp_bias", "attention_bias", "dtype"] {
        map.remove(gone);
    }
    map.insert("rope_scaling".into(), Value::Null);
    assert_eq!(read(&old), Ok(want.clone()));
    let mut new = config_value();
    new.as_object_mut().unwrap().remove("rope_theta");
    new["rope_parameters"]["rope_theta"] = json!(500_000.0);
    assert_eq!(read(&new), Ok(model::Config { rope_theta: 500_000.0, ..want.clone() }));
    let mut all_heads = config_value();
    all_heads.as_object_mut().unwrap().remove("num_key_value_heads");
    assert_eq!(read(&all_heads), Ok(model::Config { n_kv_heads: 2, ..want }));
    let mut list = config_value();
    list["eos_token_id"] = json!([7, 8]);
    list["bos_token_id"] = json!(-1);
    let (fs, path) = put(list.to_string().as_bytes());
    assert_eq!(read_config(&fs, path).unwrap().1, SpecialTokens { bos: None, eos: Some(7), pad: None });
}

#[test]
fn what_is_not_computed_is_refused_by_name() {
    for (field, value) in [
        ("model_type", json!("qwen3")),
        ("architectures", json!(["MistralForCausalLM"])),
        ("hidden_act", json!("gelu")),
        ("attention_bias", json!(true)),
        ("mlp_bias", json!(true)),
        ("quantization_config", json!({ "bits": 4 })),
        ("partial_rotary_factor", json!(0.5)),
        ("rope_scaling", json!({ "type": "linear", "factor": 2.0 })),
        ("rope_scaling", json!({ "rope_type": "llama3", "factor": 8.0 })),
        ("rope_parameters", json!({ "rope_type": "yarn", "rope_theta": 10000.0 })),
        ("rope_parameters", json!({ "full_attention": { "rope_theta": 10000.0 } })),
        ("rope_parameters", json!({ "rope_type": "default", "rope_theta": 20000.0 })),
        ("hidden_size", Value::Null),
        ("hidden_size", json!(-8)),
        ("vocab_size", json!(1e30)),
        ("num_key_value_heads", json!(3)),
        ("rms_norm_eps", json!("tiny")),
        ("num_attention_heads", json!(0)),
    ] {
        let mut wrong = config_value();
        wrong[field] = value;
        if field == "num_attention_heads" {
            wrong.as_object_mut().unwrap().remove("head_dim");
        }
        let message = read(&wrong).unwrap_err();
        let named = message.contains(field) || (field, message.contains("n_kv_heads")) == ("num_key_value_heads", true);
        assert!(named && message.starts_with("/model/file"), "{field}: {message}");
    }
}

/// A directory whose configuration promises more than its file holds.
#[test]
fn a_configuration_cannot_make_a_small_file_large() {
    let fs = MemFs::default();
    let dir = Path::new("/big");
    let saved = Snapshot::new(config(Rope::Half, true), 1);
    let params = crate::common::slices(&saved.data[0]);
    for (field, value) in [("num_hidden_layers", 1 << 24), ("vocab_size", 1 << 24), ("head_dim", 1 << 24), ("num_hidden_layers", 3)] {
        store::hf::write_dir(&fs, dir, &saved.config, &params, store::safetensors::Dtype::F32, Default::default(), &[]).unwrap();
        let mut wrong = config_value();
        wrong[field] = json!(value);
        fs.put(&dir.join("config.json"), wrong.to_string().as_bytes()).unwrap();
        let message = open_model(&fs, dir).unwrap_err().to_string();
        assert!(message.contains("/big"), "{message}");
    }
}

#[test]
fn tensors_that_do_not_belong_are_refused() {
    use store::safetensors::{Dtype, Tensor, write};
    let fs = MemFs::default();
    let dir = Path::new("/extra");
    let saved = Snapshot::new(config(Rope::Half, true), 1);
    let (embedding, other) = (saved.data[0][0].clone(), vec![0.0; 80]);
    let extra = |name: &str, shape: Vec<usize>, data: &[f32]| {
        let mut tensors: Vec<Tensor<'_>> =
            saved.config.parameters().iter().zip(&saved.data[0]).map(|(s, d)| Tensor::new(&s.name, s.shape.clone(), d)).collect();
        tensors.push(Tensor::new(name, shape, data));
        fs.put(&dir.join("config.json"), config_value().to_string().as_bytes()).unwrap();
        write(&fs, &dir.join("model.safetensors"), &tensors, Dtype::F32).unwrap();
        open_model(&fs, dir).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(extra("model.layers.0.self_attn.rotary_emb.inv_freq", vec![2], &[1.0, 0.1]), Ok(()));
    assert_eq!(extra("lm_head.weight", vec![10, 8], &embedding), Ok(()));
    assert!(extra("lm_head.weight", vec![10, 8], &other).unwrap_err().contains("tie_word_embeddings"));
    assert!(extra("model.layers.0.self_attn.q_proj.bias", vec![8], &other[..8]).unwrap_err().contains("q_proj.bias"));
    assert!(extra("model.layers.0.self_attn.q_norm.weight", vec![4], &other[..4]).unwrap_err().contains("q_norm"));
}

/// A checkpoint whose checksums are right and whose content is not.
#[test]
fn a_manifest_that_agrees_with_hostile_files_is_not_enough() {
    let forge = |change: &dyn Fn(&str) -> String, file: &str| {
        let fs = MemFs::default();
        let dir = Snapshot::new(config(Rope::Half, true), 1).save(&fs, run(), 1).unwrap();
        let path = dir.join(file);
        let whole = fs.read(&path).unwrap();
        let text = change(std::str::from_utf8(&whole).unwrap());
        fs.put(&path, text.as_bytes()).unwrap();
        if file != "manifest.json" {
            let entry = |bytes: &[u8]| {
                let hash = blake3::hash(bytes).to_hex();
                format!("\"bytes\": {},\n      \"blake3\": \"{hash}\"", bytes.len())
            };
            let manifest = String::from_utf8(fs.read(&dir.join("manifest.json")).unwrap()).unwrap();
            let forged = manifest.replace(&entry(&whole), &entry(text.as_bytes()));
            assert_eq!(forged == manifest, whole == text.as_bytes());
            fs.put(&dir.join("manifest.json"), forged.as_bytes()).unwrap();
        }
        open_model(&fs, &dir).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(forge(&|t| t.to_owned(), "state.json"), Ok(()));
    for (from, to) in [
        ("\"n_layers\": 2", "\"n_layers\": 16000000"),
        ("\"n_layers\": 2", "\"n_layers\": 3"),
        ("\"dim\": 8", "\"dim\": 0"),
        ("\"format\": 1", "\"format\": 2"),
        ("\"step\": 1", "\"step\": 2"),
        ("\"tied\": true", "\"tied\": true, \"extra\": 1"),
    ] {
        assert!(forge(&|t| t.replace(from, to), "state.json").is_err(), "{to}");
    }
    let outside = "\"../../../etc/passwd\"";
    assert!(forge(&|t| t.replace("\"config.json\"", outside), "manifest.json").unwrap_err().contains("plain file name"));
    assert!(forge(&|t| t.replace("\"format\": 1", "\"format\": 9"), "manifest.json").unwrap_err().contains("format 9"));
    assert!(forge(&|t| t.replace("  ", " "), "manifest.json").is_err());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0u64..40).prop_map(|n| Value::from(1u64 << n)),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,12}", inner, 0..4).prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

/// Changes some bytes of a file, or cuts it.
fn mutate(whole: &[u8], changes: &[(usize, u8)], cut: Option<usize>) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for (at, value) in changes {
        let at = at % bytes.len();
        bytes[at] = *value;
    }
    bytes.truncate(cut.map_or(usize::MAX, |c| c % bytes.len()));
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let (fs, path) = put(&bytes);
        prop_assert!(llama2c::read(&fs, path).is_err());
        let _ = read_config(&fs, path);
        let _ = Reader::open(&fs, path);
        let with_length = [&(bytes.len() as u64).to_le_bytes()[..], &bytes].concat();
        let (fs, path) = put(&with_length);
        let _ = Reader::open(&fs, path);
    }

    #[test]
    fn random_safetensors_headers_never_panic(
        dtype in prop_oneof![Just("F32"), Just("F16"), Just("BF16"), Just("F4"), Just("I64"), Just("X")],
        shape in prop::collection::vec(prop_oneof![0u64..9, any::<u64>(), (0u32..64).prop_map(|n| 1 << n)], 0..4),
        start in prop_oneof![Just(0u64), any::<u64>()],
        end in prop_oneof![0u64..64, any::<u64>()],
        other in any_json(),
        data in 0usize..64,
    ) {
        let header = json!({ "a": { "dtype": dtype, "shape": shape, "data_offsets": [start, end] }, "b": other });
        let alone = json!({ "a": { "dtype": dtype, "shape": shape, "data_offsets": [start, end] } });
        for header in [header, alone] {
            let (fs, path) = put(&safetensors(&header.to_string(), data));
            if let Ok(mut file) = Reader::open(&fs, path) {
                let shape: Vec<usize> = file.shape("a").unwrap().to_vec();
                if let Ok(values) = file.read("a", &shape) {
                    prop_assert_eq!(values.len(), shape.iter().product::<usize>());
                }
            }
        }
    }

    #[test]
    fn random_configurations_never_panic(field in 0usize..40, value in any_json(), second in 0usize..40, other in any_json()) {
        let mut wrong = config_value();
        let keys: Vec<String> = wrong.as_object().unwrap().keys().cloned().collect();
        wrong[&keys[field % keys.len()]] = value;
        wrong[&keys[second % keys.len()]] = other;
        if let Ok(config) = read(&wrong) {
            prop_assert!(config.check().is_ok());
        }
    }

    #[test]
    fn random_llama2c_headers_never_panic(
        header in prop::array::uniform7(prop_oneof![1i32..5, any::<i32>(), (0u32..31).prop_map(|n| 1 << n)]),
        tail in 0usize..4000,
    ) {
        let mut bytes: Vec<u8> = header.iter().flat_map(|v| v.to_le_bytes()).collect();
        bytes.resize(28 + tail, 0);
        let (fs, path) = put(&bytes);
        if let Ok((config, params)) = llama2c::read(&fs, path) {
            prop_assert_eq!(config.parameters().iter().map(|p| p.len()).sum::<usize>(), params.iter().map(Vec::len).sum::<usize>());
        }
    }

    #[test]
    fn mutated_checkpoints_are_never_loaded(
        file in 0usize..5,
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<usize>()),
    ) {
        let fs = MemFs::default();
        let dir = Snapshot::new(config(Rope::Half, true), 1).save(&fs, run(), 1).unwrap();
        let names = ["config.json", "manifest.json", "model.safetensors", "optimizer.safetensors", "state.json"];
        let path = dir.join(names[file]);
        let whole = fs.read(&path).unwrap();
        let changed = mutate(&whole, &changes, cut);
        fs.put(&path, &changed).unwrap();
        prop_assert_eq!(checkpoint::verify(&fs, &dir).is_ok(), changed == whole);
    }
}
