//! `anneal import`: a model from elsewhere, as a Hugging Face directory.

use crate::args::ImportArgs;
use crate::failure::Outcome;
use crate::models;
use crate::out;
use store::safetensors::Dtype;

pub(crate) fn run(args: ImportArgs) -> Outcome {
    let model = models::open(&args.from)?;
    let tokenizer = models::tokenizer(&model, args.tokenizer.as_deref())?;
    models::write_hf(&args.output, &model, tokenizer.as_ref(), Dtype::F32)?;
    out::line(format_args!(
        "imported {}: {} parameters, {} layers, dim {}, vocabulary {}, {}",
        args.from.display(),
        model.config.parameter_count(),
        model.config.n_layers,
        model.config.dim,
        model.config.vocab_size,
        tokenizer.as_ref().map_or("no tokenizer".into(), |t| t.describe())
    ))?;
    out::line(format_args!("written to {}", args.output.display()))?;
    Ok(0)
}
