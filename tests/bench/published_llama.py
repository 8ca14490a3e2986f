"""llama-bench results of all given logs beside headroom's predictions, by device."""

import json
import re
import statistics
from csv import writer
from io import StringIO

from published_base import DATA, ROOT, median_and_ninth, off, signed, table

ROWS = ROOT / "reports" / "llama_bench.csv"
UBATCH = 512  # llama.cpp's default of tokens in a pass

DEVICES = {
    "NVIDIA A100 80GB PCIe": "a100-80gb-pcie",
    "NVIDIA A100-SXM4-80GB": "a100-80gb",
    "NVIDIA A40": "a40",
    "NVIDIA GB10 (DGX Spark)": "dgx-spark",
    "NVIDIA GeForce RTX 3070": "rtx-3070",
    "NVIDIA GeForce RTX 3080": "rtx-3080",
    "NVIDIA GeForce RTX 3090": "rtx-3090",
    "NVIDIA GeForce RTX 4080": "rtx-4080",
    "NVIDIA GeForce RTX 4090": "rtx-4090",
    "NVIDIA H100 PCIe": "h100-80gb-pcie",
    "NVIDIA L40S": "l40s",
    "NVIDIA RTX 4000 Ada Generation": "rtx-4000-ada",
    "NVIDIA RTX 5000 Ada Generation": "rtx-5000-ada",
    "NVIDIA RTX 6000 Ada Generation": "rtx-6000-ada",
    "NVIDIA RTX A6000": "rtx-a6000",
    "AMD Radeon 8060S Graphics": "ryzen-ai-max-395",
    "Radeon 8060S Graphics": "ryzen-ai-max-395",
    "AMD Radeon AI PRO R9700": "radeon-ai-pro-r9700",
}
# ROCm and AMD's Vulkan driver print no name of the card: by the repository that the log is of.
NAMELESS = ("AMD Radeon Graphics", "AMD Ryzen 9 9900X3D 12-Core Processor")
OF_REPOSITORY = {"amd-r9700-ai-toolboxes": "radeon-ai-pro-r9700", "amd-strix-halo-toolboxes": "ryzen-ai-max-395",
                 "strix-halo-testing": "ryzen-ai-max-395"}
# Devices that the catalogue lacks: the machine of the same chip's family, and what differs.
# NVIDIA's Ada and Ampere white papers and data sheets of RTX 4000 and 5000 Ada (327.6 and 1,044.4 TFLOP/s, which are float8
# with sparsity); AMD's Radeon AI PRO R9700 specifications (191 TFLOP/s of matrix float16, dense, 32 GB at 640 GB/s).
DERIVED = {
    "rtx-3070": ("rtx-3080", {"float32_flops_per_s": 20.3e12, "float16_flops_per_s": 40.6e12, "int8_ops_per_s": 162.6e12,
                              "int4_ops_per_s": 325.2e12, "memory_bytes_per_s": 448e9}, 46),
    "rtx-4000-ada": ("rtx-6000-ada", {"float32_flops_per_s": 26.7e12, "float16_flops_per_s": 81.9e12,
                                      "float8_flops_per_s": 163.8e12, "int8_ops_per_s": 163.8e12, "int4_ops_per_s": 327.6e12,
                                      "memory_bytes_per_s": 360e9}, 48),
    "rtx-5000-ada": ("rtx-6000-ada", {"float32_flops_per_s": 65.3e12, "float16_flops_per_s": 261.1e12,
                                      "float8_flops_per_s": 522.2e12, "int8_ops_per_s": 522.2e12, "int4_ops_per_s": 1044.4e12,
                                      "memory_bytes_per_s": 576e9}, 100),
    "radeon-ai-pro-r9700": ("rx-9070-xt", {"float32_flops_per_s": 47.8e12, "float16_flops_per_s": 191e12,
                                           "float8_flops_per_s": 383e12, "int8_ops_per_s": 383e12, "int4_ops_per_s": 766e12,
                                           "memory_bytes_per_s": 640e9}, 64),
}

# By llama.cpp's name of the architecture and size.
MODELS = {
    "llama 8B": "llama-3-8b", "llama 70B": "llama-3-70b", "llama 7B": "llama-2-7b", "gpt-oss 120B": "gpt-oss-120b",
    "gpt-oss 20B": "gpt-oss-20b", "nemotron_h_moe 31B.A3.5B": "nemotron-3-nano-30b-a3b",
    "qwen3moe 30B.A3B": "qwen3-30b-a3b", "qwen3next 80B.A3B": "qwen3-next-80b-a3b", "gemma3 12B": "gemma-3-12b",
    "gemma3 4B": "gemma-3-4b", "gemma3 27B": "gemma-3-27b", "qwen35 27B": "qwen3.5-27b",
    "qwen35moe 122B.A10B": "qwen3.5-122b-a10b", "qwen35moe 35B.A3B": "qwen3.5-35b-a3b", "gemma4 26B.A4B": "gemma-4-26b-a4b",
    "minimax-m2 230B.A10B": "minimax-m2",
}
WEIGHTS = {"F16": "float16", "BF16": "bfloat16", "Q4_K - Medium": "q4_k_m", "Q5_K - Medium": "q5_k_m", "Q8_0": "q8_0",
           "Q6_K": "q6_k", "Q4_0": "q4_0", "MXFP4 MoE": None}


def device_of(log):
    """The machine and the number of its devices; None without one."""
    found = re.fullmatch(r"(?:(\d)x )?(.*)", log["device"])
    count, name = int(found.group(1) or 1), found.group(2)
    if name in NAMELESS:
        repository = log["source_url"].split("/")[4]
        return OF_REPOSITORY.get(repository), count
    return DEVICES.get(name), count


def model_of(log):
    """The preset and the format of its weights (None: as published); None without a preset."""
    for name, preset in MODELS.items():
        if log["model"].startswith(name + " ") and log["model"][len(name) + 1:] in WEIGHTS:
            return preset, WEIGHTS[log["model"][len(name) + 1:]]
    return None


def test_of(name):
    """Kind, tokens, and tokens before them; None for tests of prompt and generation together."""
    found = re.fullmatch(r"(pp|tg)(\d+)(?:@d(\d+))?", name.replace(" ", ""))
    return (found.group(1), int(found.group(2)), int(found.group(3) or 0)) if found else None


def reason_against(log, test):
    """Of a result without a prediction."""
    flags = log["flags"]
    if test_of(test["test"]) is None:
        return "prompt and generation together"
    if "RPC" in flags.get("backend", ""):
        return "several machines (RPC)"
    if "ot" in flags or log["fork"] == "ik_llama.cpp":
        return "experts on the host, or ik_llama.cpp"
    if device_of(log)[0] is None:
        return "no machine"
    return "no preset of the model" if model_of(log) is None else None


def machine_file(tool, machine):
    """A name of the catalogue, or the file of a derived machine."""
    if machine not in DERIVED:
        return machine
    base, changes, processors = DERIVED[machine]
    file = tool.folder / f"{machine}.json"
    profile = json.loads((ROOT / "presets" / "machines" / f"{base}.json").read_text())
    profile |= changes | {"name": machine}
    profile["processors"]["count"] = processors
    file.write_text(json.dumps(profile))
    return str(file)


class Predictions:
    """Tokens per second, with the factors of their range."""

    def __init__(self, tool):
        self.tool = tool
        self.known = {}

    def of(self, machine, count, model, weights, test, ubatch):
        kind, tokens, past = test
        format_words = ["--weights", weights] if weights else []
        common = [model, "--machine", machine_file(self.tool, machine), "--dtype", "float16", "--attention", "fused",
                  *format_words]
        if count > 1:
            return self.of_pipeline(common, count, kind, tokens, past, ubatch)
        if kind == "pp":
            # The prompt after `past` tokens: the whole one without its first part.
            whole, high = self.seconds(["analyze", *common, "--seq", past + tokens])
            return whole - (self.seconds(["analyze", *common, "--seq", past])[0] if past else 0), high
        return self.seconds(["analyze", *common, "--phase", "decode", "--past", past + tokens // 2], tokens)

    def of_pipeline(self, common, count, kind, tokens, past, ubatch):
        words = ["fit", *common, "--count", count, "--pp", count, "--batch", 1, "--memory", "1TB", "--seq"]
        if kind == "tg":
            time = self.time([*words, past + tokens // 2 + 1])
            return tokens * time["iteration_s"], time["high_s"] / time["iteration_s"]
        time = self.time([*words, past + tokens])
        serial = time["ttft_s"] - (self.time([*words, past])["ttft_s"] if past else 0)
        passes = -(-tokens // ubatch)
        return serial * (passes + count - 1) / (count * passes), time["high_s"] / time["iteration_s"]

    def time(self, words):
        key = tuple(map(str, words))
        if key not in self.known:
            self.known[key] = self.tool.json(*key)["time"]
        return self.known[key]

    def seconds(self, words, times=1):
        time = self.time(words)
        return times * time["total_s"], time["high_s"] / time["total_s"]


def results():
    """Every result of the logs, with its log and its place in the file."""
    with open(DATA / "logs" / "llamacpp_logs.jsonl", encoding="utf-8") as file:
        for line in file:
            log = json.loads(line)
            for test in log["tests"] or []:
                yield log, test


def compared(tool):
    """Of every result: its line of the CSV, and of those with a prediction the group, the error, and the factor of the
    range."""
    predictions = Predictions(tool)
    lines, errors = [], []
    for log, test in results():
        reason = reason_against(log, test)
        machine, count = device_of(log)
        line = [log["device"], log["model"], test["test"].replace(" ", ""), log["build"], f"{test['tps']:.2f}"]
        if reason:
            lines.append([*line, "", "", reason])
            continue
        kind, tokens, past = parsed = test_of(test["test"])
        ubatch = int(log["flags"].get("n_ubatch", UBATCH))
        seconds, factor = predictions.of(machine, count, *model_of(log), parsed, ubatch)
        error = off(tokens / seconds, test["tps"])
        inside = is_inside(tokens / seconds / test["tps"], factor)
        lines.append([*line, f"{tokens / seconds:.2f}", signed(error), "" if inside else "outside its range"])
        errors.append(((machine, count, kind), error, factor, log))
    return lines, errors


def csv_of(lines):
    text = StringIO()
    rows = writer(text, lineterminator="\n")
    rows.writerow(["device", "model", "test", "build", "measured_tokens_per_s", "predicted_tokens_per_s", "off_percent", "note"])
    rows.writerows(lines)
    return text.getvalue()


def is_inside(ratio, factor):
    return 1 / factor <= ratio <= factor


def grouped(errors, group_of):
    groups = {}
    for key, error, factor, log in errors:
        groups.setdefault(group_of(key, log), []).append((error, is_inside(1 + error / 100, factor)))
    return groups


def cells(members):
    errors = [error for error, _ in members]
    median, ninth = median_and_ninth(errors)
    return [str(len(members)), f"{median:.0f}", f"{ninth:.0f}", signed(statistics.median(errors), 0),
            str(sum(not inside for _, inside in members))]


def kinds(errors, group_of, name):
    rows = []
    for key, members in sorted(grouped(errors, group_of).items()):
        rows.append([*key, *cells(members)])
    head = [name, "Test", "Results", "Median [%]", "Nine of ten [%]", "Bias [%]", "Outside"]
    return table(head, rows)


# Share of the peak that is assumed of 16-bit GEMMs when serving (src/machine/efficiency.cpp), by class of devices.
CLASSES = {
    "GeForce of Ampere and Ada": (0.74, ("rtx-3070", "rtx-3080", "rtx-3090", "rtx-4080", "rtx-4090")),
    "Ampere, others": (0.74, ("a100-80gb", "a100-80gb-pcie", "a40", "rtx-a6000")),
    "Ada, others": (0.74, ("l40s", "rtx-4000-ada", "rtx-5000-ada", "rtx-6000-ada")),
    "Hopper": (0.65, ("h100-80gb-pcie",)),
    "RDNA": (0.50, ("radeon-ai-pro-r9700", "ryzen-ai-max-395")),
}
FITTED_MODELS = ("llama 8B", "llama 7B")


def prompt_shares(errors):
    """Of each class, the share of the peak by the prompts of Llama 7B and 8B on one device, and the errors of all others."""
    lines = []
    for name, (share, machines) in CLASSES.items():
        fitted, judged = [], []
        for (machine, count, kind), error, factor, log in errors:
            if machine in machines and kind == "pp":
                given = count == 1 and log["model"].startswith(FITTED_MODELS)
                (fitted if given else judged).append((1 + error / 100, factor))
        slower = statistics.median(ratio for ratio, _ in fitted)
        line = [name, f"{share / slower:.2f}", str(len(fitted)), str(len(judged))]
        for by in (1, slower):
            line += [f"{one:.0f}" for one in median_and_ninth([100 * (ratio / by - 1) for ratio, _ in judged])]
            line.append(str(sum(not is_inside(ratio / by, factor) for ratio, factor in judged)))
        lines.append(line)
    head = ["Devices", "Share", "Fitted to", "Judged on", "Before: median [%]", "nine of ten [%]", "outside",
            "After: median [%]", "nine of ten [%]", "outside"]
    return table(head, lines)


KIND = {"pp": "prompt", "tg": "generation"}


def by_device(key, _):
    machine, count, kind = key
    return (machine if count == 1 else f"{count} × {machine}"), KIND[kind]


def by_model(key, log):
    return log["model"], KIND[key[2]]


def summaries(errors):
    lines = []
    for kind, name in KIND.items():
        members = [(error, is_inside(1 + error / 100, factor)) for key, error, factor, _ in errors if key[2] == kind]
        count, median, ninth, bias, outside = cells(members)
        lines.append(f"- {name}: median {median} %, nine of ten within {ninth} %, bias {bias} %; {outside} of {count} outside the "
                     "predicted range.")
    return lines


def sections(tool, groups):
    lines, errors = compared(tool)
    for (machine, count, kind), error, factor, _ in errors:
        name = machine if count == 1 else f"{count} × {machine}"
        groups.add(f"llama-bench {KIND[kind]}, {name}", error, is_inside(1 + error / 100, factor))
    reasons = {}
    for line in lines:
        if not line[5]:
            reasons[line[7]] = reasons.get(line[7], 0) + 1
    left = "; ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    text = ["## llama.cpp", "",
            f"All {len(lines)} llama-bench results of [llamacpp_logs.jsonl](../tests/data/logs/llamacpp_logs.jsonl), by builds of "
            f"2024 to 2026; each stands beside its prediction in [llama_bench.csv](llama_bench.csv). No prediction is fitted to them. "
            f"{len(errors)} have a prediction; the others: {left}. Several devices hold a part of the layers each: a token passes "
            "one after the other, and a prompt in passes of `n_ubatch` tokens. llama.cpp dequantises weights for the GEMMs of a "
            "prompt, or multiplies them in int8, and keeps activations in float32, so that its prompts are slower than the rates "
            "of serving engines that are assumed here.", "",
            *summaries(errors), "",
            "A share of the peak for each class of devices, `--matrix-efficiency`, fitted to the prompts of Llama 7B and 8B on one "
            "device and judged on all other prompts of the class:", "", *prompt_shares(errors), "",
            *kinds(errors, by_device, "Device"), "", *kinds(errors, by_model, "Model"), ""]
    return text, lines
