//! One training step. CPU, fp32: residual stream, norms, RoPE, softmax, loss, sums of gradients, AdamW. Device, fp16: every matrix
//! product of the forward pass and of dx; dW beside it on the CPU's threads. D dim, T = B·S tokens; channels first: an activation is [D, T].

use crate::{AdamW, Batch, LossScaler, Net, Outcome, StepError};
use cpu::elementwise::{add_into, embed, scatter_add};
use cpu::norm::{rmsnorm, rmsnorm_backward};
use std::time::Instant;

/// One update of the weights from the gradient of the mean loss over all targets of `parts`.
///
/// # Errors
/// When the device failed, a token is unknown, or the loss scaler gives up. The weights are then those of the last finished step.
pub fn step(net: &mut Net, opt: &mut AdamW, scaler: &mut LossScaler, parts: &[Batch], lr: f32) -> Result<Outcome, StepError> {
    let tokens: usize = parts.iter().map(Batch::targets).sum();
    if tokens == 0 {
        return Err(StepError::NoTargets);
    }
    let (start, scale) = (Instant::now(), scaler.scale());
    let mut nll = 0.0;
    net.begin();
    for part in parts {
        nll += forward_backward(net, part, scale, part.targets() as f32 / tokens as f32)?; // fixed order; other machines join here
    }
    let norm = net.grads.unscaled_norm(&net.forward.machine.pool, scale);
    let skipped = !scaler.accept(norm, &net.watched())?;
    if !skipped {
        net.update(opt, lr, opt.clip(norm) / f64::from(scale))?; // fp32 masters → AdamW → fp16 surfaces; Baked: recompile
    }
    net.times.total += start.elapsed();
    Ok(Outcome { loss: nll / tokens as f64, norm, skipped, tokens, scale })
}

/// Adds `weight` times the gradient of `scale` · (mean loss of `batch`) to the gradients; returns the summed loss in nats.
pub(crate) fn forward_backward(net: &mut Net, batch: &Batch, scale: f32, weight: f32) -> Result<f64, StepError> {
    let Net { forward: f, params: p, grads, back, head_back, dw, watch, saved, times, .. } = net;
    let (queue, machine, layout, pool) = (&f.queue, &f.machine, &f.programs.layout, &*f.machine.pool);
    let (tokens, targets) = (f.columns_of(&batch.tokens)?, f.target_columns(&batch.targets)?);
    let (t, eps) = (tokens.len(), f.config.norm_eps);

    let mut x = vec![0.0; f.config.dim * t];
    embed(pool, &p[f.embedding], &tokens, &mut x);
    for (layer, saved) in f.layers.iter().zip(&mut saved.layers) {
        rmsnorm(pool, &x, t, &p[layer.attn.norm], eps, layer.attn.x.write()?.view_mut(), saved.attn.keep(&x));
        layer.attn.forward(queue, machine, layout, &f.rope)?; //              q·k → mask, softmax → ·v → Wo
        add_into(pool, &mut x, layer.attn.y.read()?.view());
        rmsnorm(pool, &x, t, &p[layer.ffn.norm], eps, layer.ffn.x.write()?.view_mut(), saved.ffn.keep(&x));
        queue.run(&layer.ffn.forward.binding)?; //                             W2(silu(W1 x) ∘ W3 x); taps: h1, h3, gate
        add_into(pool, &mut x, layer.ffn.y.read()?.view());
    }
    rmsnorm(pool, &x, t, &p[f.head.norm], eps, f.head.x.write()?.view_mut(), saved.head.keep(&x));
    f.head.forward(queue)?;

    // dlogits = scale · d(mean loss); the classifier's dx comes in slices of the vocabulary, each added through the norm.
    let nll = head_back.loss(&f.head, pool, &targets, scale)?;
    dw.push(grads, std::slice::from_ref(&head_back.dw), weight)?;
    let mut dx = vec![0.0; f.config.dim * t];
    for slice in &head_back.slices {
        queue.run(&slice.unit.binding)?;
        watch.look(pool, &[&slice.dx])?;
        let ((x, inv_rms), norm) = (saved.head.get(), f.head.norm);
        rmsnorm_backward(pool, x, inv_rms, &p[norm], slice.dx.read()?.view(), &mut dx, grads.sum(norm), weight);
    }
    for ((layer, back), saved) in f.layers.iter().zip(back).zip(&saved.layers).rev() {
        back.ffn.start(pool, &dx, &layer.ffn)?; //                             dy = fp16(dx), into the program's input
        dw.push(grads, &back.ffn.dw.early, weight)?; //                        dW that needs dy alone runs beside the device …
        back.ffn.run(queue, pool, &layer.ffn, watch)?;
        dw.push(grads, &back.ffn.dw.late, weight)?; //                         … what needs the programs, beside the next block's
        let ((x, inv_rms), norm) = (saved.ffn.get(), layer.ffn.norm);
        rmsnorm_backward(pool, x, inv_rms, &p[norm], back.ffn.dx.read()?.view(), &mut dx, grads.sum(norm), weight);

        back.attn.start(pool, &dx)?;
        dw.push(grads, &back.attn.dw.early, weight)?;
        back.attn.run(queue, pool, layout, &f.rope, &layer.attn, watch)?; //   Wo → dV, dP → softmax → dQ, dK → RoPE → Wq, Wk, Wv
        dw.push(grads, &back.attn.dw.late, weight)?;
        let ((x, inv_rms), norm) = (saved.attn.get(), layer.attn.norm);
        rmsnorm_backward(pool, x, inv_rms, &p[norm], back.attn.dx.read()?.view(), &mut dx, grads.sum(norm), weight);
    }
    times.waiting += dw.finish(grads); //                                      every job of this part
    scatter_add(pool, grads.sum(f.embedding), &tokens, &dx, weight); //        after the classifier's, which it adds to when tied
    Ok(nll)
}
