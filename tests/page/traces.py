#!/usr/bin/env python3
"""Reads the traces that headroom writes with --format trace.

usage: traces.py HEADROOM_BINARY

Durations, FLOPs and peak memory of a trace must be those of the JSON report; events must follow one another and have the
keys of Chrome's Trace Event Format. In a plan's training step, those of one stage must not overlap. Exit status: 0 all
passed, 1 a check failed.
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
# With the number of passes: 2 · stages · chunks · micro-batches.
PLANNED = {
    "fit llama-3-8b --machine a100-80gb --count 8 --phase train --tp 2 --pp 4 --batch 32 --zero 1": 2 * 4 * 32,
    "fit llama-3-8b --machine a100-80gb --count 8 --phase train --tp 2 --pp 4 --interleave 2 --batch 32": 2 * 4 * 2 * 32,
    "fit deepseek-v2-lite --machine h100-80gb --count 16 --phase train --ep 4 --pp 4 --batch 32": 2 * 4 * 8,
    "fit t5-small --machine a100-80gb --count 3 --phase train --pp 3 --batch 8 --recompute full": 2 * 3 * 8,
    "fit gpt2 --machine rtx-4090 --count 4 --phase train --zero 3 --batch 32 --micro-batch 2": 2 * 4,
    "fit gpt2 --machine a100-80gb --count auto --phase train --batch 8": 2,
}
TRACKS = {1: "compute", 2: "communication", 3: "optimizer"}
REFUSED = ["analyze gpt2", "analyze gpt2 bert-tiny --machine a100-80gb", "fit gpt2", "fit gpt2 --machine a100-80gb",
           "fit gpt2 --machine rtx-4090 --host-memory 8GiB", "plan gpt2 --machine a100-80gb",
           "fit gpt2 --machine a100-80gb --count 4 --phase train --pp 4 --batch 8 --schedule zero-bubble"]
NO_PLAN_FITS = "fit llama-3-8b --machine rtx-4090 --phase train"
REQUIRED_KEYS = {"M": {"name", "pid", "args"}, "C": {"name", "pid", "ts", "args"},
                 "X": {"name", "cat", "pid", "tid", "ts", "dur", "args"}}


def run(headroom, case, output):
    home = tempfile.mkdtemp()
    environment = dict(os.environ, HOME=home, XDG_DATA_HOME=home, NO_COLOR="1")
    command = [headroom, *case.split(), "--format", output]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def operators_of(trace):
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


def problems_of_keys(trace):
    for event in trace["traceEvents"]:
        if not REQUIRED_KEYS[event["ph"]] <= event.keys():
            yield f"{event} lacks a key"


def problems_of_form(trace):
    yield from problems_of_keys(trace)
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


def problems_of_stages(trace):
    """Events of a stage follow one another; its tracks have names; the last event ends at the makespan."""
    ends = collections.Counter()
    names = {(event["pid"], event["tid"]): event["args"]["name"]
             for event in trace["traceEvents"] if event["name"] == "thread_name"}
    for event in operators_of(trace):
        stage = event["pid"]
        if event["ts"] < ends[stage] - 1e-3:
            yield f"stage {stage}: {event['name']} begins at {event['ts']}, before {ends[stage]}"
        ends[stage] = event["ts"] + event["dur"]
        if not names[stage, event["tid"]] == TRACKS[event["tid"]] == event["cat"]:
            yield f"{event['name']} is on track {event['tid']}"
    makespan_us = trace["otherData"]["makespan_s"] * 1e6
    if not math.isclose(max(ends.values()), makespan_us, rel_tol=1e-9):
        yield f"the last event ends at {max(ends.values())}, not {makespan_us}"


def problems_of_step(trace, time, passes):
    slowest = trace["otherData"]["slowest_stage"] + 1
    for track in TRACKS.values():
        seconds = sum(event["dur"] * 1e-6 for event in operators_of(trace)
                      if event["pid"] == slowest and event["cat"] == track)
        if not math.isclose(seconds, time[f"{track}_s"], rel_tol=1e-9, abs_tol=1e-12):
            yield f"{track} takes {seconds}, not {time[f'{track}_s']}"
    if trace["otherData"]["iteration_s"] != time["iteration_s"]:
        yield f"iteration {trace['otherData']['iteration_s']}, not {time['iteration_s']}"
    found = sum(event["cat"] == "compute" for event in operators_of(trace))
    if found != passes:
        yield f"{found} passes, not {passes}"


def check_planned(headroom, case, passes):
    trace = json.loads(run(headroom, case, "trace").stdout)
    time = json.loads(run(headroom, case, "json").stdout)["time"]
    return [*problems_of_keys(trace), *problems_of_stages(trace), *problems_of_step(trace, time, passes)]


def main():
    headroom = os.path.abspath(sys.argv[1])
    found = [(case, problem) for case in PREDICTED for problem in check_predicted(headroom, case)]
    found += [(MEASURED, problem) for problem in check_measured(headroom)]
    found += [(case, problem) for case, passes in PLANNED.items() for problem in check_planned(headroom, case, passes)]
    found += [(case, "is not refused") for case in REFUSED if run(headroom, case, "trace").returncode != 2]
    if run(headroom, NO_PLAN_FITS, "trace").returncode != 1:
        found.append((NO_PLAN_FITS, "does not say that no plan fits"))
    for case, problem in found:
        print(f"{case}: {problem}")
    print(f"{len(PREDICTED) + len(PLANNED) + 1} traces read")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
