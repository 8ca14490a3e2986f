#!/usr/bin/env python3
"""Lays published runs beside headroom's predictions.

usage: published.py HEADROOM [--check | --update | --errors]

Prints reports/published.md, writes it (--update), compares it with the file (--check, exit status 1 if they differ), or
prints each group's errors in the order of its rows, as JSON (--errors).
The runs are those of tests/data; nothing is measured here.
"""

import json
import re
import statistics
import subprocess
import sys
import tempfile
from csv import DictReader
from pathlib import Path

import published_latency
import published_llama
import published_megatron
import published_plans
import published_sharded
import published_tensor
from published_base import DATA, ROOT, Groups, Tool, off, preset, signed, spread, table

REPORT = ROOT / "reports" / "published.md"
GIB = 2**30

# Four of the eight steps on B200, one of each model and both kinds of plans.
FITTED = ("llama3_70b_l12_tp1_pp2_dp4_mbc4_cef", "llama3_70b_l12_tp8_pp1_dp1_mbc4_cef",
          "deepseekv2_tp1_ep8_pp1_dp8_l4_mbc8_cef", "llama3_405b_l4_tp1_pp2_dp4_mbc4_cef")


# Training on B200


def number_after(case, key):
    found = re.search(rf"_{key}(\d+)", case)
    return int(found.group(1)) if found else 1


def b200_config(case):
    """The models as SimuMax defines them."""
    if case.startswith("llama3"):
        config = preset("llama-3-70b")
        if case.startswith("llama3_405b"):
            config |= {"hidden_size": 16384, "intermediate_size": 53248, "num_attention_heads": 128,
                       "num_key_value_heads": 16}
    elif case.startswith("deepseekv2"):
        config = preset("deepseek-v2")
    else:
        config = preset("deepseek-v3") | {"first_k_dense_replace": 1}
        config.pop("quantization_config", None)
    return config | {"num_hidden_layers": number_after(case, "l")}


def b200_command(tool, case):
    tp, pp, dp, ep, batches = (number_after(case, key) for key in ("tp", "pp", "dp", "ep", "mbc"))
    words = ["fit", tool.config(case, b200_config(case)), "--phase", "train", "--count", tp * pp * dp, "--tp", tp, "--pp",
             pp, "--ep", ep, "--seq", 4096, "--batch", batches * dp, "--micro-batch", 1, "--zero", 1, "--attention", "fused"]
    return [str(word) for word in words] + (["--sp"] if tp > 1 else [])


def b200(tool, groups):
    with open(DATA / "training" / "b200_training_runs.csv", encoding="utf-8") as file:
        rows = [(row["case"], float(row["real_ms"]), float(row["real_alloc_gib"]), float(row["simumax_ms"]))
                for row in DictReader(file)]
    commands = {case: b200_command(tool, case) for case, *_ in rows}
    runs = tool.folder / "b200.jsonl"
    runs.write_text("".join(json.dumps({"name": case, "command": commands[case], "time_s": ms / 1e3}) + "\n"
                            for case, ms, *_ in rows if case in FITTED))
    machine = str(tool.folder / "b200.json")
    subprocess.run([tool.binary, "calibrate", "--from", str(runs), "--machine", "b200", "-o", machine], check=True,
                   capture_output=True)
    fitted = json.loads(Path(machine).read_text())["fitted"][0]
    lines, default_errors, other_errors, memory_errors, outside = [], [], [], [], 0
    for case, ms, gib, simumax in rows:
        default = tool.json(*commands[case], "--machine", "b200")
        calibrated = tool.json(*commands[case], "--machine", machine)
        default_off = off(1e3 * default["time"]["iteration_s"], ms)
        fitted_off = off(1e3 * calibrated["time"]["iteration_s"], ms)
        memory_off = off(default["memory"]["allocated_bytes"] / GIB, gib)
        inside = default["time"]["low_s"] <= ms / 1e3 <= default["time"]["high_s"]
        outside += not inside
        groups.add("training steps, B200", default_off, inside)
        default_errors.append(default_off)
        memory_errors.append(memory_off)
        if case not in FITTED:
            other_errors.append(fitted_off)
        mark = " (fitted to)" if case in FITTED else ""
        lines.append([case, f"{ms:.1f}", signed(default_off), signed(fitted_off) + mark, signed(off(simumax, ms)),
                      f"{gib:.2f}", signed(memory_off, 2)])
    share = {key: f"{100 * value:.0f} ± {100 * value * fitted['deviations'][key]:.0f} %"
             for key, value in fitted["fractions"].items()}
    memory = sorted(map(abs, memory_errors))
    return [
        "## Training steps on 8 × B200", "",
        "Megatron-LM with Transformer Engine; times and `max_memory_allocated` from SimuMax's table "
        "([b200_training_runs.csv](../tests/data/training/b200_training_runs.csv)). *Default*: `--machine b200`, whose three "
        "efficiencies were fitted to all eight rows. *Four steps*: the machine that `calibrate --from` makes of the four rows "
        "marked, started from that default.", "",
        *table(["Run", "Measured [ms]", "Default [%]", "Four steps [%]", "SimuMax [%]", "Allocated [GiB]", "Memory [%]"],
               lines), "",
        f"- Default: {spread(default_errors)}; {outside} of {len(rows)} outside the predicted range.",
        f"- The rows that the four steps were not: {spread(other_errors)}. Fitted: {share['matrix']} of peak arithmetic, "
        f"{share['memory']} of memory and {share['network']} of network bandwidth.",
        f"- Every choice of four rows, started from Hopper's efficiencies, is judged in "
        f"[test_b200_runs.cpp](../tests/plan/test_b200_runs.cpp): the other four within 4 % in the median and 8 % at the 90th "
        f"percentile.",
        f"- Memory: median {statistics.median(memory):.2f} %, at most {memory[-1]:.2f} %; no constant is fitted, but its rules were found "
        "with these rows at hand.", ""]


# Training on A100


def gpt_config(model):
    return {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": model["hidden"],
            "n_head": model["heads"], "n_layer": model["layers"], "n_positions": 2048, "vocab_size": 51200,
            "activation_function": "gelu_new"}


def a100(tool, groups):
    models = json.loads((DATA / "training" / "korthikanti.json").read_text())["models"]
    lines, errors, outside = [], [], 0
    for model in models:
        for name, seconds in model["iteration_s"].items():
            words = ["fit", tool.config(model["name"], gpt_config(model)), "--machine", "a100-80gb", "--phase", "train",
                     "--count", model["gpus"], "--tp", model["tp"], "--pp", model["pp"], "--interleave", model["interleave"],
                     "--seq", model["seq"], "--batch", model["batch"], "--micro-batch", model["micro"],
                     "--attention", "eager", "--recompute", "full" if name == "full" else "selective"]
            if name != "full":
                words.append("--sp")
            time = tool.json(*map(str, words))["time"]
            errors.append(off(time["iteration_s"], seconds))
            inside = time["low_s"] <= seconds <= time["high_s"]
            outside += not inside
            groups.add("training steps, A100, Korthikanti", errors[-1], inside)
            lines.append([f"{model['name']}, {'full' if name == 'full' else 'selective'} recompute", f"{seconds:.2f}",
                          f"{time['iteration_s']:.2f}", signed(errors[-1])])
    return ["## Training steps on A100", "",
            "Korthikanti et al. 2022, arXiv 2205.05198, Table 5 ([korthikanti.json](../tests/data/training/korthikanti.json)). "
            "Ampere's efficiencies were fitted to these rows and to Table 1 of arXiv 2104.04473, which "
            "[test_narayanan.cpp](../tests/plan/test_narayanan.cpp) holds within 7 %.", "",
            *table(["Run", "Measured [s]", "Predicted [s]", "Off [%]"], lines), "",
            f"- {spread(errors)}; {outside} of {len(lines)} outside the predicted range.", "",
            *narayanan(tool, groups)]


def fastest_seconds(tool, model):
    """By the micro-batch and the number of model chunks, which the paper does not give; with the range's factor."""
    fastest, factor = float("inf"), 1
    config = tool.config(f"gpt-{model['parameters_billion']}", gpt_config(model))
    for micro_batch in (1, 2, 4, 8, 16):
        for chunks in range(1, model["layers"] + 1 if model["pp"] > 1 else 2):
            if model["layers"] % (model["pp"] * chunks) != 0:
                continue
            words = ["fit", config, "--machine", "a100-80gb", "--phase", "train", "--count", model["gpus"], "--tp", model["tp"],
                     "--pp", model["pp"], "--interleave", chunks, "--seq", 2048, "--batch", model["batch"], "--micro-batch",
                     micro_batch, "--attention", "eager", "--recompute", "full"]
            report = tool.json_or_none(*map(str, words))
            if report is None or not report["fits"]:
                continue
            time = report["time"]
            if time["iteration_s"] < fastest:
                fastest, factor = time["iteration_s"], time["high_s"] / time["iteration_s"]
    return fastest, factor


def narayanan(tool, groups):
    models = json.loads((DATA / "training" / "narayanan.json").read_text())["models"]
    lines, errors = [], []
    for model in models:
        seconds, factor = fastest_seconds(tool, model)
        layers, hidden = model["layers"], model["hidden"]
        # Section 3.3.1, equation 3.
        flops = 96 * model["batch"] * 2048 * layers * hidden**2 * (1 + 2048 / (6 * hidden) + 51200 / (16 * layers * hidden))
        teraflops = flops / seconds / model["gpus"] / 1e12
        measured = model["teraflops_per_gpu"]
        errors.append(off(measured, teraflops))
        groups.add("training steps, A100, Narayanan", errors[-1], 1 / factor <= measured / teraflops <= factor)
        lines.append([f"{model['parameters_billion']} billion parameters, {model['gpus']} devices", str(measured),
                      f"{teraflops:.1f}", signed(errors[-1])])
    return ["Narayanan et al. 2021, arXiv 2104.04473, Table 1, with the best micro-batch and number of model chunks, which "
            "the paper does not give. *Off* is that of the time.", "",
            *table(["Run", "Measured [TFLOP/s]", "Predicted [TFLOP/s]", "Off [%]"], lines), "",
            f"- {spread(errors)}.", ""]


# Serving


# Of a step: trtllm-build's default --max_num_tokens.
TENSORRT_LLM_BATCHED_TOKENS = 8192


# One row of each device that `calibrate --from` is given: the first model with the longest answers but one.
SERVING_FITTED = {"h100-80gb": ("llama-3.3-70b", 2048, 2048), "h200-141gb": ("llama-3.1-8b", 1000, 2000)}


def serving_words(row):
    """Model, plan and requests: all queued at once, prompts of waiting requests join the steps of running ones."""
    words = [row["model"], "--count", row["tp"], "--tp", row["tp"], "--recipe", "w8a8-fp8", "--kv-dtype", "float8"]
    load = {"--users": row["requests"], "--requests": row["requests"], "--input-tokens": row["input_tokens"],
            "--output-tokens": row["output_tokens"], "--max-sequences": row["max_batch"],
            "--batched-tokens": TENSORRT_LLM_BATCHED_TOKENS, "--admission": "request"}
    return [str(word) for word in words], [str(word) for option in load.items() for word in option]


def throughput(tool, row, machine):
    """Tokens per second, and the factor of their range."""
    words, load = serving_words(row)
    plan = tool.json("serve", *words, *load, "--machine", machine)["plans"][0]
    return plan["figures"]["output_tokens_per_s"], 1 + plan["time_range"]


def is_given(row):
    return SERVING_FITTED[row["device"]] == (row["model"], row["input_tokens"], row["output_tokens"])


def serving_machines(tool, rows):
    """The machine of each device, fitted to its row."""
    machines = {}
    for row in filter(is_given, rows):
        words, load = serving_words(row)
        runs = tool.folder / f"{row['device']}.jsonl"
        runs.write_text(json.dumps({"command": ["serve", *words, *load], "output_tokens_per_s": row["output_tokens_per_s"]}))
        machines[row["device"]] = str(tool.folder / f"{row['device']}.json")
        subprocess.run([tool.binary, "calibrate", "--from", str(runs), "--machine", row["device"], "-o",
                        machines[row["device"]]], check=True, capture_output=True)
    return machines


def serving(tool, groups):
    rows = json.loads((DATA / "training" / "published_serving.json").read_text())["rows"]
    lines, errors, outside = [], [], 0
    given_errors, given_outside = [], 0
    machines = serving_machines(tool, rows)
    for row in rows:
        predicted, factor = throughput(tool, row, row["device"])
        measured = row["output_tokens_per_s"]
        fitted, fitted_factor = throughput(tool, row, machines[row["device"]])
        fitted_off = off(fitted, measured)
        if not is_given(row):
            given_errors.append(fitted_off)
            given_outside += not fitted / fitted_factor <= measured <= fitted * fitted_factor
        errors.append(off(predicted, measured))
        inside = predicted / factor <= measured <= predicted * factor
        outside += not inside
        groups.add(f"TensorRT-LLM throughput, {row['device'].split('-')[0].upper()}", errors[-1], inside)
        lines.append([f"{row['model']}, {row['tp']} × {row['device']}, {row['input_tokens']} in, {row['output_tokens']} out",
                      f"{measured:.0f}", f"{predicted:.0f}", signed(errors[-1]),
                      signed(fitted_off) + (" (fitted to)" if is_given(row) else "")])
    return ["## Offline throughput of TensorRT-LLM", "",
            "FP8 weights and KV-cache, all requests queued at once, TensorRT-LLM v1.0 "
            "([published_serving.json](../tests/data/training/published_serving.json)). `serve` simulates all requests under its "
            "scheduler: a request starts when the cache has room for its answer, and prompts fill steps of up to 8,192 tokens. "
            "Hopper's fraction of peak arithmetic in 8 bit was fitted to these rows; predicted by the fraction of the other half, "
            "rows have the same errors ([device time](../docs/device-time.md)).", "",
            "*One row*: the machine that `calibrate --from` makes of the row marked.", "",
            *table(["Run", "Measured [tokens/s]", "Predicted [tokens/s]", "Off [%]", "One row [%]"], lines), "",
            f"- {spread(errors)}; {outside} of {len(lines)} outside the predicted range.",
            f"- The rows that one row of their device predicts: {spread(given_errors)}; {given_outside} of "
            f"{len(given_errors)} outside the predicted range.", ""]


def main():
    binary = str(Path(sys.argv[1]).resolve())
    mode = sys.argv[2] if len(sys.argv) > 2 else ""
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(binary, folder)
        groups = Groups()
        sections = [*b200(tool, groups), *a100(tool, groups), *published_megatron.sections(tool, groups),
                    *published_sharded.sections(tool, groups), *published_tensor.sections(tool, groups), *serving(tool, groups),
                    *published_plans.sections(tool, groups), *published_latency.sections(tool, groups)]
        llama, llama_rows = published_llama.sections(tool, groups)
        sections += llama
        lines = ["# Predictions beside published runs", "",
                 "Every published run that the repository holds, beside what headroom predicts for it; differences are "
                 "(predicted − measured)/measured. Made by `python3 tests/bench/published.py build/release/headroom --update`; "
                 "a test holds this file to the program.", "",
                 *groups.lines(), *sections]
    text = "\n".join(lines)
    rows = published_llama.csv_of(llama_rows)
    if mode == "--update":
        REPORT.write_text(text)
        published_llama.ROWS.write_text(rows)
    elif mode == "--check":
        if REPORT.read_text() != text or published_llama.ROWS.read_text() != rows:
            print("reports/published.md or llama_bench.csv differs from what the program predicts: run published.py --update")
            sys.exit(1)
    elif mode == "--errors":
        print(json.dumps(groups.errors))
    else:
        print(text)


if __name__ == "__main__":
    main()
