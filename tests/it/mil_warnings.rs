//! Every program that training can send passes the verifier of every chip; what it warns of is explained in `mil-warnings.toml`.

use mil::{Blobs, Chip, Profile};
use model::programs::{Attention, Options, ProgramSpec, Weights, layer_programs};
use model::{Preset, Shape};
use serde::Deserialize;
use std::collections::BTreeSet;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Explanations {
    warning: Vec<Explanation>,
}

/// Why a warning about some programs is no harm.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Explanation {
    code: String,
    programs: Vec<String>,
    reason: String,
}

/// Weight files of the right size, all zeros.
fn blobs(spec: &ProgramSpec) -> Blobs {
    let zeros = |shape: &[usize]| mil::blob::single_f16(&vec![cpu::f16::ZERO; shape.iter().product()]);
    Blobs(spec.blobs.iter().map(|b| (b.path.clone(), zeros(&b.shape).into())).collect())
}

/// Codes of what the verifiers of all chips warn of; panics at an error.
fn warnings(spec: &ProgramSpec, found: &mut BTreeSet<(String, String)>) {
    let blobs = blobs(spec);
    for chip in Chip::ALL {
        let said = match mil::verify(spec.program.clone(), blobs.clone(), Profile::Chip(chip)) {
            Ok(verified) => verified.warnings().clone(),
            Err(said) => panic!("{} on {chip:?}\n{}", spec.name(), said.render(spec.name(), &mil::print(&spec.program))),
        };
        found.extend(said.0.iter().map(|d| (d.code.to_string(), spec.name().to_string())));
    }
}

#[test]
fn every_warning_is_explained_and_every_explanation_needed() {
    let file = include_str!("../mil-warnings.toml");
    let file: Explanations = toml::from_str(file).unwrap();
    let mut explained = BTreeSet::new();
    for Explanation { code, programs, reason } in &file.warning {
        assert!(reason.len() > 20, "{code}: give a reason");
        for program in programs {
            assert!(explained.insert((code.clone(), program.clone())), "{code} of {program} is explained twice");
        }
    }
    let mut found = BTreeSet::new();
    let options = [Weights::Packed, Weights::Ports, Weights::Baked]
        .into_iter()
        .flat_map(|weights| [Attention::Split, Attention::Fused].map(|attention| Options { weights, attention }));
    for (preset, options) in Preset::all().iter().flat_map(|p| options.clone().map(move |o| (p, o))) {
        // The preset's own micro-batch, one sequence, and one that is padded.
        for shape in [Shape { batch: preset.batch, seq: preset.seq }, Shape { batch: 1, seq: preset.seq }, Shape { batch: 2, seq: 100 }] {
            let programs = layer_programs(&preset.config, shape, options).unwrap();
            programs.layer().into_iter().for_each(|spec| warnings(spec, &mut found));
            // The programs of all slices of the classifier are equal.
            let slice = &programs.classifier[0];
            warnings(&slice.fwd, &mut found);
            warnings(&slice.dx, &mut found);
        }
    }
    let missing: Vec<_> = found.difference(&explained).collect();
    assert!(missing.is_empty(), "not explained in tests/mil-warnings.toml: {missing:?}");
    let unused: Vec<_> = explained.difference(&found).collect();
    assert!(unused.is_empty(), "explained in tests/mil-warnings.toml and never said: {unused:?}");
}
