"""Completes folders of RWKV-7 as make_with_transformers.py does: make_with_fla.py FOLDER...

Runs the classes of flash-linear-attention 0.6 with that package's own references in place of its
GPU kernels, and its recurrence in the model's precision.
"""

import sys

import torch
import transformers  # noqa: F401

from fla.layers import rwkv7 as layer
from fla.models.rwkv7 import modeling_rwkv7 as model
from fla.modules.token_shift import token_shift_ref
from fla.ops.rwkv7.fused_k_update import k_update_ref
from fla.ops.rwkv7.gate_output_correction import gate_output_correction_ref


def recurrence(r, w, k, v, a, b, scale=1.0, **_options):
    """The steps of fla's dplr_recurrence: all [batch, seq, heads, dim]."""
    state = torch.zeros(*r.shape[:1], *r.shape[2:], v.shape[-1], dtype=r.dtype)
    out = torch.zeros_like(v)
    for i in range(r.shape[1]):
        read = (state * a[:, i, :, :, None]).sum(-2, keepdim=True)
        state = (
            state * w[:, i].exp()[..., None]
            + read * b[:, i, :, :, None]
            + k[:, i, :, :, None] * v[:, i, :, None]
        )
        out[:, i] = scale * torch.einsum("bhd,bhdm->bhm", r[:, i], state)
    return out, state


def step(r, w, k, v, kk, a, scale=1.0, **options):
    return recurrence(r, w, k, v, -kk, kk * a, scale, **options)


def shift(x, *_arguments, **_options):
    return token_shift_ref(x), None


def mix(hidden, delta, *weights):
    return tuple(hidden.addcmul(delta, weight) for weight in weights)


layer.token_shift = model.token_shift = shift
layer.fused_addcmul_rwkv7 = mix
layer.fused_k_rwkv7 = k_update_ref
layer.gate_output_correction = gate_output_correction_ref
layer.chunk_rwkv7, layer.fused_mul_recurrent_rwkv7 = recurrence, step
# Its own initial values need value_dim = hidden_size.
layer.RWKV7Attention._initialize_weights = lambda *_arguments: None
model.ACT2FN["sqrelu"] = lambda x: x.relu() ** 2
sys.modules["transformers"].RWKV7ForCausalLM = model.RWKV7ForCausalLM

import make_with_transformers  # noqa: E402, F401 (makes the folders of the command line)
from weights import read_safetensors, write_safetensors  # noqa: E402

for folder in sys.argv[1:]:
    # The class records the embeddings before their norm.
    path = f"{folder}/expected.safetensors"
    expected = read_safetensors(path)
    del expected["hidden_states.0"]
    write_safetensors(path, expected)
