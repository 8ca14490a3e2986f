"""Decoders with dense layers: one function per family, with the formulas of its published code."""

import torch
from layers import (
    run,
    head_of,
    rotary_of,
    grouped,
    gated,
    fused_gated,
    head_norm,
    wide_norm,
    llama_shaped,
    head_dim,
)
from pieces import ACTIVATIONS, alibi_slopes, attend, causal, heads


def exaone(w, c, ids):
    """EXAONE 3: Llama with GPT-2's names and a tied head by default."""
    eps, width, dim = c["layer_norm_epsilon"], c["hidden_size"], head_dim(c)
    count, kv = c["num_attention_heads"], c["num_key_value_heads"]
    rotary = rotary_of(c, ids.shape[1], dim)
    table = w.table("transformer.wte", c["vocab_size"], width)
    act = ACTIVATIONS[c["activation_function"]]

    def attention(name, x):
        q, k, v = (
            heads(w.linear(f"{name}.{part}_proj", x, n * dim), n)
            for part, n in (("q", count), ("k", kv), ("v", kv))
        )
        out = attend(rotary(q), rotary(k), v, dim**-0.5, causal(x.shape[1]))
        return w.linear(name + ".out_proj", out, width)

    def block(i, x):
        name = f"transformer.h.{i}"
        x = x + attention(name + ".attn.attention", w.rms_norm(name + ".ln_1", x, eps))
        y = w.rms_norm(name + ".ln_2", x, eps)
        gate = act(w.linear(name + ".mlp.c_fc_0", y, c["intermediate_size"]))
        up = w.linear(name + ".mlp.c_fc_1", y, c["intermediate_size"])
        return x + w.linear(name + ".mlp.c_proj", gate * up, width)

    return run(
        table[ids],
        c["num_layers"],
        block,
        lambda x: w.rms_norm("transformer.ln_f", x, eps),
        head_of(w, c, table, True),
    )


def baichuan(w, c, ids):
    """Baichuan 13B: Llama with fused projections and ALiBi in place of rotary positions."""
    eps, width, count = c["rms_norm_eps"], c["hidden_size"], c["num_attention_heads"]
    table = w.table("model.embed_tokens", c["vocab_size"], width)
    bias = alibi_slopes(count)[:, None, None] * torch.arange(ids.shape[1])

    def block(i, x):
        name = f"model.layers.{i}"
        y = w.rms_norm(name + ".input_layernorm", x, eps)
        q, k, v = (
            heads(part, count)
            for part in w.linear(name + ".self_attn.W_pack", y, 3 * width).chunk(3, -1)
        )
        y = attend(q, k, v, (width // count) ** -0.5, causal(x.shape[1]), bias=bias)
        x = x + w.linear(name + ".self_attn.o_proj", y, width)
        y = w.rms_norm(name + ".post_attention_layernorm", x, eps)
        gate = ACTIVATIONS["silu"](w.linear(name + ".mlp.gate_proj", y, c["intermediate_size"]))
        up = w.linear(name + ".mlp.up_proj", y, c["intermediate_size"])
        return x + w.linear(name + ".mlp.down_proj", gate * up, width)

    return run(
        table[ids],
        c["num_hidden_layers"],
        block,
        lambda x: w.rms_norm("model.norm", x, eps),
        head_of(w, c, table, False),
    )


def llama(w, c, ids):
    rotary = rotary_of(c, ids.shape[1], head_dim(c))
    bias = c.get("attention_bias", False)
    return llama_shaped(
        w,
        c,
        ids,
        c.get("rms_norm_eps", 1e-6),
        False,
        lambda i: rotary,
        bias=bias,
        mlp_bias=c.get("mlp_bias", False),
    )


def solar(w, c, ids):
    """SOLAR Pro: Llama with block connections. The hidden states in front of the layers of bskcn_1
    and bskcn_2 are kept; in front of those of bskcn_3 and bskcn_4 they are mixed with the last ones
    kept (vLLM's solar.py, SolarModel.forward)."""
    rotary = rotary_of(c, ids.shape[1], head_dim(c))
    share = c["bskcn_tv"][1]  # the first one is that of training
    kept = {}

    def connect(i, x):
        for place in (1, 2):
            if i in c[f"bskcn_{place}"]:
                kept[place] = x
        for place in (1, 2):
            if i in c[f"bskcn_{place + 2}"]:
                x = kept[place] * share + x * (1 - share)
        return x

    return llama_shaped(
        w,
        c,
        ids,
        c.get("rms_norm_eps", 1e-6),
        False,
        lambda i: rotary,
        bias=c.get("attention_bias", False),
        mlp_bias=c.get("mlp_bias", False),
        enter=connect,
    )


def nemotron_nas(w, c, ids):
    """Llama whose layers have their own key-value heads and widths, or a matrix, or nothing in
    place of attention or MLP (vLLM's nemotron_nas.py)."""
    eps, width, count = c["rms_norm_eps"], c["hidden_size"], c["num_attention_heads"]
    rotary = rotary_of(c, ids.shape[1], head_dim(c))
    table = w.table("model.embed_tokens", c["vocab_size"], width)

    def block(i, x):
        name, layer = f"model.layers.{i}", c["block_configs"][i]
        attention, ffn = layer["attention"], layer["ffn"]
        if not attention["no_op"]:
            y = w.rms_norm(name + ".input_layernorm", x, eps)
            if attention["replace_with_linear"]:
                y = w.linear(name + ".self_attn.linear_attn", y, width)
            else:
                own = {**c, "num_key_value_heads": count // attention["n_heads_in_group"]}
                y = grouped(w, own, name + ".self_attn", y, rotary)
            x = x + y
        if not ffn["no_op"]:
            y = w.rms_norm(name + ".post_attention_layernorm", x, eps)
            if ffn["replace_with_linear"]:
                y = w.linear(name + ".mlp.linear_mlp", y, width)
            else:
                inner = -(-int(2 * ffn["ffn_mult"] * width / 3) // 256) * 256
                y = gated(w, c, name + ".mlp", y, "silu", size=inner)
            x = x + y
        return x

    outputs = run(
        table[ids],
        c["num_hidden_layers"],
        block,
        lambda x: w.rms_norm("model.norm", x, eps),
        head_of(w, c, table, False),
    )
    for i, layer in enumerate(c["block_configs"]):
        if layer["attention"]["no_op"] and layer["ffn"]["no_op"]:
            del outputs[f"layers.{i}.output"]  # such a layer does nothing
    return outputs


def mistral(w, c, ids):
    rotary = rotary_of(c, ids.shape[1], head_dim(c))
    return llama_shaped(
        w,
        c,
        ids,
        c.get("rms_norm_eps", 1e-6),
        False,
        lambda i: rotary,
        lambda i: c.get("sliding_window"),
    )


def layer_types(c, otherwise):
    return c.get("layer_types") or [otherwise(i) for i in range(c["num_hidden_layers"])]


def qwen_window(c):
    """Qwen: layers from max_window_layers on have a window if use_sliding_window is true."""
    used = c.get("use_sliding_window", False) and c.get("sliding_window") is not None
    kinds = layer_types(
        c,
        lambda i: "sliding_attention"
        if used and i >= c.get("max_window_layers", 28)
        else "full_attention",
    )
    return lambda i: c["sliding_window"] if kinds[i] == "sliding_attention" else None


def qwen2(w, c, ids):
    rotary = rotary_of(c, ids.shape[1], head_dim(c))
    return llama_shaped(
        w,
        c,
        ids,
        c.get("rms_norm_eps", 1e-6),
        False,
        lambda i: rotary,
        qwen_window(c),
        bias=True,
        out_bias=False,
    )


def qwen3(w, c, ids):
    c = {"head_dim": 128, **c}
    rotary = rotary_of(c, ids.shape[1], c["head_dim"])
    return llama_shaped(
        w,
        c,
        ids,
        c.get("rms_norm_eps", 1e-6),
        False,
        lambda i: rotary,
        qwen_window(c),
        bias=c.get("attention_bias", False),
        norms=head_norm,
    )


def smollm3(w, c, ids):
    rotary = rotary_of(c, ids.shape[1], head_dim(c), 2000000.0)
    interval = c.get("no_rope_layer_interval", 4)
    uses_rope = c.get("no_rope_layers") or [
        (i + 1) % interval != 0 for i in range(c["num_hidden_layers"])
    ]
    slides = c.get("use_sliding_window", False) and c.get("sliding_window") is not None
    kinds = layer_types(
        c, lambda i: "sliding_attention" if slides and not uses_rope[i] else "full_attention"
    )
    window = lambda i: c["sliding_window"] if slides and kinds[i] == "sliding_attention" else None
    return llama_shaped(
        w,
        c,
        ids,
        c.get("rms_norm_eps", 1e-6),
        True,
        lambda i: rotary if uses_rope[i] else None,
        window,
        bias=c.get("attention_bias", False),
        mlp_bias=c.get("mlp_bias", False),
    )


def granite(w, c, ids, mlp=None):
    rotary = rotary_of(c, ids.shape[1], head_dim(c))
    multiply = [
        c.get(key, 1.0) for key in ("embedding_multiplier", "residual_multiplier", "logits_scaling")
    ]
    return llama_shaped(
        w,
        c,
        ids,
        c.get("rms_norm_eps", 1e-6),
        False,
        lambda i: rotary,
        bias=c.get("attention_bias", False),
        mlp_bias=c.get("mlp_bias", False),
        scale=c.get("attention_multiplier", 1.0),
        multiply=multiply,
        mlp=mlp,
    )


def olmo2(w, c, ids):
    """Norms only after attention and MLP, and over all of q and over all of k."""
    eps = c.get("rms_norm_eps", 1e-5)
    rotary = rotary_of(c, ids.shape[1], head_dim(c))
    table = w.table("model.embed_tokens", c["vocab_size"], c["hidden_size"])

    def block(i, x):
        name = f"model.layers.{i}"
        y = grouped(
            w,
            c,
            name + ".self_attn",
            x,
            rotary,
            bias=c.get("attention_bias", False),
            norms=wide_norm(w, name + ".self_attn", eps),
        )
        x = x + w.rms_norm(name + ".post_attention_layernorm", y, eps)
        y = gated(w, c, name + ".mlp", x, c.get("hidden_act", "silu"))
        return x + w.rms_norm(name + ".post_feedforward_layernorm", y, eps)

    return run(
        table[ids],
        c["num_hidden_layers"],
        block,
        lambda x: w.rms_norm("model.norm", x, eps),
        head_of(w, c, table, False),
    )


def glm(w, c, ids, sandwich=False):
    """RoPE on neighbouring dimensions of half of each head; GLM-4 has norms after attention and MLP
    too."""
    eps = c.get("rms_norm_eps", 1.5625e-07)
    parameters = c.get("rope_parameters") or {}
    part = c.get("partial_rotary_factor", parameters.get("partial_rotary_factor", 0.5))
    c = {"head_dim": 128, **c}
    rotary = rotary_of(c, ids.shape[1], int(c["head_dim"] * part), interleaved=True)
    table = w.table("model.embed_tokens", c["vocab_size"], c["hidden_size"])
    after = (lambda name, y: w.rms_norm(name, y, eps)) if sandwich else (lambda name, y: y)

    def block(i, x):
        name = f"model.layers.{i}"
        y = w.rms_norm(name + ".input_layernorm", x, eps)
        y = grouped(
            w, c, name + ".self_attn", y, rotary, bias=c.get("attention_bias", True), out_bias=False
        )
        x = x + after(name + ".post_self_attn_layernorm", y)
        y = w.rms_norm(name + ".post_attention_layernorm", x, eps)
        return x + after(
            name + ".post_mlp_layernorm",
            fused_gated(w, c, name + ".mlp", y, c.get("hidden_act", "silu")),
        )

    return run(
        table[ids],
        c["num_hidden_layers"],
        block,
        lambda x: w.rms_norm("model.norm", x, eps),
        head_of(w, c, table, False),
    )


def glm4(w, c, ids):
    return glm(w, c, ids, sandwich=True)


def cohere(w, c, ids, alternating=False):
    """Parallel block after one norm without bias; Cohere 2's full layers have no RoPE."""
    eps = c.get("layer_norm_eps", 1e-5)
    rotary = rotary_of(
        c, ids.shape[1], c["hidden_size"] // c["num_attention_heads"], interleaved=True
    )
    table = w.table("model.embed_tokens", c["vocab_size"], c["hidden_size"])
    pattern = c.get("sliding_window_pattern", 4)
    kinds = layer_types(c, lambda i: "sliding_attention" if (i + 1) % pattern else "full_attention")
    bias = c.get("attention_bias", False)

    def own_norms(name):
        """A LayerNorm without bias whose weight is [heads, head_dim]."""

        def norm(kind, states):
            centred = states - states.mean(-1, keepdim=True)
            weight = w.get(f"{name}.{kind}_norm.weight", states.shape[2:], mean=1.0, std=0.2)
            return weight * centred / torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + eps)

        return norm

    def block(i, x):
        name = f"model.layers.{i}"
        y = w.layer_norm(name + ".input_layernorm", x, eps, bias=False)
        slides = alternating and kinds[i] == "sliding_attention"
        norms = own_norms(name + ".self_attn") if c.get("use_qk_norm", False) else None
        layer_rotary = rotary if slides or not alternating else None
        window = c.get("sliding_window", 4096) if slides else None
        return (
            x
            + grouped(w, c, name + ".self_attn", y, layer_rotary, window, bias, norms=norms)
            + gated(w, c, name + ".mlp", y, c.get("hidden_act", "silu"))
        )

    head = head_of(w, c, table, True)
    return run(
        table[ids],
        c["num_hidden_layers"],
        block,
        lambda x: w.layer_norm("model.norm", x, eps, bias=False),
        lambda x: head(x) * c.get("logit_scale", 0.0625),
    )


def cohere2(w, c, ids):
    return cohere(w, c, ids, alternating=True)


def starcoder2(w, c, ids):
    """LayerNorms with bias and a plain MLP instead of Llama's."""
    eps, bias = c.get("norm_epsilon", 1e-5), c.get("use_bias", True)
    rotary = rotary_of(c, ids.shape[1], head_dim(c))
    table = w.table("model.embed_tokens", c["vocab_size"], c["hidden_size"], std=0.2)

    def block(i, x):
        name = f"model.layers.{i}"
        y = w.layer_norm(name + ".input_layernorm", x, eps)
        x = x + grouped(w, c, name + ".self_attn", y, rotary, c.get("sliding_window"), bias)
        y = w.linear(
            name + ".mlp.c_fc",
            w.layer_norm(name + ".post_attention_layernorm", x, eps),
            c["intermediate_size"],
            bias,
        )
        return x + w.linear(
            name + ".mlp.c_proj",
            ACTIVATIONS[c.get("hidden_act", "gelu_pytorch_tanh")](y),
            x.shape[-1],
            bias,
        )

    return run(
        table[ids],
        c["num_hidden_layers"],
        block,
        lambda x: w.layer_norm("model.norm", x, eps),
        head_of(w, c, table, True),
    )


def stablelm(w, c, ids):
    """LayerNorms, RoPE on a quarter of each head; sequential or parallel; q and k may have a norm
    per head."""
    eps = c.get("layer_norm_eps", 1e-5)
    size = c["hidden_size"] // c["num_attention_heads"]
    rotary = rotary_of(c, ids.shape[1], int(size * c.get("partial_rotary_factor", 0.25)))
    table = w.table("model.embed_tokens", c["vocab_size"], c["hidden_size"])
    parallel = c.get("use_parallel_residual", False)

    def per_head(name):
        one = lambda kind, h, x: w.layer_norm(
            f"{name}.{kind}_layernorm.norms.{h}", x, eps, bias=False
        )
        return lambda kind, states: torch.stack(
            [one(kind, h, states[:, :, h]) for h in range(states.shape[2])], 2
        )

    def block(i, x):
        name = f"model.layers.{i}"
        y = w.layer_norm(name + ".input_layernorm", x, eps)
        norms = per_head(name + ".self_attn") if c.get("qk_layernorm", False) else None
        attention = grouped(
            w,
            c,
            name + ".self_attn",
            y,
            rotary,
            bias=c.get("use_qkv_bias", False),
            out_bias=False,
            norms=norms,
        )
        x = x + attention
        if not parallel:
            y = w.layer_norm(name + ".post_attention_layernorm", x, eps)
        return x + gated(w, c, name + ".mlp", y, c.get("hidden_act", "silu"))

    return run(
        table[ids],
        c["num_hidden_layers"],
        block,
        lambda x: w.layer_norm("model.norm", x, eps),
        head_of(w, c, table, False),
    )


def phi3(w, c, ids):
    """q, k and v in one weight."""
    eps, size, kv = (
        c.get("rms_norm_eps", 1e-5),
        head_dim(c),
        c.get("num_key_value_heads") or c["num_attention_heads"],
    )
    rotary = rotary_of(c, ids.shape[1], int(size * c.get("partial_rotary_factor", 1.0)))
    table = w.table("model.embed_tokens", c["vocab_size"], c["hidden_size"])
    count = c["num_attention_heads"]

    def block(i, x):
        name = f"model.layers.{i}"
        qkv = w.linear(
            name + ".self_attn.qkv_proj",
            w.rms_norm(name + ".input_layernorm", x, eps),
            (count + 2 * kv) * size,
        )
        q, k, v = (
            heads(part, part.shape[-1] // size)
            for part in qkv.split([count * size, kv * size, kv * size], -1)
        )
        y = attend(
            rotary(q), rotary(k), v, size**-0.5, causal(x.shape[1], c.get("sliding_window"))
        )
        x = x + w.linear(name + ".self_attn.o_proj", y, x.shape[-1])
        y = w.rms_norm(name + ".post_attention_layernorm", x, eps)
        return x + fused_gated(w, c, name + ".mlp", y, c.get("hidden_act", "silu"))

    return run(
        table[ids],
        c["num_hidden_layers"],
        block,
        lambda x: w.rms_norm("model.norm", x, eps),
        head_of(w, c, table, False),
    )
