//! Samples of text while a model learns.

use crate::plan::{Plan, SamplePlan, TOP_P};
use infer::{Generator, InferError, Machine, Sampling};
use text::{Tokenizer, TokenizerError};

/// Programs that a generator compiles for one length of text: five of a layer and the classifier's.
const COMPILES: u32 = 6;
/// Lengths that it may need: 64, 128, 256 and 512 tokens.
const LENGTHS: u32 = 4;

/// Why there is no sample.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// The device.
    #[error(transparent)]
    Infer(#[from] InferError),
    /// The prompt.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// Nothing to start from.
    #[error("the tokenizer has no start token: give a --sample-prompt")]
    NoPrompt,
}

/// Continues one prompt.
pub(crate) struct Sampler {
    generator: Generator,
    prompt: Vec<u32>,
    sampling: Sampling,
}

impl Sampler {
    /// Compiles that a sampler may need.
    pub(crate) const MAX_COMPILES: u32 = COMPILES * LENGTHS;

    /// A sampler of the plan's samples.
    pub(crate) fn new(machine: &Machine, plan: &Plan, tokenizer: &Tokenizer) -> Result<Sampler, SampleError> {
        let prompt = start(tokenizer, &plan.sample.prompt)?;
        let SamplePlan { tokens: max_tokens, temperature, .. } = plan.sample;
        let sampling = Sampling { max_tokens, temperature, top_p: Some(TOP_P), stop: tokenizer.eos(), ..Sampling::default() };
        let generator = Generator::new(machine, &plan.model, prompt.len() + plan.sample.tokens)?;
        Ok(Sampler { generator, prompt, sampling })
    }

    /// One sample of the model with these parameters, prompt included.
    pub(crate) fn sample(&mut self, tokenizer: &Tokenizer, values: &[Vec<f32>], seed: u64) -> Result<String, SampleError> {
        self.generator.refresh(values)?;
        let sampling = Sampling { seed, ..self.sampling.clone() };
        let new = self.generator.generate(values, &self.prompt, &sampling, &mut |_| true)?;
        Ok(tokenizer.decode(&[self.prompt.as_slice(), &new].concat())?)
    }
}

/// The tokens that a text begins with: the start token, if there is one, and the prompt.
///
/// # Errors
/// When that is nothing at all.
pub fn start(tokenizer: &Tokenizer, prompt: &str) -> Result<Vec<u32>, SampleError> {
    let mut tokens: Vec<u32> = tokenizer.bos().into_iter().collect();
    if !prompt.is_empty() {
        tokens.extend(tokenizer.encode(prompt)?);
    }
    if tokens.is_empty() { Err(SampleError::NoPrompt) } else { Ok(tokens) }
}
