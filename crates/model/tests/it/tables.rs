//! Port tables against programs.md 3, and the rules of programs.md 1.

use model::programs::{
    Act, Attention, Content, LayerPrograms, Options, PortSpec, ProgramError, ProgramKind, ProgramSpec, Sharing, WeightPort, Weights,
    layer_programs,
};
use model::{Config, Preset, Rope, Shape};

const ONE: Shape = Shape { batch: 1, seq: 256 };

fn preset(name: &str) -> Config {
    Preset::by_name(name).unwrap().config
}

fn qwen3() -> Config {
    Config {
        dim: 1024,
        hidden_dim: 3072,
        n_layers: 28,
        n_heads: 16,
        n_kv_heads: 8,
        head_dim: 128,
        vocab_size: 151_936,
        max_seq_len: 40_960,
        rope_theta: 1e6,
        rope: Rope::Half,
        norm_eps: 1e-6,
        tied: true,
    }
}

fn build(config: &Config, shape: Shape, weights: Weights, attention: Attention) -> LayerPrograms {
    layer_programs(config, shape, Options { weights, attention }).unwrap()
}

fn variants(config: &Config, shape: Shape) -> Vec<LayerPrograms> {
    let weights = [Weights::Packed, Weights::Ports, Weights::Baked];
    weights.iter().flat_map(|&w| [Attention::Split, Attention::Fused].map(|a| build(config, shape, w, a))).collect()
}

fn all(programs: &LayerPrograms) -> Vec<&ProgramSpec> {
    programs.layer().into_iter().chain(programs.classifier.iter().flat_map(|s| [&s.fwd, &s.dx])).collect()
}

/// Channels and width of the only input, channels of the only output.
fn extent(programs: &LayerPrograms, kind: ProgramKind) -> (usize, usize, usize) {
    let spec = programs.get(kind).unwrap();
    let ([input], [output]) = (&spec.inputs[..], &spec.outputs[..]) else { panic!("{kind}: one port a direction") };
    assert_eq!((input.shape[0], input.shape[2]), (1, 1));
    assert_eq!((output.shape[0], output.shape[2], output.shape[3]), (1, 1, 256));
    (input.shape[1], input.shape[3], output.shape[1])
}

#[test]
fn packed_ports_are_the_tables() {
    use ProgramKind::*;
    let stories = build(&preset("stories110m"), ONE, Weights::Packed, Attention::Split);
    let qwen = build(&qwen3(), ONE, Weights::Packed, Attention::Split);
    let table = [
        (QkvFwd, (768, 2560, 2304), (1024, 4352, 4096)),
        (Qk, (1536, 256, 3072), (3072, 256, 4096)),
        (Pv, (3840, 256, 768), (5120, 256, 2048)),
        (WoFwd, (768, 1024, 768), (2048, 1280, 1024)),
        (FfnFwd, (768, 6400, 6912), (1024, 9472, 10240)),
        (FfnBwdW2, (768, 2304, 2048), (1024, 3328, 3072)),
        (FfnBwdW13, (4096, 1024, 768), (6144, 1280, 1024)),
        (WoBwd, (768, 1024, 768), (1024, 2304, 2048)),
        (AttnBwd1, (4608, 256, 3840), (7168, 256, 5120)),
        (AttnBwd2, (4608, 256, 1536), (7168, 256, 3072)),
        (QkvBwd, (2304, 1024, 768), (4096, 1280, 1024)),
    ];
    assert_eq!(stories.layer().len(), table.len());
    for (kind, of_stories, of_qwen) in table {
        assert_eq!(extent(&stories, kind), of_stories, "Stories110M {kind}");
        assert_eq!(extent(&qwen, kind), of_qwen, "Qwen3-0.6B {kind}");
    }
    let fused = build(&preset("stories110m"), ONE, Weights::Packed, Attention::Fused);
    assert_eq!(extent(&fused, Attn), (2304, 256, 3840));
}

#[test]
fn packed_offsets_are_the_tables() {
    let programs = build(&preset("stories110m"), ONE, Weights::Packed, Attention::Split);
    let offsets = |kind| {
        let describe = |f: &model::programs::FieldSpec| match &f.content {
            Content::Activation(act) => (format!("{act:?}"), f.row, f.col),
            Content::Weight(w) => (format!("{:?}{}", w.role, if w.transposed { "ᵀ" } else { "" }), f.row, f.col),
        };
        programs.get(kind).unwrap().inputs[0].fields.iter().map(describe).collect::<Vec<_>>()
    };
    let is = |kind, want: &[(&str, usize, usize)]| {
        let want: Vec<_> = want.iter().map(|&(n, r, c)| (n.to_string(), r, c)).collect();
        assert_eq!(offsets(kind), want, "{kind}");
    };
    is(ProgramKind::QkvFwd, &[("X", 0, 0), ("Wqᵀ", 0, 256), ("Wkᵀ", 0, 1024), ("Wvᵀ", 0, 1792)]);
    is(ProgramKind::WoFwd, &[("AttnOut", 0, 0), ("Woᵀ", 0, 256)]);
    is(ProgramKind::FfnFwd, &[("X", 0, 0), ("W1ᵀ", 0, 256), ("W3ᵀ", 0, 2304), ("W2", 0, 4352)]);
    is(ProgramKind::FfnBwdW2, &[("Dy", 0, 0), ("W2", 0, 256)]);
    is(ProgramKind::FfnBwdW13, &[("DH1", 0, 0), ("DH3", 2048, 0), ("W1", 0, 256), ("W3", 2048, 256)]);
    is(ProgramKind::WoBwd, &[("Dy", 0, 0), ("Wo", 0, 256)]);
    is(ProgramKind::QkvBwd, &[("DQ", 0, 0), ("DK", 768, 0), ("DV", 1536, 0), ("Wq", 0, 256), ("Wk", 768, 256), ("Wv", 1536, 256)]);
    is(ProgramKind::AttnBwd1, &[("Probs", 0, 0), ("DAttnOut", 3072, 0), ("V", 3840, 0)]);
}

#[test]
fn weight_ports_are_stored_matrices_that_forward_and_backward_share() {
    let programs = build(&preset("stories110m"), ONE, Weights::Ports, Attention::Split);
    let weights = |kind| {
        let spec = programs.get(kind).unwrap();
        let shape = |p: &PortSpec| match p.sharing {
            Sharing::Weights(key) => Some((p.name.clone(), key, p.shape.clone())),
            _ => None,
        };
        spec.inputs.iter().filter_map(shape).collect::<Vec<_>>()
    };
    let named = |name: &str, key, shape: [usize; 3]| (name.to_string(), key, shape.to_vec());
    let qkv = named("b_wqkv", WeightPort::Wqkv, [1, 2304, 768]);
    let wo = named("b_wo", WeightPort::Wo, [1, 768, 768]);
    let ffn = [named("b_w13", WeightPort::W13, [1, 4096, 768]), named("c_w2", WeightPort::W2, [1, 768, 2048])];
    assert_eq!((weights(ProgramKind::QkvFwd), weights(ProgramKind::QkvBwd)), (vec![qkv.clone()], vec![qkv]));
    assert_eq!((weights(ProgramKind::WoFwd), weights(ProgramKind::WoBwd)), (vec![wo.clone()], vec![wo]));
    assert_eq!((weights(ProgramKind::FfnFwd), weights(ProgramKind::FfnBwd)), (ffn.to_vec(), ffn.to_vec()));
    let joined = programs.get(ProgramKind::FfnBwd).unwrap();
    assert_eq!((joined.inputs[0].shape[1], joined.outputs[0].shape[1]), (768 + 2 * 2048, 768 + 2 * 2048));
    let [first, second] = &programs.classifier[..] else { panic!("two slices") };
    assert_eq!(first.fwd.inputs[1].shape, [1, 16_000, 768]);
    assert_eq!((second.first, second.len), (16_000, 16_000));
    assert_eq!(second.dx.inputs[1].sharing, Sharing::Weights(WeightPort::Classifier(1)));
    assert_eq!((&first.fwd.program, &first.dx.program), (&second.fwd.program, &second.dx.program), "compiled once");
}

#[test]
fn baked_programs_have_no_weight_ports_and_one_file_a_constant() {
    let programs = build(&preset("stories15m"), ONE, Weights::Baked, Attention::Fused);
    for spec in programs.layer() {
        assert_eq!(spec.inputs.len(), 1, "{}", spec.kind);
        let mut paths: Vec<_> = spec.blobs.iter().map(|b| b.path.clone()).collect();
        paths.dedup();
        assert_eq!(paths.len(), spec.blobs.len());
    }
    let baked: Vec<_> = programs.layer().into_iter().filter(|p| p.is_baked()).map(|p| p.kind.name()).collect();
    assert_eq!(baked, ["qkv_fwd", "wo_fwd", "ffn_fwd", "ffn_bwd", "wo_bwd", "qkv_bwd"]);
    assert_eq!((programs.recompiles(6), programs.compiles(6)), (36, 36 + 3 + 2));
    assert!(programs.classifier.iter().all(|s| !s.fwd.is_baked() && s.fwd.inputs.len() == 2));
}

#[test]
fn dispatches_are_the_tables() {
    let count = |weights, attention| build(&preset("stories110m"), ONE, weights, attention).dispatches(12);
    assert_eq!(count(Weights::Packed, Attention::Split), 12 * 11 + 4);
    assert_eq!(count(Weights::Packed, Attention::Fused), 12 * 10 + 4);
    assert_eq!(count(Weights::Ports, Attention::Split), 12 * 10 + 4);
    let ports = build(&preset("stories110m"), ONE, Weights::Ports, Attention::Split);
    assert_eq!((ports.compiles(12), ports.recompiles(12)), (12, 0));
}

#[test]
fn attention_programs_are_the_same_in_every_binding() {
    let of = |weights| build(&preset("stories260k"), ONE, weights, Attention::Split);
    let (packed, ports, baked) = (of(Weights::Packed), of(Weights::Ports), of(Weights::Baked));
    for kind in [ProgramKind::Qk, ProgramKind::Pv, ProgramKind::AttnBwd1, ProgramKind::AttnBwd2] {
        assert_eq!(packed.get(kind), ports.get(kind));
        assert_eq!(packed.get(kind), baked.get(kind));
    }
}

/// Weight files of the right size, all zeros.
fn blobs(spec: &ProgramSpec) -> mil::Blobs {
    let zeros = |shape: &[usize]| mil::blob::single_f16(&vec![half::f16::ZERO; shape.iter().product()]);
    mil::Blobs(spec.blobs.iter().map(|b| (b.path.clone(), zeros(&b.shape).into())).collect())
}

#[test]
fn every_program_passes_the_verifier_of_every_chip() {
    for (name, shape) in [("storybook", Shape { batch: 4, seq: 256 }), ("stories260k", Shape { batch: 2, seq: 512 }), ("stories110m", ONE)]
    {
        for programs in variants(&preset(name), shape) {
            for spec in all(&programs) {
                for chip in mil::Chip::ALL {
                    let found = match mil::verify(spec.program.clone(), blobs(spec), mil::Profile::Chip(chip)) {
                        Ok(verified) => verified.warnings().clone(),
                        Err(found) => found,
                    };
                    // M1 and M2 clamp slices at a width offset above 4094: packed weights, never activations
                    let packed = spec.inputs[0].fields.iter().any(|f| matches!(f.content, Content::Weight(_)));
                    // Ports of one direction are allocated alike, at the largest.
                    let known = |code: &str| code == "port-bytes" || (code == "slice-width-clamp" && packed);
                    let text = || found.render(spec.name(), &mil::print(&spec.program));
                    assert!(found.0.iter().all(|d| known(d.code)), "{name} {} on {chip:?}: {}", spec.kind, text());
                }
            }
        }
    }
}

/// Fields lie inside their port, do not overlap, and obey programs.md rules 1 to 4 and 9.
#[test]
fn every_port_obeys_the_rules() {
    for name in ["storybook", "stories260k", "stories15m", "stories42m", "stories110m"] {
        for programs in variants(&preset(name), Shape { batch: 2, seq: 200 }) {
            for spec in all(&programs) {
                assert_eq!(spec.outputs.len(), 1, "{name} {}", spec.kind);
                assert!(spec.inputs.len() <= 4);
                let names: Vec<&str> = spec.inputs.iter().map(|p| p.name.as_str()).collect();
                assert!(names.is_sorted(), "{names:?}");
                let main = &spec.program.functions[0];
                let declared: Vec<&str> = main.params.iter().map(|&p| main.values[p].name.as_str()).collect();
                assert_eq!(declared, names, "{name} {}", spec.kind);
                assert_eq!(main.values[main.results[0]].name, spec.outputs[0].name);
                assert_eq!(main.values[main.results[0]].ty.dims(), spec.outputs[0].shape);
                for port in spec.inputs.iter().chain(&spec.outputs) {
                    check_fields(port);
                }
            }
        }
    }
}

fn check_fields(port: &PortSpec) {
    let (rows, cols) = port.extent();
    assert!(rows.is_multiple_of(32) && cols.is_multiple_of(32), "{port:?}");
    for (i, a) in port.fields.iter().enumerate() {
        assert!(a.row + a.rows <= rows && a.col + a.cols <= cols);
        assert!(a.row.is_multiple_of(32) && a.rows.is_multiple_of(32) && a.col.is_multiple_of(32) && a.cols.is_multiple_of(32));
        assert!(matches!(a.content, Content::Weight(_)) || a.col == 0, "activations lie at width offset 0");
        for b in &port.fields[..i] {
            let apart = a.row + a.rows <= b.row || b.row + b.rows <= a.row || a.col + a.cols <= b.col || b.col + b.cols <= a.col;
            assert!(apart, "{a:?} overlaps {b:?}");
        }
    }
    let covered: usize = port.fields.iter().map(|f| f.rows * f.cols).sum();
    assert_eq!(covered, rows * cols, "{}: every place is a field's", port.name);
}

#[test]
fn ports_that_are_read_later_belong_to_one_layer() {
    let sharing = |programs: &LayerPrograms, kind, act| {
        let spec = programs.get(kind).unwrap();
        let ports = spec.inputs.iter().chain(&spec.outputs);
        ports.filter(|p| p.window(act).is_some()).map(|p| p.sharing).collect::<Vec<_>>()
    };
    let split = build(&preset("stories15m"), ONE, Weights::Ports, Attention::Split);
    assert_eq!(sharing(&split, ProgramKind::QkvFwd, Act::X), [Sharing::One], "dW of q, k, v");
    assert_eq!(sharing(&split, ProgramKind::QkvFwd, Act::V), [Sharing::All], "copied into attention at once");
    assert_eq!(sharing(&split, ProgramKind::Pv, Act::Probs), [Sharing::One]);
    assert_eq!(sharing(&split, ProgramKind::Qk, Act::Scores), [Sharing::All]);
    assert_eq!(sharing(&split, ProgramKind::FfnFwd, Act::H1), [Sharing::One]);
    assert_eq!(sharing(&split, ProgramKind::FfnBwd, Act::DH1), [Sharing::One]);
    assert_eq!(sharing(&split, ProgramKind::AttnBwd1, Act::V), [Sharing::All]);
    let fused = build(&preset("stories15m"), ONE, Weights::Packed, Attention::Fused);
    assert_eq!(sharing(&fused, ProgramKind::Attn, Act::Probs), [Sharing::One]);
    assert_eq!(sharing(&fused, ProgramKind::WoBwd, Act::Dy), [Sharing::One]);
    let every: Vec<_> = fused.layer().into_iter().flat_map(|s| s.inputs.iter()).collect();
    let packed = every.iter().filter(|p| p.fields.iter().any(|f| matches!(f.content, Content::Weight(_))));
    assert!(packed.clone().count() == 7 && packed.clone().all(|p| p.sharing == Sharing::One));
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let options = Options { weights: Weights::Packed, attention: Attention::Split };
    let refuse = |config: &Config, batch, seq| layer_programs(config, Shape { batch, seq }, options).unwrap_err();
    let small = preset("stories260k");
    assert_eq!(refuse(&small, 1, 513), ProgramError::Tiles { seq: 513 });
    assert!(refuse(&small, 1, 600).to_string().contains("tiles"));
    assert_eq!(refuse(&small, 0, 64), ProgramError::Empty { batch: 0, seq: 64 });
    assert_eq!(refuse(&small, 33, 256), ProgramError::Scores { batch: 33, rows: 33 * 8 * 256 });
    assert_eq!(refuse(&small, usize::MAX, 64), ProgramError::Scores { batch: usize::MAX, rows: usize::MAX });
    let wide = refuse(&preset("stories110m"), 21, 256);
    let want = ProgramError::Axis { program: ProgramKind::Pv, value: "a_x".into(), length: 80_640, limit: 65_536 };
    assert_eq!(wide, want);
    let ffn = Config { hidden_dim: 5472, ..preset("stories110m") };
    assert_eq!(refuse(&ffn, 1, 256), ProgramError::Packed { program: ProgramKind::FfnFwd, columns: 256, weights: 16_416 });
    assert!(layer_programs(&ffn, ONE, Options { weights: Weights::Ports, ..options }).is_ok());
    let none = Config { n_kv_heads: 3, ..small };
    assert!(refuse(&none, 1, 64).to_string().contains("n_kv_heads"));
}
