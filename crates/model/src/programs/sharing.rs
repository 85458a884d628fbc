//! Which ports need a surface for each layer.

use super::{Act, Dir, GradSpec, PortSpec, ProgramKind, Sharing, Tap};

/// What the CPU reads after the program ran for other layers (or slices): while it prepares programs of the backward pass,
/// and for the classifier's softmax and weight gradient.
const READ_LATER: [Tap; 11] = [
    tap(ProgramKind::Qk, Dir::In, Act::Q),
    tap(ProgramKind::Qk, Dir::In, Act::K),
    tap(ProgramKind::Pv, Dir::In, Act::Probs),
    tap(ProgramKind::Pv, Dir::In, Act::V),
    tap(ProgramKind::Attn, Dir::In, Act::Q),
    tap(ProgramKind::Attn, Dir::In, Act::V),
    tap(ProgramKind::Attn, Dir::Out, Act::Probs),
    tap(ProgramKind::FfnFwd, Dir::Out, Act::H1),
    tap(ProgramKind::FfnFwd, Dir::Out, Act::H3),
    tap(ProgramKind::ClsFwd, Dir::Out, Act::Logits),
    tap(ProgramKind::ClsDx, Dir::In, Act::DLogits),
];

const fn tap(program: ProgramKind, dir: Dir, act: Act) -> Tap {
    Tap { program, dir, act }
}

/// Every value of a layer that is read later.
pub(super) fn kept(grads: &[GradSpec]) -> Vec<Tap> {
    READ_LATER.into_iter().chain(grads.iter().flat_map(|g| [g.dy, g.x])).collect()
}

/// Gives `port` a surface of its own for each layer if it holds a value that is read later.
pub(super) fn mark(kept: &[Tap], program: ProgramKind, dir: Dir, port: &mut PortSpec) {
    if port.sharing == Sharing::All && kept.iter().any(|t| t.program == program && t.dir == dir && port.window(t.act).is_some()) {
        port.sharing = Sharing::One;
    }
}
