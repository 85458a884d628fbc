"""Times a training step in PyTorch fp32 eager, to set beside `anneal bench step`: python oracle/step_torch.py [--steps N]

Stories110M, random weights and tokens; a step is forward, backward, clipping by global norm and AdamW. Prints one JSON line.
"""

import argparse
import json
import os
import resource
import statistics
import time

# Waiting threads must sleep: spinning ones collapse when a core is stolen. Read once, when torch is loaded.
os.environ["OMP_WAIT_POLICY"] = "passive"
for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(variable, None)

import torch

from llama import config, torch_model

MODELS = {
    "stories110m": config(768, 2048, 12, 12, 12, 64, 32000, 1024),
    "stories42m": config(512, 1376, 8, 8, 8, 64, 32000, 1024),
    "stories15m": config(288, 768, 6, 6, 6, 48, 32000, 256),
}


def busy():
    """CPU seconds that all processes of this machine have used, where /proc tells."""
    try:
        user, nice, system, _, _, irq, soft = map(int, open("/proc/stat").readline().split()[1:8])
        return (user + nice + system + irq + soft) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return float("nan")


def own():
    return sum(os.times()[:2])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="stories110m", choices=MODELS)
    parser.add_argument("--steps", type=int, default=9, help="timed steps")
    parser.add_argument("--warm-up", type=int, default=2, help="steps before them")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--attention", default="sdpa", choices=["sdpa", "eager"])
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    cfg = MODELS[args.model]
    model = torch_model(cfg, args.attention)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    phases = {"forward_ms": [], "backward_ms": [], "optimizer_ms": []}
    total, others = [], []
    for step in range(args.warm_up + args.steps):
        tokens = torch.randint(0, cfg["vocab_size"], (args.batch, args.seq + 1))
        used, mine, start = busy(), own(), time.perf_counter()
        logits = model(input_ids=tokens[:, :-1]).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        forward = time.perf_counter()
        loss.backward()
        backward = time.perf_counter()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        end = time.perf_counter()
        if step >= args.warm_up:
            total.append((end - start) * 1e3)
            others.append(max(0.0, (busy() - used) - (own() - mine)) / (end - start))
            for name, a, b in zip(phases, (start, forward, backward), (forward, backward, end)):
                phases[name].append((b - a) * 1e3)
    report = {
        "peer": f"torch {torch.__version__} fp32 eager, {args.attention}",
        "model": args.model,
        "batch": args.batch,
        "seq": args.seq,
        "threads": args.threads,
        "steps": args.steps,
        "median_ms": round(statistics.median(total), 1),
        "best_ms": round(min(total), 1),
        "worst_ms": round(max(total), 1),
        **{name: round(statistics.median(ms), 1) for name, ms in phases.items()},
        "peak_rss_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "other_load_cores": round(statistics.mean(others), 2),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
