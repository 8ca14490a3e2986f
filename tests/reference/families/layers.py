"""Pieces of Llama-style decoders: runs, heads, attention and gated MLPs."""
import math

import torch
from pieces import ACTIVATIONS, Rotary, alibi_slopes, attend, causal, heads, mpt_slopes


def run(x, layers, block, last, head):
    """The outputs in a folder; hidden_states.<layers> follows the final norm, as in the published
    code."""
    outputs = {"hidden_states.0": x}
    for i in range(layers):
        x = block(i, x)
        outputs[f"layers.{i}.output"] = x
    x = last(x)
    outputs[f"hidden_states.{layers}"] = x
    outputs["logits"] = head(x)
    return outputs


def head_of(w, c, embedding, tied, name="lm_head", bias=False):
    """Logits from the embedding's weights or from a separate head."""
    if c.get("tie_word_embeddings", tied):
        return lambda x: x @ embedding.T
    return lambda x: w.linear(name, x, embedding.shape[0], bias)


def rotary_of(c, seq, dim, theta=10000.0, interleaved=False, scaled=True):
    """The rotary embedding of a config of transformers 4 (rope_theta, rope_scaling) or 5
    (rope_parameters)."""
    parameters = c.get("rope_parameters") or {}
    theta = c.get("rope_theta", parameters.get("rope_theta", theta))
    scaling = (c.get("rope_scaling") or parameters) if scaled else {}
    original = c.get("original_max_position_embeddings")
    return Rotary(dim, theta, seq, scaling, c["max_position_embeddings"], interleaved, original)


def grouped(
    w, c, name, x, rotary, window=None, bias=False, out_bias=None, scale=None, norms=None, cap=None
):
    """Separate q, k and v; `norms(kind, states)` may normalise [batch, seq, heads, head_dim] before
    RoPE."""
    count, kv = c["num_attention_heads"], c.get("num_key_value_heads") or c["num_attention_heads"]
    dim = c.get("head_dim") or c["hidden_size"] // count
    norms = norms or (lambda kind, states: states)
    q = w.linear(f"{name}.q_proj", x, count * dim, bias).unflatten(-1, (count, dim))
    k = w.linear(f"{name}.k_proj", x, kv * dim, bias).unflatten(-1, (kv, dim))
    v = heads(w.linear(f"{name}.v_proj", x, kv * dim, bias), kv)
    q, k = norms("q", q).transpose(1, 2), norms("k", k).transpose(1, 2)
    if rotary is not None:
        q, k = rotary(q), rotary(k)
    out = attend(
        q, k, v, dim**-0.5 if scale is None else scale, causal(x.shape[1], window), cap=cap
    )
    return w.linear(f"{name}.o_proj", out, c["hidden_size"], bias if out_bias is None else out_bias)


def gated(w, c, name, x, act, bias=False, size=None):
    size = size or c["intermediate_size"]
    gate = ACTIVATIONS[act](w.linear(f"{name}.gate_proj", x, size, bias))
    return w.linear(
        f"{name}.down_proj", gate * w.linear(f"{name}.up_proj", x, size, bias), x.shape[-1], bias
    )


def fused_gated(w, c, name, x, act):
    """gate and up in one weight, gate first (Phi-3, GLM)."""
    gate, up = w.linear(f"{name}.gate_up_proj", x, 2 * c["intermediate_size"]).chunk(2, -1)
    return w.linear(f"{name}.down_proj", up * ACTIVATIONS[act](gate), x.shape[-1])


def head_norm(w, name, eps, plus_one=False):
    """An RMSNorm over the values of each head."""
    return lambda kind, states: w.rms_norm(f"{name}.{kind}_norm", states, eps, plus_one)


def wide_norm(w, name, eps):
    """An RMSNorm over the values of all heads."""
    return lambda kind, states: w.rms_norm(f"{name}.{kind}_norm", states.flatten(2), eps).unflatten(
        -1, states.shape[2:]
    )


def llama_shaped(
    w,
    c,
    ids,
    eps,
    tied,
    rotary,
    window=lambda i: None,
    bias=False,
    out_bias=None,
    mlp_bias=False,
    scale=None,
    norms=None,
    multiply=(1.0, 1.0, 1.0),
    mlp=None,
    enter=lambda i, x: x,
):
    """Llama and its variants: two pre-norm RMSNorms and a gated MLP. `enter` changes the hidden
    states in front of a layer."""
    table = w.table("model.embed_tokens", c["vocab_size"], c["hidden_size"])
    mlp = mlp or (
        lambda name, x: gated(w, c, name + ".mlp", x, c.get("hidden_act", "silu"), mlp_bias)
    )

    def block(i, x):
        name = f"model.layers.{i}"
        attention = norms(w, name + ".self_attn", eps) if norms else None
        x = enter(i, x)
        y = w.rms_norm(name + ".input_layernorm", x, eps)
        y = grouped(
            w, c, name + ".self_attn", y, rotary(i), window(i), bias, out_bias, scale, attention
        )
        x = x + multiply[1] * y
        return x + multiply[1] * mlp(name, w.rms_norm(name + ".post_attention_layernorm", x, eps))

    head = head_of(w, c, table, tied)
    return run(
        multiply[0] * table[ids],
        c["num_hidden_layers"],
        block,
        lambda x: w.rms_norm("model.norm", x, eps),
        lambda x: head(x) / multiply[2],
    )


def head_dim(c):
    return c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]
