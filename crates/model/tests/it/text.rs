//! The text of a program, kept so that a change is seen.

use model::programs::{Attention, FfnBackward, Options, Weights, layer_programs};
use model::{Preset, Shape};
use std::path::Path;

/// After a wanted change: `UPDATE_GOLDEN=1 cargo test -p anneal-model`, and read the difference.
fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap();
    for (i, (new, old)) in text.lines().zip(golden.lines()).enumerate() {
        assert_eq!(new, old, "{name}, line {}", i + 1);
    }
    assert_eq!(text, golden, "{name}");
}

#[test]
fn programs_are_written_as_before() {
    let config = Preset::by_name("stories260k").unwrap().config;
    let shape = Shape { batch: 2, seq: 64 };
    let packed = layer_programs(&config, shape, Options { weights: Weights::Packed, attention: Attention::Fused }).unwrap();
    compare("packed_ffn_fwd.mil", &mil::print(&packed.ffn_fwd.program));
    compare("attn_bwd2.mil", &mil::print(&packed.attn_bwd2.program));
    let ports = layer_programs(&config, shape, Options { weights: Weights::Ports, attention: Attention::Split }).unwrap();
    let FfnBackward::Joined { all } = &ports.ffn_bwd else { panic!("ports join the backward pass") };
    compare("ports_ffn_bwd.mil", &mil::print(&all.program));
    let baked = layer_programs(&config, shape, Options { weights: Weights::Baked, attention: Attention::Split }).unwrap();
    compare("baked_qkv_fwd.mil", &mil::print(&baked.qkv_fwd.program));
}
