#!/usr/bin/env python3
"""Times BERT-base in PyTorch; prints one JSON object."""

import argparse
import json
import statistics
import time
from pathlib import Path

import torch

import bert


def blas():
    """File name of the BLAS library that this process has loaded."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    names = {Path(line.split()[-1]).name for line in lines if "blas" in line or "libmkl" in line}
    return ", ".join(sorted(name for name in names if not name.startswith("liblapack"))) or "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=3)
    parser.add_argument("--mode", choices=["eager", "frozen"], default="frozen",
                        help="eager, or traced, frozen and optimize_for_inference")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = bert.build()
    shape = (arguments.batch, arguments.seq)
    inputs = (torch.randint(bert.VOCAB, shape), torch.zeros(shape, dtype=torch.long))
    samples = []
    with torch.no_grad():
        if arguments.mode == "frozen":
            model = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(model, inputs)))
        for run in range(arguments.warmup + arguments.runs):
            start = time.perf_counter()
            model(*inputs)
            taken = time.perf_counter() - start
            if run >= arguments.warmup:
                samples.append(taken)
    print(json.dumps({"engine": "torch", "version": torch.__version__, "blas": blas(), "mode": arguments.mode,
                      "threads": arguments.threads, "median_s": statistics.median(samples),
                      "min_s": min(samples), "samples_s": samples}))


if __name__ == "__main__":
    main()
