"""What fp16 on the device costs, simulated: python oracle/loss_scale.py [GOLDEN ...]   (deep12 without a name)

Runs a golden's first step twice in PyTorch, once in fp32 and once with every value that lives on the device rounded to fp16, forward
and backward, under a loss scale of 1 and of 256 * n_layers, with subnormals kept or flushed to zero. Prints how many elements of
the dx outputs above 1e-7 become zero, the largest scaled element, and the worst gradient against fp32.
A simulation of the roundings only: the order of sums and the chip's multiplier are not imitated.
"""

import json
import pathlib
import sys

import torch
from safetensors.torch import load_file
from torch.nn.functional import cross_entropy

from llama import plain_logits

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"
# gradients that leave a dx program of the device; the others are made on the CPU
DX = ["attn_norm", "q_rot", "k_rot", "v", "probs", "attn_out", "ffn_norm", "h1", "h3", "gate", "final_norm"]
FLOOR = 1e-7


def fp16(x, flush):
    y = x.half().float()
    return torch.where(y.abs() < 2.0**-14, 0.0, y) if flush else y


class Device(torch.autograd.Function):
    """fp16 storage: rounds the value forward and the gradient backward."""

    @staticmethod
    def forward(ctx, x, flush, seen):
        ctx.flush, ctx.seen = flush, seen
        return fp16(x, flush)

    @staticmethod
    def backward(ctx, g):
        g = fp16(g, ctx.flush)
        ctx.seen(g)
        return g, None, None


class Exact(torch.autograd.Function):
    """No rounding, but the gradient is seen."""

    @staticmethod
    def forward(ctx, x, seen):
        ctx.seen = seen
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        ctx.seen(g)
        return g, None


class Weight(torch.autograd.Function):
    """A weight staged as fp16; its gradient is summed in fp32 on the CPU."""

    @staticmethod
    def forward(ctx, x, flush):
        return fp16(x, flush)

    @staticmethod
    def backward(ctx, g):
        return g, None


def run(cfg, weights, ids, targets, scale, half, flush):
    """(loss, unscaled gradients, dx by (layer, tap) still scaled)."""
    p = {n: x.clone().requires_grad_() for n, x in weights.items()}
    dx = {}

    def at(key, x):
        if key[1] == "weight":
            return Weight.apply(x, flush) if half else x
        seen = lambda g: dx.__setitem__(key, g)
        return Device.apply(x, flush, seen) if half else Exact.apply(x, seen)

    logits = plain_logits(cfg, p, ids, at=at)
    loss = cross_entropy(logits.flatten(0, 1), targets.flatten())
    (loss * scale).backward()
    return loss.item(), {n: x.grad / scale for n, x in p.items()}, dx


def main(name):
    meta, t = json.loads((GOLDEN / f"{name}.json").read_text()), load_file(GOLDEN / f"{name}.safetensors")
    cfg, ids, targets = meta["config"], t["ids"].long(), t["targets"].long()
    weights = {n: x.float() for n, x in t.items() if n.startswith(("model.", "lm_head."))}
    loss, grads, exact = run(cfg, weights, ids, targets, 1.0, half=False, flush=False)
    assert abs(loss - meta["loss"]) < 1e-5
    if "dx_exponent" in meta:
        for (layer, tap), g in exact.items():
            stored = t.get(f"dx.{tap}" if layer is None else f"dx.{layer}.{tap}")
            if stored is not None:
                g = (g.transpose(1, 2).flatten(2) * cfg["head_dim"] ** (-0.5 if tap == "q_rot" else 0) if g.dim() == 4 else g)[0]
                error = ((stored.float() * 2.0 ** -meta["dx_exponent"] - g).norm() / g.norm()).item()
                assert error < 1e-3, (layer, tap, error)
    keys = [k for k in exact if k[1] in DX]
    above = {k: exact[k].abs() > FLOOR for k in keys}
    total = sum(int(a.sum()) for a in above.values())
    print(f"{name}: loss {loss:.6f}; {total} dx elements above {FLOOR:g} of {sum(a.numel() for a in above.values())}, "
          f"median {torch.cat([exact[k].abs().flatten() for k in keys]).median():.2e}")
    for scale in (1.0, 256.0 * cfg["n_layers"]):
        for flush in (False, True):
            loss16, grads16, dx = run(cfg, weights, ids, targets, scale, half=True, flush=flush)
            zero = {k: int(((dx[k] == 0) & above[k]).sum()) for k in keys}
            worst = {tap: sum(zero[k] for k in keys if k[1] == tap) / max(1, sum(int(above[k].sum()) for k in keys if k[1] == tap)) for tap in DX}
            cosine = {n: torch.cosine_similarity(grads[n].flatten(), g.flatten(), 0).item() for n, g in grads16.items()}
            ratio = {n: abs((g.norm() / grads[n].norm()).item() - 1) for n, g in grads16.items()}
            low, off = min(cosine, key=cosine.get), max(ratio, key=ratio.get)
            print(f"  scale {scale:6.0f} subnormals {'flushed' if flush else 'kept   '}: loss {loss16:.6f}, "
                  f"zero {sum(zero.values())} = 1 in {total / max(1, sum(zero.values())):.4g}, largest dx {max(g.abs().max().item() for g in dx.values()):.3g}, "
                  f"worst cosine {cosine[low]:.6f} ({low}), worst norm {ratio[off]:.2%} ({off})")
            print("    zero by output: " + ", ".join(f"{tap} {share:.2g}" for tap, share in worst.items()))


if __name__ == "__main__":
    torch.set_num_threads(1)
    for chosen in sys.argv[1:] or ["deep12"]:
        main(chosen)
