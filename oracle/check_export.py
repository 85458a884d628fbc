"""Does an exported Hugging Face directory give the same model?  python oracle/check_export.py DIR REFERENCE

Loads DIR with transformers (offline, fp32) and compares its logits with REFERENCE, which is either
  a safetensors file with `ids` [N] or [B, N] (integers) and `logits` [N, V] or [B, N, V] (floats), as anneal computed them, or
  a second Hugging Face directory, which is run on the same random tokens.
Prints one JSON line. Exit code 0: the same top token at 99 % of the positions or more, and a mean difference of at most 1 % of the
logits' standard deviation; 1: not so; 2: DIR or REFERENCE is unusable.
"""

import json
import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

TOP_TOKEN = 0.99
DIFFERENCE = 0.01


class Unusable(Exception):
    pass


def load(directory):
    if not (directory / "config.json").is_file():
        raise Unusable(f"{directory}: no Hugging Face directory, config.json is missing")
    model, report = AutoModelForCausalLM.from_pretrained(directory, local_files_only=True, dtype=torch.float32, output_loading_info=True)
    missing, unexpected = report["missing_keys"], report["unexpected_keys"]
    if missing or unexpected or report["mismatched_keys"]:
        raise Unusable(f"{directory}: missing {sorted(missing)}, unexpected {sorted(unexpected)}, mismatched {report['mismatched_keys']}")
    return model.eval()


def reference(path, vocab, longest):
    """(ids [B, N], logits [B, N, V]) of a file or of a second model."""
    if path.is_dir():
        torch.manual_seed(1)
        other = load(path)
        ids = torch.randint(0, min(vocab, other.config.vocab_size), (4, min(256, longest, other.config.max_position_embeddings)))
        return ids, other(input_ids=ids).logits
    tensors = load_file(path)
    if not {"ids", "logits"} <= tensors.keys():
        raise Unusable(f"{path}: needs `ids` and `logits`, has {sorted(tensors)}")
    ids, logits = tensors["ids"].long(), tensors["logits"].float()
    if ids.dim() == 1:
        ids, logits = ids[None], logits[None]
    if logits.shape[:-1] != ids.shape or not ids.numel():
        raise Unusable(f"{path}: ids {list(ids.shape)} do not fit logits {list(logits.shape)}")
    return ids, logits


@torch.no_grad()
def main(directory, other):
    model = load(directory)
    ids, expected = reference(other, model.config.vocab_size, model.config.max_position_embeddings)
    if expected.shape[-1] != model.config.vocab_size:
        raise Unusable(f"{other}: {expected.shape[-1]} logits a position, the model has {model.config.vocab_size} tokens")
    logits = model(input_ids=ids).logits
    same = (logits.argmax(-1) == expected.argmax(-1)).double().mean().item()
    # a NaN anywhere makes this NaN, and the comparison below false
    difference = ((logits - expected).abs().double().mean() / expected.double().std()).item()
    good = same >= TOP_TOKEN and difference <= DIFFERENCE
    print(json.dumps({"positions": ids.numel(), "same_top_token": same, "mean_difference_over_std": difference,
                      "largest_difference": (logits - expected).abs().max().item(), "same_model": good}))
    return 0 if good else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        sys.exit(main(*map(pathlib.Path, sys.argv[1:])))
    except (Unusable, SafetensorError, OSError, ValueError) as error:
        print(f"check_export: {error}", file=sys.stderr)
        sys.exit(2)
