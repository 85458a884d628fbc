"""Makes the golden files of tests/golden: python oracle/golden.py [NAME ...]   (all of them without a name)

Everything is PyTorch fp32 on one thread with eager attention; README.md says what each file holds.
"""

import json
import math
import pathlib
import sys

import numpy as np
import torch
from safetensors.torch import save_file
from torch.nn.functional import cross_entropy
from transformers.models.llama import modeling_llama

from llama import config, permute, plain_logits, to_half, to_interleaved, torch_model

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"
OPTIMIZER = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1, "max_norm": 1.0}
STEPS = 10
IGNORE = -100
DX_EXPONENT = 16

MODELS = {
    # hidden 172 and head_dim 8 need padding; one head per key/value head
    "mha64": dict(cfg=config(64, 172, 2, 8, 8, 8, 96, 64), seed=1, batch=1, seq=64),
    # two query heads a key/value head, head_dim 48, q_dim 192 != dim 96, own classifier, another theta and eps
    "gqa256": dict(cfg=config(96, 64, 2, 4, 2, 48, 64, 256, rope_theta=500000.0, norm_eps=1e-6, tied=False), seed=2, batch=1, seq=256),
    # two sequences side by side, dim 80 and vocabulary 77 need padding
    "batch2": dict(cfg=config(80, 112, 2, 4, 2, 32, 77, 64), seed=3, batch=2, seq=64),
    # llama2.c's channel order in q and k
    "interleaved": dict(cfg=config(48, 96, 2, 3, 3, 16, 64, 64, rope="interleaved"), seed=4, batch=1, seq=64),
    # three micro-batches with 63, 40 and 9 targets
    "accum": dict(cfg=config(32, 64, 2, 2, 1, 16, 48, 64), seed=5, batch=1, seq=64, targets=[63, 40, 9]),
    # deep enough that gradients shrink: the gradient at the output of every dx program
    "deep12": dict(cfg=config(64, 128, 12, 4, 4, 16, 64, 64), seed=6, batch=1, seq=64),
}


def parameters(model, cfg, rng, half_grid):
    """Random weights in half order. Matrices have std 1/sqrt(fan in) (those that add to the residual stream divided by
    sqrt(2 n_layers)), so that attention is far from uniform; embedding 0.1; gains 1 + 0.2 noise, so that they matter.
    """
    out = {}
    for name, p in model.named_parameters():
        noise = torch.from_numpy(rng.standard_normal(tuple(p.shape), dtype=np.float32))
        if p.dim() == 1:
            x = 1 + 0.2 * noise
        elif "embed" in name:
            x = 0.1 * noise
        else:
            residual = "o_proj" in name or "down_proj" in name
            x = noise / math.sqrt(p.shape[1] * (2 * cfg["n_layers"] if residual else 1))
        out[name] = x.half().float() if half_grid else x
    return out


def text(rng, vocab, shape):
    """Tokens of a random chain in which every token has four likely successors, so that there is something to learn."""
    successors = rng.integers(0, vocab, (vocab, 4))
    tokens = np.zeros(shape, np.int64)
    for row in tokens.reshape(-1, shape[-1]):
        row[0] = rng.integers(0, vocab)
        for i in range(1, len(row)):
            row[i] = successors[row[i - 1], rng.choice(4, p=[0.55, 0.25, 0.15, 0.05])] if rng.random() < 0.9 else rng.integers(0, vocab)
    return torch.from_numpy(tokens)


def batches(name, spec, rng):
    """For each step its micro-batches (ids, targets). Only `accum` has more than one, with targets ignored at random places."""
    micro = spec.get("targets", [None])
    tokens = text(rng, spec["cfg"]["vocab_size"], (STEPS, len(micro), spec["batch"], spec["seq"] + 1))
    steps = []
    for step in tokens:
        parts = []
        for part, kept in zip(step, micro):
            targets = part[:, 1:].clone()
            if kept is not None:
                targets.view(-1)[torch.from_numpy(rng.permutation(targets.numel())[kept:])] = IGNORE
            parts.append((part[:, :-1], targets))
        steps.append(parts)
    return steps


def total_loss(model, parts):
    """Mean negative log likelihood over all targets of all micro-batches, and the logits of each."""
    logits = [model(input_ids=ids).logits for ids, _ in parts]
    count = sum(int((t != IGNORE).sum()) for _, t in parts)
    nll = sum(cross_entropy(l.flatten(0, 1), t.flatten(), ignore_index=IGNORE, reduction="sum") for l, (_, t) in zip(logits, parts))
    return nll / count, logits


def adamw(model):
    """AdamW with decay on matrices only (the embedding is one)."""
    o = OPTIMIZER
    groups = [
        {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": o["weight_decay"]},
        {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=o["lr"], betas=(o["beta1"], o["beta2"]), eps=o["eps"], foreach=False)


def train(model, steps):
    """Losses before each update, gradient norms before clipping, and the weights after the first update."""
    optimizer, losses, norms, first = adamw(model), [], [], None
    for parts in steps:
        optimizer.zero_grad()
        loss, _ = total_loss(model, parts)
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), OPTIMIZER["max_norm"]).item())
        losses.append(loss.item())
        optimizer.step()
        if first is None:
            first = {n: p.detach().clone() for n, p in model.named_parameters()}
    return losses, norms, first


class Taps:
    """Keeps the activations whose gradients are outputs of anneal's dx programs (or inputs of the next)."""

    def __init__(self, model):
        self.kept = {}
        for i, layer in enumerate(model.model.layers):
            a, f = layer.self_attn, layer.mlp
            for module, tap in [(layer.input_layernorm, "attn_norm"), (a.q_proj, "q"), (a.k_proj, "k"), (a.v_proj, "v"),
                                (layer.post_attention_layernorm, "ffn_norm"), (f.gate_proj, "h1"), (f.up_proj, "h3")]:
                module.register_forward_hook(lambda m, args, out, key=(i, tap): self.keep(key, out))
            for module, tap in [(a.o_proj, "attn_out"), (f.down_proj, "gate")]:
                module.register_forward_pre_hook(lambda m, args, key=(i, tap): self.keep(key, args[0]))
        model.model.norm.register_forward_hook(lambda m, args, out: self.keep((None, "final_norm"), out))
        self.rotations, plain = 0, modeling_llama.apply_rotary_pos_emb

        def rotary(*args, **kwargs):
            q, k = plain(*args, **kwargs)
            self.keep((self.rotations, "q_rot"), q)
            self.keep((self.rotations, "k_rot"), k)
            self.rotations += 1
            return q, k

        modeling_llama.apply_rotary_pos_emb = rotary

    def keep(self, key, x):
        x.retain_grad()
        self.kept[key] = x

    def gradients(self):
        """Name -> gradient [S, C] for one sequence; heads one after another along C."""
        out = {}
        for (layer, tap), x in self.kept.items():
            g = x.grad[0]
            if g.dim() == 3:
                g = g.transpose(0, 1).flatten(1)
            out[f"dx.{tap}" if layer is None else f"dx.{layer}.{tap}"] = g
        return out


def pairing_check(cfg, weights, parts, grads):
    """What a model that pairs head h with h mod kv would get: worst gradient cosine. A test must be able to see it."""
    p = {n: x.clone().requires_grad_() for n, x in weights.items()}
    ids, targets = parts[0]
    logits = plain_logits(cfg, p, ids, head_map=lambda h: h % cfg["n_kv_heads"])
    loss = cross_entropy(logits.flatten(0, 1), targets.flatten())
    loss.backward()
    cosines = {n: torch.cosine_similarity(x.grad.flatten(), grads[n].flatten(), 0).item() for n, x in p.items()}
    return loss.item(), min(cosines, key=cosines.get), min(cosines.values())


def second_opinion(cfg, weights, parts, loss, grads):
    """The same loss and gradients from the written-out model in fp64, in the golden's own channel order: worst relative error."""
    p = {n: x.double().requires_grad_() for n, x in weights.items()}
    count = sum(int((t != IGNORE).sum()) for _, t in parts)
    nll = sum(cross_entropy(plain_logits(cfg, p, i).flatten(0, 1), t.flatten(), ignore_index=IGNORE, reduction="sum") for i, t in parts)
    (nll / count).backward()
    worst = max(((x.grad - grads[n]).norm() / x.grad.norm()).item() for n, x in p.items())
    assert worst < 1e-4 and abs(nll.item() / count - loss) < 1e-5, (worst, nll.item() / count, loss)
    return worst


def make(name, spec):
    cfg, deep = spec["cfg"], name == "deep12"
    rng = np.random.default_rng(spec["seed"])
    model = torch_model(cfg)
    half_order = parameters(model, cfg, rng, half_grid=deep)
    steps = batches(name, spec, rng)
    model.load_state_dict(half_order, strict=False)
    if cfg["tied"]:
        assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()
    own = (lambda w: permute(w, cfg["head_dim"], to_interleaved)) if cfg["rope"] == "interleaved" else (lambda w: w)
    weights = own(half_order)
    assert all(torch.equal(x, half_order[n]) for n, x in permute(weights, cfg["head_dim"], to_half).items()) or cfg["rope"] == "half"

    plain_rotary = modeling_llama.apply_rotary_pos_emb
    taps = Taps(model) if deep else None
    loss, logits = total_loss(model, steps[0])
    loss.backward()
    grads = own({n: p.grad.clone() for n, p in model.named_parameters()})
    error = second_opinion(cfg, weights, steps[0], loss.item(), grads)
    modeling_llama.apply_rotary_pos_emb = plain_rotary
    tensors, meta = {}, {}
    if deep:
        dx = {n: g * 2.0**DX_EXPONENT for n, g in taps.gradients().items()}
        assert max(g.abs().max() for g in dx.values()) < 30000
        tensors |= {n: g.half() for n, g in dx.items()} | {n: x.half() for n, x in weights.items()}
        meta["dx_exponent"] = DX_EXPONENT
        fresh = torch_model(cfg)
        fresh.load_state_dict(half_order, strict=False)
        model = fresh
    else:
        tensors |= weights | {f"grad.{n}": g for n, g in grads.items()}

    int32 = lambda x: x.to(torch.int32)
    if name == "accum":
        for i, (l, (ids, targets)) in enumerate(zip(logits, steps[0])):
            tensors |= {f"logits.{i}": l.detach()}
        tensors["ids"] = int32(torch.stack([torch.stack([ids for ids, _ in parts]) for parts in steps]))
        tensors["targets"] = int32(torch.stack([torch.stack([t for _, t in parts]) for parts in steps]))
        meta["micro_batches"] = [[int((t != IGNORE).sum()) for _, t in parts] for parts in steps][0]
    else:
        (ids, targets), = steps[0]
        tensors |= {"ids": int32(ids), "targets": int32(targets), "logits": logits[0].detach()}
        tensors["steps.tokens"] = int32(torch.stack([torch.cat([i, t[:, -1:]], 1) for ((i, t),) in steps]))

    losses, norms, first = train(model, steps)
    assert abs(losses[0] - loss.item()) < 1e-6
    if name == "accum":
        tensors |= {f"after.{n}": x for n, x in first.items()}
    if 1 < cfg["n_kv_heads"] < cfg["n_heads"]:
        wrong_loss, worst, cosine = pairing_check(cfg, weights, steps[0], grads)
        print(f"  paired h mod kv: loss {wrong_loss}, gradient of {worst} at cosine {cosine}")

    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{name}.safetensors"
    save_file({n: x.contiguous() for n, x in tensors.items()}, path)
    path.chmod(0o644)
    meta = {"config": cfg, "batch": spec["batch"], "seq": spec["seq"], "loss": loss.item(), "grad_norm": norms[0], "optimizer": OPTIMIZER,
            "step_losses": losses, "step_grad_norms": norms} | meta
    (OUT / f"{name}.json").write_text(json.dumps(meta, indent=1) + "\n")
    print(f"{name}: {path.stat().st_size} bytes, {sum(x.numel() for x in weights.values())} parameters, loss {loss.item():.6f}, "
          f"against fp64 {error:.1e}, losses {[round(x, 4) for x in losses]}, norms {[round(x, 3) for x in norms]}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for chosen in sys.argv[1:] or MODELS:
        make(chosen, MODELS[chosen])
