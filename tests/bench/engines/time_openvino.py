#!/usr/bin/env python3
"""Times BERT-base in OpenVINO, in float32 on the processor; prints one JSON object."""

import argparse
import json
import statistics
import time

import openvino
import torch

import bert


def compiled_model(threads):
    """The model for one request at a time. OpenVINO would compute in bfloat16 where the processor
    has its instructions."""
    example = (torch.zeros(1, 128, dtype=torch.long), torch.zeros(1, 128, dtype=torch.long))
    with torch.no_grad():
        model = openvino.convert_model(bert.build(), example_input=example)
    return openvino.Core().compile_model(model, "CPU", {
        "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": "f32"})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=3)
    arguments = parser.parse_args()
    request = compiled_model(arguments.threads).create_infer_request()
    shape = (arguments.batch, arguments.seq)
    inputs = [torch.randint(bert.VOCAB, shape).numpy(), torch.zeros(shape, dtype=torch.long).numpy()]
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
