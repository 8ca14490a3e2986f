"""Latencies of NVIDIA's NIM beside those that `serve` simulates, by a machine's own rates and by those that one row gives."""

import json
import statistics
import subprocess
from csv import DictReader

from published_base import DATA, median_and_ninth, off, signed, table

# Eight of the longest prompts: on all devices, the mean TTFT of ten prompts of 7,000 tokens is that of 5.3 to 6.3 prompts, as
# after one alone if seven (5.4) or eight (6.6) are prefilled together.
BATCHED_TOKENS = 8 * 7168
REQUESTS_PER_USER = 8
EVERY = 7  # of a group's rows, which is given in its turn: each number of users comes up


def serve_words(row):
    """All users send their first request at once, and the next one after its answer; those of a step stay together."""
    users = row["concurrency"]
    words = ["serve", row["model"], "--count", row["devices"], "--tp", row["devices"], "--users", users, "--requests",
             int(users) * REQUESTS_PER_USER, "--input-tokens", row["input_tokens"], "--output-tokens", row["output_tokens"],
             "--batched-tokens", BATCHED_TOKENS, "--admission", "request", "--decode-attention", "whole"]
    if row["precision"] == "fp8":
        words += ["--recipe", "w8a8-fp8", "--kv-dtype", "float8"]
    return [str(word) for word in words]


def measured(row):
    """Seconds to the first token and between tokens, and tokens per second."""
    ttft_s, latency_s = float(row["ttft_ms"]) / 1e3, float(row["latency_ms"]) / 1e3
    return ttft_s, (latency_s - ttft_s) / (int(row["output_tokens"]) - 1), float(row["output_tokens_per_s"])


def errors_of(tool, row, machine):
    """Of the time to the first token, of that between tokens, and of the throughput, in percent; and whether those of the
    first two are outside the predicted range."""
    plan = tool.json(*serve_words(row), "--machine", machine)["plans"][0]
    figures, factor = plan["figures"], 1 + plan["time_range"]
    ttft_s, between_s, rate = measured(row)
    pairs = (figures["ttft"]["mean_s"], ttft_s), (figures["tpot"]["mean_s"], between_s)
    outside = [not 1 / factor <= one / other <= factor for one, other in pairs]
    return [*(off(*pair) for pair in pairs), off(figures["output_tokens_per_s"], rate), *outside]


def fitted_machine(tool, row):
    """The machine that the row's two latencies give."""
    runs, machine = tool.folder / "nim.jsonl", str(tool.folder / "nim.json")
    ttft_s, between_s, _ = measured(row)
    runs.write_text(json.dumps({"command": serve_words(row), "ttft_s": ttft_s, "tpot_s": between_s}))
    run = subprocess.run([tool.binary, "calibrate", "--from", str(runs), "--machine", row["machine"], "-o", machine],
                         capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(run.stderr)
    return machine


def cells(errors):
    median, ninth = median_and_ninth(errors)
    return [f"{median:.1f}", f"{ninth:.1f}", signed(statistics.median(errors))]


def groups_of(rows):
    groups = {}
    for row in rows:
        groups.setdefault((row["machine"], row["precision"]), []).append(row)
    return groups


def own_rates(tool, rows):
    lines = []
    for (machine, precision), members in groups_of(rows).items():
        for concurrency in ("1", "10", "50"):
            errors = [errors_of(tool, row, machine) for row in members if row["concurrency"] == concurrency]
            ttft, between, rate, *outside = zip(*errors)
            lines.append([f"{machine}, {precision}, {concurrency} at once", str(len(errors)), *cells(between),
                          str(sum(outside[1])), *cells(ttft), str(sum(outside[0])), *cells(rate)])
    return lines


def one_row(tool, rows):
    """Of each group, the medians over the choices of the given row."""
    lines = []
    for (machine, precision), members in groups_of(rows).items():
        choices = []
        for given in members[::EVERY]:
            fitted = fitted_machine(tool, given)
            choices.append([errors_of(tool, row, fitted) for row in members if row is not given])
        line = [f"{machine}, {precision}", str(len(choices)), str(len(choices[0]))]
        for figure in range(3):
            of_choices = [median_and_ninth([errors[figure] for errors in choice]) for choice in choices]
            line += [f"{statistics.median(column):.1f}" for column in zip(*of_choices)]
        outside = statistics.median(sum(errors[3] + errors[4] for errors in choice) for choice in choices)
        lines.append([*line, f"{outside:g} of {2 * len(choices[0])}"])
    return lines


def sections(tool, _):
    with open(DATA / "training" / "nim_latency.csv", encoding="utf-8") as file:
        rows = list(DictReader(file))
    head = ["Runs", "Rows"]
    for figure in ("TPOT", "TTFT", "Throughput"):
        head += [f"{figure}: median [%]", "nine of ten [%]", "bias [%]"] + (["outside"] if figure != "Throughput" else [])
    given = ["Runs", "Choices", "Rows"]
    for figure in ("TTFT", "TPOT", "Throughput"):
        given += [f"{figure}: median [%]", "nine of ten [%]"]
    return ["## Latency of NIM", "",
            "Llama 3 8B and 70B on 1 to 8 devices with prompts of 200 to 7,000 tokens, by GenAI-Perf on NVIDIA's NIM of 2024 with "
            "TensorRT-LLM ([nim_latency.csv](../tests/data/training/nim_latency.csv)). In nine of ten rows, throughput times latency is the number of "
            "users within 1.1 %, so each user sent request after request. The sources do not state how many prompts a step prefills; the "
            f"times to the first token are those of steps of {BATCHED_TOKENS:,} tokens, whose requests also end together. The "
            "fixed time of kernels is that of single ones ([device time](../docs/device-time.md#fixed-times-of-kernels)), and attention "
            "reads [whole heads](../docs/device-time.md#whole-heads).", "",
            *table(head, own_rates(tool, rows)), "",
            "By the machine that `calibrate --from` makes of the TTFT and TPOT of one row, all other rows of the device and "
            f"precision. Every {EVERY}th row is the given one in its turn; figures are medians over these choices.", "",
            *table([*given, "Outside"], one_row(tool, rows)), ""]
