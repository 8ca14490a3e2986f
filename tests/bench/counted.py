#!/usr/bin/env python3
"""Compares the counts of real runs with the derived counts, for every preset that fits in memory.

usage: counted.py HEADROOM_BINARY [--min-gib N] [--max-gib N] [PRESET…]

Analyzes and measures each preset in prefill, and in decode if it has a KV-cache, and compares matrix
FLOPs, weight bytes, KV-cache bytes and the activation peak: they must be equal. Exits with status 1 if
one differs.
"""

import argparse
import json
import subprocess
import sys

QUANTITIES = [  # name, path in the JSON of analyze, path in the JSON of measure
    ("matrix_flops", ("flops", "forward", "matrix"), ("counted", "matrix_flops")),
    ("weight_bytes", ("memory", "weight_bytes"), ("counted", "weight_bytes")),
    ("kv_cache_bytes", ("memory", "kv_cache_bytes"), ("counted", "kv_cache_bytes")),
    ("peak_activation_bytes", ("memory", "peak_activation_bytes"), ("memory", "arena_peak_bytes")),
]


def run(binary, *arguments):
    command = [binary, *arguments, "--format", "json", "--quiet"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


def value(document, path):
    for key in path:
        document = document[key]
    return document or 0


def workloads(analysis):
    """Yields the options of each workload; lengths differ from the defaults and from each other."""
    length = [] if analysis["model"]["model_type"] == "vit" else ["--seq", "13"]
    if analysis["model"]["kind"] == "encoder-decoder":
        length += ["--enc-seq", "11"]
    yield ["--phase", "prefill", *length]
    yield ["--phase", "prefill", "--attention", "fused", *length]
    if analysis["memory"]["kv_cache_bytes"] is not None:
        yield ["--phase", "decode", "--past", "17"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("presets", nargs="*")
    parser.add_argument("--min-gib", type=float, default=0)
    parser.add_argument("--max-gib", type=float, default=4)
    options = parser.parse_args()
    names = options.presets or [p["name"] for p in run(options.binary, "presets", "list")["presets"]]
    compared = differing = 0
    for name in names:
        analysis = run(options.binary, "analyze", name)
        if not options.min_gib <= analysis["memory"]["weight_bytes"] / 2**30 <= options.max_gib:
            continue
        for workload in workloads(analysis):
            predicted = run(options.binary, "analyze", name, *workload)
            measured = run(options.binary, "measure", name, *workload, "--runs", "1", "--warmup", "0")
            for quantity, in_analysis, in_measurement in QUANTITIES:
                expected, got = value(predicted, in_analysis), value(measured, in_measurement)
                compared += 1
                if expected != got:
                    differing += 1
                    print(f"{name} {' '.join(workload)}: {quantity} {got}, not {expected}")
        print(f"{name}: done", flush=True)
    print(f"{compared} quantities compared, {differing} differ")
    sys.exit(1 if differing else 0)


main()
