"""Latencies of NVIDIA's NIM beside those that `serve` simulates."""

import statistics
from csv import DictReader

from published_base import DATA, median_and_ninth, off, signed, table

TENSORRT_LLM_BATCHED_TOKENS = 8192


def serve_words(row):
    users = int(row["concurrency"])
    words = ["serve", row["model"], "--machine", row["machine"], "--count", row["devices"], "--tp", row["devices"], "--users",
             users, "--requests", 4 * max(users, 5), "--input-tokens", row["input_tokens"], "--output-tokens",
             row["output_tokens"], "--batched-tokens", TENSORRT_LLM_BATCHED_TOKENS, "--admission", "request"]
    if row["precision"] == "fp8":
        words += ["--recipe", "w8a8-fp8", "--kv-dtype", "float8"]
    return [str(word) for word in words]


def errors_of(tool, row):
    """Of the time to the first token, of that between tokens, and of the throughput, in percent; and whether that between
    tokens is outside the predicted range."""
    plan = tool.json(*serve_words(row))["plans"][0]
    figures, factor = plan["figures"], 1 + plan["time_range"]
    ttft_s, latency_s = float(row["ttft_ms"]) / 1e3, float(row["latency_ms"]) / 1e3
    between_s = (latency_s - ttft_s) / (int(row["output_tokens"]) - 1)
    return (off(figures["ttft"]["mean_s"], ttft_s), off(figures["tpot"]["mean_s"], between_s),
            off(figures["output_tokens_per_s"], float(row["output_tokens_per_s"])),
            not 1 / factor <= between_s / figures["tpot"]["mean_s"] <= factor)


def cells(errors):
    median, ninth = median_and_ninth(errors)
    return [f"{median:.1f}", f"{ninth:.1f}", signed(statistics.median(errors))]


def sections(tool, groups):
    by_group = {}
    with open(DATA / "training" / "nim_latency.csv", encoding="utf-8") as file:
        for row in DictReader(file):
            key = (row["machine"], row["precision"], row["concurrency"])
            by_group.setdefault(key, []).append(errors_of(tool, row))
    lines = []
    for (machine, precision, concurrency), errors in by_group.items():
        ttft, between, rate, outside = zip(*errors)
        first = cells(ttft) if concurrency == "1" else ["–"] * 3
        lines.append([f"{machine}, {precision}, {concurrency} at once", str(len(errors)), *cells(between), str(sum(outside)),
                      *first, *cells(rate)])
    head = ["Runs", "Rows"]
    for figure in ("TPOT", "TTFT", "Throughput"):
        head += [f"{figure}: median [%]", "nine of ten [%]", "bias [%]", *(["outside"] if figure == "TPOT" else [])]
    return ["## Latency of NIM", "",
            "Llama 3 8B and 70B on 1 to 8 devices with prompts of 200 to 7,000 tokens, by GenAI-Perf on NVIDIA's NIM of 2024 with "
            "TensorRT-LLM ([nim_latency.csv](../tests/data/training/nim_latency.csv)). TTFT is compared for single requests only: "
            "the sources do not state how many requests followed the first ones, which all arrive at once. The fixed time of "
            "kernels is that of single ones ([device time](../docs/device-time.md#fixed-times-of-kernels)).", "",
            *table(head, lines), ""]
