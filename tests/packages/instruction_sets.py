#!/usr/bin/env python3
"""Runs a program with kernels of several instruction sets on emulated processors that have one each,
and compares its outputs with those of the reference implementation.

usage: instruction_sets.py HEADROOM

Needs qemu-user-static. The processor of this machine is tried without it.
"""
import array
import json
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

MODELS = Path(__file__).resolve().parents[1] / "data" / "golden" / "models"
# Intel's first processors with SSE4.2, AVX2, and all that qemu emulates.
PROCESSORS = ["Nehalem", "Haswell", "max"]
CASES = ["gpt2", "bert_model", "t5", "qwen3_next_dense_layers", "vit_other_pooler"]
TOLERANCE = 1e-4


def tensors(file):
    """The float32 tensors of a safetensors file."""
    content = Path(file).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length])
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            yield name, array.array("f", content[8 + length:][begin:end])


def outputs(command, model, folder):
    out = folder / "out.safetensors"
    subprocess.run([*command, "measure", model, "--input", model / "inputs.json", "--runs", "1",
                    "--save-output", out, "--quiet"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)  # the emulator warns of features it lacks
    return dict(tensors(out))


def largest_difference(actual, expected):
    shared = actual.keys() & expected.keys()
    assert shared, f"no output of {sorted(expected)} among {sorted(actual)}"
    return max(abs(a - b) / (1 + abs(b))
               for name in shared for a, b in zip(actual[name], expected[name], strict=True))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = Path(sys.argv[1]).resolve()
    commands = {"this processor": [program]}
    emulator = shutil.which("qemu-x86_64-static")
    if emulator:
        commands |= {name: [emulator, "-cpu", name, program] for name in PROCESSORS}
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for name, command in commands.items():
            for case in CASES:
                model = MODELS / case
                difference = largest_difference(outputs(command, model, Path(folder)),
                                                dict(tensors(model / "expected.safetensors")))
                failed |= difference > TOLERANCE
                print(f"{name}, {case}: outputs differ by {difference:.1e}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
