"""Writes speed.md and speed.json from the results of compare.py."""

import json
import statistics

OURS = {"headroom": "eager", "headroom fused": "fused"}
PEERS = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "torch": "PyTorch",
         "torch compiled": "PyTorch compiled"}
ENGINES = [*OURS, *PEERS]


def span(ratio):
    return f"{ratio['median']:.2f} ({ratio['min']:.2f}–{ratio['max']:.2f})"


def row(cells):
    return "| " + " | ".join(cells) + " |"


def shape(result):
    return [f"{result['batch']} × {result['seq']}", str(result["threads"])]


def prefill_row(result):
    cells = shape(result)
    for name in ENGINES:
        engine = result["engines"][name]
        cells.append(f"{engine['median_s'] * 1e3:.1f} ({engine['flops_per_s'] * 1e-9:.0f})")
    return row(cells)


def ratio_row(result):
    return row([*shape(result), *(span(ratio) for ratio in result["ratios"].values())])


def share_row(result):
    return row([*shape(result), f"{statistics.median(result['library_flops_per_s']) * 1e-9:.0f}",
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


NAMES = {"bert-base": "BERT-base", "gpt2": "GPT-2", "vit-base": "ViT-Base", "smollm2-135m": "Llama (SmolLM2 135M)"}
SHARES = [
    "Fraction of a library's rate that a whole pass reaches: its GFLOP/s over those of its GEMMs alone, on",
    "oneDNN called directly, with packed weights per layer; in the same rounds. Values above 1 come from",
    "huge pages, which headroom requests and oneDNN does not, or from noise.", ""]
GRAPHS = [
    "ONNX Runtime gets a graph of BERT that its optimiser fuses completely: attention, skip layer norm, bias",
    "GELU. At 1 × 128 on one thread that graph ran no faster than with unfused attention, and faster than an",
    "export of fixed shape; other shapes were not tried. OpenVINO reads the models from PyTorch. All run BERT",
    "without an attention mask but ONNX Runtime, whose fusion requires one: a mask of ones. The other models",
    "call PyTorch's fused attention, which its exporter writes as operators; GPT-2 and Llama compute the logits",
    "of all tokens, ViT those of its 1,000 classes.", ""]


def dates(document):
    """The first and the last day of the results, which --resume may take from several runs."""
    days = sorted({result["date"] for result in document["prefill"] + document["decode"]})
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def introduction(document):
    context, versions = document["context"], document["versions"]
    return [
        "# Speed", "",
        "Forward passes in float32 against ONNX Runtime, OpenVINO and PyTorch, and a decode step against memory",
        "bandwidth. Times are of this machine; only the ratios carry over, and only roughly.", "",
        "```sh", document["command"], "```", "",
        "`NODE_MODULES` is the folder that `npm install --ignore-scripts onnxruntime-node` fills; PyTorch and",
        "OpenVINO, and onnx for the export, come from `pip install torch openvino onnx`.", "",
        f"{dates(document)} · {context['cpu']} · {context['logical_cpus']} processors · "
        f"headroom compiled by {context['compiler']}, with {context['backend']} · "
        f"ONNX Runtime {versions['onnxruntime']}, all graph optimisations · "
        f"OpenVINO {versions['openvino']}, in float32 for latency · "
        f"PyTorch {versions['torch']} with {versions['torch_blas']}, traced, "
        "frozen and optimised for inference, and by `torch.compile` with frozen weights.", "",
        f"{document['rounds']} round(s); each runs all engines one after the other, after a warm-up. Milliseconds: "
        "the best of",
        "the rounds' medians; in brackets GFLOP/s, with the matrix FLOPs that headroom counted. Speed-up of",
        "headroom: the median over rounds of the ratio within a round; in brackets minimum and maximum.", "",
        f"While an engine ran, other programs used {document['others_median']:.2f} processors (median; "
        f"maximum {document['others_max']:.2f};",
        "`others_processors` in [speed.json](speed.json)); where that is high, the figures on all processors",
        "mean little.", ""]


def model_section(model, results):
    speed_ups = (f"{ours} / {theirs}" for ours in OURS.values() for theirs in PEERS.values())
    return [
        f"## {NAMES[model]}, float32", "",
        *table(["Batch × seq", "Threads", *OURS, *PEERS.values()], 1, map(prefill_row, results)), "",
        *table(["Batch × seq", "Threads", *speed_ups], 1, map(ratio_row, results)), "",
        *verdict(results), ""]


def share_section(results):
    return [*SHARES, *table(["Batch × seq", "Threads", "GEMMs alone [GFLOP/s]", *OURS, *PEERS.values()], 1,
                            map(share_row, results)), ""]


def decode_section(results, rounds):
    return [
        "## Decode against memory bandwidth", "",
        f"One step of one sequence with {results[0]['past']} tokens in the cache: bytes of weights that the "
        "step reads (in bfloat16",
        "two per weight of a linear layer) over the median time, against plain reading of 512 MB in the same",
        f"round; {rounds} round(s), whose range is in brackets. Reads of the KV-cache and of "
        "activations are not counted.",
        "A fraction above 1 means that the plain read is a reference, not an upper bound.", "",
        *table(["Model", "Dtype", "Threads", "MB read", "ms", "GB/s", "Plain read GB/s", "Fraction"], 2,
               map(decode_row, results)), "",
        *decode_verdict(results), ""]


def write_reports(folder, document):
    """Writes speed.json, and speed.md with a section for each model."""
    lines = [*introduction(document), *GRAPHS]
    for model in NAMES:
        results = [result for result in document["prefill"] if result["model"] == model]
        if results:
            lines += model_section(model, results)
            lines += share_section([r for r in results if "shares" in r]) if "shares" in results[0] else []
    if document["decode"]:
        lines += decode_section(document["decode"], document["decode_rounds"])
    (folder / "speed.md").write_text("\n".join(lines).rstrip() + "\n")
    (folder / "speed.json").write_text(json.dumps(document, indent=2) + "\n")
