"""ViT-Base of patches of 16 × 16 pixels in plain torch, with its classifier of 1,000 classes."""

import torch
from torch import nn
from torch.nn import functional

from layers import Input, Linear, merge_heads, split_heads

LAYERS = 12
HIDDEN = 768
HEADS = 12
INNER = 3072
IMAGE = 224
PATCH = 16
CLASSES = 1000
TOKENS = (IMAGE // PATCH) ** 2 + 1
EPSILON = 1e-12
INPUTS = (Input("pixels", ("batch", 3, IMAGE, IMAGE)),)
ONNX_INPUTS = INPUTS
ONNX_OPSET = 18


class Layer(nn.Module):
    """One pre-norm encoder layer, with the operators of ViTLayer in order."""

    def __init__(self):
        super().__init__()
        self.attention_norm = nn.LayerNorm(HIDDEN, EPSILON)
        self.query = Linear(HIDDEN, HIDDEN)
        self.key = Linear(HIDDEN, HIDDEN)
        self.value = Linear(HIDDEN, HIDDEN)
        self.out = Linear(HIDDEN, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN, EPSILON)
        self.up = Linear(HIDDEN, INNER)
        self.down = Linear(INNER, HIDDEN)

    def forward(self, x):
        normed = self.attention_norm(x)
        query, key, value = (split_heads(linear(normed), HEADS)
                             for linear in (self.query, self.key, self.value))
        x = x + self.out(merge_heads(functional.scaled_dot_product_attention(query, key, value)))
        return x + self.down(functional.gelu(self.up(self.norm(x))))


class Model(nn.Module):
    """Maps pixels to the logits of the classes."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, HIDDEN, PATCH, PATCH)
        self.class_token = nn.Parameter(torch.randn(1, 1, HIDDEN))
        self.positions = nn.Parameter(torch.randn(1, TOKENS, HIDDEN))
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(HIDDEN, EPSILON)
        self.classifier = Linear(HIDDEN, CLASSES)

    def forward(self, pixels):
        x = self.patches(pixels).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(x.size(0), -1, -1), x], dim=1) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.classifier(self.norm(x)[:, 0])
