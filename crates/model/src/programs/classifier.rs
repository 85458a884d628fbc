//! The classifier, in slices of the vocabulary. Its weights are always ports: packed beside the activation they would be
//! too wide, and as constants the largest matrix would be compiled anew at each update.

use super::projection::{self, Matrix};
use super::{Act, Attention, ClassifierSlice, Context, Dir, GradSpec, Options, ProgramError, ProgramKind, Tap, WeightPort, Weights};
use crate::{Config, Role, vocab_slices};

pub(super) fn slices(cx: &Context, config: &Config) -> Result<Vec<ClassifierSlice>, ProgramError> {
    let options = Options { weights: Weights::Ports, attention: Attention::Split };
    let cx = &Context { layout: cx.layout.clone(), options, kept: cx.kept.clone() };
    let role = if config.tied { Role::Embedding } else { Role::Classifier };
    let mut slices = Vec::new();
    let mut first = 0;
    for (index, rows) in vocab_slices(config.vocab_size).into_iter().enumerate() {
        let (len, padded) = (rows.held(), rows.padded());
        let matrix = Matrix { key: WeightPort::Classifier(index), blocks: vec![(role, rows.clone())], cols: cx.layout.dim.clone() };
        let fwd = projection::forward(cx, ProgramKind::ClsFwd, &matrix, Act::X, &[(Act::Logits, padded)])?;
        let dx = projection::backward(cx, ProgramKind::ClsDx, &matrix, &[Act::DLogits], Act::Dx)?;
        let tap = |program, act| Tap { program, dir: Dir::In, act };
        let (dy, x) = (tap(ProgramKind::ClsDx, Act::DLogits), tap(ProgramKind::ClsFwd, Act::X));
        let grad = GradSpec { role, dy, x, rows, cols: cx.layout.dim.clone() };
        slices.push(ClassifierSlice { first, len, fwd, dx, grad });
        first += len;
    }
    Ok(slices)
}
