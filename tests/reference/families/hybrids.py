"""Decoders with two kinds of attention: linear beside softmax, or a window beside all keys."""
import torch
from experts import bailing, latent_attention, mix, route_bailing_v2, route_v3
from layers import gated, head_dim, head_of, rotary_of, run
from pieces import alibi_slopes, attend, causal, heads


def lightning(w, c, layer, rotary):
    """Ling's lightning attention (modeling_bailing_moe_v2_5.py, BailingMoeV2_5LinearAttention) as
    the sum over all earlier tokens; fla's simple_gla divides queries by the root of head_dim."""
    eps, width, dim, count = (
        c["rms_norm_eps"], c["hidden_size"], head_dim(c), c["num_attention_heads"]
    )
    slopes = alibi_slopes(count) * (1 - (layer - 1) / (c["num_hidden_layers"] - 1) + 1e-5)

    def attention(name, x):
        qkv = w.linear(name + ".query_key_value", x, 3 * count * dim)
        q, k, v = qkv.unflatten(-1, (3 * count, dim)).split([count] * 3, -2)
        q = rotary(w.rms_norm(name + ".query_layernorm", q, eps).transpose(1, 2))
        k = rotary(w.rms_norm(name + ".key_layernorm", k, eps).transpose(1, 2))
        place = torch.arange(x.shape[1])
        distance = (place[:, None] - place[None, :]).clamp(min=0)
        decay = torch.exp(-slopes[:, None, None] * distance) * causal(x.shape[1])
        out = ((q @ k.transpose(-1, -2) * dim**-0.5 * decay) @ v.transpose(1, 2)).transpose(1, 2)
        groups = out.flatten(2).unflatten(-1, (c["group_norm_size"], -1))
        normed = groups * torch.rsqrt(groups.pow(2).mean(-1, keepdim=True) + eps)
        normed = normed.flatten(2) * w.scale(name + ".g_norm.weight", count * dim)
        return w.linear(
            name + ".dense", normed * torch.sigmoid(w.linear(name + ".g_proj", x, count * dim)), width
        )

    return attention


def is_linear(c, i):
    group, layers = c["layer_group_size"], c["num_hidden_layers"]
    return (i + 1) % group != 0 and i < layers // group * group


def bailing_moe_linear(w, c, ids):
    """Ring-linear 2.0: BailingMoE V2 with lightning attention in all but the last layer of every
    group."""
    rotary = rotary_of(c, ids.shape[1], int(head_dim(c) * c["partial_rotary_factor"]))
    return bailing(
        w,
        c,
        ids,
        route_bailing_v2,
        c["partial_rotary_factor"],
        lambda i: lightning(w, c, i, rotary) if is_linear(c, i) else None,
    )


def bailing_v2_5(w, c, ids):
    """Ling and Ring 2.5: lightning attention beside latent attention."""
    rotary = rotary_of(c, ids.shape[1], int(head_dim(c) * c["partial_rotary_factor"]))
    interleaved = rotary_of(c, ids.shape[1], c["qk_rope_head_dim"], interleaved=True)
    scale = (c["qk_nope_head_dim"] + c["qk_rope_head_dim"]) ** -0.5

    def mixer(i):
        if is_linear(c, i):
            return lightning(w, c, i, rotary)
        return lambda name, x: latent_attention(w, c, name, x, interleaved, scale, ".dense")

    return bailing(w, c, ids, route_bailing_v2, mixers=mixer)


def mimo_v2(w, c, ids):
    """MiMo-V2.5 after SGLang's mimo_v2.py: Q, K and V in one matrix, of which each key-value head of
    the layers without a window has its rows; sinks and another base of RoPE under a window."""
    eps, width, shards = c["layernorm_epsilon"], c["hidden_size"], c["num_key_value_heads"]
    table = w.table("model.embed_tokens", c["vocab_size"], width)

    def attention(i, name, x):
        windowed = c["hybrid_layer_pattern"][i] == 1
        prefix = "swa_" if windowed else ""
        count, kv, dim, value = (
            c[prefix + key]
            for key in ("num_attention_heads", "num_key_value_heads", "head_dim", "v_head_dim")
        )
        theta = c["swa_rope_theta" if windowed else "rope_theta"]
        rotary = rotary_of(
            {**c, "rope_theta": theta}, ids.shape[1], int(dim * c["partial_rotary_factor"])
        )
        sizes = [count // shards * dim, kv // shards * dim, kv // shards * value]
        qkv = w.linear(name + ".qkv_proj", x, shards * sum(sizes)).unflatten(-1, (shards, -1))
        q, k, v = (part.flatten(2) for part in qkv.split(sizes, -1))
        sinks = None
        if windowed and c["add_swa_attention_sink_bias"]:
            sinks = w.get(name + ".attention_sink_bias", (count,))
        out = attend(
            rotary(heads(q, count)),
            rotary(heads(k, kv)),
            heads(v, kv) * c["attention_value_scale"],
            dim**-0.5,
            causal(x.shape[1], c["sliding_window"] if windowed else None),
            sinks=sinks,
        )
        return w.linear(name + ".o_proj", out, width)

    def mlp(i, name, x):
        if not c["moe_layer_freq"][i]:
            return gated(w, c, name, x, "silu")
        logits = w.linear(name + ".gate", x, c["n_routed_experts"], std=2)
        weights = route_v3(w, {**c, "routed_scaling_factor": 1.0}, name + ".gate", logits)
        size = c["moe_intermediate_size"]
        return mix(x, weights, lambda e: gated(w, c, f"{name}.experts.{e}", x, "silu", size=size))

    def block(i, x):
        name = f"model.layers.{i}"
        x = x + attention(i, name + ".self_attn", w.rms_norm(name + ".input_layernorm", x, eps))
        return x + mlp(i, name + ".mlp", w.rms_norm(name + ".post_attention_layernorm", x, eps))

    return run(
        table[ids],
        c["num_hidden_layers"],
        block,
        lambda x: w.rms_norm("model.norm", x, eps),
        head_of(w, c, table, False),
    )
