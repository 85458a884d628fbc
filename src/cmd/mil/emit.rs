//! `anneal mil emit`: the programs that training sends.

use crate::args::MilEmitArgs;
use crate::failure::Outcome;
use anyhow::Context;
use model::programs::{Options, ProgramSpec, layer_programs};
use model::{Preset, Shape};

pub(super) fn run(args: &MilEmitArgs) -> Outcome {
    let preset = Preset::by_name(&args.model)?;
    let shape = Shape { batch: args.batch_size.unwrap_or(preset.batch), seq: args.max_seq_length.unwrap_or(preset.seq) };
    let options = Options { weights: args.weights.into(), attention: args.attention.into() };
    let programs = layer_programs(&preset.config, shape, options)?;
    // The programs of all slices of the classifier are equal.
    let classifier = programs.classifier.first().into_iter().flat_map(|slice| [&slice.fwd, &slice.dx]);
    let all: Vec<&ProgramSpec> = programs.layer().into_iter().chain(classifier).collect();
    match &args.program {
        Some(name) => {
            let spec = all.iter().find(|spec| spec.name() == name).with_context(|| {
                let names: Vec<&str> = all.iter().map(|spec| spec.name()).collect();
                format!("--program {name}: this variant of {} has {}", args.model, names.join(", "))
            })?;
            super::say(&mil::print(&spec.program))?;
        }
        None => {
            for spec in all {
                let ports = |ports: &[model::programs::PortSpec]| {
                    let ports: Vec<String> = ports.iter().map(|p| format!("{} {:?}", p.name, p.shape)).collect();
                    ports.join(", ")
                };
                super::say(&format!("{:<12} {} -> {}\n", spec.name(), ports(&spec.inputs), ports(&spec.outputs)))?;
            }
        }
    }
    Ok(0)
}
