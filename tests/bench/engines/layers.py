"""What the models of the benchmark share: layers in plain torch, and descriptions of inputs."""

import dataclasses

import torch
from torch import nn


@dataclasses.dataclass(frozen=True)
class Input:
    """An input of a model: token ids below `below`, one `constant` everywhere, or normal floats.
    `shape` has numbers, "batch" and "seq"."""
    name: str
    shape: tuple
    below: int = 0
    constant: int | None = None

    def sizes(self, batch, seq):
        return [{"batch": batch, "seq": seq}.get(size, size) for size in self.shape]

    def tensor(self, batch, seq):
        sizes = self.sizes(batch, seq)
        if self.constant is not None:
            return torch.full(sizes, self.constant, dtype=torch.long)
        return torch.randint(self.below, sizes) if self.below else torch.randn(sizes)

    def dynamic_axes(self):
        return {axis: size for axis, size in enumerate(self.shape) if isinstance(size, str)}


class Linear(nn.Linear):
    """Exported with the bias as the second addend, as ONNX Runtime's attention fusion expects."""

    def forward(self, x):
        if torch.onnx.is_in_onnx_export():
            product = torch.matmul(x, self.weight.t())
            return product if self.bias is None else product + self.bias
        return super().forward(x)


def split_heads(x, heads):
    """[batch, seq, heads * head_dim] to [batch, heads, seq, head_dim]."""
    return x.view(x.size(0), x.size(1), heads, -1).permute(0, 2, 1, 3)


def merge_heads(x):
    """[batch, heads, seq, head_dim] to [batch, seq, heads * head_dim]."""
    x = x.permute(0, 2, 1, 3).contiguous()
    return x.view(x.size(0), x.size(1), -1)


def initialised(model):
    """`model` with normal weights of standard deviation 1/sqrt(fan_in), for inference."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Linear):
                module.weight.normal_(0.0, module.in_features**-0.5)
                if module.bias is not None:
                    module.bias.normal_(0.0, 0.02)
            elif isinstance(module, nn.Embedding):
                module.weight.normal_(0.0, module.embedding_dim**-0.5)
    return model.eval()
