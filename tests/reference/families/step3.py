"""Step-3: multi-matrix factorisation attention, and experts beside a shared one (vLLM's
step3_text.py; StepFun's modeling_step3.py)."""
from experts import mix, softmax_top
from layers import gated, head_of, run
from pieces import ACTIVATIONS, Rotary, attend, causal, heads


def factorised_attention(w, c, name, x, rotary):
    """Queries of low rank, with a norm between their two projections; one key-value head."""
    count, dim = c["num_attention_heads"], c["head_dim"]
    low = w.rms_norm(
        name + ".inter_norm", w.linear(name + ".q_proj", x, c["share_q_dim"]), c["rms_norm_eps"]
    )
    q = heads(w.linear(name + ".wq", low, count * dim), count)
    k, v = (heads(w.linear(f"{name}.{kind}_proj", x, dim), 1) for kind in "kv")
    out = attend(rotary(q), rotary(k), v, dim**-0.5, causal(x.shape[1]))
    return w.linear(name + ".o_proj", out, c["hidden_size"])


def experts(w, c, name, x):
    count, size, width = c["moe_num_experts"], c["moe_intermediate_size"], x.shape[-1]

    def stacked(kind, out, into):
        return w.get(f"{name}.moe.{kind}_proj.weight", (count, out, into), std=into**-0.5)

    gate, up = stacked("gate", size, width), stacked("up", size, width)
    down = stacked("down", width, size)
    weights = softmax_top(
        w.linear(name + ".moe.gate", x, count, std=3), c["moe_top_k"], c["norm_expert_weight"]
    )
    routed = mix(
        x, weights, lambda e: (ACTIVATIONS["silu"](x @ gate[e].T) * (x @ up[e].T)) @ down[e].T
    )
    return routed + gated(w, c, name + ".share_expert", x, "silu", size=c["share_expert_dim"])


def step3_text(w, c, ids):
    eps, dim, length = c["rms_norm_eps"], c["head_dim"], c["max_position_embedding"]
    rotary = Rotary(dim, c["rope_theta"], ids.shape[1], c["rope_scaling"], length)
    routed = {int(layer) for layer in c["moe_layers_enum"].split(",")}
    table = w.table("model.embed_tokens", c["vocab_size"], c["hidden_size"])

    def block(i, x):
        name = f"model.layers.{i}"
        y = w.rms_norm(name + ".input_layernorm", x, eps)
        x = x + factorised_attention(w, c, name + ".self_attn", y, rotary)
        y = w.rms_norm(name + ".post_attention_layernorm", x, eps)
        if i in routed:
            return x + experts(w, c, name, y)
        return x + gated(w, c, name + ".mlp", y, "silu")

    return run(
        table[ids],
        c["num_hidden_layers"],
        block,
        lambda x: w.rms_norm("model.norm", x, eps),
        head_of(w, c, table, False),
    )
