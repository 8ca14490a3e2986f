#!/usr/bin/env python3
"""Compares predicted with measured times over suites of models and workloads.

Every pair is one `headroom compare`, after one calibration, which measures none of the suites' shapes,
and one `headroom analyze --machine here`, which does not know the machine's drift since then. Each run
is measured twice, to show the machine's noise next to the error. A pair whose two runs differ by more
than UNSETTLED is measured again, and the attempt with the least noise counts: the choice never sees the
error. Writes accuracy.json, accuracy.md and accuracy.svg to --reports after every pair; --resume goes on
where they end. A benchmark, not a test: it checks nothing.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import time

import accuracy_report

SUITES = pathlib.Path(__file__).with_name("accuracy_suites.txt")
STEPS = 4  # factor of runs in decode: a step is so short that one disturbance spoils it
LARGE = 0.02  # fraction of a pass; smaller operators are not compared
UNSETTLED = 0.04  # difference of two runs: twice the median error that is to be seen


def suites():
    """The arguments of every pair, by suite, in order."""
    pairs = {}
    for line in SUITES.read_text().splitlines():
        if line.startswith("["):
            members = pairs.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            members.append(line)
    return pairs


def run(binary, *arguments):
    """Returns the JSON that headroom prints; exit status 1 is a verdict, not a failure."""
    done = subprocess.run([binary, *arguments, "--format", "json"], capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def kind_of(path):
    """Kind of an operator: the last word of its path, without its layers."""
    return path.rsplit(".", 1)[-1].split("[", 1)[0]


def operators_of(rows, again):
    """Fraction of the pass, error, and difference between the two runs, of every operator."""
    times = {row["quantity"].removeprefix("time_s:"): row for row in rows
             if row["quantity"].startswith("time_s:")}
    second = {op["path"]: op["time_s"] for op in again["ops"]}
    whole = sum(row["measured"] for row in times.values())
    return [{"kind": kind_of(path), "share": row["measured"] / whole, "error": row["difference"],
             "noise": second[path] / row["measured"] - 1 if path in second else None}
            for path, row in times.items()]


def value_of(option, arguments):
    """The word after `option`; None without the option."""
    return arguments[arguments.index(option) + 1] if option in arguments else None


def uncorrected_time(binary, arguments):
    """Seconds that `analyze` predicts, which has --new-tokens instead of --phase generate."""
    prompt = list(arguments)
    if value_of("--phase", prompt) == "generate":
        at = prompt.index("--phase")
        del prompt[at:at + 2]
    return run(binary, "analyze", *prompt, "--machine", "here")["time"]["total_s"]


def workload_text(workload, weights):
    """Such as "prefill · batch 1 · seq 128 · float32 · eager attention", as the header of `compare`."""
    phase = workload["phase"] if workload["new_tokens"] is None else "generate"
    words = [phase, f"batch {workload['batch_size']}", f"seq {workload['seq_len']}"]
    if workload["enc_seq_len"]:
        words.append(f"enc-seq {workload['enc_seq_len']}")
    if workload["past_len"]:
        words.append(f"past {workload['past_len']}")
    if workload["new_tokens"]:
        words.append(f"{workload['new_tokens']} new tokens")
    types = f"{weights} weights" if weights else workload["dtype"]
    return " · ".join([*words, types, f"{workload['attention']} attention"])


def compare(binary, suite, arguments, runs):
    """Measures one pair: predicted and measured time, differences by operator, and noise."""
    if "decode" in arguments:
        runs *= STEPS
    result = run(binary, "compare", *arguments, "--runs", str(runs), "--detail",
                 "--tolerance", "ops=1000%", "--tolerance", "time=1000%")
    again = run(binary, "measure", *arguments, "--runs", str(runs))
    uncorrected = uncorrected_time(binary, arguments)
    rows = {row["quantity"]: row for row in result["rows"]}
    whole_time = rows["time_s"]
    exact = [row for row in result["rows"] if row["tolerance"] == 0]
    operators = operators_of(result["rows"], again)
    shares = {}
    for one in operators:
        shares[one["kind"]] = shares.get(one["kind"], 0) + one["share"]
    return {"suite": suite, "arguments": arguments, "model": result["model"],
            "workload": workload_text(result["workload"], value_of("--weights", arguments)),
            "predicted_s": whole_time["predicted"], "measured_s": whole_time["measured"],
            "uncorrected_s": uncorrected,
            "error": whole_time["measured"] / whole_time["predicted"] - 1,
            "uncorrected": whole_time["measured"] / uncorrected - 1,
            "noise": again["time"]["median_s"] / whole_time["measured"] - 1,
            "drift": result["drift"], "shares": shares,
            "operators": [one for one in operators if one["share"] > LARGE],
            "exact_rows": len(exact),
            "exact_failures": [row["quantity"] for row in exact if row["result"] != "pass"],
            "rss": rows["rss_peak_bytes"]["difference"]}


def settled(options, suite, arguments):
    """The attempt with the least noise, of at most --attempts."""
    best = None
    for attempt in range(1, options.attempts + 1):
        pair = compare(options.headroom, suite, arguments, options.runs)
        if best is None or abs(pair["noise"]) < abs(best["noise"]):
            best = pair
        best["attempts"] = attempt
        if abs(best["noise"]) <= UNSETTLED:
            break
    return best


def measure_all(options):
    """Measures all pairs that the options select and that the report to resume lacks; reports each."""
    pairs = []
    if options.resume:
        pairs = json.loads((options.reports / "accuracy.json").read_text())["pairs"]
    measured = [pair["arguments"] for pair in pairs]
    start = time.monotonic()
    for suite, line in [(name, line) for name in options.suites for line in suites()[name]]:
        if options.only not in line or line.split() in measured:
            continue
        if time.monotonic() - start > options.max_seconds:
            break
        pair = settled(options, suite, line.split())
        pairs.append(pair)
        print(f"{100 * pair['error']:+7.1f} % (uncorrected {100 * pair['uncorrected']:+.1f} %, "
              f"noise {100 * pair['noise']:+.1f} %)  {line}", flush=True)
        write_report(options, pairs)
    return pairs


def write_report(options, pairs):
    """Writes the pairs, in the suites' order, and their summary."""
    order = list(suites())
    pairs = sorted(pairs, key=lambda pair: order.index(pair["suite"]))
    machine = run(options.headroom, "machines", "show", "here")
    report = {"schema_version": 3, "date": machine["date"][:10],
              "machine": f"{machine['context']['cpu']}, {machine['context']['logical_cpus']} processors, "
                         f"{machine['context']['backend']}, {machine['context']['compiler']}",
              "runs": options.runs, "attempts": options.attempts, "unsettled": UNSETTLED,
              "summary": accuracy_report.summary(pairs),
              "by_kind": accuracy_report.by_kind(pairs), "pairs": pairs}
    options.reports.mkdir(exist_ok=True)
    (options.reports / "accuracy.json").write_text(json.dumps(report, indent=1) + "\n")
    (options.reports / "accuracy.md").write_text(accuracy_report.markdown(report))
    (options.reports / "accuracy.svg").write_text(accuracy_report.svg(pairs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headroom", default="build/release/headroom")
    parser.add_argument("--runs", type=int, default=10, help="runs of each measurement")
    parser.add_argument("--reports", type=pathlib.Path, default=pathlib.Path("reports"))
    parser.add_argument("--max-seconds", type=float, default=math.inf,
                        help="start no pair after this time")
    parser.add_argument("--suites", nargs="+", choices=suites(), default=list(suites()), metavar="SUITE",
                        help=f"suites to measure, in this order (all): {', '.join(suites())}")
    parser.add_argument("--only", default="", help="select pairs whose arguments contain this text")
    parser.add_argument("--attempts", type=int, default=3, help="of a pair whose two runs differ")
    parser.add_argument("--resume", action="store_true", help="measure only what the report lacks")
    options = parser.parse_args()
    print(json.dumps(accuracy_report.summary(measure_all(options)), indent=1))


if __name__ == "__main__":
    sys.exit(main())
