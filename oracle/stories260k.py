"""A real trained model as an oracle: python oracle/stories260k.py [CORPUS]   (default: $ANNEAL_CORPUS, else ../shared/corpus)

Loads stories260K.bin (llama2.c, version 0) into PyTorch fp32, prints its loss on tinystories-sample.txt and its first greedy tokens,
and writes tests/golden/stories260k.json. The protocol: of the text's lines longer than 120 characters the first 20, of each its first
700 characters, encoded as llama2.c does, token 1 in front, at most 400 tokens; the loss is the total over the total of predictions.
"""

import hashlib
import json
import os
import pathlib
import struct
import sys

import torch
from torch.nn.functional import cross_entropy

from llama import config, permute, plain_logits, to_half, torch_model

ROOT = pathlib.Path(__file__).resolve().parent.parent
GREEDY = 100
BOS = 1


def read_model(path):
    """Configuration and weights (interleaved order, Hugging Face names) of a llama2.c file, version 0."""
    data = path.read_bytes()
    dim, hidden, layers, heads, kv, vocab, seq = struct.unpack("<7i", data[:28])
    head_dim = dim // heads
    cfg = config(dim, hidden, layers, heads, kv, head_dim, abs(vocab), seq, rope="interleaved", tied=vocab > 0)
    floats, at = torch.frombuffer(bytearray(data[28:]), dtype=torch.float32), 0

    def take(*shape):
        nonlocal at
        size = torch.Size(shape).numel()
        at += size
        return floats[at - size : at].view(shape)

    weights = {"model.embed_tokens.weight": take(abs(vocab), dim)}
    for name, shape in [
        ("input_layernorm", (dim,)),
        ("self_attn.q_proj", (heads * head_dim, dim)),
        ("self_attn.k_proj", (kv * head_dim, dim)),
        ("self_attn.v_proj", (kv * head_dim, dim)),
        ("self_attn.o_proj", (dim, heads * head_dim)),
        ("post_attention_layernorm", (dim,)),
        ("mlp.gate_proj", (hidden, dim)),
        ("mlp.down_proj", (dim, hidden)),
        ("mlp.up_proj", (hidden, dim)),
    ]:
        for layer, x in enumerate(take(layers, *shape)):
            weights[f"model.layers.{layer}.{name}.weight"] = x
    weights["model.norm.weight"] = take(dim)
    take(2, seq, head_dim // 2)  # cos and sin tables, unused
    if vocab < 0:
        weights["lm_head.weight"] = take(-vocab, dim)
    assert at == floats.numel(), f"{path}: {floats.numel() - at} floats left over"
    return cfg, weights


class Tokenizer:
    """llama2.c's tokenizer.bin: merge the best-scored pair until none is left."""

    def __init__(self, path):
        data, at, self.pieces, self.scores = path.read_bytes(), 4, [], []
        while at < len(data):
            score, size = struct.unpack("<fi", data[at : at + 8])
            self.pieces.append(data[at + 8 : at + 8 + size])
            self.scores.append(score)
            at += 8 + size
        self.ids = {}
        for i, piece in enumerate(self.pieces):
            self.ids.setdefault(piece, i)

    def encode(self, text):
        ids = [self.ids[b" "]]
        for char in text:
            raw = char.encode()
            ids += [self.ids[raw]] if raw in self.ids else [byte + 3 for byte in raw]
        while True:
            pairs = [(self.scores[j], -k, j) for k in range(len(ids) - 1) if (j := self.ids.get(self.pieces[ids[k]] + self.pieces[ids[k + 1]])) is not None]
            if not pairs:
                return ids
            _, k, merged = max(pairs)
            ids[-k : -k + 2] = [merged]

    def decode(self, ids):
        """Text after the start token: no leading space, ids 3 to 258 are bytes."""
        return b"".join(bytes([i - 3]) if 3 <= i < 259 else self.pieces[i] for i in ids).decode().removeprefix(" ")


def main(corpus):
    cfg, weights = read_model(corpus / "stories260K.bin")
    tokenizer = Tokenizer(corpus / "stories260K-tok512.bin")
    model = torch_model(cfg)
    missing = model.load_state_dict(permute(weights, cfg["head_dim"], to_half), strict=False)
    assert not missing.unexpected_keys and missing.missing_keys in ([], ["lm_head.weight"])

    lines = [line for line in (corpus / "tinystories-sample.txt").read_text().split("\n") if len(line) > 120][:20]
    lines = [([BOS] + tokenizer.encode(line[:700]))[:400] for line in lines]
    nll = []
    for ids in lines:
        x = torch.tensor([ids])
        logits = model(input_ids=x).logits
        assert torch.allclose(logits, plain_logits(cfg, weights, x), atol=1e-3), "transformers and the written-out model disagree"
        nll.append(cross_entropy(logits[0, :-1], x[0, 1:], reduction="sum").item())
    count = sum(len(ids) - 1 for ids in lines)

    ids, margins = [BOS], []
    for _ in range(GREEDY):
        best = model(input_ids=torch.tensor([ids])).logits[0, -1].topk(2)
        margins.append((best.values[0] - best.values[1]).item())
        ids.append(best.indices[0].item())

    sha = {name: hashlib.sha256((corpus / name).read_bytes()).hexdigest() for name in ("stories260K.bin", "stories260K-tok512.bin", "tinystories-sample.txt")}
    fields = {
        "config": cfg,
        "sha256": sha,
        "predictions": count,
        "total_nll": sum(nll),
        "loss": sum(nll) / count,
        "greedy_ids": ids,
        "greedy_margins": [round(m, 4) for m in margins],
        "greedy_text": tokenizer.decode(ids[1:]),
    }
    rows = ",\n".join(json.dumps({"nll": n, "ids": line}, separators=(",", ":")) for n, line in zip(nll, lines))
    head = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in fields.items())
    (ROOT / "tests" / "golden" / "stories260k.json").write_text("{\n" + head + ',\n"lines": [\n' + rows + "\n]\n}\n")
    print(f"{count} predictions, loss {sum(nll) / count:.6f} nats; smallest greedy margin {min(margins):.4f} at token {margins.index(min(margins)) + 1}")
    print(fields["greedy_text"])


if __name__ == "__main__":
    torch.set_num_threads(1)
    with torch.no_grad():
        main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("ANNEAL_CORPUS", ROOT.parent / "shared" / "corpus")))
