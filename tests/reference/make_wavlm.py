#!/usr/bin/env python3
"""Records the matrix FLOPs of a tiny WavLM, and the bytes that one of its layers saves for the
backward pass: prints JSON, as stored in tests/data/encoders/wavlm.json. Needs torch and
transformers.

    python3 tests/reference/make_wavlm.py > tests/data/encoders/wavlm.json
"""

import json
import pathlib

import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode

CONFIG = pathlib.Path(__file__).parent.parent / "data/golden/models/wavlm/config.json"
SAMPLES = 200


def model_of(**changes):
    sizes = {**json.loads(CONFIG.read_text()), **changes}
    config = transformers.WavLMConfig(**sizes)
    return transformers.WavLMModel._from_config(config, attn_implementation="eager")


def matrix_flops(sequences):
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model_of().eval()(torch.randn(sequences, SAMPLES))
    return counter.get_total_flops()


def saved_by_layer():
    """Storages first saved in the second of three layers: [shape, type, bytes]. One sequence: its
    rows are views of the layer's input, which the class otherwise copies for each projection."""
    names = ("activation_dropout", "attention_dropout", "hidden_dropout", "feat_proj_dropout",
             "layerdrop")
    model = model_of(num_hidden_layers=3, **{name: 0.0 for name in names}).train()
    known = {t.untyped_storage().data_ptr() for t in (*model.parameters(), *model.buffers())}
    rows, kept, inside = [], [], [False]

    def pack(tensor):
        storage = tensor.untyped_storage()
        kept.append(tensor)  # so that no later storage has its address
        if storage.data_ptr() not in known:
            known.add(storage.data_ptr())
            if inside[0]:
                rows.append([list(tensor.shape), str(tensor.dtype), storage.nbytes()])
        return tensor

    layer = model.encoder.layers[1]
    layer.register_forward_pre_hook(lambda *_: inside.__setitem__(0, True))
    layer.register_forward_hook(lambda *_: inside.__setitem__(0, False))
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(torch.randn(1, SAMPLES))
    return rows


print(json.dumps({"torch": torch.__version__, "transformers": transformers.__version__,
                  "samples": SAMPLES, "sequences": 2, "matrix_flops": matrix_flops(2),
                  "saved": saved_by_layer()}))
