//! `anneal export`: a run's model, as a Hugging Face directory that `transformers` loads.

use crate::args::{DtypeChoice, ExportArgs};
use crate::console::Console;
use crate::failure::Outcome;
use crate::models;
use crate::out;
use store::safetensors::Dtype;

pub(crate) fn run(args: ExportArgs) -> Outcome {
    let model = models::open(&args.from)?;
    let tokenizer = models::tokenizer(&model, args.tokenizer.as_deref())?;
    let dtype = match args.dtype {
        DtypeChoice::F32 => Dtype::F32,
        DtypeChoice::F16 => Dtype::F16,
        DtypeChoice::Bf16 => Dtype::BF16,
    };
    models::write_hf(&args.output, &model, tokenizer.as_ref(), dtype)?;
    if tokenizer.is_none() {
        let dir = model.dir.display();
        Console::default().say(&format!("warning: {dir} has no tokenizer, so neither has the export; give one with --tokenizer"));
    }
    out::line(format_args!("written to {}", args.output.display()))?;
    Ok(0)
}
