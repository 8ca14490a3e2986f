#!/usr/bin/env python3
"""Times a model in PyTorch; prints one JSON object."""

import argparse
import json
import statistics
import time
from pathlib import Path

import torch
import torch._inductor.config

import models


def libraries():
    """The libraries of PyTorch's GEMMs on processors: those it is linked with statically, and the
    file of a BLAS library that this process has loaded."""
    built_in = [name for name, backend in (("MKL", torch.backends.mkl), ("oneDNN", torch.backends.mkldnn))
                if backend.is_available()]
    lines = Path("/proc/self/maps").read_text().splitlines()
    names = {Path(line.split()[-1]).name for line in lines if "blas" in line}
    no_gemms = ("liblapack", "libcublas", "libscipy")
    return ", ".join(built_in + sorted(name for name in names if not name.startswith(no_gemms)))


def prepared(model, mode, inputs):
    """`model` as `mode` runs it."""
    if mode == "eager":
        return model
    if mode == "compiled":
        torch._inductor.config.freezing = True  # packs the weights of GEMMs
        return torch.compile(model, dynamic=False)
    return torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(model, inputs)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=models.MODELS)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--mode", choices=["eager", "frozen", "compiled"], default="frozen",
                        help="eager; traced, frozen and optimize_for_inference; torch.compile of PyTorch 2")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = models.build(arguments.model)
    inputs = models.inputs(arguments.model, arguments.batch, arguments.seq)
    samples = []
    with torch.no_grad():
        model = prepared(model, arguments.mode, inputs)
        for run in range(arguments.warmup + arguments.runs):
            start = time.perf_counter()
            model(*inputs)
            taken = time.perf_counter() - start
            if run >= arguments.warmup:
                samples.append(taken)
    print(json.dumps({"engine": "torch", "version": torch.__version__, "blas": libraries(), "mode": arguments.mode,
                      "threads": arguments.threads, "median_s": statistics.median(samples),
                      "min_s": min(samples), "samples_s": samples}))


if __name__ == "__main__":
    main()
