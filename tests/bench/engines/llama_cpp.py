#!/usr/bin/env python3
"""Compares prefill and decode of stored weights with llama.cpp, both on one GGUF file.

Every round runs both programs one after the other, so that other load affects them alike; ratios are
taken within a round. Writes llama_cpp.md and llama_cpp.json to --reports. A benchmark, not a test: it
checks nothing. Needs g++, git, a python3 with gguf and numpy, and llama.cpp as node packages:

  npm install --ignore-scripts --omit=optional node-llama-cpp@3.22.1 @node-llama-cpp/linux-x64@3.22.1
"""
import argparse
import datetime
import json
import pathlib
import statistics
import subprocess
import sys

from compare import HERE, ROOT, compile_program, run_json
from greedy_tokens import compare_tokens, greedy_section
from speed_report import row, span, table

MODELS = {"smollm2-135m": ["--tied"], "tinyllama-1.1b": []}
VOCAB_SIZES = {"smollm2-135m": 49152, "tinyllama-1.1b": 32000}
# The type of the file, and what headroom is asked for beside its defaults: prefill computes as llama.cpp does.
TYPES = {"bfloat16": ["--weights", "bfloat16", "--activations", "bfloat16"],
         "q8_0": [], "q4_0": [], "q4_k_m": [], "mxfp4": []}
WRITTEN = ("bfloat16", "mxfp4")  # the other files are quantised by llama.cpp from float32
PROMPTS = (128, 512)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headroom", type=pathlib.Path, default=ROOT / "build/release/headroom")
    parser.add_argument("--node-modules", type=pathlib.Path, required=True)
    parser.add_argument("--python", default=sys.executable, help="a python3 with gguf and numpy (this one)")
    parser.add_argument("--folder", type=pathlib.Path, required=True,
                        help="folder to keep weights and programs in (13 GB)")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--types", nargs="+", choices=TYPES, default=list(TYPES))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--what", nargs="+", choices=["times", "tokens"], default=["times", "tokens"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=3, help="timed runs of a prompt in each round")
    parser.add_argument("--steps", type=int, default=16, help="timed tokens behind every prompt")
    parser.add_argument("--patience", type=float, default=5.0,
                        help="longest wait for idle processors before a program, in seconds")
    parser.add_argument("--keep", action="store_true",
                        help="keep the other cases of the report, if the machine and llama.cpp are still those")
    parser.add_argument("--reports", type=pathlib.Path, default=ROOT / "reports")
    return parser.parse_args()


class LlamaCpp:
    """llama.cpp's program, and the files that it reads."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.folder = arguments.folder
        self.folder.mkdir(parents=True, exist_ok=True)
        modules = arguments.node_modules
        sources = self.folder / "llama.cpp"
        if not sources.exists():
            # For the headers alone: the binaries are built from the same release.
            bundle = modules / "node-llama-cpp/llama/gitRelease.bundle"
            subprocess.run(["git", "clone", "-q", bundle, sources], check=True)
        binaries = (modules / "@node-llama-cpp/linux-x64/bins/linux-x64").resolve()
        libraries = [*binaries.glob("libllama.*so"), *binaries.glob("libggml.*so"), binaries / "libggml-base.so"]
        self.program = self.folder / "llama_cpp"
        compile_program(self.program, [f'-DLLAMA_BINARIES="{binaries}"', "-I", sources / "include",
                                       "-I", sources / "ggml/include", HERE / "llama_cpp.cpp"],
                        [*libraries, f"-Wl,-rpath,{binaries}"])
        package = json.loads((modules / "node-llama-cpp/package.json").read_text())
        head = subprocess.run(["git", "-C", sources, "rev-parse", "--short=9", "HEAD"], check=True, text=True,
                              capture_output=True).stdout.strip()
        self.version = f"llama.cpp {head}, as node-llama-cpp {package['version']} builds it"

    def write(self, model, stored):
        path = self.folder / f"{model}-{stored}.gguf"
        if not path.exists():
            subprocess.run([self.arguments.python, HERE / "write_llama.py", "--headroom",
                            self.arguments.headroom, "--model", model, *MODELS[model], "--type", stored,
                            "--output", path], check=True, stdout=subprocess.DEVNULL)
        return path

    def file(self, model, stored):
        if stored in WRITTEN:
            return self.write(model, stored)
        path = self.folder / f"{model}-{stored}.gguf"
        if not path.exists():
            subprocess.run([self.program, "quantize", self.write(model, "float32"), path, stored], check=True)
        return path

    def time(self, path, threads, seq):
        options = self.arguments
        return run_json([self.program, "time", path, threads, seq, options.runs, options.steps],
                        options.patience)[0]


def ours(arguments, path, stored, threads, *workload):
    """Seconds of headroom's prefill or step."""
    report, _ = run_json([arguments.headroom, "measure", path, *TYPES[stored], "--threads", threads, *workload,
                          "--format", "json", "-q"], arguments.patience)
    return report["time"]["median_s"]


def round_of(arguments, engine, path, stored, threads):
    """Seconds of both programs, by workload."""
    prompt = ["--warmup", 1, "--runs", arguments.runs, "--logits", "last"]
    times = {}
    for seq in PROMPTS:
        theirs = engine.time(path, threads, seq)
        times[f"prefill {seq}"] = (ours(arguments, path, stored, threads, *prompt, "--seq", seq),
                                   theirs["prefill_s"])
        if seq == PROMPTS[0]:
            step = ours(arguments, path, stored, threads, "--phase", "decode", "--past", seq, "--runs",
                        arguments.runs * arguments.steps)
            times["decode"] = (step, theirs["decode_s"])
    return times


def case_of(arguments, engine, model, stored, threads):
    path = engine.file(model, stored)
    rounds = [round_of(arguments, engine, path, stored, threads) for _ in range(arguments.rounds)]
    workloads = {}
    for name in rounds[0]:
        ratios = [one[name][1] / one[name][0] for one in rounds]
        workloads[name] = {"headroom_s": min(one[name][0] for one in rounds),
                           "llama_cpp_s": min(one[name][1] for one in rounds),
                           "ratio": {"median": statistics.median(ratios), "min": min(ratios),
                                     "max": max(ratios)}}
    result = {"model": model, "type": stored, "threads": threads, "file_bytes": path.stat().st_size,
              "workloads": workloads}
    print(case_row(result), flush=True)
    return result


def case_row(result):
    cells = [result["model"], result["type"], str(result["threads"]), f"{result['file_bytes'] / 2**20:.0f}"]
    for one in result["workloads"].values():
        cells += [f"{one['headroom_s'] * 1e3:.1f}", f"{one['llama_cpp_s'] * 1e3:.1f}", span(one["ratio"])]
    return row(cells)


def case_key(case):
    """The order of the cases, and what tells one from another."""
    return list(MODELS).index(case["model"]), list(TYPES).index(case["type"]), case["threads"]


def kept_cases(arguments, head):
    """The cases and tokens of the report so far, by key, if they are to be kept."""
    if not arguments.keep:
        return {}, {}
    document = json.loads((arguments.reports / "llama_cpp.json").read_text())
    if any(document[key] != value for key, value in head.items()):
        sys.exit("the report is of another machine, compiler, release of llama.cpp or number of rounds: leave out --keep")
    tokens = {(case["model"], case["type"]): case for case in document.get("tokens", [])}
    return {case_key(case): case for case in document["cases"]}, tokens


def verdict(results):
    """Counts the cases of each workload in which headroom is faster in every round."""
    lines = []
    for name in results[0]["workloads"]:
        ratios = [result["workloads"][name]["ratio"] for result in results]
        faster = sum(ratio["min"] > 1 for ratio in ratios)
        slower = [f"{result['model']} {result['type']} on {result['threads']} ({ratio['median']:.2f})"
                  for result, ratio in zip(results, ratios) if ratio["max"] < 1]
        middle = statistics.median(ratio["median"] for ratio in ratios)
        lines.append(f"- {name}: median ratio {middle:.2f}; faster in every round in {faster} of {len(ratios)} "
                     f"cases" + (f"; slower in every round: {', '.join(slower)}" if slower else "") + ".")
    return lines


def write_reports(arguments, document):
    heads = [cell for name in document["cases"][0]["workloads"]
             for cell in (f"{name} [ms]", "llama.cpp [ms]", "Ratio")]
    lines = [
        "# Stored weights against llama.cpp", "",
        "Prefill and decode on one GGUF file of random weights, which both programs read. Times are of this",
        "machine; only the ratios carry over, and only roughly.", "",
        "```sh", document["command"], "```", "",
        "`NODE_MODULES` is the folder that `npm install` of the packages fills that the program's docstring",
        "names; gguf and numpy come from `pip install gguf`.", "",
        f"{document['date']} · {document['cpu']} · {document['logical_cpus']} processors · headroom compiled by "
        f"{document['compiler']} · {document['version']}, its best processor backend for this machine, "
        "flash attention and KV-cache as they come.", "",
        f"{arguments.rounds} round(s), each with both programs one after the other. Prefill computes the last "
        "token's logits; decode is",
        f"a step behind {PROMPTS[0]} tokens. Ratio: llama.cpp's time over headroom's, median of the rounds; in "
        "brackets minimum and",
        "maximum; above 1, headroom is faster. Times are the least of the rounds' medians."
        + (" Some cases were measured again (`--keep`)." if arguments.keep else ""), "",
        *table(["Model", "Type", "Threads", "File [MiB]", *heads], 2, map(case_row, document["cases"])), "",
        *verdict(document["cases"]), "",
        "bfloat16 prefill asks headroom for `--activations bfloat16`; the other rows are its defaults, which",
        "quantise activations in blocks of 8 bits as llama.cpp does. The prebuilt binaries are those that",
        "npm's users run; a build from source is faster in float16 and float32 prefill.", "",
        *greedy_section(document["tokens"]),
    ]
    (arguments.reports / "llama_cpp.md").write_text("\n".join(lines).rstrip() + "\n")
    (arguments.reports / "llama_cpp.json").write_text(json.dumps(document, indent=2) + "\n")


def main():
    arguments = parse_arguments()
    engine = LlamaCpp(arguments)
    report, _ = run_json([arguments.headroom, "measure", "bert-tiny", "--runs", 1, "--format", "json", "-q"], 0)
    context = report["context"]
    head = {"rounds": arguments.rounds, "version": engine.version,
            **{key: context[key] for key in ("cpu", "logical_cpus", "compiler")}}
    cases, tokens = kept_cases(arguments, head)

    def write():
        # After every case, so that an interrupted run keeps its results.
        in_order = [tokens[key] for key in ((model, stored) for model in MODELS for stored in TYPES) if key in tokens]
        write_reports(arguments, {
            "date": datetime.date.today().isoformat(),
            "command": "python3 tests/bench/engines/llama_cpp.py --node-modules NODE_MODULES --folder FOLDER "
                       f"--rounds {arguments.rounds} --runs {arguments.runs} --steps {arguments.steps}",
            **head, "cases": [cases[key] for key in sorted(cases)], "tokens": in_order})

    for model in arguments.models:
        for stored in arguments.types:
            if "times" in arguments.what:
                for threads in arguments.threads:
                    case = case_of(arguments, engine, model, stored, threads)
                    cases[case_key(case)] = case
                    write()
            if "tokens" in arguments.what:
                path = engine.file(model, stored)
                tokens[model, stored] = {"model": model, "type": stored, **compare_tokens(
                    arguments, engine.program, path, TYPES[stored], VOCAB_SIZES[model])}
                print(tokens[model, stored], flush=True)
                write()


if __name__ == "__main__":
    main()
