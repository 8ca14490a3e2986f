"""GPT-style decoders: learned positions, ALiBi, parallel blocks, heads with biases."""
import math

import torch
from layers import head_of, run
from pieces import ACTIVATIONS, Rotary, alibi_slopes, attend, causal, heads, mpt_slopes


def gptj(w, c, ids):
    """One norm, parallel attention and MLP; RoPE on neighbouring dimensions of part of each head; a
    bias in the head."""
    eps, count, size = c.get("layer_norm_epsilon", 1e-5), c["n_head"], c["n_embd"]
    rotary = Rotary(c["rotary_dim"], 10000.0, ids.shape[1], interleaved=True)
    table = w.table("transformer.wte", c["vocab_size"], size)

    def block(i, x):
        name = f"transformer.h.{i}"
        y = w.layer_norm(name + ".ln_1", x, eps)
        q, k, v = (heads(w.linear(f"{name}.attn.{part}_proj", y, size), count) for part in "qkv")
        attention = attend(rotary(q), rotary(k), v, (size // count) ** -0.5, causal(x.shape[1]))
        up = w.linear(name + ".mlp.fc_in", y, c.get("n_inner") or 4 * size, True)
        act = ACTIVATIONS[c.get("activation_function", "gelu_new")]
        return (
            x
            + w.linear(name + ".attn.out_proj", attention, size)
            + w.linear(name + ".mlp.fc_out", act(up), size, True)
        )

    head = head_of(w, c, table, False, bias=True)
    return run(
        table[ids], c["n_layer"], block, lambda x: w.layer_norm("transformer.ln_f", x, eps), head
    )


def conv1d(w, name, x, features):
    """GPT-2's linear layer, with weight [in, out]."""
    weight = w.get(name + ".weight", (x.shape[-1], features), std=1 / math.sqrt(x.shape[-1]))
    return x @ weight + w.get(name + ".bias", (features,), std=0.2)


def gpt2(w, c, ids):
    eps, count, size = c.get("layer_norm_epsilon", 1e-5), c["n_head"], c["n_embd"]
    table = w.table("transformer.wte", c["vocab_size"], size, std=0.3)
    places = w.table("transformer.wpe", c["n_positions"], size, std=0.3)
    base = (size // count) ** -0.5 if c.get("scale_attn_weights", True) else 1.0

    def block(i, x):
        name = f"transformer.h.{i}"
        qkv = conv1d(w, name + ".attn.c_attn", w.layer_norm(name + ".ln_1", x, eps), 3 * size)
        q, k, v = (heads(part, count) for part in qkv.chunk(3, -1))
        scale = base / (i + 1) if c.get("scale_attn_by_inverse_layer_idx", False) else base
        x = x + conv1d(w, name + ".attn.c_proj", attend(q, k, v, scale, causal(x.shape[1])), size)
        up = conv1d(
            w,
            name + ".mlp.c_fc",
            w.layer_norm(name + ".ln_2", x, eps),
            c.get("n_inner") or 4 * size,
        )
        return x + conv1d(
            w, name + ".mlp.c_proj", ACTIVATIONS[c.get("activation_function", "gelu_new")](up), size
        )

    x = table[ids] + places[: ids.shape[1]]
    return run(
        x,
        c["n_layer"],
        block,
        lambda x: w.layer_norm("transformer.ln_f", x, eps),
        head_of(w, c, table, True),
    )


def mpt(w, c, ids):
    """MPT: ALiBi with its own slopes, no biases at all, MLP always four times as wide."""
    eps, count, size = c.get("layer_norm_epsilon", 1e-5), c["n_heads"], c["d_model"]
    options = c.get("attn_config") or {}
    scale = options.get("softmax_scale") or (size // count) ** -0.5
    clip = options.get("clip_qkv")
    table = w.table("transformer.wte", c["vocab_size"], size, std=0.3)
    distance = torch.arange(1 - ids.shape[1], 1).float()
    bias = mpt_slopes(count, options.get("alibi_bias_max", 8))[:, None, None] * distance

    def block(i, x):
        name = f"transformer.blocks.{i}"
        qkv = w.linear(
            name + ".attn.Wqkv", w.layer_norm(name + ".norm_1", x, eps, bias=False), 3 * size
        )
        qkv = qkv.clamp(-clip, clip) if clip else qkv
        q, k, v = (heads(part, count) for part in qkv.chunk(3, -1))
        x = x + w.linear(
            name + ".attn.out_proj", attend(q, k, v, scale, causal(x.shape[1]), bias), size
        )
        up = w.linear(
            name + ".ffn.up_proj", w.layer_norm(name + ".norm_2", x, eps, bias=False), 4 * size
        )
        return x + w.linear(name + ".ffn.down_proj", ACTIVATIONS["gelu"](up), size)

    last = lambda x: w.layer_norm("transformer.norm_f", x, eps, bias=False)
    return run(table[ids], c["n_layers"], block, last, head_of(w, c, table, True))


def falcon_qkv(c, fused, count, size):
    """Splits fused projections: each group's queries, then its key and its value; or [head][q/k/v];
    or all queries, one key, one value."""
    batch, seq = fused.shape[:2]
    if c.get("new_decoder_architecture", False):
        groups = c.get("num_kv_heads") or count
        fused = fused.reshape(batch, seq, groups, count // groups + 2, size)
        parts = fused[..., :-2, :], fused[..., -2:-1, :], fused[..., -1:, :]
    elif c.get("multi_query", True):
        fused = fused.reshape(batch, seq, count + 2, size)
        parts = fused[:, :, :-2], fused[:, :, -2:-1], fused[:, :, -1:]
    else:
        fused = fused.reshape(batch, seq, count, 3, size)
        parts = (fused[:, :, :, part] for part in range(3))
    return [part.reshape(batch, seq, -1, size).transpose(1, 2) for part in parts]


def falcon(w, c, ids):
    eps, count, width = (
        c.get("layer_norm_epsilon", 1e-5),
        c["num_attention_heads"],
        c["hidden_size"],
    )
    size, new, bias = width // count, c.get("new_decoder_architecture", False), c.get("bias", False)
    parallel = c.get("parallel_attn", True)
    two = new and (c.get("num_ln_in_parallel_attn") or 2) == 2
    table = w.table("transformer.word_embeddings", c["vocab_size"], width, std=0.3)
    seq, rotary, alibi = ids.shape[1], None, None
    if c.get("alibi", False):
        # The published code multiplies in bfloat16, and scales scores and bias together.
        slopes = alibi_slopes(count).bfloat16()[:, None]
        alibi = (slopes * torch.arange(seq)).float()[:, None, :] * size**-0.5
    else:
        rotary = Rotary(size, c.get("rope_theta", 10000.0), seq)
    kv = (c.get("num_kv_heads") or count) if new else (1 if c.get("multi_query", True) else count)

    def block(i, x):
        name = f"transformer.h.{i}"
        y = w.layer_norm(name + (".ln_attn" if two else ".input_layernorm"), x, eps)
        beside = w.layer_norm(name + ".ln_mlp", x, eps) if two else y
        fused = w.linear(name + ".self_attention.query_key_value", y, (count + 2 * kv) * size, bias)
        q, k, v = falcon_qkv(c, fused, count, size)
        if rotary:
            q, k = rotary(q), rotary(k)
        x = x + w.linear(
            name + ".self_attention.dense",
            attend(q, k, v, size**-0.5, causal(seq), alibi),
            width,
            bias,
        )
        if not new and not parallel:
            beside = w.layer_norm(name + ".post_attention_layernorm", x, eps)
        up = w.linear(
            name + ".mlp.dense_h_to_4h", beside, c.get("ffn_hidden_size") or 4 * width, bias
        )
        return x + w.linear(
            name + ".mlp.dense_4h_to_h", ACTIVATIONS[c.get("activation", "gelu")](up), width, bias
        )

    return run(
        table[ids],
        c["num_hidden_layers"],
        block,
        lambda x: w.layer_norm("transformer.ln_f", x, eps),
        head_of(w, c, table, True),
    )


def bloom(w, c, ids):
    """A norm after the embedding; [head][q/k/v]; the residual may come from before or after the
    norm."""
    eps, count, width = c.get("layer_norm_epsilon", 1e-5), c["n_head"], c["hidden_size"]
    size, late = width // count, c.get("apply_residual_connection_post_layernorm", False)
    table = w.table("transformer.word_embeddings", c["vocab_size"], width, std=0.3)
    bias = alibi_slopes(count)[:, None, None] * torch.arange(ids.shape[1]).float()

    def block(i, x):
        name = f"transformer.h.{i}"
        y = w.layer_norm(name + ".input_layernorm", x, eps)
        qkv = w.linear(name + ".self_attention.query_key_value", y, 3 * width, True).unflatten(
            -1, (count, 3, size)
        )
        q, k, v = (qkv[:, :, :, part].transpose(1, 2) for part in range(3))
        attention = attend(q, k, v, size**-0.5, causal(x.shape[1]), bias)
        x = (y if late else x) + w.linear(name + ".self_attention.dense", attention, width, True)
        y = w.layer_norm(name + ".post_attention_layernorm", x, eps)
        up = w.linear(name + ".mlp.dense_h_to_4h", y, 4 * width, True)
        return (y if late else x) + w.linear(
            name + ".mlp.dense_4h_to_h", ACTIVATIONS["gelu_new"](up), width, True
        )

    x = w.layer_norm("transformer.word_embeddings_layernorm", table[ids], eps)
    return run(
        x,
        c["n_layer"],
        block,
        lambda x: w.layer_norm("transformer.ln_f", x, eps),
        head_of(w, c, table, True),
    )


def opt(w, c, ids):
    """OPT-350m: narrow embeddings, projected in and out; post-norm; no final norm."""
    width, count, before = (
        c["hidden_size"],
        c["num_attention_heads"],
        c.get("do_layer_norm_before", True),
    )
    narrow, bias = c.get("word_embed_proj_dim") or width, c.get("enable_bias", True)
    table = w.table("model.decoder.embed_tokens", c["vocab_size"], narrow, std=0.3)
    places = w.table(
        "model.decoder.embed_positions", c["max_position_embeddings"] + 2, width, std=0.3
    )
    norm = lambda name, x: w.layer_norm(name, x, 1e-5)

    def block(i, x):
        name = f"model.decoder.layers.{i}"
        y = norm(name + ".self_attn_layer_norm", x) if before else x
        q, k, v = (
            heads(w.linear(f"{name}.self_attn.{part}_proj", y, width, bias), count)
            for part in "qkv"
        )
        y = attend(q, k, v, (width // count) ** -0.5, causal(x.shape[1]))
        x = x + w.linear(name + ".self_attn.out_proj", y, width, bias)
        x = x if before else norm(name + ".self_attn_layer_norm", x)
        y = norm(name + ".final_layer_norm", x) if before else x
        y = ACTIVATIONS[c.get("activation_function", "relu")](
            w.linear(name + ".fc1", y, c["ffn_dim"], bias)
        )
        x = x + w.linear(name + ".fc2", y, width, bias)
        return x if before else norm(name + ".final_layer_norm", x)

    def last(x):
        x = norm("model.decoder.final_layer_norm", x) if before else x
        return w.linear("model.decoder.project_out", x, narrow) if narrow != width else x

    x = table[ids]
    x = w.linear("model.decoder.project_in", x, width) if narrow != width else x
    return run(
        x + places[2 : ids.shape[1] + 2],
        c["num_hidden_layers"],
        block,
        last,
        head_of(w, c, table, True),
    )


def gpt_neox(w, c, ids):
    """[head][q/k/v], RoPE on part of each head; attention and MLP in parallel or in sequence, with
    a norm each."""
    eps, count, width = c.get("layer_norm_eps", 1e-5), c["num_attention_heads"], c["hidden_size"]
    size, bias = width // count, c.get("attention_bias", True)
    theta = c.get("rope_theta", c.get("rotary_emb_base", 10000.0))
    rotary = Rotary(
        int(size * c.get("partial_rotary_factor", c.get("rotary_pct", 0.25))), theta, ids.shape[1]
    )
    table = w.table("gpt_neox.embed_in", c["vocab_size"], width)

    def block(i, x):
        name = f"gpt_neox.layers.{i}"
        y = w.layer_norm(name + ".input_layernorm", x, eps)
        qkv = w.linear(name + ".attention.query_key_value", y, 3 * width, bias).unflatten(
            -1, (count, 3, size)
        )
        q, k, v = (qkv[:, :, :, part].transpose(1, 2) for part in range(3))
        out = w.linear(
            name + ".attention.dense",
            attend(rotary(q), rotary(k), v, size**-0.5, causal(x.shape[1])),
            width,
            bias,
        )
        base = x if c.get("use_parallel_residual", True) else x + out
        y = w.layer_norm(name + ".post_attention_layernorm", base, eps)
        up = ACTIVATIONS[c.get("hidden_act", "gelu")](
            w.linear(name + ".mlp.dense_h_to_4h", y, c["intermediate_size"], True)
        )
        return x + out + w.linear(name + ".mlp.dense_4h_to_h", up, width, True)

    return run(
        table[ids],
        c["num_hidden_layers"],
        block,
        lambda x: w.layer_norm("gpt_neox.final_layer_norm", x, eps),
        head_of(w, c, table, False, "embed_out"),
    )


def gpt_bigcode(w, c, ids):
    """GPT-2 with weights [out, in]; all queries, then one key and value; or each head's query, key
    and value."""
    eps, count, width = c.get("layer_norm_epsilon", 1e-5), c["n_head"], c["n_embd"]
    size, one = width // count, c.get("multi_query", True)
    table = w.table("transformer.wte", c["vocab_size"], width, std=0.3)
    places = w.table("transformer.wpe", c["n_positions"], width, std=0.3)

    def block(i, x):
        name = f"transformer.h.{i}"
        y = w.layer_norm(name + ".ln_1", x, eps)
        qkv = w.linear(name + ".attn.c_attn", y, width + 2 * size if one else 3 * width, True)
        if one:
            q, k, v = (
                heads(part, part.shape[-1] // size) for part in qkv.split([width, size, size], -1)
            )
        else:
            q, k, v = qkv.unflatten(-1, (count, 3 * size)).transpose(1, 2).chunk(3, -1)
        x = x + w.linear(
            name + ".attn.c_proj", attend(q, k, v, size**-0.5, causal(x.shape[1])), width, True
        )
        up = w.linear(
            name + ".mlp.c_fc",
            w.layer_norm(name + ".ln_2", x, eps),
            c.get("n_inner") or 4 * width,
            True,
        )
        act = ACTIVATIONS[c.get("activation_function", "gelu_pytorch_tanh")]
        return x + w.linear(name + ".mlp.c_proj", act(up), width, True)

    x = table[ids] + places[: ids.shape[1]]
    return run(
        x,
        c["n_layer"],
        block,
        lambda x: w.layer_norm("transformer.ln_f", x, eps),
        head_of(w, c, table, True),
    )


def phi(w, c, ids):
    """One norm, parallel attention and MLP, biases everywhere; q and k may have a norm per head."""
    eps, count, width = c.get("layer_norm_eps", 1e-5), c["num_attention_heads"], c["hidden_size"]
    kv, size = c.get("num_key_value_heads") or count, width // count
    rotary = Rotary(
        int(size * c.get("partial_rotary_factor", 0.5)), c.get("rope_theta", 10000.0), ids.shape[1]
    )
    table = w.table("model.embed_tokens", c["vocab_size"], width)

    def block(i, x):
        name = f"model.layers.{i}"
        y = w.layer_norm(name + ".input_layernorm", x, eps)
        q, k, v = (
            heads(w.linear(f"{name}.self_attn.{part}_proj", y, n * size, True), n)
            for part, n in (("q", count), ("k", kv), ("v", kv))
        )
        if c.get("qk_layernorm", False):
            q, k = w.layer_norm(name + ".self_attn.q_layernorm", q, eps), w.layer_norm(
                name + ".self_attn.k_layernorm", k, eps
            )
        out = w.linear(
            name + ".self_attn.dense",
            attend(rotary(q), rotary(k), v, size**-0.5, causal(x.shape[1])),
            width,
            True,
        )
        up = ACTIVATIONS[c.get("hidden_act", "gelu_new")](
            w.linear(name + ".mlp.fc1", y, c["intermediate_size"], True)
        )
        return x + out + w.linear(name + ".mlp.fc2", up, width, True)

    return run(
        table[ids],
        c["num_hidden_layers"],
        block,
        lambda x: w.layer_norm("model.final_layernorm", x, eps),
        head_of(w, c, table, False, bias=True),
    )


def hf_olmo(w, c, ids):
    """OLMo's own code (olmo/model.py): norms without weights; Q, K and V in one tensor, and both
    halves of SwiGLU, of which the second one is the gate."""
    width, count, names = c["d_model"], c["n_heads"], "model.transformer."
    kv, dim = c["n_kv_heads"] or count, width // count
    rotary = Rotary(dim, 10000.0, ids.shape[1])
    table = w.table(names + "wte", c["embedding_size"], width)
    norm = lambda x: torch.nn.functional.layer_norm(x, (width,), eps=1e-5)

    def block(i, x):
        name = f"{names}blocks.{i}."
        qkv = w.linear(name + "att_proj", norm(x), (count + 2 * kv) * dim)
        qkv = qkv.clamp(-c["clip_qkv"], c["clip_qkv"])
        q, k, v = qkv.unflatten(-1, (-1, dim)).transpose(1, 2).split([count, kv, kv], 1)
        out = attend(rotary(q), rotary(k), v, dim**-0.5, causal(x.shape[1]))
        x = x + w.linear(name + "attn_out", out, width)
        up, gate = w.linear(name + "ff_proj", norm(x), c["mlp_hidden_size"]).chunk(2, -1)
        return x + w.linear(name + "ff_out", ACTIVATIONS["silu"](gate) * up, width)

    return run(
        table[ids],
        c["n_layers"],
        block,
        norm,
        lambda x: w.linear(names + "ff_out", x, c["embedding_size"]),
    )
