#!/usr/bin/env python3
"""Fails one call of a run after the other: allocations, writes, renames, syncs, mappings, reads.

usage: injection.py HEADROOM SHIM [--runs N]

Every run must end with a documented exit status and a message, and leave the old output, the whole
new one, or none; never a temporary file or a signal. By default about 6 calls per command
and function fail, evenly spread; --runs raises that, and --runs 0 fails every call. Prints the
totals. Exit status: 0 all held, 1 a check failed.
"""

import argparse
import json
import sys

from files import GPT2, tiny_weights
from harness import Faults

DOCUMENTED = (0, 1, 2, 3)
ANALYTIC = [
    ["analyze", "config.json", "-f", "json"],
    ["analyze", "t5-small", "--phase", "train"],
    ["explain", "config.json", "--what", "activations"],
    ["diff", "config.json", "bert-tiny"],
    ["fit", "config.json", "--machine", "h100-80gb"],
    ["plan", "config.json", "--machine", "h100-80gb", "--count", "2", "--train"],
    ["sweep", "config.json", "--batch", "1..4", "-f", "jsonl"],
    ["complexity", "layer-self-attention"],
    ["inspect", "model"],
    ["machines"],
]
FILES = [
    ["analyze", "config.json", "-f", "json", "-o", "out"],
    ["sweep", "config.json", "--batch", "1..4", "-o", "out"],
    ["inspect", "model", "-f", "json", "-o", "out"],
    # oneDNN's code generator, which headroom trusts, ends with SIGSEGV where a mapping fails.
    ["measure", "model", "--backend", "eigen", "--runs", "1", "--threads", "1", "-f", "json", "-o", "out"],
]
FUNCTIONS = ("write", "read", "rename", "fsync", "mmap", "open")


class Injection:
    def __init__(self, faults, shim, most):
        self.faults, self.shim, self.most = faults, shim, most
        self.injected = {}

    def run(self, command, fault):
        log = self.faults.folder / "calls"
        log.unlink(missing_ok=True)
        environment = {**self.faults.environment, "LD_PRELOAD": self.shim, "HEADROOM_FAULT": fault,
                       "HEADROOM_FAULT_LOG": str(log), "OMP_NUM_THREADS": "1"}
        result = self.faults.run(*command, env=environment, timeout=60)
        return result, int(log.read_text()) if log.exists() else 0

    def chosen(self, calls):
        """Numbers of calls to fail, evenly spread."""
        step = 1 if self.most == 0 else max(1, calls // self.most)
        return range(1, calls + 1, step)

    def check_end(self, command, fault, result):
        faults = self.faults
        faults.check(result.status in DOCUMENTED, f"{fault} {command} exits with {result.status}: {result.err[:300]}")
        if result.status in (2, 3):
            # Notes may come first.
            said = any(line.startswith("headroom: error: ") for line in result.err.splitlines())
            faults.check(said, f"{fault} {command} says nothing: {result.err}")
        left = [name for name in faults.files() if name.startswith(".")]
        faults.check(left == [], f"{fault} {command} leaves {left}")

    def fail_each(self, command, function, check):
        (self.faults.cwd / "out").write_text("before")
        whole, calls = self.run(command, f"{function}:0")
        self.faults.check(whole.status in (0, 1), f"{command} exits with {whole.status}: {whole.err}")
        for number in self.chosen(calls):
            (self.faults.cwd / "out").write_text("before")
            fault = f"{function}:{number}"
            result, _ = self.run(command, fault)
            self.check_end(command, fault, result)
            check(command, fault, result)
            self.injected[function] = self.injected.get(function, 0) + 1


def check_output(faults, command, fault, result):
    """The file is the old one, or whole."""
    text = (faults.cwd / "out").read_text()
    if text == "before":
        faults.check(result.status != 0, f"{fault} {command} succeeds without an output")
    elif "sweep" in command:
        faults.check(text.endswith("\n") and text.count("\n") == 5, f"{fault} {command} cuts {text[-80:]!r}")
    else:
        try:
            json.loads(text)
        except ValueError:
            faults.check(False, f"{fault} {command} writes {text[:80]!r}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("headroom")
    parser.add_argument("shim")
    parser.add_argument("--runs", type=int, default=6)
    given = parser.parse_args()
    faults = Faults(given.headroom)
    faults.begin("injection")
    (faults.cwd / "config.json").write_text(json.dumps(GPT2))
    tiny_weights(faults)
    injection = Injection(faults, given.shim, given.runs)
    for command in ANALYTIC:
        injection.fail_each(command, "new", lambda *_: None)
    for command in FILES:
        for function in FUNCTIONS:
            injection.fail_each(command, function, lambda *ends: check_output(faults, *ends))
    missing = {"new", *FUNCTIONS} - injection.injected.keys()
    faults.check(not missing, f"no call of {sorted(missing)} failed: is the shim loaded?")
    faults.end()
    print(", ".join(f"{count} {function}" for function, count in injection.injected.items()), "calls failed;",
          faults.failures, "checks failed")
    return 1 if faults.failures else 0


if __name__ == "__main__":
    sys.exit(main())
