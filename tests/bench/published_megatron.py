"""Training steps of Megatron-Bridge's recipes, beside headroom's predictions."""

from csv import DictReader

from published_base import DATA, off, signed, spread, table


def step_words(row):
    interleave = int(row["vp"]) if int(row["pp"]) > 1 else 1
    words = ["fit", row["model"], "--machine", row["machine"], "--phase", "train", "--count", row["devices"], "--tp",
             row["tp"], "--pp", row["pp"], "--cp", row["cp"], "--ep", row["ep"], "--interleave", interleave, "--seq", row["seq"],
             "--batch", row["global_batch"], "--micro-batch", row["micro_batch"], "--attention", "fused", "--zero",
             3 if row["fsdp"] == "1" else 1, "--dp-overlap", "on", "--recipe",
             "fp8-transformer-engine" if row["precision"] == "fp8" else "megatron", "--memory", "10TB"]
    # All rows with tensor parallelism are Llama's, whose recipes set tp_comm_overlap (scripts/performance/configs/llama and
    # llama31).
    return [str(word) for word in words] + (["--sp", "--tp-comm-overlap"] if row["tp"] != "1" else [])


def rows_of(name):
    with open(DATA / "training" / name, encoding="utf-8") as file:
        return list(DictReader(file))


def predicted(tool, row):
    """Measured and predicted seconds, and if the measured ones lie inside the range."""
    time = tool.json(*step_words(row))["time"]
    tokens = int(row["global_batch"]) * int(row["seq"]) / int(row["devices"])
    measured = tokens / float(row["tokens_per_s_per_device"])
    return measured, time["iteration_s"], time["low_s"] <= measured <= time["high_s"]


def judged(tool, groups, rows, group_of, name_of):
    """Lines of a table, errors, and rows outside their range."""
    lines, errors, outside = [], [], 0
    for row in rows:
        measured, seconds, inside = predicted(tool, row)
        errors.append(off(seconds, measured))
        outside += not inside
        groups.add(group_of(row), errors[-1], inside)
        lines.append([name_of(row), f"{measured:.2f}", f"{seconds:.2f}", signed(errors[-1])])
    return lines, errors, outside


def recipes(tool, groups):
    lines, errors, outside = judged(tool, groups, rows_of("megatron_bridge.csv"),
                                    lambda row: f"training steps, Megatron-Bridge, {row['machine']}",
                                    lambda row: f"{row['model']}, {row['devices']} × {row['machine']}, {row['precision']}")
    return ["## Training steps by recipes", "",
            "Megatron-Bridge 25.11 ([megatron_bridge.csv](../tests/data/training/megatron_bridge.csv)), with data-parallel "
            "and tensor-parallel communication overlapped and nothing recomputed: the table does not state what its recipes "
            "recompute, so that memory is not held against the device. The ranges of Hopper's and Blackwell's steps cover these "
            "rows, and the share of tensor-parallel communication that GEMMs hide was chosen with Llama's at hand; else nothing "
            "is fitted to them.", "",
            *table(["Run", "Measured [s]", "Predicted [s]", "Off [%]"], lines), "",
            f"- {spread(errors)}; {outside} of {len(lines)} outside the predicted range.", ""]


def experts(tool, groups):
    kinds = {"dropped": "dropped tokens", "all": "no dropped tokens"}
    lines, sums = [], []
    for tokens, words in kinds.items():
        rows = [row for row in rows_of("megatron_bridge_experts.csv") if row["tokens"] == tokens]
        more, errors, outside = judged(tool, groups, rows, lambda row: f"training steps of experts, {kinds[row['tokens']]}",
                                       lambda row: f"{row['release']}, {words}: {row['model']}, {row['devices']} × "
                                       f"{row['machine']}, {row['micro_batch']} at once")
        lines += more
        sums.append(f"- {words}: {spread(errors)}; {outside} of {len(rows)} outside the predicted range.")
    return ["## Training steps of experts by release", "",
            "Megatron-Bridge's other releases up to 26.08 ([megatron_bridge_experts.csv]"
            "(../tests/data/training/megatron_bridge_experts.csv)): 25.09 and the newest of each plan, where the experts' ranks "
            "are in one node. Nothing is fitted to them. [Why some are far off](../docs/device-time.md#experts-and-their-host).",
            "", *table(["Run", "Measured [s]", "Predicted [s]", "Off [%]"], lines), "", *sums, ""]


def sections(tool, groups):
    return [*recipes(tool, groups), *experts(tool, groups)]
