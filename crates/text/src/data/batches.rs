//! Which tokens a step sees.

use super::{DataError, Tokens};
use crate::rng::Dice;

/// The target of a position that carries no loss: padding at the end of the data.
pub const IGNORE: u32 = u32::MAX;

/// `B` sequences of `S` tokens with the token that follows each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Inputs, `B · S`, sequence after sequence.
    pub tokens: Vec<u32>,
    /// The token after each input, `B · S`; [`IGNORE`] where there is none.
    pub targets: Vec<u32>,
    /// Targets that are not [`IGNORE`].
    pub count: usize,
}

/// Tokens cut into sequences of one length.
#[derive(Clone, Debug)]
pub struct Batches {
    tokens: Tokens,
    seq: usize,
}

impl Batches {
    /// Sequences of `seq` tokens; the data must hold at least one with the token after it.
    pub fn new(tokens: Tokens, seq: usize) -> Result<Self, DataError> {
        if seq == 0 {
            return Err(DataError::NoSequence);
        }
        let (have, need) = (tokens.len(), seq.saturating_add(1));
        if have < need {
            return Err(DataError::TooShort { source_name: tokens.source().to_owned(), have, need });
        }
        Ok(Self { tokens, seq })
    }

    /// The tokens these are cut from.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// The training batch of a micro-step: `batch_size` sequences that start anywhere in the data, every place equally likely. A pure
    /// function of its arguments and the data, so a run can be stopped, resumed and cut into pieces anywhere. Drawing with
    /// replacement, instead of in epochs, makes the order independent of batch size and accumulation too.
    pub fn batch(&self, seed: u64, step: u64, micro: u64, batch_size: usize) -> Batch {
        let mut dice = Dice::new(*b"batches\0", [seed, step, micro]);
        let starts = (self.tokens.len() - self.seq) as u64;
        self.gather((0..batch_size).map(|_| dice.below(starts) as usize))
    }

    /// One pass over all the data for evaluation: sequences one after another without overlap, every token but the first a target
    /// exactly once. The last batch is padded with token 0 and targets [`IGNORE`] to the same shape.
    pub fn pass(&self, batch_size: usize) -> impl Iterator<Item = Batch> + '_ {
        let (rows, seq) = ((self.tokens.len() - 1).div_ceil(self.seq), self.seq);
        let batch_size = batch_size.max(1);
        (0..rows.div_ceil(batch_size)).map(move |b| self.gather((0..batch_size).map(|row| (b * batch_size + row) * seq)))
    }

    fn gather(&self, starts: impl Iterator<Item = usize>) -> Batch {
        let mut batch = Batch { tokens: Vec::new(), targets: Vec::new(), count: 0 };
        for start in starts {
            let window = self.tokens.window(start, self.seq + 1);
            let real = window.len().saturating_sub(1);
            let pad = self.seq - real;
            batch.tokens.extend(window.iter().take(real).copied().chain(std::iter::repeat_n(0, pad)));
            batch.targets.extend(window.iter().skip(1).copied().chain(std::iter::repeat_n(IGNORE, pad)));
            batch.count += real;
        }
        batch
    }
}
