#!/usr/bin/env python3
"""Times a model in OpenVINO, in float32 on the processor; prints one JSON object."""

import argparse
import json
import statistics
import time

import openvino
import torch

import models


def compiled_model(name, example, threads):
    """The model for one request at a time. OpenVINO would compute in bfloat16 where the processor
    has its instructions."""
    with torch.no_grad():
        model = openvino.convert_model(models.build(name), example_input=example)
    return openvino.Core().compile_model(model, "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": "f32"})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", choices=models.MODELS)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=3)
    arguments = parser.parse_args()
    example = models.inputs(arguments.model, arguments.batch, arguments.seq)
    request = compiled_model(arguments.model, example, arguments.threads).create_infer_request()
    inputs = [tensor.numpy() for tensor in example]
    samples = []
    for run in range(arguments.warmup + arguments.runs):
        start = time.perf_counter()
        request.infer(inputs)
        taken = time.perf_counter() - start
        if run >= arguments.warmup:
            samples.append(taken)
    print(json.dumps({"engine": "openvino", "version": openvino.__version__,
                      "threads": arguments.threads, "median_s": statistics.median(samples),
                      "min_s": min(samples), "samples_s": samples}))


if __name__ == "__main__":
    main()
