#!/usr/bin/env python3
"""Writes BERT-base as ONNX, one file for each batch and sequence length."""

import argparse
import pathlib

import torch

import bert


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--shapes", nargs="+", default=["1x128", "8x128", "1x512"], metavar="BxS")
    parser.add_argument("--mask", action="store_true", help="with an attention mask as third input")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    model = bert.build()
    for shape in arguments.shapes:
        batch, seq = map(int, shape.split("x"))
        inputs = [torch.randint(bert.VOCAB, (batch, seq)), torch.zeros(batch, seq, dtype=torch.long)]
        names = ["ids", "types"]
        if arguments.mask:
            inputs.append(torch.ones(batch, seq, dtype=torch.long))
            names.append("mask")
        path = arguments.folder / f"bert-{shape}.onnx"
        with torch.no_grad():
            torch.onnx.export(model, tuple(inputs), str(path), input_names=names,
                              output_names=["hidden", "pooled"], opset_version=14)
        print(path)


if __name__ == "__main__":
    main()
