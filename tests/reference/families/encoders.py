"""Encoders, and encoder-decoders like BART."""
import math

import torch
from pieces import ACTIVATIONS, Rotary, attend, causal, heads


def bert_layers(w, c, prefix, x, mask, outputs):
    """Norms after attention and MLP; padding keys are masked."""
    eps, count, width = c.get("layer_norm_eps", 1e-12), c["num_attention_heads"], c["hidden_size"]
    visible = mask.bool()[:, None, None, :]
    outputs["hidden_states.0"] = x
    for i in range(c["num_hidden_layers"]):
        name = f"{prefix}.encoder.layer.{i}"
        q, k, v = (
            heads(w.linear(f"{name}.attention.self.{part}", x, width, True), count)
            for part in ("query", "key", "value")
        )
        y = w.linear(
            name + ".attention.output.dense",
            attend(q, k, v, (width // count) ** -0.5, visible),
            width,
            True,
        )
        x = w.layer_norm(name + ".attention.output.LayerNorm", x + y, eps)
        y = ACTIVATIONS[c.get("hidden_act", "gelu")](
            w.linear(name + ".intermediate.dense", x, c["intermediate_size"], True)
        )
        x = w.layer_norm(
            name + ".output.LayerNorm", x + w.linear(name + ".output.dense", y, width, True), eps
        )
        outputs[f"layers.{i}.output"] = outputs[f"hidden_states.{i + 1}"] = x
    return x


def bert_embeddings(w, c, prefix, ids, types, places, width):
    words = w.table(prefix + ".embeddings.word_embeddings", c["vocab_size"], width, std=0.5)
    positions = w.table(
        prefix + ".embeddings.position_embeddings", c["max_position_embeddings"], width, std=0.5
    )
    kinds = w.table(
        prefix + ".embeddings.token_type_embeddings", c.get("type_vocab_size", 2), width, std=0.5
    )
    x = words[ids] + kinds[types] + positions[places]
    return words, w.layer_norm(prefix + ".embeddings.LayerNorm", x, c.get("layer_norm_eps", 1e-12))


def symmetric_alibi(count, seq):
    """-slope·distance by head; slopes beyond a power of two are every other one of the next."""

    def slopes(n):
        below = 2 ** int(math.log2(n))
        own = [2.0 ** (-8.0 * (i + 1) / below) for i in range(below)]
        return own if n == below else own + slopes(2 * below)[0::2][: n - below]

    places = torch.arange(seq)
    distance = (places[None, :] - places[:, None]).abs()
    return -torch.tensor(slopes(count))[:, None, None] * distance


def jina_network(w, c, name, x):
    """With its own residual and norm where it is gated."""
    width, inner, eps = c["hidden_size"], c["intermediate_size"], c.get("layer_norm_eps", 1e-12)
    kind = c.get("feed_forward_type", "original")
    if kind == "original":
        y = ACTIVATIONS[c.get("hidden_act", "gelu")](
            w.linear(name + ".intermediate.dense", x, inner, True)
        )
        y = w.linear(name + ".output.dense", y, width, True)
        return w.layer_norm(name + ".output.LayerNorm", x + y, eps)
    gate, up = w.linear(name + ".mlp.gated_layers", x, 2 * inner).chunk(2, -1)
    y = ACTIVATIONS[{"geglu": "gelu", "reglu": "relu"}[kind]](gate) * up
    return w.layer_norm(name + ".mlp.layernorm", x + w.linear(name + ".mlp.wo", y, width, True), eps)


def jina_bert(w, c, ids, mask, types):
    """BERT with ALiBi on both sides in place of positions, and gated networks."""
    eps, count, width = c.get("layer_norm_eps", 1e-12), c["num_attention_heads"], c["hidden_size"]
    words = w.table("bert.embeddings.word_embeddings", c["vocab_size"], width, std=0.5)
    kinds = w.table("bert.embeddings.token_type_embeddings", c["type_vocab_size"], width, std=0.5)
    x = w.layer_norm("bert.embeddings.LayerNorm", words[ids] + kinds[types], eps)
    bias, visible = symmetric_alibi(count, ids.shape[1]), mask.bool()[:, None, None, :]
    outputs = {"hidden_states.0": x}
    for i in range(c["num_hidden_layers"]):
        name = f"bert.encoder.layer.{i}"
        q, k, v = (
            heads(w.linear(f"{name}.attention.self.{part}", x, width, True), count)
            for part in ("query", "key", "value")
        )
        y = attend(q, k, v, (width // count) ** -0.5, visible, bias=bias)
        y = w.linear(name + ".attention.output.dense", y, width, True)
        x = w.layer_norm(name + ".attention.output.LayerNorm", x + y, eps)
        x = jina_network(w, c, name, x)
        outputs[f"layers.{i}.output"] = outputs[f"hidden_states.{i + 1}"] = x
    y = ACTIVATIONS[c.get("hidden_act", "gelu")](
        w.linear("cls.predictions.transform.dense", x, width, True)
    )
    y = w.layer_norm("cls.predictions.transform.LayerNorm", y, eps)
    bias = w.get("cls.predictions.bias", (c["vocab_size"],), std=0.2)
    outputs["logits"] = y @ words.T + bias
    return outputs


def nomic_experts(w, c, name, x):
    """Unscaled softmax weights of the best experts, and one bias for their sum."""
    count, inner, width = c["num_experts"], c["n_inner"], c["n_embd"]
    scores = w.linear(name + ".router.layer", x, count).softmax(-1)
    best, chosen = scores.topk(c["moe_top_k"], -1)
    up, down = (
        w.get(f"{name}.experts.mlp.{part}", (count * inner, width), std=size**-0.5)
        for part, size in (("w1", width), ("w2", inner))
    )
    up, down = up.view(count, inner, width), down.view(count, inner, width)
    total = 0
    for i in range(c["moe_top_k"]):
        y = torch.einsum("bsh,bsfh->bsf", x, up[chosen[..., i]])
        y = torch.einsum("bsf,bsfh->bsh", ACTIVATIONS["gelu"](y), down[chosen[..., i]])
        total = total + best[..., i : i + 1] * y
    return total + w.get(name + ".experts.bias", (width,), std=0.2)


def nomic_bert(w, c, ids, mask, types):
    """Nomic Embed v2: BERT with RoPE, and experts in every moe_every_n_layers-th layer (vLLM,
    models/bert_with_rope.py; tt-metal, experimental/nomic_embed_text_v2_moe/reference)."""
    eps, count, width = c["layer_norm_epsilon"], c["n_head"], c["n_embd"]
    rotary = Rotary(width // count, c["rotary_emb_base"], ids.shape[1])
    visible = mask.bool()[:, None, None, :]
    words = w.table("embeddings.word_embeddings", c["vocab_size"], width, std=0.5)
    kinds = w.table("embeddings.token_type_embeddings", c["type_vocab_size"], width, std=0.5)
    x = w.layer_norm("emb_ln", words[ids] + kinds[types], eps)
    outputs = {"hidden_states.0": x}
    for i in range(c["n_layer"]):
        name = f"encoder.layers.{i}"
        q, k, v = w.linear(name + ".attn.Wqkv", x, 3 * width, True).chunk(3, -1)
        q, k, v = rotary(heads(q, count)), rotary(heads(k, count)), heads(v, count)
        y = attend(q, k, v, (width // count) ** -0.5, visible)
        y = w.linear(name + ".attn.out_proj", y, width, True)
        x = w.layer_norm(name + ".norm1", x + y, eps)
        if i % c["moe_every_n_layers"] == 1:
            y = nomic_experts(w, c, name + ".mlp", x)
        else:
            y = ACTIVATIONS["gelu"](w.linear(name + ".mlp.fc1", x, c["n_inner"], True))
            y = w.linear(name + ".mlp.fc2", y, width, True)
        x = w.layer_norm(name + ".norm2", x + y, eps)
        outputs[f"layers.{i}.output"] = outputs[f"hidden_states.{i + 1}"] = x
    outputs["last_hidden_state"] = x
    return outputs


def electra(w, c, ids, mask, types):
    """Embeddings of a separate size, projected; the generator's head has that size, the
    discriminator's outputs one score."""
    width, narrow, eps = (
        c["hidden_size"],
        c.get("embedding_size", 128),
        c.get("layer_norm_eps", 1e-12),
    )
    words, x = bert_embeddings(w, c, "electra", ids, types, torch.arange(ids.shape[1]), narrow)
    if narrow != width:
        x = w.linear("electra.embeddings_project", x, width, True)
    outputs = {}
    x = bert_layers(w, c, "electra", x, mask, outputs)
    if "ElectraForPreTraining" in c["architectures"]:
        y = ACTIVATIONS[c.get("hidden_act", "gelu")](
            w.linear("discriminator_predictions.dense", x, width, True)
        )
        outputs["logits"] = w.linear(
            "discriminator_predictions.dense_prediction", y, 1, True
        ).squeeze(-1)
    elif "ElectraForMaskedLM" in c["architectures"]:
        y = ACTIVATIONS["gelu"](w.linear("generator_predictions.dense", x, narrow, True))
        y = w.layer_norm("generator_predictions.LayerNorm", y, eps)
        outputs["logits"] = y @ words.T + w.get(
            "generator_lm_head.bias", (c["vocab_size"],), std=0.2
        )
    return outputs


def roberta(w, c, ids, mask, types):
    """Positions count from pad_token_id + 1, over tokens other than padding."""
    pad = c.get("pad_token_id", 1)
    real = (ids != pad).long()
    words, x = bert_embeddings(
        w, c, "roberta", ids, types, real.cumsum(1) * real + pad, c["hidden_size"]
    )
    outputs = {}
    x = bert_layers(w, c, "roberta", x, mask, outputs)
    y = ACTIVATIONS["gelu"](w.linear("lm_head.dense", x, c["hidden_size"], True))
    y = w.layer_norm("lm_head.layer_norm", y, c.get("layer_norm_eps", 1e-12))
    outputs["logits"] = y @ words.T + w.get("lm_head.bias", (c["vocab_size"],), std=0.2)
    return outputs


def albert(w, c, ids, mask, types):
    """Groups of layers share weights; embeddings of a separate size, projected."""
    eps, count, width = c.get("layer_norm_eps", 1e-12), c["num_attention_heads"], c["hidden_size"]
    layers, act = c["num_hidden_layers"], ACTIVATIONS[c.get("hidden_act", "gelu_new")]
    words, x = bert_embeddings(
        w, c, "albert", ids, types, torch.arange(ids.shape[1]), c.get("embedding_size", 128)
    )
    x = w.linear("albert.encoder.embedding_hidden_mapping_in", x, width, True)
    outputs, visible = {"hidden_states.0": x}, mask.bool()[:, None, None, :]
    for i in range(layers):
        group = i * c.get("num_hidden_groups", 1) // layers
        name = f"albert.encoder.albert_layer_groups.{group}.albert_layers.0"
        q, k, v = (
            heads(w.linear(f"{name}.attention.{part}", x, width, True), count)
            for part in ("query", "key", "value")
        )
        y = w.linear(
            name + ".attention.dense",
            attend(q, k, v, (width // count) ** -0.5, visible),
            width,
            True,
        )
        x = w.layer_norm(name + ".attention.LayerNorm", x + y, eps)
        y = w.linear(
            name + ".ffn_output",
            act(w.linear(name + ".ffn", x, c["intermediate_size"], True)),
            width,
            True,
        )
        x = w.layer_norm(name + ".full_layer_layer_norm", x + y, eps)
        outputs[f"layers.{i}.output"] = outputs[f"hidden_states.{i + 1}"] = x
    y = w.layer_norm(
        "predictions.LayerNorm", act(w.linear("predictions.dense", x, words.shape[1], True)), eps
    )
    outputs["logits"] = y @ words.T + w.get("predictions.bias", (c["vocab_size"],), std=0.2)
    return outputs


def modernbert(w, c, ids, mask, types):
    """Pre-norm, without a norm before the first attention; local layers see half the window on each
    side."""
    eps, count, width = c.get("norm_eps", 1e-5), c["num_attention_heads"], c["hidden_size"]
    size, normed = width // count, c.get("norm_bias", False)
    seq, every = ids.shape[1], c.get("global_attn_every_n_layers", 3)
    words = w.table("model.embeddings.tok_embeddings", c["vocab_size"], width, std=0.5)
    norm = lambda name, x: w.layer_norm(name, x, eps, normed)
    near = (torch.arange(seq)[:, None] - torch.arange(seq)[None, :]).abs() <= c.get(
        "local_attention", 128
    ) // 2
    x = norm("model.embeddings.norm", words[ids])
    outputs = {"hidden_states.0": x}
    for i in range(c["num_hidden_layers"]):
        name, everything = f"model.layers.{i}", i % every == 0
        theta = (
            c.get("global_rope_theta", 160000.0)
            if everything
            else c.get("local_rope_theta", 10000.0)
        )
        rotary = Rotary(size, theta, seq)
        visible = mask.bool()[:, None, None, :] & (torch.ones_like(near) if everything else near)
        y = norm(name + ".attn_norm", x) if i else x
        q, k, v = (
            heads(part, count)
            for part in w.linear(
                name + ".attn.Wqkv", y, 3 * width, c.get("attention_bias", False)
            ).chunk(3, -1)
        )
        y = attend(rotary(q), rotary(k), v, size**-0.5, visible)
        x = x + w.linear(name + ".attn.Wo", y, width, c.get("attention_bias", False))
        bias = c.get("mlp_bias", False)
        up, gate = w.linear(
            name + ".mlp.Wi", norm(name + ".mlp_norm", x), 2 * c["intermediate_size"], bias
        ).chunk(2, -1)
        x = x + w.linear(
            name + ".mlp.Wo",
            ACTIVATIONS[c.get("hidden_activation", "gelu")](up) * gate,
            width,
            bias,
        )
        outputs[f"layers.{i}.output"] = x
    x = norm("model.final_norm", x)
    y = ACTIVATIONS[c.get("classifier_activation", "gelu")](
        w.linear("head.dense", x, width, c.get("classifier_bias", False))
    )
    outputs["logits"] = norm("head.norm", y) @ words.T
    if c.get("decoder_bias", True):
        outputs["logits"] = outputs["logits"] + w.get("decoder.bias", (c["vocab_size"],), std=0.2)
    return outputs


def sinusoids(rows, width):
    """Marian's and Pegasus' table: all sines, then all cosines."""
    angles = torch.arange(rows).float()[:, None] / 10000 ** (
        torch.arange(0, width, 2).float() / width
    )
    return torch.cat([angles.sin(), angles.cos()], -1)


def bart_attention(w, c, name, x, source, visible, count):
    width = c["d_model"]
    q = heads(w.linear(name + ".q_proj", x, width, True), count)
    k, v = (heads(w.linear(f"{name}.{part}_proj", source, width, True), count) for part in "kv")
    return w.linear(
        name + ".out_proj", attend(q, k, v, (width // count) ** -0.5, visible), width, True
    )


def bart_mlp(w, c, name, x, size):
    act = ACTIVATIONS[c.get("activation_function", "gelu")]
    return w.linear(name + ".fc2", act(w.linear(name + ".fc1", x, size, True)), c["d_model"], True)


def marian(w, c, ids, mask, target):
    """BART with sinusoidal positions, without an embedding norm, and with post-norm; the head has a
    bias buffer."""
    width, vocab = c["d_model"], c["vocab_size"]
    words = w.table("model.shared", vocab, width, std=0.3)
    scale = width**0.5 if c.get("scale_embedding", False) else 1.0
    norm = lambda name, x: w.layer_norm(name, x, 1e-5)

    def places(side, count):
        name = f"model.{side}.embed_positions.weight"
        if name not in w.tensors:
            w.tensors[name] = sinusoids(c["max_position_embeddings"], width).bfloat16()
        return w.get(name, (c["max_position_embeddings"], width))[:count]

    outputs, seen = {}, mask.bool()[:, None, None, :]
    x = words[ids] * scale + places("encoder", ids.shape[1])
    outputs["encoder_hidden_states.0"] = x
    for i in range(c["encoder_layers"]):
        name, count = f"model.encoder.layers.{i}", c["encoder_attention_heads"]
        x = norm(
            name + ".self_attn_layer_norm",
            x + bart_attention(w, c, name + ".self_attn", x, x, seen, count),
        )
        x = norm(name + ".final_layer_norm", x + bart_mlp(w, c, name, x, c["encoder_ffn_dim"]))
        outputs[f"encoder.layers.{i}.output"] = outputs[f"encoder_hidden_states.{i + 1}"] = x
    source = outputs["encoder_last_hidden_state"] = x
    x = words[target] * scale + places("decoder", target.shape[1])
    outputs["decoder_hidden_states.0"] = x
    for i in range(c["decoder_layers"]):
        name, count = f"model.decoder.layers.{i}", c["decoder_attention_heads"]
        x = norm(
            name + ".self_attn_layer_norm",
            x + bart_attention(w, c, name + ".self_attn", x, x, causal(x.shape[1]), count),
        )
        x = norm(
            name + ".encoder_attn_layer_norm",
            x + bart_attention(w, c, name + ".encoder_attn", x, source, seen, count),
        )
        x = norm(name + ".final_layer_norm", x + bart_mlp(w, c, name, x, c["decoder_ffn_dim"]))
        outputs[f"decoder.layers.{i}.output"] = outputs[f"decoder_hidden_states.{i + 1}"] = x
    outputs["logits"] = x @ words.T + w.get("final_logits_bias", (1, vocab), std=0.2)
    return outputs
