"""llama-bench results of all given logs, and of later builds, beside headroom's predictions for llama.cpp."""

import json
import re
import statistics
from csv import DictReader, writer
from io import StringIO

from published_base import DATA, ROOT, median_and_ninth, off, signed, table

ROWS = ROOT / "reports" / "llama_bench.csv"
UBATCH = 512  # llama.cpp's default of tokens in a pass
COPIES = 4  # passes in flight in a pipeline at most: GGML_SCHED_MAX_COPIES in ggml/CMakeLists.txt
# Part of the passes' time on several devices that overlaps: between none, as with Llama 70B in Q4_K, and all, as with 16 bits.
OVERLAP = 0.7
# Prompts on several devices have this times the factor of one device's range: the rest of what is not known of the overlap.
PIPELINE_RANGE = 1.2
R9700_GIB = 32

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
    machine, count = device_of(log)
    if machine is None:
        return "no machine"
    if machine == "radeon-ai-pro-r9700" and count == 1 and log["file_gib"] > R9700_GIB:
        return "files larger than the one device that the log names"
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
    """Seconds of a test, with the factor of their range."""

    def __init__(self, tool):
        self.tool = tool
        self.known = {}

    def of(self, machine, count, model, weights, test, ubatch, attention):
        kind, tokens, past = test
        words = ["fit", model, "--machine", machine_file(self.tool, machine), "--engine", "llama.cpp", "--dtype", "float16",
                 "--attention", attention, *(["--weights", weights] if weights else []), "--count", count, "--pp", count,
                 "--batch", 1, "--memory", "1TB", "--seq"]
        if kind == "tg":
            report = self.report([*words, past + tokens // 2 + 1])
            time = report["time"]
            return tokens * time["iteration_s"], time["high_s"] / time["iteration_s"]
        passes = -(-tokens // ubatch)
        serial = self.prompt(words, tokens, past)
        if attention == "eager" and passes > 1:
            # Each pass sees the tokens before it: of all pairs, the mean of one pass for all and of passes without.
            serial = (serial + passes * self.prompt(words, ubatch, past)) / 2
        report = self.report([*words, past + tokens])
        factor = report["ttft_range"]["high_s"] / report["time"]["ttft_s"]
        return serial * self.exposed(passes, count), factor * (PIPELINE_RANGE if count > 1 else 1)

    def prompt(self, words, tokens, past):
        """A prompt after `past` tokens: the whole one without its first part."""
        first = self.report([*words, past])["time"]["ttft_s"] if past else 0
        return self.report([*words, past + tokens])["time"]["ttft_s"] - first

    @staticmethod
    def exposed(passes, count):
        """Part of the stages' time that is left with passes in flight on several devices."""
        stages = min(count, COPIES)
        return 1 - OVERLAP + OVERLAP * (passes + stages - 1) / (stages * passes)

    def report(self, words):
        key = tuple(map(str, words))
        if key not in self.known:
            self.known[key] = self.tool.json(*key)
        return self.known[key]


def results():
    """Every result of the logs, with its log and its place in the file."""
    with open(DATA / "logs" / "llamacpp_logs.jsonl", encoding="utf-8") as file:
        for line in file:
            log = json.loads(line)
            for test in log["tests"] or []:
                yield log, test


def attention_of(log):
    """Flash attention was off unless asked for in these builds."""
    return "fused" if log["flags"].get("fa") == "1" else "eager"


def compared(predictions):
    """Of every result: its line of the CSV, and of those with a prediction the group, the error, the factor of the range, and
    the log."""
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
        seconds, factor = predictions.of(machine, count, *model_of(log), parsed, ubatch, attention_of(log))
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


NVIDIA = ("rtx-3070", "rtx-3080", "rtx-3090", "rtx-4080", "rtx-4090", "a100-80gb", "a100-80gb-pcie", "a40", "rtx-a6000", "l40s",
          "rtx-4000-ada", "rtx-5000-ada", "rtx-6000-ada", "dgx-spark", "rtx-5090")
HOPPER = ("h100-80gb-pcie",)
RDNA = ("radeon-ai-pro-r9700", "ryzen-ai-max-395")
EXPERTS = ("gpt-oss", "A3B", "A10B", "A4B", "A3.5B", "a3b", "mixtral", "deepseek-v2")


def class_of(machine, model):
    """As llama_cpp_rates.cpp tells devices and models apart; None without rates."""
    machines = {"NVIDIA": NVIDIA, "Hopper": HOPPER, "RDNA": RDNA}
    devices = next((name for name, group in machines.items() if machine in group), None)
    if machine.startswith("apple-"):
        devices = "Apple"
    if devices is None:
        return None
    return f"{devices}, {'experts' if any(name in model for name in EXPERTS) else 'dense'}"


def of_other_devices(ratios):
    """Of each device, its ratios over the median of all others': by rates that were fitted without it."""
    left_out = []
    for machine, own in ratios.items():
        others = [ratio for name, group in ratios.items() if name != machine for ratio, _ in group]
        if others:
            middle = statistics.median(others)
            left_out += [(ratio / middle, factor) for ratio, factor in own]
    return left_out


def judged(members):
    """Cells of predictions as ratios to what was measured, with the factors of their ranges."""
    if not members:
        return ["0", "–", "–", "–"]
    errors = [100 * (ratio - 1) for ratio, _ in members]
    return [str(len(members)), *(f"{one:.0f}" for one in median_and_ninth(errors)),
            str(sum(not is_inside(ratio, factor) for ratio, factor in members))]


def classes(errors, later):
    """Of each class and test: one device, each device by the others, several devices, and later builds."""
    lines, held_out, pipelines = [], [], []
    of_class = {}
    for (machine, count, kind), error, factor, log in errors:
        of_class.setdefault((class_of(machine, log["model"]), kind), []).append((machine, count, 1 + error / 100, factor))
    for (name, kind), members in sorted(of_class.items()):
        one = {}
        for machine, count, ratio, factor in members:
            if count == 1:
                one.setdefault(machine, []).append((ratio, factor))
        left_out = of_other_devices(one)
        several = [(ratio, factor) for _, count, ratio, factor in members if count > 1]
        of_later = [(ratio, factor) for _, group, ratio, factor in later if group == (name, kind)]
        held_out += left_out
        pipelines += several
        for rows, group in (("one device", sum(one.values(), [])), ("each device by the others", left_out),
                            ("several devices", several), ("later builds", of_later)):
            if group:
                lines.append([name, KIND[kind], rows, *judged(group)])
    head = ["Devices and layers", "Test", "Rows", "Results", "Median [%]", "Nine of ten [%]", "Outside"]
    return table(head, lines), held_out, pipelines


def results_of(predictions, name):
    """Each result of a file of rows: its line, and its machine, class, ratio and the factor of the range."""
    lines, ratios = [], []
    with open(DATA / "logs" / name, encoding="utf-8") as file:
        for row in DictReader(file):
            kind, tokens, past = parsed = test_of(row["test"])
            seconds, factor = predictions.of(row["machine"], int(row["devices"]), row["model"], row["weights"], parsed,
                                             int(row["n_ubatch"]), row["attention"])
            measured = float(row["tokens_per_s"])
            ratio = tokens / seconds / measured
            group = (class_of(row["machine"], row["model"]), kind)
            ratios.append((row["machine"], group, ratio, factor))
            lines.append([f"{row['devices']} × {row['machine']}, {row['model']} {row['weights'] or 'as published'}, {row['test']}",
                          row["date"], f"{measured:.0f}", f"{tokens / seconds:.0f}", signed(100 * (ratio - 1)),
                          "" if is_inside(ratio, factor) else "outside"])
    return table(["Run", "Date", "Measured [tokens/s]", "Predicted [tokens/s]", "Off [%]", "Range"], lines), ratios


def apple_classes(apple):
    """Of each class and test on Apple's devices: all of them, and each device by the others."""
    lines = []
    of_class = {}
    for machine, group, ratio, factor in apple:
        of_class.setdefault(group, {}).setdefault(machine, []).append((ratio, factor))
    for (name, kind), of_machine in sorted(of_class.items()):
        for rows, members in (("all devices", sum(of_machine.values(), [])),
                              ("each device by the others", of_other_devices(of_machine))):
            if members:
                lines.append([name, KIND[kind], rows, *judged(members)])
    head = ["Devices and layers", "Test", "Rows", "Results", "Median [%]", "Nine of ten [%]", "Outside"]
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


def outside_of(members):
    return f"{sum(not is_inside(ratio, factor) for ratio, factor in members)} of {len(members)}"


def sections(tool, groups):
    predictions = Predictions(tool)
    lines, errors = compared(predictions)
    later_table, later = results_of(predictions, "llama_bench_later.csv")
    apple_table, apple = results_of(predictions, "llama_bench_apple.csv")
    apple += [one for one in later if one[0].startswith("apple-")]
    later = [one for one in later if not one[0].startswith("apple-")]
    for (machine, count, kind), error, factor, _ in errors:
        name = machine if count == 1 else f"{count} × {machine}"
        groups.add(f"llama-bench {KIND[kind]}, {name}", error, is_inside(1 + error / 100, factor))
    for _, (_, kind), ratio, factor in later:
        groups.add(f"llama-bench {KIND[kind]}, later builds", 100 * (ratio - 1), is_inside(ratio, factor))
    for machine, (_, kind), ratio, factor in apple:
        groups.add(f"llama-bench {KIND[kind]}, {machine}", 100 * (ratio - 1), is_inside(ratio, factor))
    reasons = {}
    for line in lines:
        if not line[5]:
            reasons[line[7]] = reasons.get(line[7], 0) + 1
    left = "; ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
    by_class, held_out, pipelines = classes(errors, later)
    text = ["## llama.cpp", "",
            f"All {len(lines)} llama-bench results of [llamacpp_logs.jsonl](../tests/data/logs/llamacpp_logs.jsonl), by builds of "
            f"2024 to 2026, beside `fit --engine llama.cpp`; each stands in [llama_bench.csv](llama_bench.csv). {len(errors)} have "
            f"a prediction; the others: {left}. Attention is eager unless the log says `fa 1`, as those builds ran it. Several "
            "devices hold a part of the layers each: a token passes one after the other, and a prompt in passes of `n_ubatch` "
            f"tokens, of which {COPIES} at most are in flight; {100 * OVERLAP:.0f} % of the time that these could hide counts as "
            "hidden, between none (Llama 70B in Q4_K) and all.", "",
            *summaries(errors), "",
            "[Rates of llama.cpp](../docs/device-time.md#llamacpp) were fitted to the rows of one device, and to those of later "
            "builds with half their weight. *Each device by the others*: predictions over the median of all other devices' "
            "ratios, as if rates had been fitted without that device. Ranges were set so that nine of ten rows of one device lie "
            "within, of each device by the others and of later builds; prompts on several devices have "
            f"{PIPELINE_RANGE} times the factor.", "", *by_class, "",
            f"- Each device by rates of the others: {outside_of(held_out)} outside the predicted range.",
            f"- Several devices: {outside_of(pipelines)}. No rates were fitted to them but Hopper's fraction of memory; the overlap of "
            "prompts and its range were chosen with them at hand.", "",
            "Later builds ([llama_bench_later.csv](../tests/data/logs/llama_bench_later.csv)): kernels in int8, CUDA graphs and "
            "fused attention make them up to 1.7 times as fast as those of May 2024.", "", *later_table, "",
            "Apple's devices ([llama_bench_apple.csv](../tests/data/logs/llama_bench_apple.csv), and those of the table above), to "
            "which their rates were fitted:", "", *apple_classes(apple), "", *apple_table, "",
            *kinds(errors, by_device, "Device"), "", *kinds(errors, by_model, "Model"), ""]
    return text, lines
