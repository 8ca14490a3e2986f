"""A model's tensors by checkpoint name: drawn on first use, or read from a file."""
import json
import math
import struct

import torch

TYPES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16, "I64": torch.int64}


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = torch.frombuffer(bytearray(data[begin:end]), dtype=TYPES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        raw = tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor
        block = raw.numpy().tobytes()
        kind = next(key for key, value in TYPES.items() if value == tensor.dtype)
        header[name] = {
            "dtype": kind,
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(block)],
        }
        data += block
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


class Weights:
    """Draws normal values, rounded to bfloat16 for storage in two bytes."""

    def __init__(self, seed=None, tensors=None):
        self.tensors = tensors if tensors is not None else {}
        self.generator = None if seed is None else torch.Generator().manual_seed(seed)
        self.used = set()

    def get(self, name, shape, mean=0.0, std=1.0):
        self.used.add(name)
        if name not in self.tensors:
            if self.generator is None:
                raise KeyError(name)
            values = mean + std * torch.randn(shape, generator=self.generator)
            self.tensors[name] = values.bfloat16()
        tensor = self.tensors[name]
        assert tuple(tensor.shape) == tuple(shape), (name, tuple(tensor.shape), tuple(shape))
        return tensor.float()

    def linear(self, name, x, features, bias=False, std=1.0):
        weight = self.get(
            name + ".weight", (features, x.shape[-1]), std=std / math.sqrt(x.shape[-1])
        )
        y = x @ weight.T
        return y + self.get(name + ".bias", (features,), std=0.2) if bias else y

    def table(self, name, rows, width, std=1.0):
        return self.get(name + ".weight", (rows, width), std=std)

    def scale(self, name, width, mean=1.0):
        return self.get(name, (width,), mean=mean, std=0.2)

    def rms_norm(self, name, x, eps, plus_one=False):
        weight = self.scale(name + ".weight", x.shape[-1], 0.0 if plus_one else 1.0)
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
        return y * (1.0 + weight) if plus_one else y * weight

    def layer_norm(self, name, x, eps, bias=True):
        centred = x - x.mean(-1, keepdim=True)
        y = centred / torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + eps)
        y = y * self.scale(name + ".weight", x.shape[-1])
        return y + self.get(name + ".bias", (x.shape[-1],), std=0.2) if bias else y

    def parameters(self):
        return sum(tensor.numel() for tensor in self.tensors.values())
