#!/usr/bin/env python3
"""Writes BERT-base as bert.onnx with dynamic batch size and sequence length.

Dynamic axes, an attention mask and operator set 12 give the graph that ONNX Runtime's optimiser
fuses best: Attention, SkipLayerNormalization, BiasGelu. With later operator sets it does not detect
the attention.
"""

import argparse
import inspect
import pathlib

import torch

import bert


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--opset", type=int, default=12)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    shape = (2, 128)
    ids = torch.randint(bert.VOCAB, shape)
    inputs = (ids, torch.zeros_like(ids), torch.ones_like(ids))
    names = ["ids", "types", "mask"]
    # PyTorch 2 exports another graph by default, which ONNX Runtime's optimiser does not fuse.
    has_other = "dynamo" in inspect.signature(torch.onnx.export).parameters
    traced = {"dynamo": False} if has_other else {}
    with torch.no_grad():
        torch.onnx.export(bert.build(), inputs, str(arguments.folder / "bert.onnx"), input_names=names,
                          output_names=["hidden", "pooled"], opset_version=arguments.opset,
                          dynamic_axes={name: {0: "batch", 1: "seq"} for name in names},
                          **traced)


if __name__ == "__main__":
    main()
