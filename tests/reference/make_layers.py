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

BATCH, SEQ_LEN, HIDDEN = 2, 9, 10


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
}


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1] / "data/layers")
    for seed, (name, (config, make)) in enumerate(CASES.items()):
        torch.manual_seed(seed)
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        layer = make().eval()
        inputs = torch.randn(BATCH, SEQ_LEN, HIDDEN)
        with torch.no_grad():
            outputs = layer(inputs)[0]
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
        write_safetensors(folder / "model.safetensors", dict(layer.named_parameters()))
        write_safetensors(folder / "inputs.safetensors", {"hidden_states": inputs})
        write_safetensors(folder / "expected.safetensors", {"last_hidden_state": outputs})


if __name__ == "__main__":
    main()
