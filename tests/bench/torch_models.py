"""BERT, GPT-2 and Llama in plain PyTorch with random weights, for machines without Transformers.

The interface is that of Transformers: model(ids, past_key_values=None, use_cache=False) returns an object
with `logits` (None without a head) and `past_key_values`. Written from the papers (arXiv 1810.04805,
GPT-2's report, arXiv 2302.13971), with exactly the weights of the checkpoints.
"""

from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional


def fused_attention(query, key, value, causal):
    function = getattr(functional, "scaled_dot_product_attention", None)
    if function is None:
        raise SystemExit("torch_measure: fused attention needs PyTorch 2.0 or later")
    return function(query, key, value, is_causal=causal and query.size(2) > 1)


def eager_attention(query, key, value, causal):
    scores = query @ key.transpose(-1, -2) * query.size(-1) ** -0.5
    if causal and query.size(2) > 1:
        shape = (query.size(2), key.size(2))
        hidden = torch.ones(shape, dtype=torch.bool, device=query.device).triu(shape[1] - shape[0] + 1)
        scores = scores.masked_fill(hidden, float("-inf"))
    return scores.softmax(-1) @ value


class RmsNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


class Attention(nn.Module):
    """Grouped-query attention, with RoPE if `angles` is given."""

    def __init__(self, sizes, attend):
        super().__init__()
        self.sizes, self.attend = sizes, attend
        width, inner, bias = sizes.hidden, sizes.heads * sizes.head_dim, sizes.bias
        self.query = nn.Linear(width, inner, bias)
        self.key = nn.Linear(width, sizes.kv_heads * sizes.head_dim, bias)
        self.value = nn.Linear(width, sizes.kv_heads * sizes.head_dim, bias)
        self.out = nn.Linear(inner, width, bias)

    def split(self, x):
        return x.view(x.size(0), x.size(1), -1, self.sizes.head_dim).transpose(1, 2)

    def forward(self, x, past, angles):
        query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        if angles is not None:
            query, key = apply_rope(query, angles), apply_rope(key, angles)
        if past is not None:
            key, value = torch.cat((past[0], key), 2), torch.cat((past[1], value), 2)
        groups = self.sizes.heads // self.sizes.kv_heads
        every_key, every_value = (y.repeat_interleave(groups, 1) if groups > 1 else y for y in (key, value))
        context = self.attend(query, every_key, every_value, self.sizes.causal)
        return self.out(context.transpose(1, 2).flatten(2)), (key, value)


def apply_rope(x, angles):
    low, high = x.chunk(2, -1)
    return x * angles[0] + torch.cat((-high, low), -1) * angles[1]


class Mlp(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.act = sizes.act
        self.up = nn.Linear(sizes.hidden, sizes.inner, sizes.bias)
        self.down = nn.Linear(sizes.inner, sizes.hidden, sizes.bias)
        self.gate = nn.Linear(sizes.hidden, sizes.inner, sizes.bias) if sizes.gated else None

    def forward(self, x):
        if self.gate is None:
            return self.down(self.act(self.up(x)))
        return self.down(self.act(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    def __init__(self, sizes, attend):
        super().__init__()
        self.post_norm = sizes.post_norm
        self.attention, self.mlp = Attention(sizes, attend), Mlp(sizes)
        self.norms = nn.ModuleList(sizes.norm() for _ in range(2))

    def forward(self, x, past, angles):
        if self.post_norm:
            y, cache = self.attention(x, past, angles)
            x = self.norms[0](x + y)
            return self.norms[1](x + self.mlp(x)), cache
        y, cache = self.attention(self.norms[0](x), past, angles)
        x = x + y
        return x + self.mlp(self.norms[1](x)), cache


class Model(nn.Module):
    def __init__(self, config, sizes, attend):
        super().__init__()
        self.config, self.sizes = SimpleNamespace(vocab_size=config["vocab_size"]), sizes
        self.words = nn.Embedding(config["vocab_size"], sizes.hidden)
        self.positions = nn.Embedding(sizes.positions, sizes.hidden) if sizes.positions else None
        self.types = nn.Embedding(sizes.types, sizes.hidden) if sizes.types else None
        self.layers = nn.ModuleList(Layer(sizes, attend) for _ in range(sizes.layers))
        self.norm = sizes.norm()  # before the layers if they are post-norm, after them otherwise
        self.pooler = nn.Linear(sizes.hidden, sizes.hidden) if sizes.pooled else None
        self.head = None
        if sizes.head == "tied":
            self.head = lambda x: functional.linear(x, self.words.weight)
        elif sizes.head == "own":
            self.head = nn.Linear(sizes.hidden, config["vocab_size"], bias=False)

    def angles(self, first, x):
        if self.sizes.rope_theta is None:
            return None
        steps = torch.arange(0, self.sizes.head_dim, 2, device=x.device) / self.sizes.head_dim
        places = torch.arange(first, first + x.size(1), device=x.device)
        angle = torch.outer(places, self.sizes.rope_theta**-steps)
        angle = torch.cat((angle, angle), -1)
        return angle.cos().to(x.dtype), angle.sin().to(x.dtype)

    def forward(self, ids, past_key_values=None, use_cache=False):
        first = past_key_values[0][0].size(2) if past_key_values else 0
        x = self.words(ids)
        if self.positions is not None:
            x = x + self.positions(torch.arange(first, first + ids.size(1), device=ids.device))
        if self.types is not None:
            x = x + self.types(torch.zeros_like(ids))
        if self.sizes.post_norm:
            x = self.norm(x)
        angles, caches = self.angles(first, x), []
        for number, layer in enumerate(self.layers):
            x, cache = layer(x, past_key_values[number] if past_key_values else None, angles)
            caches.append(cache)
        if not self.sizes.post_norm:
            x = self.norm(x)
        if self.pooler is not None:
            torch.tanh(self.pooler(x[:, 0]))
        return SimpleNamespace(logits=self.head(x) if self.head else None,
                               past_key_values=caches if use_cache else None)


def bert(config):
    width = config["hidden_size"]
    return SimpleNamespace(
        hidden=width, layers=config["num_hidden_layers"], heads=config["num_attention_heads"],
        kv_heads=config["num_attention_heads"], head_dim=width // config["num_attention_heads"],
        inner=config["intermediate_size"], act=functional.gelu, gated=False, bias=True, causal=False,
        post_norm=True, norm=lambda: nn.LayerNorm(width, config["layer_norm_eps"]), rope_theta=None,
        positions=config["max_position_embeddings"], types=config["type_vocab_size"], pooled=True,
        head=None)


def gpt2(config):
    width = config["n_embd"]
    return SimpleNamespace(
        hidden=width, layers=config["n_layer"], heads=config["n_head"], kv_heads=config["n_head"],
        head_dim=width // config["n_head"], inner=config.get("n_inner") or 4 * width,
        act=gelu_new, gated=False, bias=True, causal=True, post_norm=False,
        norm=lambda: nn.LayerNorm(width, config["layer_norm_epsilon"]), rope_theta=None,
        positions=config["n_positions"], types=0, pooled=False, head="tied")


def gelu_new(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))  # √(2/π)


def llama(config):
    width, heads = config["hidden_size"], config["num_attention_heads"]
    return SimpleNamespace(
        hidden=width, layers=config["num_hidden_layers"], heads=heads,
        kv_heads=config.get("num_key_value_heads", heads), head_dim=config.get("head_dim") or width // heads,
        inner=config["intermediate_size"], act=functional.silu, gated=True, bias=False, causal=True,
        post_norm=False, norm=lambda: RmsNorm(width, config["rms_norm_eps"]),
        rope_theta=config.get("rope_theta", 10000.0), positions=0, types=0, pooled=False,
        head="tied" if config.get("tie_word_embeddings") else "own")


ARCHITECTURES = {"BertModel": bert, "GPT2LMHeadModel": gpt2, "LlamaForCausalLM": llama}


def build(config, attention):
    """Builds the model of a config.json; exits if its architecture is not among those above."""
    architecture = (config.get("architectures") or ["none"])[0]
    if architecture not in ARCHITECTURES:
        raise SystemExit(f"torch_measure: {architecture} is not among {', '.join(ARCHITECTURES)}, "
                         "which run without Transformers; install it for others")
    return Model(config, ARCHITECTURES[architecture](config),
                 fused_attention if attention == "fused" else eager_attention)
