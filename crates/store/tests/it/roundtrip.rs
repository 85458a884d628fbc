//! What is written comes back, and the same input gives the same bytes.

use crate::common::{Snapshot, config, recover, run, slices};
use model::{Role, Rope};
use std::path::Path;
use store::hf::SpecialTokens;
use store::safetensors::{Dtype, Reader, Tensor, encoded_len, write};
use store::{FileSystem, MemFs, Origin, RealFs, StoreError, checkpoint, hf, llama2c, open_model};

#[test]
fn a_checkpoint_comes_back_bit_for_bit() {
    let dir = tempfile::tempdir().unwrap();
    let mem = MemFs::default();
    let cases: [(&dyn FileSystem, &Path); 2] = [(&RealFs, dir.path()), (&mem, run())];
    for (fs, run) in cases {
        for (step, (rope, tied)) in
            [(Rope::Half, true), (Rope::Half, false), (Rope::Interleaved, true), (Rope::Interleaved, false)].into_iter().enumerate()
        {
            let saved = Snapshot::new(config(rope, tied), 7 + step as u64);
            let path = saved.save(fs, run, step as u64).unwrap();
            let found = recover(fs, run).unwrap();
            assert_eq!((found.dir(), found.step()), (path.as_path(), step as u64));
            saved.assert_is(fs, &found);
            let latest = store::read_text(fs, &run.join("latest")).unwrap();
            assert_eq!(run.join(latest.trim()), path);
            let model = open_model(fs, run).unwrap();
            assert_eq!((model.origin, &model.config), (Origin::Checkpoint { step: step as u64 }, &saved.config));
            assert_eq!(model.params, saved.data[0]);
        }
    }
}

#[test]
fn a_checkpoint_is_the_same_bytes_every_time() {
    let (one, two) = (MemFs::default(), MemFs::new(100));
    let saved = Snapshot::new(config(Rope::Interleaved, false), 3);
    let path = saved.save(&one, run(), 100).unwrap();
    saved.save(&two, run(), 100).unwrap();
    let names: Vec<String> = one.list(&path).unwrap().into_iter().map(|e| e.name).collect();
    assert_eq!(names, ["config.json", "manifest.json", "model.safetensors", "optimizer.safetensors", "state.json"]);
    for name in names {
        assert_eq!(one.read(&path.join(&name)).unwrap(), two.read(&path.join(&name)).unwrap(), "{name}");
    }
}

#[test]
fn a_checkpoint_of_another_model_is_refused_by_the_field() {
    let fs = MemFs::default();
    let saved = Snapshot::new(config(Rope::Half, true), 3);
    saved.save(&fs, run(), 1).unwrap();
    let found = recover(&fs, run()).unwrap();
    let mut other = saved.config.clone();
    other.hidden_dim = 16;
    let error = checkpoint::load::<crate::common::State>(&fs, &found, &other).unwrap_err();
    assert!(matches!(error, StoreError::ConfigMismatch { field: "hidden_dim", .. }), "{error}");
    assert!(error.to_string().contains("hidden_dim = 12") && error.to_string().contains("hidden_dim = 16"), "{error}");
    let error = checkpoint::load::<Vec<u8>>(&fs, &found, &saved.config).unwrap_err();
    assert!(error.to_string().contains("state.json"), "{error}");
}

/// Interleaved order in memory is halves in the file: row `i` of a head is its pair `i`'s first channel.
#[test]
fn files_hold_halves() {
    let fs = MemFs::default();
    let saved = Snapshot::new(config(Rope::Interleaved, true), 5);
    let path = saved.save(&fs, run(), 1).unwrap();
    let mut file = Reader::open(&fs, &path.join("model.safetensors")).unwrap();
    let mut moments = Reader::open(&fs, &path.join("optimizer.safetensors")).unwrap();
    for (i, spec) in saved.config.parameters().iter().enumerate() {
        for (data, there) in [
            (&saved.data[0][i], file.read(&spec.name, &spec.shape).unwrap()),
            (&saved.data[1][i], moments.read(&format!("{}.exp_avg", spec.name), &spec.shape).unwrap()),
            (&saved.data[2][i], moments.read(&format!("{}.exp_avg_sq", spec.name), &spec.shape).unwrap()),
        ] {
            let row = |data: &[f32], r: usize| data[r * 8..(r + 1) * 8].to_vec();
            match spec.role {
                Role::Wq | Role::Wk => {
                    for head in (0..spec.shape[0]).step_by(4) {
                        for (in_file, in_memory) in [(0, 0), (1, 2), (2, 1), (3, 3)] {
                            assert_eq!(row(&there, head + in_file), row(data, head + in_memory), "{}", spec.name);
                        }
                    }
                }
                _ => assert_eq!(&there, data, "{}", spec.name),
            }
        }
    }
}

#[test]
fn the_writer_makes_these_very_bytes() {
    let fs = MemFs::default();
    let path = Path::new("/t.safetensors");
    let tensors = [Tensor::new("b", vec![2], &[1.0, -2.0]), Tensor::new("a\"", vec![1, 3], &[0.5, 0.0, 65504.0])];
    let cases: [(Dtype, &str, &[u8]); 3] = [
        (
            Dtype::F32,
            r#"{"__metadata__":{"format":"pt"},"a\"":{"dtype":"F32","shape":[1,3],"data_offsets":[0,12]},"b":{"dtype":"F32","shape":[2],"data_offsets":[12,20]}}"#,
            &[0, 0, 0, 0x3f, 0, 0, 0, 0, 0, 0xe0, 0x7f, 0x47, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0],
        ),
        (
            Dtype::F16,
            r#"{"__metadata__":{"format":"pt"},"a\"":{"dtype":"F16","shape":[1,3],"data_offsets":[0,6]},"b":{"dtype":"F16","shape":[2],"data_offsets":[6,10]}}"#,
            &[0, 0x38, 0, 0, 0xff, 0x7b, 0, 0x3c, 0, 0xc0],
        ),
        (
            Dtype::BF16,
            r#"{"__metadata__":{"format":"pt"},"a\"":{"dtype":"BF16","shape":[1,3],"data_offsets":[0,6]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[6,10]}}"#,
            &[0, 0x3f, 0, 0, 0x80, 0x47, 0x80, 0x3f, 0, 0xc0],
        ),
    ];
    for (dtype, header, data) in cases {
        let padded = header.len().next_multiple_of(8);
        let mut want = (padded as u64).to_le_bytes().to_vec();
        want.extend_from_slice(header.as_bytes());
        want.resize(8 + padded, b' ');
        want.extend_from_slice(data);
        for order in [[0, 1], [1, 0]] {
            write(&fs, path, &order.map(|i| tensors[i].clone()), dtype).unwrap();
            assert_eq!(fs.read(path).unwrap(), want);
        }
        assert_eq!(encoded_len(&tensors, dtype).unwrap(), want.len() as u64);
        // The format's own library agrees.
        let theirs = safetensors::SafeTensors::deserialize(&want).unwrap();
        assert_eq!(theirs.names().len(), 2);
        assert_eq!(theirs.tensor("b").unwrap().shape(), [2]);
        let mut ours = Reader::open(&fs, path).unwrap();
        assert_eq!(ours.read("b", &[2]).unwrap(), [1.0, -2.0]);
        let top = if dtype == Dtype::BF16 { 65536.0 } else { 65504.0 };
        assert_eq!(ours.read("a\"", &[1, 3]).unwrap(), [0.5, 0.0, top]);
    }
    for twice in [[0, 0], [1, 1]] {
        assert!(write(&fs, path, &twice.map(|i| tensors[i].clone()), Dtype::F32).is_err());
    }
    assert!(write(&fs, path, &[Tensor::new("x", vec![3], &[0.0; 2])], Dtype::F32).is_err());
}

#[test]
fn a_hugging_face_directory_comes_back() {
    let special = SpecialTokens { bos: Some(1), eos: Some(2), pad: None };
    for (rope, tied) in [(Rope::Half, true), (Rope::Half, false), (Rope::Interleaved, true)] {
        let fs = MemFs::default();
        let dir = Path::new("/export/model");
        let saved = Snapshot::new(config(rope, tied), 11);
        hf::write_dir(&fs, dir, &saved.config, &slices(&saved.data[0]), Dtype::F32, special, &[("tokenizer.json", b"{}")]).unwrap();
        assert_eq!(Reader::open(&fs, &dir.join("model.safetensors")).unwrap().shape("lm_head.weight").is_some(), !tied);
        let model = open_model(&fs, dir).unwrap();
        assert_eq!((model.origin, model.special, model.tokenizer), (Origin::HuggingFace, special, Some(dir.join("tokenizer.json"))));
        assert_eq!(model.config, config(Rope::Half, tied));
        assert_eq!(model.params == saved.data[0], rope == Rope::Half);
        // Reading gives halves whatever the model was; a second trip changes nothing.
        let again = Path::new("/again");
        hf::write_dir(&fs, again, &model.config, &slices(&model.params), Dtype::F32, special, &[]).unwrap();
        for name in ["model.safetensors", "config.json", "generation_config.json"] {
            assert_eq!(fs.read(&dir.join(name)).unwrap(), fs.read(&again.join(name)).unwrap(), "{name}");
        }
    }
}

#[test]
fn a_sharded_half_precision_directory_is_read() {
    let fs = MemFs::default();
    let dir = Path::new("/shards");
    let saved = Snapshot::new(config(Rope::Half, false), 13);
    let specs = saved.config.parameters();
    let mut map = serde_json::Map::new();
    for (shard, dtype) in [(0, Dtype::BF16), (1, Dtype::F16)] {
        let file = format!("model-0000{}-of-00002.safetensors", shard + 1);
        let part = specs.iter().zip(&saved.data[0]).enumerate().filter(|(i, _)| i % 2 == shard);
        let tensors: Vec<Tensor<'_>> = part.map(|(_, (s, d))| Tensor::new(&s.name, s.shape.clone(), d)).collect();
        fs.put(&dir.join(&file), b"").unwrap();
        write(&fs, &dir.join(&file), &tensors, dtype).unwrap();
        map.extend(tensors.iter().map(|t| (t.name.clone(), file.clone().into())));
    }
    let index = serde_json::json!({ "metadata": { "total_size": 1 }, "weight_map": map });
    fs.put(&dir.join("model.safetensors.index.json"), index.to_string().as_bytes()).unwrap();
    fs.put(&dir.join("config.json"), &hf::config_json(&saved.config, SpecialTokens::default(), "float16").unwrap()).unwrap();
    let model = open_model(&fs, dir).unwrap();
    for (i, (got, want)) in model.params.iter().zip(&saved.data[0]).enumerate() {
        let round = |v: &f32| if i % 2 == 0 { half::bf16::from_f32(*v).to_f32() } else { half::f16::from_f32(*v).to_f32() };
        assert_eq!(got, &want.iter().map(round).collect::<Vec<_>>(), "{}", specs[i].name);
    }
    // A shard elsewhere is refused.
    let index = index.to_string().replace("model-00001-of", "../model-00001-of");
    fs.put(&dir.join("model.safetensors.index.json"), index.as_bytes()).unwrap();
    let error = open_model(&fs, dir).unwrap_err();
    assert!(error.to_string().contains("plain file name"), "{error}");
}

#[test]
fn a_llama2c_file_comes_back_in_halves() {
    for tied in [true, false] {
        let fs = MemFs::default();
        let (a, b) = (Path::new("/a.bin"), Path::new("/b.bin"));
        let saved = Snapshot::new(config(Rope::Interleaved, tied), 17);
        llama2c::write(&fs, a, &saved.config, &slices(&saved.data[0])).unwrap();
        let model = open_model(&fs, a).unwrap();
        assert_eq!((model.origin, &model.config), (Origin::Llama2c, &config(Rope::Half, tied)));
        for ((spec, got), want) in model.config.parameters().iter().zip(&model.params).zip(&saved.data[0]) {
            assert_eq!(got != want, matches!(spec.role, Role::Wq | Role::Wk), "{}", spec.name);
        }
        llama2c::write(&fs, b, &model.config, &slices(&model.params)).unwrap();
        assert_eq!(fs.read(a).unwrap(), fs.read(b).unwrap());
        // The same weights by way of a checkpoint of the interleaved model.
        saved.save(&fs, run(), 1).unwrap();
        let mut file = Reader::open(&fs, &checkpoint::path(run(), 1).join("model.safetensors")).unwrap();
        for (spec, got) in model.config.parameters().iter().zip(&model.params) {
            assert_eq!(&file.read(&spec.name, &spec.shape).unwrap(), got, "{}", spec.name);
        }
    }
}

/// A real trained model, where the corpus is at hand.
#[test]
fn stories260k_is_read_as_its_header_says() {
    let corpus = std::env::var("ANNEAL_CORPUS").unwrap_or_else(|_| format!("{}/../../../shared/corpus", env!("CARGO_MANIFEST_DIR")));
    let path = Path::new(&corpus).join("stories260K.bin");
    if !path.exists() {
        eprintln!("skipped: no {} (set ANNEAL_CORPUS to the directory that holds it)", path.display());
        return;
    }
    let model = open_model(&RealFs, &path).unwrap();
    let c = &model.config;
    assert_eq!((c.dim, c.hidden_dim, c.n_layers, c.n_heads, c.n_kv_heads, c.vocab_size, c.max_seq_len), (64, 172, 5, 8, 4, 512, 512));
    assert!(c.tied && c.rope == Rope::Half);
    for (spec, data) in c.parameters().iter().zip(&model.params) {
        assert_eq!(data.len(), spec.len());
        let peak = data.iter().fold(0.0f32, |m, v| m.max(v.abs()));
        assert!(peak > 0.01 && peak < 20.0, "{}: largest value {peak}", spec.name);
    }
    // Back to the same bytes, up to the rotary tables, whose last bits depend on who computed them.
    let dir = tempfile::tempdir().unwrap();
    let back = dir.path().join("back.bin");
    llama2c::write(&RealFs, &back, c, &slices(&model.params)).unwrap();
    let (there, here) = (std::fs::read(&path).unwrap(), std::fs::read(&back).unwrap());
    let tables = there.len() - 2 * 4 * 512 * 4;
    assert_eq!(there.len(), here.len());
    assert!(there[..tables] == here[..tables]);
    for (a, b) in there[tables..].chunks_exact(4).zip(here[tables..].chunks_exact(4)) {
        let value = |b: &[u8]| f32::from_le_bytes(b.try_into().unwrap());
        assert!((value(a) - value(b)).abs() < 1e-3);
    }
}
