//! Parameters.

use model::{ParamSpec, Preset};

#[test]
fn parameters_carry_hugging_faces_names() {
    let config = Preset::by_name("stories260k").unwrap().config;
    let all = config.parameters();
    let find = |name: &str| all.iter().find(|p: &&ParamSpec| p.name == name).unwrap().shape.clone();
    assert_eq!(find("model.embed_tokens.weight"), [512, 64]);
    assert_eq!(find("model.layers.4.self_attn.k_proj.weight"), [32, 64]);
    assert_eq!(find("model.layers.0.mlp.down_proj.weight"), [64, 172]);
    assert!(all.iter().all(|p| p.name != "lm_head.weight"), "tied");
}
