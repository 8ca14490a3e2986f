"""Decoders with routed experts, and multi-head latent attention."""
import torch
from decoders import granite
from layers import (
    gated,
    grouped,
    head_dim,
    head_norm,
    head_of,
    llama_shaped,
    rotary_of,
    run,
    wide_norm,
)
from pieces import ACTIVATIONS, Rotary, attend, causal, heads, magnitude


def mix(x, weights, expert):
    """sum over experts of weight · expert(x); weights [batch, seq, experts], zero for unselected
    experts."""
    return sum(weights[..., e : e + 1] * expert(e) for e in range(weights.shape[-1]))


def chosen(values, indices):
    """Scatters the values of the selected experts to their places, zero elsewhere."""
    return lambda count: torch.zeros(*values.shape[:-1], count).scatter(-1, indices, values)


def softmax_top(logits, k, renormalise):
    """The k largest of the softmax over all experts."""
    values, indices = torch.softmax(logits, -1).topk(k, -1)
    values = values / values.sum(-1, keepdim=True) if renormalise else values
    return chosen(values, indices)(logits.shape[-1])


def sparse_mixer(logits, jitter):
    """PhiMoE in inference: the weight of each of the two experts is a softmax over the remaining
    logits within 2·jitter of the largest."""

    def pick(scores):
        best, index = scores.max(-1, keepdim=True)
        far = (best - scores) / logits.abs().clamp(min=best) > 2 * jitter
        weights = torch.softmax(scores.masked_fill(far, float("-inf")), -1)
        return weights.gather(-1, index), index

    first, i = pick(logits)
    second, j = pick(logits.scatter(-1, i, float("-inf")))
    return chosen(torch.cat([first, second], -1), torch.cat([i, j], -1))(logits.shape[-1])


def mixtral_expert(w, c, name, x, e, size):
    """w2(act(w1 x) · w3 x)"""
    name = f"{name}.experts.{e}"
    gate = ACTIVATIONS[c.get("hidden_act", "silu")](w.linear(f"{name}.w1", x, size))
    return w.linear(f"{name}.w2", gate * w.linear(f"{name}.w3", x, size), x.shape[-1])


def mixtral(w, c, ids):
    rotary = rotary_of(c, ids.shape[1], head_dim(c), 1e6)

    def mlp(name, x):
        name += ".block_sparse_moe"
        weights = softmax_top(
            w.linear(name + ".gate", x, c["num_local_experts"], std=3),
            c.get("num_experts_per_tok", 2),
            True,
        )
        return mix(x, weights, lambda e: mixtral_expert(w, c, name, x, e, c["intermediate_size"]))

    return llama_shaped(
        w,
        c,
        ids,
        c.get("rms_norm_eps", 1e-5),
        False,
        lambda i: rotary,
        lambda i: c.get("sliding_window"),
        mlp=mlp,
    )


def phimoe(w, c, ids):
    """Mixtral with LayerNorms, biases, SparseMixer, and an optional bias in the head."""
    eps, bias = c.get("rms_norm_eps", 1e-5), c.get("attention_bias", False)
    scaling = c.get("rope_scaling")
    rotary = rotary_of({"rope_theta": 1e6, **c}, ids.shape[1], head_dim(c))
    if scaling:
        long = ids.shape[1] > scaling["original_max_position_embeddings"]
        rotary.scale = scaling["long_mscale" if long else "short_mscale"]
    table = w.table("model.embed_tokens", c["vocab_size"], c["hidden_size"])

    def block(i, x):
        name = f"model.layers.{i}"
        y = w.layer_norm(name + ".input_layernorm", x, eps)
        x = x + grouped(w, c, name + ".self_attn", y, rotary, c.get("sliding_window"), bias)
        y = w.layer_norm(name + ".post_attention_layernorm", x, eps)
        name += ".block_sparse_moe"
        weights = sparse_mixer(
            w.linear(name + ".gate", y, c["num_local_experts"], std=3),
            c.get("router_jitter_noise", 0.01),
        )
        return x + mix(
            y, weights, lambda e: mixtral_expert(w, c, name, y, e, c["intermediate_size"])
        )

    head = head_of(w, c, table, False, bias=c.get("lm_head_bias", False))
    return run(
        table[ids],
        c["num_hidden_layers"],
        block,
        lambda x: w.layer_norm("model.norm", x, eps),
        head,
    )


def minimax_m2(w, c, ids):
    """Sigmoid router whose bias affects only the selection; norms over all of q and over all of k;
    RoPE on part of each head."""
    c = {"head_dim": 128, **c}
    parameters = c.get("rope_parameters") or {}
    part = parameters.get("partial_rotary_factor", c.get("partial_rotary_factor"))
    rotary_dim = c.get("rotary_dim") or int(c["head_dim"] * (1.0 if part is None else part))
    rotary = rotary_of(c, ids.shape[1], rotary_dim, 5e6)

    def mlp(name, x):
        name += ".block_sparse_moe"
        scores = torch.sigmoid(w.linear(name + ".gate", x, c["num_local_experts"], std=2))
        bias = w.get(name + ".e_score_correction_bias", (c["num_local_experts"],), std=0.5)
        indices = (scores + bias).topk(c.get("num_experts_per_tok", 8), -1).indices
        values = scores.gather(-1, indices)
        weights = chosen(values / values.sum(-1, keepdim=True), indices)(c["num_local_experts"])
        return mix(x, weights, lambda e: mixtral_expert(w, c, name, x, e, c["intermediate_size"]))

    return llama_shaped(
        w, c, ids, c.get("rms_norm_eps", 1e-6), False, lambda i: rotary, norms=wide_norm, mlp=mlp
    )


def qwen_moe(w, c, ids, renormalise, shared, bias, norms=None):
    """Routed experts in every decoder_sparse_step-th layer, except those in mlp_only_layers."""
    c = {"head_dim": c["hidden_size"] // c["num_attention_heads"] if shared else 128, **c}
    rotary = rotary_of(c, ids.shape[1], c["head_dim"])
    step, size = c.get("decoder_sparse_step", 1), c["moe_intermediate_size"]

    def mlp(name, x):
        i = int(name.split(".")[-1])
        name += ".mlp"
        if i in c.get("mlp_only_layers", []) or (i + 1) % step:
            return gated(w, c, name, x, c.get("hidden_act", "silu"))
        count = c.get("num_experts") or c["num_local_experts"]
        weights = softmax_top(
            w.linear(name + ".gate", x, count, std=3),
            c["num_experts_per_tok"],
            c.get("norm_topk_prob", renormalise),
        )
        y = mix(x, weights, lambda e: gated(w, c, f"{name}.experts.{e}", x, "silu", size=size))
        if not shared:
            return y
        own = gated(
            w, c, name + ".shared_expert", x, "silu", size=c["shared_expert_intermediate_size"]
        )
        return y + torch.sigmoid(w.linear(name + ".shared_expert_gate", x, 1)) * own

    return llama_shaped(
        w,
        c,
        ids,
        c.get("rms_norm_eps", 1e-6),
        False,
        lambda i: rotary,
        bias=bias,
        out_bias=False if shared else bias,
        norms=norms,
        mlp=mlp,
    )


def qwen2_moe(w, c, ids):
    return qwen_moe(w, c, ids, False, True, c.get("qkv_bias", True))


def qwen3_moe(w, c, ids):
    return qwen_moe(w, c, ids, False, False, c.get("attention_bias", False), head_norm)


def granitemoe(w, c, ids):
    """A softmax over the selected logits only; one weight has gate and up of all experts."""

    def mlp(name, x):
        name += ".block_sparse_moe"
        count, size, width = c["num_local_experts"], c["intermediate_size"], x.shape[-1]
        values, indices = w.linear(name + ".router.layer", x, count, std=3).topk(
            c["num_experts_per_tok"], -1
        )
        into = w.get(name + ".input_linear.weight", (count, 2 * size, width), std=width**-0.5)
        out = w.get(name + ".output_linear.weight", (count, width, size), std=size**-0.5)

        def expert(e):
            gate, up = (x @ into[e].T).chunk(2, -1)
            return (ACTIVATIONS[c.get("hidden_act", "silu")](gate) * up) @ out[e].T

        return mix(x, chosen(torch.softmax(values, -1), indices)(count), expert)

    return granite(w, c, ids, mlp)


def bailing(w, c, ids, route, partial=1.0, mixers=lambda i: None):
    """Ling and Ring: Q, K and V in one matrix, norms on query and key heads where use_qk_norm.
    `mixers` may give a layer another attention."""
    eps, width, dim = c["rms_norm_eps"], c["hidden_size"], head_dim(c)
    count, kv = c["num_attention_heads"], c["num_key_value_heads"]
    rotary = rotary_of(c, ids.shape[1], int(dim * partial))
    table = w.table("model.word_embeddings", c["vocab_size"], width)

    def attention(name, x):
        qkv = w.linear(
            name + ".query_key_value", x, (count + 2 * kv) * dim, c.get("use_qkv_bias", False)
        )
        q, k, v = qkv.unflatten(-1, (count + 2 * kv, dim)).split([count, kv, kv], -2)
        if c.get("use_qk_norm", False):
            q = w.rms_norm(name + ".query_layernorm", q, eps)
            k = w.rms_norm(name + ".key_layernorm", k, eps)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        out = attend(rotary(q), rotary(k), v, dim**-0.5, causal(x.shape[1]))
        return w.linear(name + ".dense", out, width, c["use_bias"])

    def mlp(i, name, x):
        if i < c["first_k_dense_replace"]:
            return gated(w, c, name, x, "silu")
        size = c["moe_intermediate_size"]
        logits = w.linear(name + ".gate", x, c["num_experts"], std=2)
        y = mix(
            x,
            route(w, c, name + ".gate", logits),
            lambda e: gated(w, c, f"{name}.experts.{e}", x, "silu", size=size),
        )
        shared = c["num_shared_experts"] * size
        return y + gated(w, c, name + ".shared_experts", x, "silu", size=shared)

    def block(i, x):
        name = f"model.layers.{i}"
        mixer = mixers(i) or attention
        x = x + mixer(name + ".attention", w.rms_norm(name + ".input_layernorm", x, eps))
        return x + mlp(i, name + ".mlp", w.rms_norm(name + ".post_attention_layernorm", x, eps))

    return run(
        table[ids],
        c["num_hidden_layers"],
        block,
        lambda x: w.rms_norm("model.norm", x, eps),
        head_of(w, c, table, False),
    )


def bailing_moe(w, c, ids):
    """One type for both versions, told apart by their classes."""
    if c["architectures"] == ["BailingMoeV2ForCausalLM"]:
        return bailing_moe_v2(w, c, ids)
    return bailing(
        w,
        c,
        ids,
        lambda w, c, name, logits: softmax_top(
            logits, c["num_experts_per_tok"], c["norm_topk_prob"]
        ),
    )


def bailing_moe_v2(w, c, ids):
    return bailing(w, c, ids, route_bailing_v2, c.get("partial_rotary_factor", 1.0))


def route_bailing_v2(w, c, name, logits):
    """Sigmoids with a bias for the choice only, in the best groups."""
    scores = torch.sigmoid(logits)
    choice = scores + w.get(name + ".expert_bias", (logits.shape[-1],), std=0.2)
    kept = best_groups(
        choice, c["n_group"], c["topk_group"], lambda s: s.topk(2, -1).values.sum(-1)
    )
    indices = choice.masked_fill(~kept, float("-inf")).topk(c["num_experts_per_tok"], -1).indices
    values = scores.gather(-1, indices)
    values = values / (values.sum(-1, keepdim=True) + 1e-20)
    return chosen(values * c["routed_scaling_factor"], indices)(logits.shape[-1])


def latent_attention(w, c, name, x, rotary, scale, out_name=".o_proj"):
    """Multi-head latent attention, expanded (DeepSeek-V2, section 2.1); the latents' norms have eps
    1e-6."""
    count, nope, rope, value = (
        c[key]
        for key in ("num_attention_heads", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    )
    bias, rank = c.get("attention_bias", False), c["kv_lora_rank"]
    if c.get("q_lora_rank"):
        latent = w.rms_norm(
            name + ".q_a_layernorm", w.linear(name + ".q_a_proj", x, c["q_lora_rank"], bias), 1e-6
        )
        q = w.linear(name + ".q_b_proj", latent, count * (nope + rope))
    else:
        q = w.linear(name + ".q_proj", x, count * (nope + rope))
    q = heads(q, count)
    latent, rope_key = w.linear(name + ".kv_a_proj_with_mqa", x, rank + rope, bias).split(
        [rank, rope], -1
    )
    kv = heads(
        w.linear(
            name + ".kv_b_proj",
            w.rms_norm(name + ".kv_a_layernorm", latent, 1e-6),
            count * (nope + value),
        ),
        count,
    )
    rope_key = rotary(rope_key[:, None]).expand(-1, count, -1, -1)
    q = torch.cat([q[..., :nope], rotary(q[..., nope:])], -1)
    out = attend(
        q, torch.cat([kv[..., :nope], rope_key], -1), kv[..., nope:], scale, causal(x.shape[1])
    )
    return w.linear(name + out_name, out, c["hidden_size"], bias)


def deepseek(w, c, ids, route):
    eps, step = c.get("rms_norm_eps", 1e-6), c.get("moe_layer_freq", 1)
    scaling = c.get("rope_scaling") or {}
    rotary = rotary_of(
        c, ids.shape[1], c["qk_rope_head_dim"], interleaved=c.get("rope_interleave", True)
    )
    scale = (c["qk_nope_head_dim"] + c["qk_rope_head_dim"]) ** -0.5
    if scaling.get("mscale_all_dim"):
        scale *= magnitude(scaling["factor"], scaling["mscale_all_dim"]) ** 2
    table = w.table("model.embed_tokens", c["vocab_size"], c["hidden_size"])

    def mlp(i, name, x):
        if i < c.get("first_k_dense_replace", 0) or i % step:
            return gated(w, c, name, x, "silu")
        weights = route(
            w, c, name + ".gate", w.linear(name + ".gate", x, c["n_routed_experts"], std=2)
        )
        size = c["moe_intermediate_size"]
        y = mix(x, weights, lambda e: gated(w, c, f"{name}.experts.{e}", x, "silu", size=size))
        if c.get("n_shared_experts"):
            y = y + gated(
                w, c, name + ".shared_experts", x, "silu", size=size * c["n_shared_experts"]
            )
        return y

    def block(i, x):
        name = f"model.layers.{i}"
        x = x + latent_attention(
            w, c, name + ".self_attn", w.rms_norm(name + ".input_layernorm", x, eps), rotary, scale
        )
        return x + mlp(i, name + ".mlp", w.rms_norm(name + ".post_attention_layernorm", x, eps))

    return run(
        table[ids],
        c["num_hidden_layers"],
        block,
        lambda x: w.rms_norm("model.norm", x, eps),
        head_of(w, c, table, False),
    )


def best_groups(scores, groups, kept, of):
    """Mask of the experts in the `kept` best groups, ranked by `of` each group's scores."""
    grouped_scores = scores.unflatten(-1, (groups, -1))
    index = of(grouped_scores).topk(kept, -1).indices
    mask = torch.zeros(*scores.shape[:-1], groups).scatter(-1, index, 1.0).bool()
    return mask[..., None].expand_as(grouped_scores).flatten(-2)


def route_v2(w, c, name, logits):
    scores = torch.softmax(logits, -1)
    choice = scores
    if c.get("topk_method", "greedy") == "group_limited_greedy":
        choice = scores.masked_fill(
            ~best_groups(scores, c["n_group"], c["topk_group"], lambda s: s.max(-1).values), 0.0
        )
    values, indices = choice.topk(c["num_experts_per_tok"], -1)
    return chosen(values * c.get("routed_scaling_factor", 1.0), indices)(logits.shape[-1])


def route_v3(w, c, name, logits):
    scores = torch.sigmoid(logits)
    choice = scores + w.get(name + ".e_score_correction_bias", (logits.shape[-1],), std=0.2)
    kept = best_groups(
        choice, c.get("n_group", 8), c.get("topk_group", 4), lambda s: s.topk(2, -1).values.sum(-1)
    )
    indices = choice.masked_fill(~kept, 0.0).topk(c["num_experts_per_tok"], -1).indices
    values = scores.gather(-1, indices)
    if c.get("norm_topk_prob", True):
        values = values / (values.sum(-1, keepdim=True) + 1e-20)
    return chosen(values * c.get("routed_scaling_factor", 2.5), indices)(logits.shape[-1])


def deepseek_v2(w, c, ids):
    return deepseek(w, c, ids, route_v2)


def deepseek_v3(w, c, ids):
    return deepseek(w, c, ids, route_v3)


def gpt_oss(w, c, ids):
    """Sinks, a window in every second layer, biases; experts with interleaved gate and up, clamped
    at 7."""
    eps, count, kv = c.get("rms_norm_eps", 1e-5), c["num_attention_heads"], c["num_key_value_heads"]
    size, width, experts, inner = (
        head_dim(c),
        c["hidden_size"],
        c["num_local_experts"],
        c["intermediate_size"],
    )
    rotary = rotary_of(c, ids.shape[1], size, 150000.0)
    kinds = c.get("layer_types") or [
        "full_attention" if i % 2 else "sliding_attention" for i in range(c["num_hidden_layers"])
    ]
    table = w.table("model.embed_tokens", c["vocab_size"], width)

    def mlp(name, x):
        values, indices = w.linear(name + ".router", x, experts, True, std=2).topk(
            c["num_experts_per_tok"], -1
        )
        into = w.get(name + ".experts.gate_up_proj", (experts, width, 2 * inner), std=width**-0.5)
        into_bias = w.get(name + ".experts.gate_up_proj_bias", (experts, 2 * inner), std=0.2)
        out = w.get(name + ".experts.down_proj", (experts, inner, width), std=inner**-0.5)
        out_bias = w.get(name + ".experts.down_proj_bias", (experts, width), std=0.2)

        def expert(e):
            both = x @ into[e] + into_bias[e]
            gate, up = both[..., 0::2].clamp(max=7.0), both[..., 1::2].clamp(-7.0, 7.0)
            return ((up + 1) * gate * torch.sigmoid(1.702 * gate)) @ out[e] + out_bias[e]

        return mix(x, chosen(torch.softmax(values, -1), indices)(experts), expert)

    def block(i, x):
        name = f"model.layers.{i}"
        y = w.rms_norm(name + ".input_layernorm", x, eps)
        q, k, v = (
            heads(w.linear(f"{name}.self_attn.{part}_proj", y, n * size, True), n)
            for part, n in (("q", count), ("k", kv), ("v", kv))
        )
        window = c["sliding_window"] if kinds[i] == "sliding_attention" else None
        y = attend(
            rotary(q),
            rotary(k),
            v,
            size**-0.5,
            causal(x.shape[1], window),
            sinks=w.get(name + ".self_attn.sinks", (count,)),
        )
        x = x + w.linear(name + ".self_attn.o_proj", y, width, True)
        return x + mlp(name + ".mlp", w.rms_norm(name + ".post_attention_layernorm", x, eps))

    return run(
        table[ids],
        c["num_hidden_layers"],
        block,
        lambda x: w.rms_norm("model.norm", x, eps),
        head_of(w, c, table, False),
    )
