"""What the scripts here share: a model configuration in anneal's terms, and the PyTorch model it describes.

A configuration is a dict with exactly the fields of `model::Config`. Weights are dicts of tensors under Hugging Face names.
"""

import os

os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

import torch
from transformers import LlamaConfig, LlamaForCausalLM


def config(dim, hidden_dim, n_layers, n_heads, n_kv_heads, head_dim, vocab_size, max_seq_len, rope_theta=10000.0, rope="half", norm_eps=1e-5, tied=True):
    """A configuration; the argument names are the fields of `model::Config`."""
    return dict(locals())


def torch_model(cfg, attention="eager"):
    """An uninitialised fp32 `LlamaForCausalLM` of this shape. It always turns halves; see `permute` for interleaved weights."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=cfg["vocab_size"],
            hidden_size=cfg["dim"],
            intermediate_size=cfg["hidden_dim"],
            num_hidden_layers=cfg["n_layers"],
            num_attention_heads=cfg["n_heads"],
            num_key_value_heads=cfg["n_kv_heads"],
            head_dim=cfg["head_dim"],
            max_position_embeddings=cfg["max_seq_len"],
            rope_parameters={"rope_type": "default", "rope_theta": cfg["rope_theta"]},
            rms_norm_eps=cfg["norm_eps"],
            tie_word_embeddings=cfg["tied"],
            use_cache=False,
            attn_implementation=attention,
        )
    ).float()


def to_half(x, head_dim):
    """Rows of a query or key projection from interleaved order (llama2.c) to half order (Hugging Face)."""
    return x.unflatten(0, (-1, head_dim // 2, 2)).transpose(1, 2).reshape(x.shape)


def to_interleaved(x, head_dim):
    """The inverse of `to_half`."""
    return x.unflatten(0, (-1, 2, head_dim // 2)).transpose(1, 2).reshape(x.shape)


def permute(weights, head_dim, how):
    """`how` applied to every query and key projection (or its gradient)."""
    return {name: how(x, head_dim) if "q_proj" in name or "k_proj" in name else x for name, x in weights.items()}


def rms_norm(x, gain, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * gain


def rotate(x, cfg):
    """Rotary embedding of x [B, H, S, head_dim] in the configuration's own channel order."""
    half = cfg["head_dim"] // 2
    angles = torch.arange(x.shape[2], dtype=torch.float64)[:, None] * cfg["rope_theta"] ** (-torch.arange(half, dtype=torch.float64) / half)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    if cfg["rope"] == "half":
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


def plain_logits(cfg, p, ids, head_map=None, at=lambda key, x: x):
    """The model written out without transformers, in the weights' dtype and the configuration's own RoPE order.

    A second opinion on the goldens. `head_map(h)` names the key/value head that query head `h` reads; the default is
    h div group. `at(key, x)` sees every value that crosses between CPU and device, or from one device op to the next, and may
    replace it; `key` is (layer, what). Returns logits [B, S, V].
    """
    b, s = ids.shape
    heads, kv, hd, eps = cfg["n_heads"], cfg["n_kv_heads"], cfg["head_dim"], cfg["norm_eps"]
    reads = [head_map(h) if head_map else h // (heads // kv) for h in range(heads)]
    mask = torch.full((s, s), float("-inf"), dtype=p["model.norm.weight"].dtype).triu(1)
    x = p["model.embed_tokens.weight"][ids]
    for layer in range(cfg["n_layers"]):
        gain = lambda name: p[f"model.layers.{layer}.{name}.weight"]
        w = lambda name: at((layer, "weight"), gain(name)).T
        tap = lambda name, x: at((layer, name), x)
        h = tap("attn_norm", rms_norm(x, gain("input_layernorm"), eps))
        q, k, v = (tap(n, h @ w(f"self_attn.{n}_proj")).view(b, s, -1, hd).transpose(1, 2) for n in "qkv")
        q = tap("q_rot", rotate(q, cfg) * hd**-0.5)
        k, v = tap("k_rot", rotate(k, cfg))[:, reads], v[:, reads]
        probs = tap("probs", (tap("scores", q @ k.transpose(2, 3)) + mask).softmax(-1))
        a = tap("attn_out", (probs @ v).transpose(1, 2).reshape(b, s, -1))
        x = x + tap("attn_y", a @ w("self_attn.o_proj"))
        h = tap("ffn_norm", rms_norm(x, gain("post_attention_layernorm"), eps))
        h1, h3 = tap("h1", h @ w("mlp.gate_proj")), tap("h3", h @ w("mlp.up_proj"))
        silu = tap("silu", h1 * tap("sigmoid", h1.sigmoid()))
        x = x + tap("ffn_y", tap("gate", silu * h3) @ w("mlp.down_proj"))
    x = at((None, "final_norm"), rms_norm(x, p["model.norm.weight"], eps))
    return at((None, "logits"), x @ at((None, "weight"), p["model.embed_tokens.weight" if cfg["tied"] else "lm_head.weight"]).T)
