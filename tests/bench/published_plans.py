"""Throughputs of served plans other than tensor parallelism beside headroom's: pipelines, and experts on many devices."""

from csv import DictReader

from published_base import DATA, off, signed, table

TENSORRT_LLM_BATCHED_TOKENS = 8192
TENSORRT_LLM_SEQUENCES = 2048  # of a batch, of which each stage has one


def read(folder, name):
    with open(DATA / folder / name, encoding="utf-8") as file:
        return list(DictReader(file))


def pipeline_throughput(tool, row):
    words = ["serve", row["model"], "--machine", row["machine"], "--count", row["pp"], "--pp", row["pp"], "--recipe",
             "w4a4-nvfp4", "--kv-dtype", "float8", "--users", row["requests"], "--requests", row["requests"], "--input-tokens",
             row["input_tokens"], "--output-tokens", row["output_tokens"], "--max-sequences",
             TENSORRT_LLM_SEQUENCES * int(row["pp"]), "--batched-tokens", TENSORRT_LLM_BATCHED_TOKENS, "--admission", "request"]
    plan = tool.json(*map(str, words))["plans"][0]
    return plan["figures"]["output_tokens_per_s"], 1 + plan["time_range"]


def pipelines(tool, groups):
    rows = read("training", "pipeline_scaling.csv")
    rates = [pipeline_throughput(tool, row) for row in rows]
    lines = []
    for row, (rate, factor) in zip(rows, rates):
        measured, scaling = float(row["relative_throughput"]), rate / rates[0][0]
        if row["pp"] != "1":
            groups.add("scaling of pipelines", off(scaling, measured), 1 / factor <= scaling / measured <= factor)
        lines.append([row["pp"], f"{measured:.2f}", f"{scaling:.2f}", signed(off(scaling, measured))])
    return ["## Scaling of pipelines", "",
            "Llama 3.3 70B in 4 bit on RTX PRO 6000 Blackwell, 1,000 tokens in and out, by TensorRT-LLM v1.0 "
            "([pipeline_scaling.csv](../tests/data/training/pipeline_scaling.csv)): throughput over that of one device. Nothing "
            "is fitted to it.", "",
            *table(["Stages", "Measured", "Predicted", "Off [%]"], lines), ""]


def expert_rate(tool, row, overlap):
    """Tokens per second of a device. 72 ranks hold 288 experts, 32 of them copies; 64 hold the model's own."""
    ranks = 64 if row["ep"] == "72" else int(row["ep"])
    decode = row["phase"] == "decode"
    words = ["fit", "deepseek-v3", "--machine", row["machine"], "--count", ranks, "--dp", ranks, "--ep", ranks, "--recipe",
             "w8a8-fp8", "--seq", row["tokens"], "--batch", ranks * (int(row["sequences"]) if decode else 1), "--memory", "10TB"]
    words += ["--two-batch-overlap"] if overlap else []
    words += [] if decode else ["--expert-exchange", "by-node"]
    time = tool.json(*map(str, words))["time"]
    if decode:
        return int(row["sequences"]) / time["iteration_s"], time["high_s"] / time["iteration_s"]
    return int(row["tokens"]) / time["ttft_s"], time["high_s"] / time["iteration_s"]


NAMES = {"deepseek": "DeepSeek's profile", "sglang": "SGLang"}


def experts(tool, groups):
    lines = []
    for row in read("expert_parallel", "throughput.csv"):
        measured = float(row["tokens_per_s_per_device"])
        rate, factor = expert_rate(tool, row, overlap=True)
        serial, _ = expert_rate(tool, row, overlap=False)
        groups.add("DeepSeek-V3 on 32 to 128 devices", off(rate, measured), 1 / factor <= rate / measured <= factor)
        lines.append([f"{NAMES[row['source']]}, {row['phase']}, {row['ep']} × {row['machine']}", f"{measured:.0f}", f"{rate:.0f}",
                      signed(off(rate, measured)), signed(off(serial, measured))])
    return ["## Experts on many devices", "",
            "DeepSeek-V3 under expert parallelism with two batches, tokens per second of a device "
            "([throughput.csv](../tests/data/expert_parallel/throughput.csv)). DeepSeek's profiles have balanced experts; under "
            "SGLang's requests the fullest rank decides, and 72 ranks hold copies of experts where 64 are predicted. Nothing is "
            "fitted to them.", "",
            *table(["Run", "Measured", "Predicted", "Off [%]", "In one batch, off [%]"], lines), ""]


def sections(tool, groups):
    return [*pipelines(tool, groups), *experts(tool, groups)]
