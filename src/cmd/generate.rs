//! `anneal generate`: continues a text, token by token.

use crate::args::GenerateArgs;
use crate::failure::{Failure, Outcome};
use crate::models;
use crate::out;
use anyhow::{anyhow, ensure};
use infer::{Generator, Sampling};
use std::io::Write;
use text::Tokenizer;

pub(crate) fn run(args: GenerateArgs) -> Outcome {
    ensure_usable(&args)?;
    let model = models::open(&args.model)?;
    let tokenizer = models::need_tokenizer(&model, args.tokenizer.as_deref())?;
    let prompt = train::run::start(&tokenizer, &args.prompt)?;
    if let Some(&token) = prompt.iter().find(|&&t| t as usize >= model.config.vocab_size) {
        return Err(anyhow!("token {token} of the prompt is not in the model's vocabulary of {}", model.config.vocab_size).into());
    }
    let machine = args.machine.build()?;
    let mut generator = Generator::new(&machine, &model.config, prompt.len() + args.max_tokens).map_err(Failure::running)?;
    let sampling = Sampling {
        max_tokens: args.max_tokens,
        temperature: args.temperature,
        top_k: args.top_k,
        top_p: Some(args.top_p),
        seed: args.seed,
        stop: None,
    };
    let mut printer = Printer { tokenizer: &tokenizer, decoder: tokenizer.decoder(), ignore_end: args.ignore_end, error: None };
    for &token in &prompt {
        printer.print(token);
    }
    generator.generate(&model.params, &prompt, &sampling, &mut |token| printer.take(token)).map_err(Failure::running)?;
    printer.finish().map_err(Failure::running)?;
    Ok(0)
}

fn ensure_usable(args: &GenerateArgs) -> anyhow::Result<()> {
    let t = args.temperature;
    ensure!(t.is_finite() && t >= 0.0, "--temperature {t}: it must be at least 0");
    ensure!(args.top_k != Some(0), "--top-k 0: at least one token must be left to draw");
    let p = args.top_p;
    ensure!(p > 0.0 && p <= 1.0, "--top-p {p}: it must lie above 0, and 1 draws among all tokens");
    Ok(())
}

/// Prints tokens as text as soon as their characters are complete.
struct Printer<'a> {
    tokenizer: &'a Tokenizer,
    decoder: text::tokenizer::Decoder<'a>,
    ignore_end: bool,
    error: Option<anyhow::Error>,
}

impl Printer<'_> {
    /// A new token; `false` when that was the last: a text has ended, or nobody reads any more.
    fn take(&mut self, token: u32) -> bool {
        // Models trained on texts one after another end a text with the token that starts the next.
        let ends = [self.tokenizer.eos(), self.tokenizer.bos()].contains(&Some(token));
        if ends && !self.ignore_end {
            return false;
        }
        self.print(token);
        if ends {
            self.write("\n");
        }
        self.error.is_none()
    }

    fn print(&mut self, token: u32) {
        match self.decoder.push(token) {
            Ok(text) => self.write(&text),
            Err(e) => self.error = Some(e.into()),
        }
    }

    fn write(&mut self, text: &str) {
        let mut out = std::io::stdout().lock();
        if let Err(e) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            self.error = Some(e.into());
        }
    }

    fn finish(mut self) -> anyhow::Result<()> {
        let closed = |e: &anyhow::Error| e.downcast_ref().is_some_and(out::is_closed);
        if self.error.is_none() {
            let decoder = std::mem::replace(&mut self.decoder, self.tokenizer.decoder());
            let rest = decoder.finish()?;
            self.write(&rest);
            self.write("\n");
        }
        self.error.filter(|e| !closed(e)).map_or(Ok(()), Err)
    }
}
