"""Pieces shared by families: activations, masks, attention, rotary embeddings, ALiBi."""
import math

import torch

def gelu_tanh(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS = {
    "silu": lambda x: x * torch.sigmoid(x),
    "swish": lambda x: x * torch.sigmoid(x),
    "relu": torch.relu,
    "gelu": lambda x: 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0))),
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "gelu_fast": gelu_tanh,
}


def causal(seq, window=None):
    """True where query i sees key j: j <= i, and only the last `window` keys."""
    i = torch.arange(seq)[:, None]
    j = torch.arange(seq)[None, :]
    return (j <= i) if window is None else (j <= i) & (j > i - window)


def heads(x, count):
    """[batch, seq, count * head_dim] -> [batch, count, seq, head_dim]"""
    return x.reshape(*x.shape[:2], count, -1).transpose(1, 2)


def attend(q, k, v, scale, visible, bias=None, cap=None, sinks=None):
    """softmax(q·kᵀ·scale + bias)·v for grouped KV heads; returns [batch, seq, heads * head_dim]."""
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = q @ k.transpose(-1, -2) * scale
    if cap is not None:
        scores = torch.tanh(scores / cap) * cap
    if bias is not None:
        scores = scores + bias
    scores = scores.masked_fill(~visible, torch.finfo(scores.dtype).min)
    if sinks is not None:
        column = sinks.reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, column], -1)
    weights = torch.softmax(scores, -1)
    if sinks is not None:
        weights = weights[..., :-1]
    return (weights @ v).transpose(1, 2).flatten(2)


class Rotary:
    """cos and sin by position, for all published RoPE types; `interleaved` rotates neighbouring
    dimensions, otherwise the two halves."""

    def __init__(
        self, dim, theta, seq, scaling=None, max_position=None, interleaved=False, original=None
    ):
        self.dim, self.interleaved = dim, interleaved
        scaling = scaling or {}
        kind = scaling.get("rope_type", scaling.get("type", "default"))
        exponents = torch.arange(0, dim, 2).float() / dim
        self.scale = 1.0
        inverse = 1.0 / theta**exponents
        original = scaling.get("original_max_position_embeddings", original) or max_position
        if kind == "linear":
            inverse = inverse / scaling["factor"]
        elif kind == "dynamic":
            longest = max(seq, max_position)
            factor = scaling["factor"]
            grown = theta * ((factor * longest / max_position) - (factor - 1)) ** (dim / (dim - 2))
            inverse = 1.0 / grown**exponents
        elif kind == "llama3":
            inverse = llama3(inverse, scaling, original)
        elif kind == "yarn":
            inverse, self.scale = yarn(inverse, scaling, dim, theta, original)
        elif kind in ("longrope", "su"):
            factors = scaling["long_factor"] if seq > original else scaling["short_factor"]
            inverse = 1.0 / (torch.tensor(factors) * theta**exponents)
            self.scale = longrope_scale(scaling, max_position, original)
        else:
            assert kind == "default", kind
        angles = torch.arange(seq).float()[:, None] * inverse[None, :]
        self.cos, self.sin = angles.cos(), angles.sin()

    def __call__(self, x):
        rotated, rest = x[..., : self.dim], x[..., self.dim :]
        if self.interleaved:
            a, b = rotated[..., 0::2], rotated[..., 1::2]
        else:
            a, b = rotated[..., : self.dim // 2], rotated[..., self.dim // 2 :]
        cos, sin = self.cos * self.scale, self.sin * self.scale
        first, second = a * cos - b * sin, b * cos + a * sin
        if self.interleaved:
            rotated = torch.stack([first, second], -1).flatten(-2)
        else:
            rotated = torch.cat([first, second], -1)
        return torch.cat([rotated, rest], -1)


def llama3(inverse, scaling, original):
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    length = 2 * math.pi / inverse
    smooth = ((original / length - low) / (high - low)).clamp(0, 1)
    return (1 - smooth) * inverse / scaling["factor"] + smooth * inverse


def magnitude(factor, weight=1.0):
    return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0


def yarn(inverse, scaling, dim, theta, original):
    factor = scaling["factor"]

    def dimension(rotations):
        return dim * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(theta))

    low, high = dimension(scaling.get("beta_fast") or 32), dimension(scaling.get("beta_slow") or 1)
    if scaling.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    ramp = ((torch.arange(dim // 2).float() - low) / (high - low if high != low else 0.001)).clamp(
        0, 1
    )
    scale = scaling.get("attention_factor")
    if scale is None and scaling.get("mscale") and scaling.get("mscale_all_dim"):
        scale = magnitude(factor, scaling["mscale"]) / magnitude(factor, scaling["mscale_all_dim"])
    return (
        inverse / factor * ramp + inverse * (1 - ramp),
        magnitude(factor) if scale is None else scale,
    )


def longrope_scale(scaling, max_position, original):
    if scaling.get("attention_factor") is not None:
        return scaling["attention_factor"]
    factor = scaling.get("factor") or max_position / original
    return 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(original))


def alibi_slopes(count):
    """BLOOM's and Falcon's slopes: the powers for the next lower power of two, then every other one
    of the next higher."""
    lower = 2 ** math.floor(math.log2(count))
    slopes = [2 ** (-8.0 / lower * (i + 1)) for i in range(lower)]
    slopes += [2 ** (-4.0 / lower * (2 * i + 1)) for i in range(count - lower)]
    return torch.tensor(slopes)


def mpt_slopes(count, largest):
    """MPT's slopes: those of the next higher power of two, every second one first."""
    higher = 2 ** math.ceil(math.log2(count))
    slopes = torch.tensor([2 ** (-largest / higher * (i + 1)) for i in range(higher)])
    return slopes if higher == count else torch.cat([slopes[1::2], slopes[0::2]])[:count]
