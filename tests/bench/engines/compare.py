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

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
OURS = {"headroom": "eager", "headroom fused": "fused"}
PEERS = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "torch": "PyTorch",
         "torch compiled": "PyTorch compiled"}
ENGINES = [*OURS, *PEERS]
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
    parser.add_argument("--models", type=pathlib.Path, help="folder to keep the exported ONNX file in")
    parser.add_argument("--shapes", nargs="+", default=["1x128", "8x128", "1x512"], metavar="BxS")
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
        if not (self.models / "bert.onnx").exists():
            subprocess.run([arguments.python, HERE / "export_bert.py", self.models], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run(self, command, environment=None):
        return run_json(command, self.arguments.patience, environment)

    def measure(self, model, *options):
        return self.run([self.headroom, "measure", model, *options, "--format", "json", "-q"])

    def engine(self, name, batch, seq, threads, runs):
        options = ["--batch", batch, "--seq", seq, "--threads", threads, "--runs", runs,
                   "--warmup", 1 if runs < 8 else 2]
        if name in OURS:
            report, others = self.measure("bert-base", *options, "--attention", OURS[name])
            return {**report["time"], "matrix_flops": report["counted"]["matrix_flops"],
                    "context": report["context"], "others": others}
        if name == "onnxruntime":
            report, others = self.run(["node", HERE / "time_onnxruntime.js", self.models / "bert.onnx",
                                       *options],
                                      {"NODE_PATH": str(self.arguments.node_modules.resolve())})
        else:
            program = ([HERE / "time_openvino.py"] if name == "openvino" else
                       [HERE / "time_torch.py", "--mode", "compiled" if "compiled" in name else "frozen"])
            report, others = self.run([self.arguments.python, *program, *options],
                                      {"OMP_NUM_THREADS": str(threads)})
        return {**report, "others": others}

    def library_rate(self, batch, seq, threads, runs):
        """FLOP/s of the pass's GEMMs alone on oneDNN, the fastest library here."""
        report, _ = self.run([self.library_gemms, batch * seq, threads, runs])
        return report["matrix_flops"] / report["median_s"]

    def prefill(self, batch, seq, threads):
        runs = max(3, min(30, round(self.arguments.seconds * 7 * threads / (batch * seq / 128))))
        rounds, library = [], []
        for _ in range(self.arguments.rounds):
            rounds.append({name: self.engine(name, batch, seq, threads, runs) for name in ENGINES})
            library.append(self.library_rate(batch, seq, threads, runs))
        flops = rounds[0]["headroom"]["matrix_flops"]
        result = {"batch": batch, "seq": seq, "threads": threads, "runs": runs, "matrix_flops": flops,
                  "library_flops_per_s": library, "engines": {}, "ratios": {}, "shares": {}}
        for name in ENGINES:
            medians = [entry[name]["median_s"] for entry in rounds]
            result["engines"][name] = {
                "median_s": min(medians), "flops_per_s": flops / min(medians),
                "round_medians_s": medians, "round_best_s": [r[name]["min_s"] for r in rounds],
                "others_processors": [round(r[name]["others"], 2) for r in rounds]}
        for ours in OURS:
            for theirs in PEERS:
                ratios = [r[theirs]["median_s"] / r[ours]["median_s"] for r in rounds]
                result["ratios"][f"{ours} / {theirs}"] = {
                    "median": statistics.median(ratios), "min": min(ratios), "max": max(ratios)}
        for name in ENGINES:
            shares = [flops / r[name]["median_s"] / rate for r, rate in zip(rounds, library)]
            result["shares"][name] = {
                "median": statistics.median(shares), "min": min(shares), "max": max(shares)}
        self.note(rounds[0])
        print(prefill_row(result), flush=True)
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
            result = {"model": model, "past": past, "threads": threads, "dtype": dtype,
                      "weight_bytes_read": size,
                      "median_s": min(r[dtype]["time"]["median_s"] for r in rounds),
                      "bytes_per_s": max(rates),
                      "read_bytes_per_s": max(r["read"]["median_bytes_per_s"] for r in rounds),
                      "share_of_read": {"median": statistics.median(shares), "min": min(shares),
                                        "max": max(shares)}}
            print(decode_row(result), flush=True)
            results.append(result)
        return results


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


def span(ratio):
    return f"{ratio['median']:.2f} ({ratio['min']:.2f}–{ratio['max']:.2f})"


def row(cells):
    return "| " + " | ".join(cells) + " |"


def prefill_row(result):
    cells = [f"{result['batch']} × {result['seq']}", str(result["threads"])]
    for name in ENGINES:
        engine = result["engines"][name]
        cells.append(f"{engine['median_s'] * 1e3:.1f} ({engine['flops_per_s'] * 1e-9:.0f})")
    return row(cells)


def ratio_row(result):
    return row([f"{result['batch']} × {result['seq']}", str(result["threads"]),
                *(span(ratio) for ratio in result["ratios"].values())])


def share_row(result):
    return row([f"{result['batch']} × {result['seq']}", str(result["threads"]),
                f"{statistics.median(result['library_flops_per_s']) * 1e-9:.0f}",
                *(span(share) for share in result["shares"].values())])


def decode_row(result):
    return row([result["model"], result["dtype"], str(result["threads"]),
                f"{result['weight_bytes_read'] * 1e-6:.1f}", f"{result['median_s'] * 1e3:.2f}",
                f"{result['bytes_per_s'] * 1e-9:.1f}", f"{result['read_bytes_per_s'] * 1e-9:.1f}",
                span(result["share_of_read"])])


def table(head, left, rows):
    return [row(head), row([":--"] * left + ["--:"] * (len(head) - left)), *rows]


def verdict(results):
    """Lists the cases where headroom is faster, slower, or neither beyond the noise of the rounds."""
    lines = []
    for theirs, name in PEERS.items():
        for ours, label in OURS.items():
            faster, others = 0, []
            for result in results:
                ratio = result["ratios"][f"{ours} / {theirs}"]
                where = f"{result['batch']} × {result['seq']} on {result['threads']}"
                if ratio["min"] > 1:
                    faster += 1
                elif ratio["max"] < 1:
                    others.append(f"slower at {where} ({ratio['median']:.2f})")
                else:
                    others.append(f"undecided at {where} ({span(ratio)})")
            lines.append("; ".join([f"- {label} against {name}: faster in every round in {faster} of "
                                    f"{len(results)} cases", *others]) + ".")
    return lines


def decode_verdict(results):
    """Lists the cases that reach the bandwidth of plain reading, and those below."""
    below = [f"{r['model']} {r['dtype']} on {r['threads']} ({r['share_of_read']['median']:.2f})"
             for r in results if r["share_of_read"]["median"] < 0.95]
    return [f"- within 5 % of the plain read or above it: {len(results) - len(below)} of "
            f"{len(results)} cases.", *([f"- below: {', '.join(below)}."] if below else [])]


def write_reports(arguments, document):
    prefill, decode, context = document["prefill"], document["decode"], document["context"]
    lines = [
        "# Speed", "",
        "Forward pass of BERT-base in float32 against ONNX Runtime, OpenVINO and PyTorch, and a decode step",
        "against memory bandwidth. Times are of this machine; only the ratios carry over, and only roughly.", "",
        "```sh", document["command"], "```", "",
        "`NODE_MODULES` is the folder that `npm install --ignore-scripts onnxruntime-node` fills; PyTorch and",
        "OpenVINO, and onnx for the export, come from `pip install torch openvino onnx`.", "",
        f"{document['date']} · {context['cpu']} · {context['logical_cpus']} processors · "
        f"headroom compiled by {context['compiler']}, with {context['backend']} · "
        f"ONNX Runtime {document['versions']['onnxruntime']}, all graph optimisations · "
        f"OpenVINO {document['versions']['openvino']}, in float32 for latency · "
        f"PyTorch {document['versions']['torch']} with {document['versions']['torch_blas']}, traced, "
        "frozen and optimised for inference, and by `torch.compile` with frozen weights.", "",
        "## BERT-base, float32", "",
        f"{arguments.rounds} round(s); each runs all engines one after the other, after a warm-up. Milliseconds: "
        "the best of",
        "the rounds' medians; in brackets GFLOP/s, with the matrix FLOPs that headroom counted.", "",
        *table(["Batch × seq", "Threads", *OURS, *PEERS.values()], 1, map(prefill_row, prefill)), "",
        "Speed-up of headroom: the median over rounds of the ratio within a round; in brackets minimum and",
        "maximum.", "",
        *table(["Batch × seq", "Threads", *(f"{ours} / {theirs}" for ours in OURS.values()
                                            for theirs in PEERS.values())], 1,
               map(ratio_row, prefill)), "",
        *verdict(prefill), "",
        "Fraction of a library's rate that a whole pass reaches: its GFLOP/s over those of its GEMMs alone, on",
        "oneDNN called directly, with packed weights per layer; in the same rounds. Values above 1 come from",
        "huge pages, which headroom requests and oneDNN does not, or from noise.", "",
        *table(["Batch × seq", "Threads", "GEMMs alone [GFLOP/s]", *OURS, *PEERS.values()], 1,
               map(share_row, prefill)), "",
        f"While an engine ran, other programs used {document['others_median']:.2f} processors (median; "
        f"maximum {document['others_max']:.2f};",
        "`others_processors` in [speed.json](speed.json)); where that is high, the figures on all processors",
        "mean little.", "",
        "ONNX Runtime gets a graph that its optimiser fuses completely: attention, skip layer norm, bias GELU.",
        "At 1 × 128 on one thread that graph ran no faster than with unfused attention, and faster than an",
        "export of fixed shape; other shapes were not tried. OpenVINO reads the model from PyTorch. All run",
        "without an attention mask but ONNX Runtime, whose fusion requires one: a mask of ones.", "",
    ]
    if decode:
        lines += [
            "## Decode against memory bandwidth", "",
            f"One step of one sequence with {decode[0]['past']} tokens in the cache: bytes of weights that the "
            "step reads (in bfloat16",
            "two per weight of a linear layer) over the median time, against plain reading of 512 MB in the same",
            f"round; {arguments.decode_rounds} round(s), whose range is in brackets. Reads of the KV-cache and of "
            "activations are not counted.",
            "A fraction above 1 means that the plain read is a reference, not an upper bound.", "",
            *table(["Model", "Dtype", "Threads", "MB read", "ms", "GB/s", "Plain read GB/s", "Fraction"], 2,
                   map(decode_row, decode)), "",
            *decode_verdict(decode), "",
        ]
    (arguments.reports / "speed.md").write_text("\n".join(lines).rstrip() + "\n")
    (arguments.reports / "speed.json").write_text(json.dumps(document, indent=2) + "\n")


def write_document(arguments, bench, start, prefill, decode):
    others = [x for result in prefill for engine in result["engines"].values()
              for x in engine["others_processors"]]
    context = {key: bench.context[key] for key in
               ("cpu", "logical_cpus", "caches", "compiler", "backend")}
    write_reports(arguments, {
        "date": datetime.date.today().isoformat(),
        "command": "python3 tests/bench/engines/compare.py --node-modules NODE_MODULES "
                   f"--rounds {arguments.rounds} --seconds {arguments.seconds:g} "
                   f"--decode-rounds {arguments.decode_rounds} --patience {arguments.patience:g}",
        "seconds": round(time.monotonic() - start),
        "context": {**context, "system": platform.system()}, "versions": bench.versions,
        "others_median": statistics.median(others), "others_max": max(others),
        "prefill": prefill, "decode": decode})


def main():
    arguments = parse_arguments()
    start = time.monotonic()
    prefill, decode = [], []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(arguments, pathlib.Path(folder))
        # Writes the reports after every case, so that an interrupted run keeps its results.
        for batch, seq in (map(int, shape.split("x")) for shape in arguments.shapes):
            for threads in arguments.threads:
                prefill.append(bench.prefill(batch, seq, threads))
                write_document(arguments, bench, start, prefill, decode)
        for model, past in DECODERS if arguments.decode_rounds > 0 else []:
            for threads in arguments.threads:
                decode += bench.decode(model, past, threads)
                write_document(arguments, bench, start, prefill, decode)
    print(f"{time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
