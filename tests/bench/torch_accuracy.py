#!/usr/bin/env python3
"""Lays runs of torch_measure.py beside predictions from a file of torch_calibrate.py, on one machine.

    python3 tests/bench/torch_accuracy.py build/release/headroom my-machine.json --device cpu --threads 1

Prints a row per run, then the median and the 90th percentile of the differences. Run it right after the
calibration, on a machine that other programs leave alone.
"""
import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

import torch_measure

PRESETS = Path(__file__).resolve().parents[2] / "presets" / "models"
PREFILLS = {"bert-base-uncased": [(1, 128), (4, 128), (1, 384), (8, 32)], "gpt2": [(1, 128), (4, 64), (1, 512)],
            "vit-base-patch16-224": [(1, 197), (4, 197)], "smollm-135m": [(1, 128), (4, 128), (1, 512)]}
DECODES = {"gpt2": [(1, 127), (4, 255), (8, 511)], "smollm-135m": [(1, 127), (4, 255), (8, 511), (1, 1023)],
           "qwen2.5-0.5b": [(1, 255), (4, 511)], "llama-3.2-1b": [(1, 127)]}
RUNS = 7


def cases():
    """(model, attention, phase, batch, new tokens, cached tokens), a model's one after the other."""
    for model in dict.fromkeys([*PREFILLS, *DECODES]):
        for attention in ("eager", "fused"):
            for batch, tokens in PREFILLS.get(model, []):
                yield model, attention, "prefill", batch, tokens, 0
            for batch, past in DECODES.get(model, []):
                yield model, attention, "decode", batch, 1, past


def measured_seconds(torch, arguments, built):
    """Median of a few runs. `built` keeps the last model, since a model is measured several times."""
    key = arguments.name, arguments.attention
    if key not in built:
        built.clear()
        built[key] = torch_measure.build(arguments, torch)
    runner = torch_measure.Runner(arguments, torch, built[key])
    with torch.inference_mode():
        runner.run()
        return statistics.median(runner.run() for _ in range(RUNS))


def predicted_seconds(options, arguments):
    words = ["--attention", arguments.attention, "--dtype", arguments.dtype, "--batch", arguments.batch]
    if arguments.phase == "decode":
        words += ["--phase", "decode", "--past", arguments.past]
    elif not arguments.name.startswith("vit"):
        words += ["--seq", arguments.seq]
    command = [options.headroom, "analyze", arguments.name, "--machine", options.machine, "--format", "json", *words]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)["time"]["total_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headroom")
    parser.add_argument("machine", help="file of torch_calibrate.py")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=["float32", "float16", "bfloat16"])
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    import torch
    if options.threads:
        torch.set_num_threads(options.threads)
    built, differences = {}, []
    for name, attention, phase, batch, tokens, past in cases():
        arguments = argparse.Namespace(config=PRESETS / f"{name}.json", name=name, device=options.device,
                                       dtype=options.dtype, attention=attention, phase=phase, batch=batch, seq=tokens,
                                       past=past, new_tokens=0)
        measured = measured_seconds(torch, arguments, built)
        predicted = predicted_seconds(options, arguments)
        differences.append(100 * (predicted / measured - 1))
        print(f"{name:22} {attention:6} {phase:8} batch {batch} tokens {tokens:4} cached {past:5} "
              f"{1e3 * predicted:9.2f} ms predicted {1e3 * measured:9.2f} ms measured {differences[-1]:+6.1f} %", flush=True)
    sizes = sorted(map(abs, differences))
    print(f"median {statistics.median(sizes):.1f} %, nine of ten within {sizes[int(0.9 * (len(sizes) - 1) + 0.5)]:.1f} %")


if __name__ == "__main__":
    main()
