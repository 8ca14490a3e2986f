"""Gemma 2 and Gemma 3, with the formulas of their published code."""

import math

import torch
from decoders import layer_types
from layers import run, head_of, rotary_of, grouped, gated, head_norm
from pieces import Rotary


def gemma2_shaped(w, c, ids, window, rotary, norms=None, prefix="model"):
    """Gemma 2: norms by 1 + w before and after attention and MLP; soft caps; embeddings times
    sqrt(hidden)."""
    eps = c.get("rms_norm_eps", 1e-6)
    table = w.table(prefix + ".embed_tokens", c["vocab_size"], c["hidden_size"], std=0.2)
    norm = lambda name, x: w.rms_norm(name, x, eps, plus_one=True)

    def block(i, x):
        name = f"{prefix}.layers.{i}"
        attention = norms(w, name + ".self_attn", eps, True) if norms else None
        y = grouped(
            w,
            c,
            name + ".self_attn",
            norm(name + ".input_layernorm", x),
            rotary(i),
            window(i),
            c.get("attention_bias", False),
            scale=c.get("query_pre_attn_scalar", 256) ** -0.5,
            norms=attention,
            cap=c.get("attn_logit_softcapping"),
        )
        x = x + norm(name + ".post_attention_layernorm", y)
        y = gated(
            w, c, name + ".mlp", norm(name + ".pre_feedforward_layernorm", x), "gelu_pytorch_tanh"
        )
        return x + norm(name + ".post_feedforward_layernorm", y)

    cap = c.get("final_logit_softcapping")
    head = head_of(w, c, table, True)
    capped = lambda x: torch.tanh(head(x) / cap) * cap if cap else head(x)
    return run(
        table[ids] * math.sqrt(c["hidden_size"]),
        c["num_hidden_layers"],
        block,
        lambda x: norm(prefix + ".norm", x),
        capped,
    )


def gemma2(w, c, ids):
    kinds = layer_types(c, lambda i: "full_attention" if i % 2 else "sliding_attention")
    rotary = rotary_of(c, ids.shape[1], c["head_dim"])
    c = {
        "attn_logit_softcapping": 50.0,
        "final_logit_softcapping": 30.0,
        "sliding_window": 4096,
        **c,
    }
    window = lambda i: c["sliding_window"] if kinds[i] == "sliding_attention" else None
    return gemma2_shaped(w, c, ids, window, lambda i: rotary)


def gemma3(w, c, ids):
    """Five layers with a window and a separate RoPE base, then a global one with optional RoPE
    scaling."""
    # The published class caps no scores, with any attn_logit_softcapping.
    c = {"head_dim": 256, "sliding_window": 4096, **c, "attn_logit_softcapping": None}
    pattern = c.get("sliding_window_pattern", c.get("_sliding_window_pattern", 6))
    kinds = layer_types(c, lambda i: "sliding_attention" if (i + 1) % pattern else "full_attention")
    if "rope_parameters" in c:
        far, near = (
            c["rope_parameters"]["full_attention"],
            c["rope_parameters"]["sliding_attention"],
        )
    else:
        far = {"rope_theta": c.get("rope_theta", 1000000.0), **(c.get("rope_scaling") or {})}
        near = {"rope_theta": c.get("rope_local_base_freq", 10000.0)}
    rotary_for = lambda p: Rotary(
        c["head_dim"], p["rope_theta"], ids.shape[1], p, c["max_position_embeddings"]
    )
    rotary = {"full_attention": rotary_for(far), "sliding_attention": rotary_for(near)}
    window = lambda i: c["sliding_window"] if kinds[i] == "sliding_attention" else None
    return gemma2_shaped(w, c, ids, window, lambda i: rotary[kinds[i]], head_norm)
