#!/usr/bin/env python3
"""Makes tests/data/layers: single layers with weights, inputs and PyTorch's outputs.

usage: make_layers.py [FOLDER]

Every folder has config.json, model.safetensors under torch.nn's own names, inputs.safetensors and
expected.safetensors. Needs torch alone (Debian: python3-torch); the numbers are those of a seed, so
that the same version of torch makes the same files.
"""

import json
import struct
import sys
from pathlib import Path

import torch
from torch import nn

BATCH, SEQ_LEN, SOURCE_LEN, HIDDEN = 2, 9, 6, 10


def write_safetensors(path, tensors):
    """float32 tensors by name: the length of a JSON header, the header, and the values."""
    header, data = {}, b""
    for name, tensor in sorted(tensors.items()):
        values = tensor.detach().to(torch.float32).contiguous().numpy().tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(values)],
        }
        data += values
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Convolutions(nn.Module):
    """Conv1d layers over positions [batch, seq_len, channels], with an activation between them.

    Causal ones are padded in front alone, the others as padding="same" does.
    """

    def __init__(self, kernel, dilations, causal, activation=None, bias=True):
        super().__init__()
        self.causal = causal
        self.activation = activation
        self.layers = nn.ModuleList(
            nn.Conv1d(HIDDEN, HIDDEN, kernel, dilation=dilation, bias=bias, padding=0)
            for dilation in dilations
        )

    def forward(self, x):
        x = x.transpose(1, 2)
        for i, layer in enumerate(self.layers):
            reach = layer.dilation[0] * (layer.kernel_size[0] - 1)
            front = reach if self.causal else reach // 2
            x = layer(nn.functional.pad(x, (front, reach - front)))
            if i + 1 < len(self.layers) and self.activation is not None:
                x = self.activation(x)
        return x.transpose(1, 2), None


def same_padding(kernel, dilation):
    """One Conv1d as it comes, which shows that the padding above is torch's own."""
    layer = nn.Conv1d(HIDDEN, HIDDEN, kernel, dilation=dilation, padding="same")

    class Single(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.bias = layer.weight, layer.bias

        def forward(self, x):
            y = nn.functional.conv1d(
                x.transpose(1, 2), self.weight, self.bias, padding="same", dilation=dilation
            )
            return y.transpose(1, 2), None

    return Single()


class Heads(nn.Module):
    """Attention whose heads have d_k for queries and keys and d_v for values, written out.

    `weigh` maps queries, keys [batch, heads, seq, d_k] and a mask to weights of the values.
    """

    def __init__(self, heads, d_k, d_v, weigh, causal=False, output=True, bias=False):
        super().__init__()
        self.heads, self.weigh, self.causal = heads, weigh, causal
        self.q_proj = nn.Linear(HIDDEN, heads * d_k, bias=bias)
        self.k_proj = nn.Linear(HIDDEN, heads * d_k, bias=bias)
        self.v_proj = nn.Linear(HIDDEN, heads * d_v, bias=bias)
        if output:
            self.out_proj = nn.Linear(heads * d_v, HIDDEN, bias=bias)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, source=None):
        source = x if source is None else source
        q, k, v = self.split(self.q_proj(x)), self.split(self.k_proj(source)), self.v_proj(source)
        visible = torch.ones(q.shape[2], k.shape[2])
        weights = self.weigh(q, k, visible.tril() if self.causal else visible)
        context = (weights @ self.split(v)).transpose(1, 2).flatten(2)
        return (self.out_proj(context) if hasattr(self, "out_proj") else context), None


def softmax_of(scale):
    """Softmax attention: scores times `scale`."""

    def weigh(q, k, visible):
        scores = q @ k.transpose(-1, -2) * scale
        return scores.masked_fill(visible == 0, float("-inf")).softmax(-1)

    return weigh


def linear_of(feature_map):
    """Linear attention in its quadratic form: phi(q)·phi(k), divided by its sum over the keys."""

    def weigh(q, k, visible):
        products = feature_map(q) @ feature_map(k).transpose(-1, -2) * visible
        return products / (products.sum(-1, keepdim=True) + 1e-6)

    return weigh


class Packed(nn.MultiheadAttention):
    """torch's own layer, with its own mask."""

    def __init__(self, heads, causal=False):
        super().__init__(HIDDEN, heads, batch_first=True)
        self.causal = causal
        nn.init.normal_(self.in_proj_bias)  # zero otherwise
        nn.init.normal_(self.out_proj.bias)

    def forward(self, x, source=None):
        mask = torch.ones(x.shape[1], x.shape[1]).triu(1).bool() if self.causal else None
        source = x if source is None else source
        return super().forward(x, source, source, attn_mask=mask, need_weights=False)


class FeedForward(nn.Module):
    def __init__(self, width, activation):
        super().__init__()
        self.activation = activation
        self.linear1, self.linear2 = nn.Linear(HIDDEN, width), nn.Linear(width, HIDDEN)

    def forward(self, x):
        return self.linear2(self.activation(self.linear1(x))), None


class GatedFeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate_proj = nn.Linear(HIDDEN, width, bias=False)
        self.up_proj = nn.Linear(HIDDEN, width, bias=False)
        self.down_proj = nn.Linear(width, HIDDEN, bias=False)

    def forward(self, x):
        return self.down_proj(nn.functional.silu(self.gate_proj(x)) * self.up_proj(x)), None


class Stack(nn.Module):
    """Layers one after another, without residuals."""

    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)[0]
        return x, None


def recurrent(model_type, module, layers, bias=True):
    config = {
        "architectures": [module.__name__],
        "model_type": model_type,
        "hidden_size": HIDDEN,
        "num_layers": layers,
        "bias": bias,
    }
    return config, lambda: module(HIDDEN, HIDDEN, layers, bias=bias, batch_first=True)


def convolution(make, **keys):
    config = {"architectures": ["Conv1d"], "model_type": "convolution", "hidden_size": HIDDEN}
    return {**config, **keys}, make


def attention(make, heads=3, d_k=4, d_v=7, model_type="attention", **keys):
    names = {"attention": "MultiHeadAttention", "cross_attention": "MultiHeadCrossAttention"}
    config = {
        "architectures": [names[model_type]],
        "model_type": model_type,
        "hidden_size": HIDDEN,
        "num_attention_heads": heads,
        "head_dim": d_k,
        "value_head_dim": d_v,
    }
    return {**config, **keys}, make


def linear_attention(name, feature_map, causal):
    keys = {"is_causal": True} if causal else {}
    return attention(
        lambda: Heads(3, 4, 7, linear_of(feature_map), causal=causal),
        attention_kind="linear",
        feature_map=name,
        **keys,
    )


def feed_forward(make, width, **keys):
    config = {"architectures": ["FeedForward"], "model_type": "feed_forward", "hidden_size": HIDDEN}
    return {**config, "intermediate_size": width, **keys}, make


PACKED = {"heads": 2, "d_k": HIDDEN // 2, "d_v": HIDDEN // 2, "attention_bias": True}

CASES = {
    "rnn": recurrent("rnn", nn.RNN, 2),
    "rnn_no_bias": recurrent("rnn", nn.RNN, 1, bias=False),
    "lstm": recurrent("lstm", nn.LSTM, 2),
    "lstm_no_bias": recurrent("lstm", nn.LSTM, 1, bias=False),
    "gru": recurrent("gru", nn.GRU, 2),
    "gru_no_bias": recurrent("gru", nn.GRU, 1, bias=False),
    "conv_same": convolution(lambda: same_padding(3, 1), kernel_size=3),
    "conv_even": convolution(lambda: same_padding(4, 1), kernel_size=4),
    "conv_same_dilated": convolution(lambda: same_padding(3, 3), kernel_size=3, dilation=3),
    "conv_one": convolution(lambda: same_padding(1, 1), kernel_size=1),
    "conv_causal": convolution(
        lambda: Convolutions(3, [1], causal=True), kernel_size=3, is_causal=True
    ),
    "conv_wide_causal": convolution(
        lambda: Convolutions(5, [4], causal=True, bias=False),
        kernel_size=5,
        dilation=4,
        is_causal=True,
        bias=False,
    ),
    "conv_dilated": convolution(
        lambda: Convolutions(2, [1, 2, 4], causal=True, activation=torch.relu),
        kernel_size=2,
        num_layers=3,
        dilation_base=2,
        is_causal=True,
        hidden_act="relu",
    ),
    "conv_stack": convolution(
        lambda: Convolutions(3, [1, 1, 1], causal=False, activation=torch.tanh),
        kernel_size=3,
        num_layers=3,
        hidden_act="tanh",
    ),
    "attention_packed": attention(lambda: Packed(2), **PACKED),
    "attention_packed_causal": attention(lambda: Packed(2, causal=True), is_causal=True, **PACKED),
    "attention_packed_stack": attention(
        lambda: Stack([Packed(2), Packed(2)]), num_hidden_layers=2, **PACKED
    ),
    "attention_values": attention(lambda: Heads(3, 4, 7, softmax_of(4**-0.5))),
    "attention_values_causal": attention(
        lambda: Heads(3, 4, 7, softmax_of(4**-0.5), causal=True, bias=True),
        is_causal=True,
        attention_bias=True,
    ),
    "attention_model_scale": attention(
        lambda: Heads(3, 4, 7, softmax_of(HIDDEN**-0.5)),
        attention_scale="inverse_sqrt_hidden_size",
    ),
    "attention_no_scale": attention(lambda: Heads(3, 4, 7, softmax_of(1)), attention_scale="none"),
    "attention_context": attention(
        lambda: Heads(1, 4, 7, softmax_of(4**-0.5), output=False),
        heads=1,
        output_projection=False,
    ),
    "attention_context_stack": attention(
        lambda: Stack([Heads(2, 4, 5, softmax_of(4**-0.5), output=False) for _ in range(2)]),
        heads=2,
        d_v=5,
        num_hidden_layers=2,
        output_projection=False,
    ),
    "cross_attention_packed": attention(lambda: Packed(2), model_type="cross_attention", **PACKED),
    "cross_attention_values": attention(
        lambda: Heads(3, 4, 7, softmax_of(4**-0.5)), model_type="cross_attention"
    ),
    "cross_attention_context": attention(
        lambda: Heads(3, 4, 7, softmax_of(HIDDEN**-0.5), output=False),
        model_type="cross_attention",
        attention_scale="inverse_sqrt_hidden_size",
        output_projection=False,
    ),
    "linear_elu": linear_attention("elu+1", lambda x: nn.functional.elu(x) + 1, causal=False),
    "linear_elu_causal": linear_attention("elu+1", lambda x: nn.functional.elu(x) + 1, causal=True),
    "linear_relu": linear_attention("relu", torch.relu, causal=False),
    "linear_relu_causal": linear_attention("relu", torch.relu, causal=True),
    "linear_exp": linear_attention("exp", torch.exp, causal=False),
    "linear_exp_causal": linear_attention("exp", torch.exp, causal=True),
    "linear_softmax": linear_attention("softmax", lambda x: x.softmax(-1), causal=False),
    "linear_softmax_causal": linear_attention("softmax", lambda x: x.softmax(-1), causal=True),
    "feed_forward": feed_forward(lambda: FeedForward(13, torch.relu), 13),
    "feed_forward_gated": feed_forward(
        lambda: GatedFeedForward(13), 13, gated=True, hidden_act="silu", mlp_bias=False
    ),
    "feed_forward_stack": feed_forward(
        lambda: Stack([FeedForward(13, nn.functional.gelu) for _ in range(2)]),
        13,
        num_hidden_layers=2,
        hidden_act="gelu",
    ),
}


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "data/layers")
    for seed, (name, (config, make)) in enumerate(CASES.items()):
        torch.manual_seed(seed)
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        layer = make().eval()
        inputs = {"hidden_states": torch.randn(BATCH, SEQ_LEN, HIDDEN)}
        if config["model_type"] == "cross_attention":
            inputs["encoder_hidden_states"] = torch.randn(BATCH, SOURCE_LEN, HIDDEN)
        with torch.no_grad():
            outputs = layer(*inputs.values())[0]
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        write_safetensors(folder / "model.safetensors", dict(layer.named_parameters()))
        write_safetensors(folder / "inputs.safetensors", inputs)
        write_safetensors(folder / "expected.safetensors", {"last_hidden_state": outputs})


if __name__ == "__main__":
    main()
