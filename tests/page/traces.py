#!/usr/bin/env python3
"""Reads the traces that headroom writes with --format trace.

usage: traces.py HEADROOM_BINARY

Durations, FLOPs and peak memory of a trace must be those of the JSON report; events must follow one another and have the
keys of Chrome's Trace Event Format. Exit status: 0 all passed, 1 a check failed.
"""

import collections
import json
import math
import os
import subprocess
import sys
import tempfile

PREDICTED = """
analyze llama-3.2-1b --seq 512 --machine h100-80gb --dtype bf16
analyze gpt2 --phase decode --past 100 --machine a100-80gb --dtype fp16
analyze mistral-7b --seq 6000 --machine h100-80gb --dtype bf16
analyze t5-small --enc-seq 64 --seq 32 --machine a100-80gb
analyze gemma-2-2b --machine h100-80gb --dtype bf16 --attention fused
""".strip().splitlines()
MEASURED = "measure bert-tiny --runs 1 --warmup 0"
REFUSED = ["analyze gpt2", "analyze gpt2 bert-tiny --machine a100-80gb"]
REQUIRED_KEYS = {"M": {"name", "pid", "args"}, "C": {"name", "pid", "ts", "args"},
                 "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"}}


def run(headroom, case, output):
    home = tempfile.mkdtemp()
    environment = dict(os.environ, HOME=home, XDG_DATA_HOME=home, NO_COLOR="1")
    command = [headroom, *case.split(), "--format", output]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def operators_of(trace):
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def problems_of_form(trace):
    for event in trace["traceEvents"]:
        if not REQUIRED_KEYS[event["ph"]] <= event.keys():
            yield f"{event} lacks a key"
    end = 0.0
    for event in operators_of(trace):
        if not math.isclose(event["ts"], end, rel_tol=1e-9, abs_tol=1e-6):
            yield f"{event['name']} begins at {event['ts']}, not at {end}"
        end = event["ts"] + event["dur"]


def problems_of_sums(trace, report):
    times = collections.Counter()
    for event in operators_of(trace):
        times[event["name"]] += event["dur"] * 1e-6
    expected = {one["path"]: one["time_s"] for one in report["time"]["ops"]}
    if times.keys() != expected.keys():
        yield f"operators {sorted(times.keys() ^ expected.keys())}"
    for path, time_s in expected.items():
        if not math.isclose(times[path], time_s, rel_tol=1e-9):
            yield f"{path} takes {times[path]}, not {time_s}"
    if not math.isclose(sum(times.values()), report["time"]["total_s"], rel_tol=1e-9):
        yield f"all takes {sum(times.values())}, not {report['time']['total_s']}"
    flops = sum(event["args"]["matrix_flops"] for event in operators_of(trace))
    if flops != report["flops"]["forward"]["matrix"]:
        yield f"{flops} FLOP, not {report['flops']['forward']['matrix']}"
    peak = max(event["args"]["bytes"] for event in trace["traceEvents"] if event["ph"] == "C")
    if peak != report["memory"]["peak_activation_bytes"]:
        yield f"peak {peak}, not {report['memory']['peak_activation_bytes']}"
    layers = {event["args"]["layer"] for event in operators_of(trace)} - {None}
    if layers != set(range(report["model"]["num_hidden_layers"])):
        yield f"layers {sorted(layers)}"


def check_predicted(headroom, case):
    trace = json.loads(run(headroom, case, "trace").stdout)
    report = json.loads(run(headroom, case, "json").stdout)
    return [*problems_of_form(trace), *problems_of_sums(trace, report)]


def check_measured(headroom):
    trace = json.loads(run(headroom, MEASURED, "trace").stdout)
    counted = json.loads(run(headroom, MEASURED, "json").stdout)["counted"]["matrix_flops"]
    flops = sum(event["args"]["matrix_flops"] for event in operators_of(trace))
    problems = list(problems_of_form(trace))
    return problems if flops == counted else [*problems, f"{flops} FLOP, not {counted}"]


def main():
    headroom = os.path.abspath(sys.argv[1])
    found = [(case, problem) for case in PREDICTED for problem in check_predicted(headroom, case)]
    found += [(MEASURED, problem) for problem in check_measured(headroom)]
    found += [(case, "is not refused") for case in REFUSED if run(headroom, case, "trace").returncode != 2]
    for case, problem in found:
        print(f"{case}: {problem}")
    print(f"{len(PREDICTED) + 1} traces read")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
