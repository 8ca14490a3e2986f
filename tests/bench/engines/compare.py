#!/usr/bin/env python3
"""Compares headroom's forward pass with other engines, and its decode with memory bandwidth.

Every round runs all programs one after the other, so that other load affects them alike; ratios are
taken within a round. Before each program it waits for idle processors, at most --patience seconds,
and it records how many processors other programs used. A benchmark, not a test: it checks nothing.
Needs node with onnxruntime-node, a python3 with torch 2, onnx and openvino, g++.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from speed_report import ENGINES, OURS, PEERS, decode_row, prefill_row, write_reports

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CASES = ["bert-base:1x128", "bert-base:8x128", "bert-base:1x512", "gpt2:1x128", "gpt2:1x512", "vit-base:1x197",
         "smollm2-135m:1x128", "smollm2-135m:1x512"]
DECODERS = [("tinyllama-1.1b", 63), ("smollm2-135m", 63)]
DTYPES = ["float32", "bfloat16"]
# Matrix products of a decoder without weights.
WEIGHTLESS = ("attention.scores", "attention.context")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--headroom", type=pathlib.Path, default=ROOT / "build/release/headroom")
    parser.add_argument("--node-modules", type=pathlib.Path, required=True,
                        help="node_modules folder with onnxruntime-node")
    parser.add_argument("--python", default=sys.executable,
                        help="a python3 with torch, onnx and openvino (this one)")
    parser.add_argument("--models", type=pathlib.Path, help="folder to keep the exported ONNX files in")
    parser.add_argument("--cases", nargs="+", default=CASES, metavar="MODEL:BxS",
                        help="model, batch size and tokens per sequence")
    parser.add_argument("--resume", action="store_true",
                        help="keep the cases that speed.json has from the same processor and versions")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0,
                        help="approximate time of each engine per round")
    parser.add_argument("--decode-rounds", type=int, default=3)
    parser.add_argument("--patience", type=float, default=5.0,
                        help="longest wait for idle processors before a program, in seconds")
    parser.add_argument("--reports", type=pathlib.Path, default=ROOT / "reports")
    return parser.parse_args()


def processor_seconds():
    """Busy and total seconds of all processors since boot."""
    fields = [int(x) for x in pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    tick = os.sysconf("SC_CLK_TCK")
    return (sum(fields) - fields[3] - fields[4]) / tick, sum(fields) / tick


def wait_for_quiet(patience):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        busy, total = processor_seconds()
        time.sleep(0.2)
        busy_after, total_after = processor_seconds()
        if busy_after - busy < 0.1 * (total_after - total):
            return


def run_json(command, patience, environment=None):
    """Returns the JSON that a program prints, and the number of processors that others used."""
    wait_for_quiet(patience)
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy, _ = processor_seconds()
    start = time.monotonic()
    done = subprocess.run([str(x) for x in command], check=False, text=True, capture_output=True,
                          env={**os.environ, **(environment or {})})
    if done.returncode != 0:
        sys.exit(f"{shlex.join(map(str, command))}\n{done.stderr}")
    wall = time.monotonic() - start
    own_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy_after, _ = processor_seconds()
    own_s = own_after.ru_utime + own_after.ru_stime - own.ru_utime - own.ru_stime
    return json.loads(done.stdout), max(0.0, (busy_after - busy - own_s) / wall)


def compile_program(program, sources, libraries):
    subprocess.run([os.environ.get("CXX", "g++"), "-std=c++20", "-O3", "-march=native", "-fopenmp",
                    "-I", ROOT / "include", "-I", ROOT / "src/measured/kernels", *sources, *libraries,
                    "-o", program], check=True)


class Bench:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder
        # A copy, so that a concurrent build does not change it.
        self.headroom = shutil.copy2(arguments.headroom, folder / "headroom")
        self.models = arguments.models or folder / "onnx"
        kernels = ROOT / "src/measured/kernels"
        self.bandwidth = folder / "read_bandwidth"
        compile_program(self.bandwidth, [HERE / "read_bandwidth.cpp", kernels / "pages.cpp",
                                         ROOT / "src/base/integer.cpp", ROOT / "src/base/error.cpp"],
                        ["-lfmt"])
        self.library_gemms = folder / "library_gemms"
        compile_program(self.library_gemms, [HERE / "library_gemms.cpp"], ["-ldnnl"])

    def onnx_file(self, model):
        """The exported `model`, written at its first use."""
        file = self.models / f"{model}.onnx"
        if not file.exists():
            subprocess.run([self.arguments.python, HERE / "export_onnx.py", model, self.models], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return file

    def run(self, command, environment=None):
        return run_json(command, self.arguments.patience, environment)

    def measure(self, model, *options):
        return self.run([self.headroom, "measure", model, *options, "--format", "json", "-q"])

    def engine(self, name, model, batch, seq, threads, runs):
        options = ["--batch", batch, "--seq", seq, "--threads", threads, "--runs", runs,
                   "--warmup", 1 if runs < 8 else 2]
        if name in OURS:
            report, others = self.measure(model, *options, "--weights", "float32", "--attention", OURS[name])
            return {**report["time"], "matrix_flops": report["counted"]["matrix_flops"],
                    "context": report["context"], "others": others}
        if name == "onnxruntime":
            report, others = self.run(["node", HERE / "time_onnxruntime.js", self.onnx_file(model), *options],
                                      {"NODE_PATH": str(self.arguments.node_modules.resolve())})
        else:
            program = ([HERE / "time_openvino.py"] if name == "openvino" else
                       [HERE / "time_torch.py", "--mode", "compiled" if "compiled" in name else "frozen"])
            report, others = self.run([self.arguments.python, *program, model, *options],
                                      {"OMP_NUM_THREADS": str(threads)})
        return {**report, "others": others}

    def library_rate(self, batch, seq, threads, runs):
        """FLOP/s of the GEMMs of BERT's pass alone on oneDNN, the fastest library here."""
        report, _ = self.run([self.library_gemms, batch * seq, threads, runs])
        return report["matrix_flops"] / report["median_s"]

    def prefill(self, model, batch, seq, threads):
        runs = max(3, min(30, round(self.arguments.seconds * 7 * threads / (batch * seq / 128))))
        rounds, library = [], []
        for _ in range(self.arguments.rounds):
            rounds.append({name: self.engine(name, model, batch, seq, threads, runs) for name in ENGINES})
            if model == "bert-base":
                library.append(self.library_rate(batch, seq, threads, runs))
        flops = rounds[0]["headroom"]["matrix_flops"]
        result = {"date": today(), "model": model, "batch": batch, "seq": seq, "threads": threads, "runs": runs,
                  "matrix_flops": flops, "library_flops_per_s": library,
                  "engines": {name: engine_times(rounds, name, flops) for name in ENGINES},
                  "ratios": {f"{ours} / {theirs}": spread([r[theirs]["median_s"] / r[ours]["median_s"]
                                                           for r in rounds])
                             for ours in OURS for theirs in PEERS}}
        if library:
            result["shares"] = {name: spread([flops / r[name]["median_s"] / rate
                                              for r, rate in zip(rounds, library)]) for name in ENGINES}
        self.note(rounds[0])
        print(model, prefill_row(result), flush=True)
        return result

    def note(self, entry):
        self.context = entry["headroom"]["context"]
        self.versions = {name: entry[name]["version"] for name in ("onnxruntime", "openvino", "torch")}
        self.versions["torch_blas"] = entry["torch"]["blas"]

    def decode(self, model, past, threads):
        """Measures decode of a model in each dtype, and the bandwidth of plain reading, in every round."""
        rounds = []
        for _ in range(self.arguments.decode_rounds):
            entry = {"read": self.run([self.bandwidth, threads])[0]}
            for dtype in DTYPES:
                entry[dtype], _ = self.measure(model, "--phase", "decode", "--past", past, "--threads",
                                               threads, "--weights", dtype, "--runs", 20)
            rounds.append(entry)
        results = []
        for dtype in DTYPES:
            size = weight_bytes_read(rounds[0][dtype], dtype)
            rates = [size / r[dtype]["time"]["median_s"] for r in rounds]
            shares = [rate / r["read"]["median_bytes_per_s"] for rate, r in zip(rates, rounds)]
            result = {"date": today(), "model": model, "past": past, "threads": threads, "dtype": dtype,
                      "weight_bytes_read": size,
                      "median_s": min(r[dtype]["time"]["median_s"] for r in rounds),
                      "bytes_per_s": max(rates),
                      "read_bytes_per_s": max(r["read"]["median_bytes_per_s"] for r in rounds),
                      "share_of_read": spread(shares)}
            print(decode_row(result), flush=True)
            results.append(result)
        return results


def today():
    return datetime.date.today().isoformat()


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def engine_times(rounds, name, flops):
    """Times of an engine in all rounds, and its FLOP/s in the best one."""
    medians = [entry[name]["median_s"] for entry in rounds]
    return {"median_s": min(medians), "flops_per_s": flops / min(medians), "round_medians_s": medians,
            "round_best_s": [entry[name]["min_s"] for entry in rounds],
            "others_processors": [round(entry[name]["others"], 2) for entry in rounds]}


def weight_bytes_read(report, dtype):
    """Bytes of weights that one step of one sequence reads: all weights except the embedding table,
    whose other rows are not looked up. A tied table counts: the logits read it whole."""
    model = report["model"]
    embedding = model["vocab_size"] * model["hidden_size"]
    linear = sum(op["matrix_flops"] for op in report["ops"]
                 if not op["path"].endswith(WEIGHTLESS)) // 2
    size = 2 if dtype == "bfloat16" else 4
    weights = report["counted"]["weight_bytes"] // size
    untied = weights - linear >= embedding
    return (weights - (embedding if untied else 0)) * size


def write_document(arguments, context, versions, start, prefill, decode):
    others = [x for result in prefill for engine in result["engines"].values()
              for x in engine["others_processors"]]
    write_reports(arguments.reports, {
        "command": "python3 tests/bench/engines/compare.py --node-modules NODE_MODULES "
                   f"--rounds {arguments.rounds} --seconds {arguments.seconds:g} "
                   f"--decode-rounds {arguments.decode_rounds} --patience {arguments.patience:g}",
        "rounds": arguments.rounds, "decode_rounds": arguments.decode_rounds,
        "seconds": round(time.monotonic() - start), "context": context, "versions": versions,
        "others_median": statistics.median(others), "others_max": max(others),
        "prefill": prefill, "decode": decode})


def kept(arguments):
    """The results of speed.json, with --resume; none of another processor or of other versions is
    mixed with new ones, since `main` compares both before it writes."""
    file = arguments.reports / "speed.json"
    return json.loads(file.read_text()) if arguments.resume and file.exists() else None


def main():
    arguments = parse_arguments()
    start = time.monotonic()
    old = kept(arguments)
    prefill, decode = (old["prefill"], old["decode"]) if old else ([], [])
    done = {(r["model"], r["batch"], r["seq"], r["threads"]) for r in prefill}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, pathlib.Path(folder))

        def write():
            context = {key: bench.context[key] for key in
                       ("cpu", "logical_cpus", "caches", "compiler", "backend")}
            context["system"] = platform.system()
            if old and (old["context"], old["versions"]) != (context, bench.versions):
                sys.exit("speed.json is of another processor or of other versions: run without --resume")
            write_document(arguments, context, bench.versions, start, prefill, decode)

        # Writes the reports after every case, so that an interrupted run keeps its results.
        for model, shape in (case.split(":") for case in arguments.cases):
            batch, seq = map(int, shape.split("x"))
            for threads in arguments.threads:
                if (model, batch, seq, threads) not in done:
                    prefill.append(bench.prefill(model, batch, seq, threads))
                    write()
        for model, past in DECODERS if arguments.decode_rounds > 0 and not decode else []:
            for threads in arguments.threads:
                decode += bench.decode(model, past, threads)
                write()
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
