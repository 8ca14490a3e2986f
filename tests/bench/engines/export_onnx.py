#!/usr/bin/env python3
"""Writes a model as NAME.onnx with dynamic batch size and sequence length, and its inputs as NAME.json.

Dynamic axes, an attention mask and operator set 12 give the graph of BERT that ONNX Runtime's
optimiser fuses best: Attention, SkipLayerNormalization, BiasGelu.
"""

import argparse
import inspect
import json
import pathlib

import torch

import models


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=models.MODELS)
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    model = models.MODELS[arguments.model]
    inputs = model.ONNX_INPUTS
    # PyTorch 2 exports another graph by default, which ONNX Runtime's optimiser does not fuse.
    has_other = "dynamo" in inspect.signature(torch.onnx.export).parameters
    traced = {"dynamo": False} if has_other else {}
    with torch.no_grad():
        torch.onnx.export(models.build(arguments.model), tuple(entry.tensor(2, 128) for entry in inputs),
                          str(arguments.folder / f"{arguments.model}.onnx"),
                          input_names=[entry.name for entry in inputs], opset_version=model.ONNX_OPSET,
                          dynamic_axes={entry.name: entry.dynamic_axes() for entry in inputs}, **traced)
    description = [{"name": entry.name, "shape": entry.shape, "below": entry.below,
                    "constant": entry.constant} for entry in inputs]
    (arguments.folder / f"{arguments.model}.json").write_text(json.dumps(description))


if __name__ == "__main__":
    main()
