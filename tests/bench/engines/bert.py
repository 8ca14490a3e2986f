"""BERT-base encoder in plain torch with random weights, for export_bert.py and time_torch.py."""

import math

import torch
from torch import nn
from torch.nn import functional

LAYERS = 12
HIDDEN = 768
HEADS = 12
HEAD_SIZE = HIDDEN // HEADS
INNER = 3072
VOCAB = 30522
POSITIONS = 512
EPSILON = 1e-12


class Linear(nn.Linear):
    """Exported with the bias as the second addend, as ONNX Runtime's attention fusion expects."""

    def forward(self, x):
        if torch.onnx.is_in_onnx_export():
            return torch.matmul(x, self.weight.t()) + self.bias
        return super().forward(x)


class Layer(nn.Module):
    """One post-norm encoder layer, with the operators of BertLayer in order."""

    def __init__(self):
        super().__init__()
        self.query = Linear(HIDDEN, HIDDEN)
        self.key = Linear(HIDDEN, HIDDEN)
        self.value = Linear(HIDDEN, HIDDEN)
        self.out = Linear(HIDDEN, HIDDEN)
        self.attention_norm = nn.LayerNorm(HIDDEN, EPSILON)
        self.up = Linear(HIDDEN, INNER)
        self.down = Linear(INNER, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN, EPSILON)

    def forward(self, x, mask):
        def heads(y):
            return y.view(y.size(0), y.size(1), HEADS, HEAD_SIZE).permute(0, 2, 1, 3)

        query, key, value = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(HEAD_SIZE)
        if mask is not None:
            scores = scores + mask
        context = torch.matmul(functional.softmax(scores, dim=-1), value)
        context = context.permute(0, 2, 1, 3).contiguous()
        context = context.view(context.size(0), context.size(1), HIDDEN)
        x = self.attention_norm(self.out(context) + x)
        return self.norm(self.down(functional.gelu(self.up(x))) + x)


class Bert(nn.Module):
    """Maps token ids to the last hidden states and the pooled output."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(VOCAB, HIDDEN)
        self.positions = nn.Embedding(POSITIONS, HIDDEN)
        self.types = nn.Embedding(2, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN, EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.pooler = Linear(HIDDEN, HIDDEN)

    def forward(self, ids, types, attention_mask=None):
        mask = None
        if attention_mask is not None:
            mask = attention_mask.unsqueeze(1).unsqueeze(2).to(torch.float32)
            mask = (1.0 - mask) * -10000.0
        positions = torch.arange(ids.size(1)).unsqueeze(0)
        x = self.norm(self.words(ids) + self.types(types) + self.positions(positions))
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


def build(seed=1):
    """Builds the model with normal weights of standard deviation 1/sqrt(fan_in)."""
    torch.manual_seed(seed)
    model = Bert()
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Linear):
                module.weight.normal_(0.0, module.in_features**-0.5)
                module.bias.normal_(0.0, 0.02)
            elif isinstance(module, nn.Embedding):
                module.weight.normal_(0.0, HIDDEN**-0.5)
    return model.eval()
