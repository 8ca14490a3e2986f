#!/usr/bin/env python3
"""Measures how cost grows with sequence length, and writes a lesson about it.

Runs the four studies of `headroom complexity --measure`, after one `headroom calibrate` for the
predicted times, and writes complexity.md, complexity.json and complexity-*.svg to --reports. Plots
need gnuplot (Debian's gnuplot-nox). A benchmark, not a test: it checks nothing.
"""
import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

import complexity_plots

LAYERS = ["layer-self-attention", "layer-multi-head-attention", "layer-window-attention",
          "layer-linear-attention", "layer-rnn", "layer-lstm", "layer-conv", "layer-ffn"]

# A transformer of 2 layers with d = 512 and RoPE, which runs at any length.
SMALL_TRANSFORMER = {
    "architectures": ["GPTNeoXForCausalLM"], "model_type": "gpt_neox", "vocab_size": 8192,
    "hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 8, "intermediate_size": 2048,
    "hidden_act": "gelu", "rotary_pct": 0.25, "max_position_embeddings": 32768,
    "use_parallel_residual": False, "tie_word_embeddings": False}

STUDIES = {
    "layers": [*LAYERS, "--seq", "64..65536"],
    "associativity": ["layer-self-attention", "--study", "associativity",
                      "--seq", "64,96,128,192,256,384,512,768,1024,1536,2048,3072,4096,6144,8192,"
                      "12288,16384,24576,32768,49152,65536"],
    "generation": ["small-transformer", "--study", "generation", "--new-tokens", "16..512"],
    "shares": ["small-transformer", "--study", "shares", "--seq", "128..32768"],
}


def run(binary, arguments, folder):
    """Returns the JSON that headroom prints."""
    done = subprocess.run([binary, *arguments, "--format", "json"], capture_output=True, text=True,
                          cwd=folder, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(arguments)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def table(titles, rows):
    """A Markdown table; the first column is text, the others are numbers."""
    rule = [":--"] + ["--:"] * (len(titles) - 1)
    return ["| " + " | ".join(row) + " |" for row in (titles, rule, *rows)]


def milliseconds(seconds):
    return "–" if seconds is None else f"{seconds * 1e3:.2f}"


def whole(value):
    return "–" if value is None else f"{value:,.0f}"


def orders(layers):
    rows = [[layer["name"],
             layer["core_matrix_flops"]["order"] if layer["core_matrix_flops"] else "–",
             layer["matrix_flops"]["order"], layer["sequential"]["order"], layer["path"]["order"],
             layer["activation_bytes"]["order"]] for layer in layers]
    return table(["Layer", "Mixing positions", "Whole layer", "Sequential", "Longest path",
                  "Memory"], rows)


def exponents(layers):
    """Exponents of mixing positions and of whole layers, where enough lengths are asymptotic."""
    rows = []
    for layer in layers:
        for key, extent in (("core_exponent", "mixing"), ("exponent", "whole")):
            fit = layer[key]
            if fit is None:
                continue
            predicted = fit["predicted_time"]
            rows.append([f"{layer['name']}, {extent}", f"{fit['from']} … {fit['to']}",
                         "memory" if fit["beyond_cache"] else "caches, memory",
                         f"{fit['flops']:.2f}", "–" if predicted is None else f"{predicted:.2f}",
                         f"{fit['measured']:.2f} ± {fit['half_width_95']:.2f}",
                         f"{fit['measured'] - fit['flops']:+.2f}"])
    return table(["Exponent of s in time", "s", "Operands in", "FLOPs", "Predicted time", "Measured time (95 %)",
                  "Measured − FLOPs"], rows)


def crossing(row):
    return [f"{row['above']} > {row['below']}", whole(row["flops_from"]),
            whole(row["predicted_from"]), whole(row["measured_from"])]


def crossings(rows):
    """Pairs of layers whose order of cost changes with the length."""
    crossing_pairs = [row for row in rows if (row["flops_from"] or 1) > 1 or row["measured_from"]]
    return table(["Costs more", "By FLOPs from s", "By predicted time", "By measured time"],
                 [crossing(row) for row in crossing_pairs])


def times(layers):
    names = [layer["name"] for layer in layers]
    lengths = sorted({run["seq_len"] for layer in layers for run in layer["times"]["runs"]})
    by_layer = [{run["seq_len"]: run["time_s"] for run in layer["times"]["runs"]}
                for layer in layers]
    return table(["s", *names], [[str(length), *(milliseconds(runs.get(length)) for runs in by_layer)]
                                 for length in lengths])


def generation(report):
    rows = []
    for row in report["rows"]:
        without, with_cache = row["time_without_s"], row["time_with_s"]
        predicted = row["predicted_without_s"], row["predicted_with_s"]
        both = without is not None and with_cache is not None
        rows.append([str(row["new_tokens"]),
                     f"{row['matrix_flops_without'] / 1e9:.2f}",
                     f"{row['matrix_flops_with'] / 1e9:.2f}",
                     f"{row['attention_flops_without'] / row['attention_flops_with']:.0f}",
                     *(milliseconds(time) for time in predicted),
                     milliseconds(without), milliseconds(with_cache),
                     f"{without / with_cache:.1f}" if both else "–"])
    return table(["G", "FLOPs without [10⁹]", "with [10⁹]", "Attention, factor",
                  "Predicted without [ms]", "with [ms]", "Measured without [ms]", "with [ms]",
                  "Speed-up"], rows)


def share_table(report, key):
    kinds = ["projections", "attention", "ffn", "head", "other"]
    rows = []
    for row in report["rows"]:
        shares = row[key]
        if shares is None:
            continue
        total = sum(shares.values())
        rows.append([str(row["seq_len"]), *(f"{100 * shares[kind] / total:.1f}" for kind in kinds)])
    return table(["s", "Projections [%]", "Attention [%]", "FFN [%]", "Head [%]", "Other [%]"], rows)


def formula(layers, name, key="matrix_flops"):
    return next(layer[key]["formula"] for layer in layers if layer["name"] == name)


def busy(context):
    """A warning if other programs were running."""
    if context["load_average"] <= 0.5 * context["logical_cpus"]:
        return []
    return ["", f"Other programs were running on this machine (load average {context['load_average']:.0f} on "
            f"{context['logical_cpus']} processors), so single figures may be far off."]


def lesson(reports, commands):
    layers = reports["layers"]["layers"]
    order = reports["associativity"]
    context = reports["layers"]["context"]
    generated = reports["generation"]
    shares = reports["shares"]
    overtaking = shares["attention_passes_ffn"]
    core = order["core_crossovers"][0]
    softmax, linear = order["layers"]
    lines = [
        "# Why attention is quadratic", "",
        "Written by [complexity.py](../tests/bench/complexity.py) from the output of `headroom complexity`. Orders and",
        "formulas are derived from the operators of each layer, not typed in; times are the fastest of several rounds",
        "over all lengths.", "",
        "```sh", *commands, "```", "",
        f"{context['cpu']} · {context['threads']} thread{'' if context['threads'] == 1 else 's'} · {context['backend']} · one sequence, float32, d = 512", "",
        "## Where the square comes from", "",
        "A layer of a sequence model does two things: it transforms every position by itself, which costs s·d², and it",
        "mixes positions. Kinds of layers differ in how they mix. Self-attention compares every position with every",
        "other, s² dot products of length d, and then sums the values of all positions with these s² weights:", "",
        f"    self-attention   {formula(layers, 'layer-self-attention')}", "",
        "The first term is its four projections, the second is the square. The last columns show what it buys: any two",
        "positions are one step apart, and all positions are computed in parallel. A recurrent layer is linear in s,",
        "but runs its s steps one after the other, and a signal from one end to the other passes through all of them.",
        "A convolution sees κ positions, so it needs s/κ layers (fewer with growing dilations). Window attention is",
        "linear in s too, with the paths of a convolution. The orders are those of \"Attention Is All You Need\" (arXiv",
        "1706.03762, Table 1), which omits projections: *mixing positions* is the paper's column. Its n, k and r",
        "are s, κ and w here.", "",
        *orders(layers), "",
        "s seq_len, d hidden_size, h num_attention_heads, k head_dim, w sliding_window, κ kernel_size. Memory is the",
        "peak of live activations. Long sequences fail here first, in the s²·h scores, which fused kernels avoid.", "",
        "## Measured", "", "![Time by length](complexity-layers.svg)", "",
        *times(layers), "",
        "Milliseconds. An exponent needs a range where the leading power dominates: it starts at the first length where",
        "that power has 80 % of the FLOPs and of the bytes moved. Below, linear terms (projections), weights that are",
        "read at any s, and the fixed overhead of operators make time grow more slowly than the leading power. Caches do",
        "the opposite: operands of a small s fit, those of a large s do not, so with low arithmetic intensity, as in linear",
        "attention alone, time grows faster than FLOPs until the operands exceed the last-level cache, which keeps part of",
        "working sets of two or four times its size. Therefore, if lengths over a factor of four remain beyond four times",
        "its size, the range starts there. *FLOPs* is the slope of the counted FLOPs over the same lengths, a fair",
        "comparison even where a linear term is not yet small.",
        *busy(context), "",
        *exponents(layers), "",
        "## When it matters", "",
        "The first length from which on one whole layer costs more than another. By FLOPs it is the exact solution of the",
        "two polynomials; by time it is interpolated between the lengths run, linearly in the logarithms. With d = 512, the",
        "square is no concern for sentences: attention's matrix products overtake its projections at s = 2·d + 1. Pairs that never",
        "change their order are omitted; a dash is a crossing outside the lengths at which both were run.", "",
        *crossings(reports["layers"]["crossovers"]), "",
        "## Softmax, or not", "",
        "Matrix products are associative: without the softmax between them (queries·keysᵀ)·values = queries·(keysᵀ·values),",
        "and the second order never computes anything of size s². Linear attention (arXiv 2006.16236) replaces the softmax",
        "by a feature map φ of queries and keys, which allows the second order:", "",
        f"    softmax(queries·keysᵀ)·values    {softmax['core_matrix_flops']['formula']}",
        f"    φ(queries)·(φ(keys)ᵀ·values)     {linear['core_matrix_flops']['formula']}", "",
        f"FLOPs are equal at about s = k: the state k × k replaces the s × s scores. Softmax attention costs more from",
        f"s = {whole(core['flops_from'])} on by FLOPs, from {whole(core['predicted_from'])} by predicted time, from {whole(core['measured_from'])} by measured time.", "",
        "![Both orders](complexity-softmax.svg)", "",
        *exponents(order["layers"]), "",
        "## With and without a KV-cache", "",
        "Without a cache, every generated token needs a pass over all tokens before it: attention's work sums to",
        f"{generated['without_cache']['attention_order']}. With cached keys and values, a step has a single query: {generated['with_cache']['attention_order']}.", "",
        f"    without   {generated['without_cache']['attention_formula']}",
        f"    with      {generated['with_cache']['attention_formula']}", "",
        *generation(generated), "",
        "A transformer of 2 such layers generates G new tokens. Without a cache FLOPs grow like G² while projections",
        "dominate, and like G³ in the limit. Time gains less than FLOPs, since a step of one token reads all weights for a single row.",
        f"Without a cache, prefills of {len(generated['lengths_run'])} lengths were run; lengths between them are interpolated.", "",
        "![Generating](complexity-generation.svg)", "",
        "## Where a transformer's time goes", "",
        f"Per position and layer, attention costs {overtaking['attention']} and the feed-forward network {overtaking['ffn']}: equal at s = 4·d.",
        f"From s = {whole(overtaking['from'])} on attention costs more; below, it costs less, and the square is an academic concern.",
        "Fractions of FLOPs:", "",
        *share_table(shares, "matrix_flops"), "", "Fractions of measured time:", "",
        *share_table(shares, "measured_s"), "",
        "Attention's fraction of time is larger than its fraction of FLOPs: softmax and scores move s² numbers with few",
        "multiplications each.", "",
        "![Fractions of time](complexity-shares.svg)", ""]
    skipped = [f"{layer['name']} at s = {one['seq_len']}: {one['reason']}"
               for layer in layers for one in layer["times"]["skipped"]]
    skipped += [f"small-transformer at s = {one['seq_len']}: {one['reason']}" for one in shares["skipped"]]
    if skipped:
        lines += ["Not run: " + "; ".join(skipped) + ".", ""]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headroom", default="build/release/headroom")
    parser.add_argument("--runs", type=int, default=3, help="rounds over all lengths")
    parser.add_argument("--threads", type=int, default=0, help="0: all processors")
    parser.add_argument("--most-seconds", type=int, default=3, help="longest single run")
    parser.add_argument("--reports", type=pathlib.Path, default=pathlib.Path("reports"))
    parser.add_argument("--only", choices=[*STUDIES, "none"],
                        help="measure only this study; read the others from complexity.json")
    arguments = parser.parse_args()
    binary = str(pathlib.Path(arguments.headroom).resolve())
    common = ["--measure", "--runs", str(arguments.runs), "--most-seconds", str(arguments.most_seconds)]
    if arguments.threads:
        common += ["--threads", str(arguments.threads)]
    stored = arguments.reports / "complexity.json"
    reports = json.loads(stored.read_text()) if arguments.only else {
        "command": shlex.join(["python3", "tests/bench/complexity.py", *common[1:]])}
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "small-transformer", "config.json")
        config.parent.mkdir()
        config.write_text(json.dumps(SMALL_TRANSFORMER))
        for name, study in STUDIES.items():
            if arguments.only in (None, name):
                print(name, flush=True)
                reports[name] = run(binary, ["complexity", *study, *common], folder)
    commands = ["headroom calibrate", reports["command"]]
    arguments.reports.mkdir(exist_ok=True)
    stored.write_text(json.dumps(reports, indent=1) + "\n")
    (arguments.reports / "complexity.md").write_text(lesson(reports, commands))
    complexity_plots.write(reports, arguments.reports)
    print("\n".join(exponents(reports["layers"]["layers"]) + crossings(reports["layers"]["crossovers"])
                    + exponents(reports["associativity"]["layers"])
                    + crossings(reports["associativity"]["core_crossovers"])))


if __name__ == "__main__":
    sys.exit(main())
