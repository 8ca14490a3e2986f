#!/usr/bin/env python3
"""Ablation of the calibration: predicts measured runs again with parts of the machine's profile left out.

  headroom calibrate
  python3 tests/bench/accuracy.py --reports REPORTS
  headroom machines show here --json > PROFILE.json
  python3 tests/bench/ablation.py --accuracy REPORTS/accuracy.json --profile PROFILE.json

Each ablation replaces tables, corrections or probes of the profile by simpler ones, and `headroom
analyze --machine` predicts every pair of --suites with what is left. Errors are those of the runs in
the accuracy report, with its correction for drift, so nothing is timed again. Then the ablations are
combined: in order of the points that they save, each stays if the median error stays within --loss of
the full profile's. Prints a Markdown table. A benchmark, not a test: it checks nothing.
"""
import argparse
import copy
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import accuracy
from accuracy_report import spread


class Profile:
    """The curves of one number of threads, by kernel."""

    def __init__(self, threads):
        self.json = threads
        self.tables = {table["kernel"]: table for table in threads["kernels"]}

    def points(self, kernel):
        return sum(seconds is not None for seconds in self.tables[kernel]["seconds"])

    def sizes(self, kernel):
        """All grid points of a table, in the order of its times."""
        points = [[]]
        for axis in self.tables[kernel]["axes"]:
            points = [point + [size] for point in points for size in axis["sizes"]]
        return points

    def time(self, kernel, sizes):
        """Interpolates in logarithms of sizes and of time per product of the sizes."""
        table = self.tables[kernel]
        places = [place(axis["sizes"], size) for axis, size in zip(table["axes"], sizes)]
        total = 0.0
        for corner in range(1 << len(places)):
            weight, number, work = 1.0, 0, 1.0
            for axis, (below, above, share) in enumerate(places):
                upper = corner >> axis & 1
                weight *= share if upper else 1 - share
                grid = table["axes"][axis]["sizes"]
                index = above if upper else below
                number, work = number * len(grid) + index, work * grid[index]
            if weight > 0:
                total += weight * math.log((table["seconds"][number] or math.nan) / work)
        return math.exp(total) * math.prod(sizes)

    def replace(self, kernel, seconds_of):
        """Sets every measured time of `kernel` to seconds_of(sizes)."""
        table = self.tables[kernel]
        table["seconds"] = [None if old is None else seconds_of(sizes)
                            for old, sizes in zip(table["seconds"], self.sizes(kernel))]

    def copy_table(self, kernel, other):
        self.tables[kernel]["seconds"] = list(self.tables[other]["seconds"])

    def thin(self, kernel):
        """Keeps every second size of each axis and the last, as `calibrate --quick`."""
        table = self.tables[kernel]
        kept = []
        for axis in table["axes"]:
            sizes = axis["sizes"]
            kept.append([i for i in range(len(sizes)) if i % 2 == 0 or i == len(sizes) - 1])
        numbers = [0]
        for axis, indices in zip(table["axes"], kept):
            numbers = [n * len(axis["sizes"]) + i for n in numbers for i in indices]
            axis["sizes"] = [axis["sizes"][i] for i in indices]
        for key in ("seconds", "spread"):
            table[key] = [table[key][n] for n in numbers]


def place(sizes, size):
    """Indices of the grid sizes around `size`, and the fraction of the way between them."""
    if size <= sizes[0]:
        return 0, 0, 0.0
    if size >= sizes[-1]:
        return len(sizes) - 1, len(sizes) - 1, 0.0
    above = next(i for i, one in enumerate(sizes) if one > size)
    return above - 1, above, math.log(size / sizes[above - 1]) / math.log(sizes[above] / sizes[above - 1])


def without_warm(prefixes):
    """Weights or keys in a cache are read as from memory."""
    def change(profile):
        for kernel in prefixes:
            profile.copy_table(f"{kernel}_warm", f"{kernel}_cold")
    return change


def fused_by_parts(profile):
    """Fused attention in prefill takes the time of scores, softmax and context."""
    profile.replace("attention_fused", lambda sizes: profile.time("attention_scores", sizes)
                    + profile.time("attention_softmax", sizes[:3]) + profile.time("attention_context", sizes))


def fused_steps_by_parts(profile):
    for state in ("cold", "warm"):
        scores, context = (profile.tables[f"step_{part}_{state}"]["seconds"] for part in ("scores", "context"))
        profile.tables[f"step_fused_{state}"]["seconds"] = [
            None if a is None or b is None else a + b for a, b in zip(scores, context)]


def rows_as_sum(profile):
    """Norms and embeddings take the time of adding as many elements."""
    for kernel in ("layer_norm", "rms_norm", "embedding"):
        profile.replace(kernel, lambda sizes: profile.time("residual_add", [math.prod(sizes)]))


def one_rate(profile):
    """GEMMs of more than eight rows reach the rate of the fastest, those of fewer the read bandwidth."""
    times = profile.tables["linear_cold"]["seconds"]
    fastest = min(seconds / math.prod(sizes)
                  for seconds, sizes in zip(times, profile.sizes("linear_cold")) if seconds is not None)
    for kernel in ("linear_cold", "linear_warm"):
        profile.replace(kernel, lambda sizes: fastest * math.prod(sizes))
    bandwidth = profile.json["read"][-1]["bytes_per_s"]
    for name, size in (("float32", 4), ("bfloat16", 2)):
        for state in ("cold", "warm"):
            profile.replace(f"stream_{name}_{state}",
                            lambda sizes, size=size: size * sizes[1] * sizes[2] / bandwidth)


def thin(kernels):
    def change(profile):
        for kernel in kernels:
            profile.thin(kernel)
    return change


def no_overhead(keys):
    def change(profile):
        for key in keys:
            profile.json[key] = 0
    return change


LINEAR = ["linear_cold", "linear_warm"]
STREAMS = [f"stream_{name}_{state}" for name in ("float32", "bfloat16") for state in ("cold", "warm")]
STEPS = [f"step_{part}_{state}" for part in ("scores", "context", "fused") for state in ("cold", "warm")]
ATTENTION = ["attention_scores", "attention_context", "attention_fused"]

# Name, change of the profile, tables whose points are not measured (those of thinned ones are counted).
ABLATIONS = [
    ("GEMMs of warm weights as of cold ones", without_warm(["linear"]), ["linear_warm"]),
    ("streams of warm weights as of cold ones", without_warm(["stream_float32", "linear_bfloat16"]),
     ["stream_float32_warm", "linear_bfloat16_warm"]),
    ("decode attention to warm keys as to cold ones",
     without_warm(["step_scores", "step_context", "step_fused"]),
     ["step_scores_warm", "step_context_warm", "step_fused_warm"]),
    ("fused decode attention as scores and context", fused_steps_by_parts,
     ["step_fused_cold", "step_fused_warm"]),
    ("fused attention as scores, softmax and context", fused_by_parts, ["attention_fused"]),
    ("norms and embeddings as a sum of two arrays", rows_as_sum, ["layer_norm", "rms_norm", "embedding"]),
    ("every second size of GEMMs", thin(LINEAR), []),
    ("every second size of streams", thin(STREAMS), []),
    ("every second size of attention in prefill", thin(ATTENTION), []),
    ("every second size of softmax", thin(["attention_softmax"]), []),
    ("every second size of decode attention", thin(STEPS), []),
    ("one rate of GEMMs, one bandwidth of streams", one_rate, LINEAR + STREAMS),
    ("no fixed time of an operator", no_overhead(["step_overhead_s", "cold_step_overhead_s"]), []),
    ("no extra time of a cold operator", no_overhead(["cold_step_overhead_s"]), []),
]


def points_of(machine, unmeasured=()):
    """Points measured per number of threads."""
    profile = Profile(machine["by_threads"][0])
    return sum(profile.points(kernel) for kernel in profile.tables if kernel not in unmeasured)


def changed(machine, ablations):
    """A copy of the machine with the changes, and the tables that they leave unmeasured."""
    machine = copy.deepcopy(machine)
    unmeasured = set()
    for _, change, tables in ablations:
        for threads in machine["by_threads"]:
            change(Profile(threads))
        unmeasured.update(tables)
    return machine, unmeasured


def without(arguments, *options):
    """`arguments` without these options and their values."""
    kept = list(arguments)
    for option in options:
        if option in kept:
            at = kept.index(option)
            del kept[at:at + 2]
    return kept


def predicted(headroom, file, arguments):
    words = list(arguments)
    if accuracy.value_of("--phase", words) == "generate":
        words = without(words, "--phase")
    return accuracy.run(headroom, "analyze", *words, "--machine", str(file))["time"]["total_s"]


def errors_of(headroom, machine, pairs):
    """Errors of all pairs, with the drift that was corrected in their runs."""
    errors = []
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "machine.json")
        file.write_text(json.dumps(machine), encoding="utf-8")
        for pair in pairs:
            drift = pair["predicted_s"] / pair["uncorrected_s"]
            errors.append(pair["measured_s"] / (drift * predicted(headroom, file, pair["arguments"])) - 1)
    return errors


def row(name, points, errors):
    figures = spread(errors)
    cells = (f"{100 * figures[key]:.1f}" for key in ("median", "p90", "worst"))
    return f"| {name} | {points} | {' | '.join(cells)} | {100 * figures['bias']:+.1f} |"


def combine(options, machine, pairs, tried):
    """Adds ablations, those that save most points first, while the median stays within the loss."""
    full = points_of(machine)
    least = spread(errors_of(options.headroom, machine, pairs))["median"]
    kept, errors = [], []
    for ablation, points in sorted(tried, key=lambda one: one[1]):
        candidate, _ = changed(machine, [*kept, ablation])
        if points == full:
            continue  # no measurement is saved
        found = errors_of(options.headroom, candidate, pairs)
        if spread(found)["median"] <= least + options.loss / 100:
            kept, errors = [*kept, ablation], found
    return kept, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headroom", default="build/release/headroom")
    parser.add_argument("--accuracy", type=pathlib.Path, required=True)
    parser.add_argument("--profile", type=pathlib.Path, required=True)
    parser.add_argument("--suites", nargs="+", default=["held out", "new kinds"])
    parser.add_argument("--loss", type=float, default=0.5, help="points of the median that simpler is worth")
    options = parser.parse_args()
    report = json.loads(options.accuracy.read_text(encoding="utf-8"))
    machine = json.loads(options.profile.read_text(encoding="utf-8"))
    pairs = [pair for pair in report["pairs"] if pair["suite"] in options.suites]
    print(f"{report['date']} · {report['machine']} · {len(pairs)} pairs of the suites "
          f"{' and '.join(options.suites)}\n")
    print("| Profile | Points | Median error [%] | p90 [%] | Worst [%] | Bias [%] |\n"
          "| :-- | --: | --: | --: | --: | --: |")
    print(row("full", points_of(machine), errors_of(options.headroom, machine, pairs)))
    uncorrected = [pair["uncorrected"] for pair in pairs]
    print(row("without correction for drift", points_of(machine), uncorrected))
    tried = []
    for ablation in ABLATIONS:
        simpler, unmeasured = changed(machine, [ablation])
        points = points_of(simpler, unmeasured)
        tried.append((ablation, points))
        print(row(ablation[0], points, errors_of(options.headroom, simpler, pairs)), flush=True)
    kept, errors = combine(options, machine, pairs, tried)
    if kept:
        simpler, unmeasured = changed(machine, kept)
        print(row("smallest within the loss", points_of(simpler, unmeasured), errors))
        print("\nThe smallest profile combines: " + "; ".join(name for name, *_ in kept) + ".")


if __name__ == "__main__":
    sys.exit(main())
