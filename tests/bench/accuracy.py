#!/usr/bin/env python3
"""Holds predicted times against measured ones over a suite of models and workloads.

Every pair is one `headroom compare`, after one calibration, which sees none of the suite's shapes.
Each run is measured twice, so that the noise of the machine stands beside the error. Writes
accuracy.json, accuracy.md and accuracy.svg into --reports. A benchmark, not a test: it judges
nothing.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

SUITE = """
bert-base --seq 128 --threads 1
bert-base --seq 128 --threads 2
bert-base --seq 512 --threads 1
bert-base --seq 512 --threads 2
bert-base --seq 256 --threads 1 --attention fused
bert-base --seq 16 --threads 2
bert-base --batch 8 --seq 64 --threads 2
bert-base --batch 16 --seq 32 --threads 1
bert-large --seq 128 --threads 2
bert-large --seq 64 --threads 1
bert-medium --seq 256 --threads 1
bert-medium --batch 4 --seq 128 --threads 2
bert-medium --seq 512 --threads 2
bert-small --seq 512 --threads 2 --attention fused
distilbert-base-uncased --seq 384 --threads 1
distilbert-base-uncased --batch 8 --seq 128 --threads 2
roberta-base --seq 200 --threads 2
gpt2 --seq 64 --threads 1
gpt2 --seq 256 --threads 2
gpt2 --seq 1024 --threads 1
gpt2 --seq 1024 --threads 2 --attention fused
gpt2 --phase decode --past 127 --threads 1
gpt2 --phase decode --past 511 --threads 2
gpt2 --phase decode --past 255 --batch 4 --threads 2
gpt2-medium --seq 128 --threads 2
gpt2-medium --phase decode --past 255 --threads 1
gpt2-medium --phase decode --past 255 --batch 8 --threads 2
gpt2 --phase generate --seq 64 --new-tokens 16 --threads 2
smollm2-135m --seq 128 --threads 1
smollm2-135m --seq 512 --threads 2 --attention fused
smollm2-135m --seq 2048 --threads 2 --attention fused
smollm2-135m --phase decode --past 255 --threads 1
smollm2-135m --phase decode --past 1023 --threads 2
smollm2-135m --phase decode --past 255 --threads 2 --dtype bfloat16
smollm2-360m --seq 128 --threads 2
smollm2-360m --phase decode --past 127 --batch 2 --threads 1
smollm2-360m --phase decode --past 511 --threads 2 --dtype bfloat16
tinyllama-1.1b --phase decode --past 127 --threads 2
tinyllama-1.1b --phase decode --past 255 --threads 1 --dtype bfloat16
tinyllama-1.1b --seq 64 --threads 2
t5-small --enc-seq 128 --seq 64 --threads 1
t5-small --enc-seq 512 --seq 32 --threads 2
t5-small --enc-seq 768 --seq 64 --threads 1
t5-base --enc-seq 512 --seq 16 --threads 1
t5-base --enc-seq 256 --seq 64 --threads 2
t5-base --phase decode --enc-seq 128 --past 63 --threads 2
transformer-base --enc-seq 128 --seq 128 --threads 1
vit-base-patch16-224 --threads 1
vit-base-patch16-224 --batch 4 --threads 2
vit-base-patch32-384 --batch 2 --threads 1 --attention fused
linear-transformer --seq 512 --threads 1
linear-transformer --seq 1024 --threads 2
"""


STEPS = 4


def run(binary, *arguments):
    """The JSON that headroom prints; exit status 1 is a verdict, not a failure."""
    done = subprocess.run([binary, *arguments, "--format", "json"], capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def kind_of(path):
    """The kind of an operator: the last word of its path."""
    return path.rsplit(".", 1)[-1]


def compare(binary, arguments, runs):
    """One pair: predicted and measured time, the difference by operator, and the machine's noise."""
    if "decode" in arguments:
        runs *= STEPS  # a step takes a hundredth of a prompt, and a hiccup all of it
    result = run(binary, "compare", *arguments, "--runs", str(runs), "--detail",
                 "--tolerance", "ops=1000%", "--tolerance", "time=1000%")
    again = run(binary, "measure", *arguments, "--runs", str(runs))
    rows = {row["quantity"]: row for row in result["rows"]}
    whole_time = rows["time_s"]
    exact = [row for row in result["rows"] if row["tolerance"] == 0]
    whole = sum(row["measured"] for name, row in rows.items() if name.startswith("time_s:"))
    shares = {}
    for name, row in rows.items():
        if name.startswith("time_s:"):
            shares[kind_of(name)] = shares.get(kind_of(name), 0) + row["measured"] / whole
    operators = [{"kind": kind_of(name), "share": row["measured"] / whole,
                  "error": row["difference"]}
                 for name, row in rows.items()
                 if name.startswith("time_s:") and row["measured"] > 0.02 * whole]
    return {"arguments": arguments, "model": result["model"], "workload": result["workload"],
            "predicted_s": whole_time["predicted"], "measured_s": whole_time["measured"],
            "error": whole_time["measured"] / whole_time["predicted"] - 1,
            "noise": again["time"]["median_s"] / whole_time["measured"] - 1,
            "drift": result["drift"], "operators": operators, "shares": shares,
            "exact_rows": len(exact),
            "exact_failures": [row["quantity"] for row in exact if row["result"] != "pass"],
            "rss": rows["rss_peak_bytes"]["difference"]}


def spread(values):
    """Median, ninth decile and worst of absolute values, and the median with its sign."""
    sizes = sorted(abs(value) for value in values)
    return {"pairs": len(sizes), "median": statistics.median(sizes),
            "p90": sizes[min(len(sizes) - 1, math.ceil(0.9 * len(sizes)) - 1)], "worst": sizes[-1],
            "bias": statistics.median(values)}


def by_kind(pairs):
    """How far off the operators of each kind are, and its share of a pass, over all passes."""
    kinds = {}
    for pair in pairs:
        for one in pair["operators"]:
            kinds.setdefault(one["kind"], []).append(one["error"])
    shares = {kind: statistics.mean(pair["shares"].get(kind, 0) for pair in pairs) for kind in kinds}
    return {kind: {**spread(errors), "share": shares[kind]} for kind, errors in sorted(kinds.items())}


def percent(value, sign=False):
    return f"{100 * value:+.1f}" if sign else f"{100 * value:.1f}"


def markdown(report):
    lines = ["# Accuracy", "",
             "Predicted against measured time of whole passes, after one `headroom calibrate`, whose shapes are",
             "none of these. Every pair is one `headroom compare`, which probes the machine before and after the run",
             "and corrects the prediction for its drift since the calibration. Each run was measured a second time:",
             "noise is how far that median was from the first, so no prediction could do better than that.", "",
             "No time of these pairs goes into a prediction, but the probes were improved with this suite in view: on",
             "other machines and models expect somewhat more.", "",
             "```sh", "headroom calibrate", report["command"], "```", "",
             f"{report['date']} · {report['machine']}", "",
             "| | Pairs | Median error [%] | p90 [%] | Worst [%] | Bias [%] |",
             "| :-- | --: | --: | --: | --: | --: |"]
    for name, key in (("Prediction", "error"), ("Noise: the same run again", "noise")):
        figures = report["summary"][key]
        lines.append(f"| {name} | {figures['pairs']} | {percent(figures['median'])} | "
                     f"{percent(figures['p90'])} | {percent(figures['worst'])} | "
                     f"{percent(figures['bias'], True)} |")
    lines += ["", f"Counts and bytes: {report['summary']['exact_rows']} rows held exactly, "
              f"{report['summary']['exact_failures']} did not.", "",
              "![Predicted against measured](accuracy.svg)", "", "## By kind of operator", "",
              "Operators that take more than 2 % of their pass; the share is that of the kind in a pass, over all pairs.", "",
              "| Kind | Share [%] | Times | Median error [%] | p90 [%] | Worst [%] | Bias [%] |",
              "| :-- | --: | --: | --: | --: | --: | --: |"]
    for kind, figures in report["by_kind"].items():
        lines.append(f"| {kind} | {percent(figures['share'])} | {figures['pairs']} | {percent(figures['median'])} | "
                     f"{percent(figures['p90'])} | {percent(figures['worst'])} | "
                     f"{percent(figures['bias'], True)} |")
    lines += ["", "## Every pair", "",
              "| Model | Workload | Threads | Predicted [ms] | Measured [ms] | Error [%] | Noise [%] | Resident [%] |",
              "| :-- | :-- | --: | --: | --: | --: | --: | --: |"]
    for pair in report["pairs"]:
        threads = pair["arguments"][pair["arguments"].index("--threads") + 1]
        rss = "–" if pair["rss"] is None else percent(pair["rss"], True)
        lines.append(f"| {pair['arguments'][0]} | {pair['workload']} | {threads} | "
                     f"{pair['predicted_s'] * 1e3:.2f} | {pair['measured_s'] * 1e3:.2f} | "
                     f"{percent(pair['error'], True)} | {percent(pair['noise'], True)} | {rss} |")
    return "\n".join(lines) + "\n"


def svg(pairs):
    """A scatter on logarithmic axes, with the band of ±12 %."""
    low = min(min(p["predicted_s"], p["measured_s"]) for p in pairs) / 1.5
    high = max(max(p["predicted_s"], p["measured_s"]) for p in pairs) * 1.5
    size, margin = 480, 60

    def at(seconds):
        return margin + (size - 2 * margin + 40) * math.log(seconds / low) / math.log(high / low)

    def point(x, y):
        return f"{at(x):.1f},{size - at(y):.1f}"

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" '
             'font-family="sans-serif" font-size="12">',
             f'<rect width="{size}" height="{size}" fill="white"/>',
             f'<polygon fill="#dde8f4" points="{point(low, low * 1.12)} {point(high / 1.12, high)} '
             f'{point(high, high)} {point(high, high / 1.12)} {point(low * 1.12, low)} {point(low, low)}"/>',
             f'<polyline fill="none" stroke="#557" points="{point(low, low)} {point(high, high)}"/>']
    decade = 10 ** math.ceil(math.log10(low))
    while decade < high:
        x, y = at(decade), size - at(decade)
        label = f"{decade * 1e3:g} ms"
        parts += [f'<line x1="{x:.1f}" y1="{size - at(low):.1f}" x2="{x:.1f}" y2="{size - at(high):.1f}" stroke="#ddd"/>',
                  f'<line x1="{at(low):.1f}" y1="{y:.1f}" x2="{at(high):.1f}" y2="{y:.1f}" stroke="#ddd"/>',
                  f'<text x="{x:.1f}" y="{size - 36}" text-anchor="middle">{label}</text>',
                  f'<text x="{margin - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>']
        decade *= 10
    for pair in pairs:
        cx, cy = point(pair["predicted_s"], pair["measured_s"]).split(",")
        parts.append(f'<circle cx="{cx}" cy="{cy}" r="3.5" fill="#c4472b" fill-opacity="0.75"/>')
    parts += [f'<text x="{size / 2}" y="{size - 12}" text-anchor="middle">predicted</text>',
              f'<text x="16" y="{size / 2}" text-anchor="middle" transform="rotate(-90 16 {size / 2})">measured</text>',
              f'<text x="{size / 2}" y="28" text-anchor="middle">{len(pairs)} pairs; the band is ±12 %</text>',
              "</svg>"]
    return "\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headroom", default="build/release/headroom")
    parser.add_argument("--runs", type=int, default=10, help="runs of each measurement")
    parser.add_argument("--reports", type=pathlib.Path, default=pathlib.Path("reports"))
    parser.add_argument("--most-seconds", type=float, default=math.inf,
                        help="begin no further pair after so long")
    parser.add_argument("--only", default="", help="pairs whose arguments hold this text")
    arguments = parser.parse_args()
    pairs = []
    start = time.monotonic()
    for line in SUITE.strip().splitlines():
        if arguments.only not in line or time.monotonic() - start > arguments.most_seconds:
            continue
        pair = compare(arguments.headroom, line.split(), arguments.runs)
        pairs.append(pair)
        print(f"{percent(pair['error'], True):>7} % (noise {percent(pair['noise'], True)} %)  {line}",
              flush=True)
    machine = run(arguments.headroom, "machines", "show", "here")
    report = {"schema_version": 1, "date": machine["date"][:10],
              "machine": f"{machine['context']['cpu']}, {machine['context']['logical_cpus']} processors, "
                         f"{machine['context']['backend']}, {machine['context']['compiler']}",
              "command": " ".join(["python3", *sys.argv]),
              "summary": {"error": spread([p["error"] for p in pairs]),
                          "noise": spread([p["noise"] for p in pairs]),
                          "exact_rows": sum(p["exact_rows"] for p in pairs),
                          "exact_failures": sum(len(p["exact_failures"]) for p in pairs)},
              "by_kind": by_kind(pairs), "pairs": pairs}
    arguments.reports.mkdir(exist_ok=True)
    (arguments.reports / "accuracy.json").write_text(json.dumps(report, indent=1) + "\n")
    (arguments.reports / "accuracy.md").write_text(markdown(report))
    (arguments.reports / "accuracy.svg").write_text(svg(pairs))
    print(json.dumps(report["summary"], indent=1))
    for kind, figures in report["by_kind"].items():
        print(f"{kind:20} {figures['pairs']:4} median {percent(figures['median'])} bias {percent(figures['bias'], True)}")


if __name__ == "__main__":
    sys.exit(main())
