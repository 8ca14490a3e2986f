"""Decoders with a recurrence in place of attention, with the formulas of their published code."""

import torch
from layers import head_of, run


def shifted(x):
    return torch.nn.functional.pad(x, (0, 0, 1, -1))


def rwkv5(w, c, ids):
    """RWKV-5 (modeling_rwkv5.py of RWKV's repositories): a state matrix per head, with trained
    decays and a trained bonus of the position itself."""
    width, eps, dim = c["hidden_size"], c["layer_norm_epsilon"], c["head_size"]
    count = width // dim
    table = w.table("rwkv.embeddings", c["vocab_size"], width)

    def mixed(name, x, part):
        weight = w.get(f"{name}.time_mix_{part}", (1, 1, width), mean=0.5, std=0.3)
        return x * weight + shifted(x) * (1 - weight)

    def attention(name, x):
        r, k, v = (
            w.linear(f"{name}.{part}", mixed(name, x, part), width).unflatten(-1, (count, dim))
            for part in ("receptance", "key", "value")
        )
        gate = torch.nn.functional.silu(w.linear(name + ".gate", mixed(name, x, "gate"), width))
        decay = torch.exp(-torch.exp(w.get(name + ".time_decay", (count, dim))))[..., None]
        first = w.get(name + ".time_faaaa", (count, dim))[..., None]
        state, out = torch.zeros(x.shape[0], count, dim, dim), []
        for i in range(x.shape[1]):
            added = k[:, i, :, :, None] * v[:, i, :, None]
            out.append((r[:, i, :, None] @ (first * added + state)).squeeze(2))
            state = added + decay * state
        out = torch.stack(out, 1)
        out = (out - out.mean(-1, keepdim=True)) / torch.sqrt(out.var(-1, False, keepdim=True) + 1e-5)
        out = out.flatten(-2) * w.scale(name + ".ln_x.weight", width)
        out = out + w.get(name + ".ln_x.bias", (width,), std=0.2)
        return w.linear(name + ".output", out * gate, width)

    def network(name, x):
        inner = w.linear(name + ".key", mixed(name, x, "key"), c["intermediate_size"]).relu() ** 2
        gate = w.linear(name + ".receptance", mixed(name, x, "receptance"), width).sigmoid()
        return gate * w.linear(name + ".value", inner, width)

    def block(i, x):
        name = f"rwkv.blocks.{i}"
        x = x + attention(name + ".attention", w.layer_norm(name + ".ln1", x, eps))
        return x + network(name + ".feed_forward", w.layer_norm(name + ".ln2", x, eps))

    return run(
        w.layer_norm("rwkv.blocks.0.pre_ln", table[ids], eps),
        c["num_hidden_layers"],
        block,
        lambda x: w.layer_norm("rwkv.ln_out", x, eps),
        head_of(w, c, table, False, "head"),
    )
