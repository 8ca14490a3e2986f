"""Training steps with tensor parallelism, published with and without collectives beside GEMMs, and Llama 3 405B's, beside
headroom's predictions."""

from csv import DictReader

from published_base import DATA, off, signed, spread, table


def read(name):
    with open(DATA / "training" / name, encoding="utf-8") as file:
        return list(DictReader(file))


def async_words(row):
    """Memory is not judged here: --memory."""
    words = ["fit", row["model"], "--machine", row["machine"], "--phase", "train", "--count", row["devices"], "--tp", row["tp"],
             "--sp", "--seq", row["seq"], "--batch", row["global_batch"], "--micro-batch", row["micro_batch"], "--attention",
             "fused", "--zero", 3, "--dp-overlap", "on", "--recompute", "full", "--memory", "10TB", "--recipe",
             "fp8-transformer-engine" if row["precision"] == "fp8" else "megatron"]
    return [str(word) for word in words] + (["--tp-comm-overlap"] if row["async_tp"] == "1" else [])


def async_tp(tool):
    """Gains in tokens per second: the devices of these runs have another memory and less power, so that only the proportion
    is judged."""
    lines, errors, rows = [], [], read("torchtitan_async_tp.csv")
    for serial, both in zip(rows[::2], rows[1::2]):
        predicted = [tool.json(*async_words(row))["time"]["iteration_s"] for row in (serial, both)]
        tokens = int(serial["global_batch"]) * int(serial["seq"]) / int(serial["devices"])
        measured = [tokens / float(row["tokens_per_s_per_device"]) for row in (serial, both)]
        gains = [predicted[0] / predicted[1], measured[0] / measured[1]]
        # Percent of the step without: off by the whole gain if it is not predicted.
        saved = [100 * (1 - 1 / gain) for gain in gains]
        errors.append(off(saved[0], saved[1]))
        lines.append([f"{serial['model']}, {serial['devices']} × {serial['machine']}, {serial['precision']}, {serial['date']}",
                      f"{measured[0]:.2f}", f"{measured[1]:.2f}", f"{predicted[0]:.2f}", f"{predicted[1]:.2f}",
                      f"{saved[1]:.1f}", f"{saved[0]:.1f}", signed(errors[-1])])
    return lines, errors


def llama_words(row, zero=1):
    words = ["fit", "llama-3.1-405b", "--machine", row["machine"], "--phase", "train", "--count", row["devices"], "--tp",
             row["tp"], "--sp", "--cp", row["cp"], "--pp", row["pp"], "--interleave", 8, "--seq", row["seq"], "--batch",
             row["global_batch"], "--micro-batch", 1, "--attention", "fused", "--zero", zero, "--dp-overlap", "on", "--memory",
             "10TB"]
    return [str(word) for word in words]


def llama_405b(tool, groups):
    lines, errors, outside = [], [], 0
    for row in read("llama_405b.csv"):
        time = tool.json(*llama_words(row))["time"]
        # The MFU is as 1/time.
        errors.append(off(float(row["mfu"]), time["mfu"]))
        measured = time["iteration_s"] * time["mfu"] / float(row["mfu"])
        inside = time["low_s"] <= measured <= time["high_s"]
        outside += not inside
        groups.add("training steps, Llama 3 405B, h100-80gb", errors[-1], inside)
        lines.append([f"{row['devices']} devices, {row['seq']} tokens, tp {row['tp']} · cp {row['cp']} · pp {row['pp']} · dp "
                      f"{row['dp']}", f"{100 * float(row['mfu']):.0f}", f"{100 * time['mfu']:.1f}", signed(errors[-1])])
    return lines, errors, outside


def llama_memory(tool, zero):
    """GiB of the first plan."""
    return tool.json(*llama_words(read("llama_405b.csv")[0], zero))["memory"]["total_bytes"] / 2**30


def sections(tool, groups):
    llama, llama_errors, llama_outside = llama_405b(tool, groups)
    gains, gain_errors = async_tp(tool)
    return ["## Llama 3 405B on H100", "",
            "arXiv 2407.21783, Table 4 ([llama_405b.csv](../tests/data/training/llama_405b.csv)). The paper does not give the "
            "number of model chunks: eight, so that each has one layer. Hopper's fraction of peak arithmetic was fitted to the "
            "first row. *Off* is that of the time. Memory is not held against the device: by the interleaved 1F1B that is "
            f"modelled, the first plan needs {llama_memory(tool, 1):.0f} GiB, and {llama_memory(tool, 2):.0f} with gradients "
            "sharded as Meta's; its own schedule limits the "
            "micro-batches in flight and frees tensors early (section 3.3.2).", "",
            *table(["Plan", "MFU [%]", "Predicted MFU [%]", "Off [%]"], llama), "",
            f"- {spread(llama_errors)}; {llama_outside} of {len(llama)} outside the predicted range.", "",
            "## Collectives beside GEMMs", "",
            "torchtitan's asynchronous tensor parallelism against its steps without, FSDP over 32 and tensor parallelism over 8 "
            "devices, all layers recomputed ([torchtitan_async_tp.csv](../tests/data/training/torchtitan_async_tp.csv)). The "
            "devices have HBM2e and a limit of 500 W, unlike the catalogue's h100-80gb: only the part of a step that the overlap "
            "saves is compared, and *Off* is that of it. The share of one half that GEMMs hide was chosen with these rows and "
            "those by recipes at hand.", "",
            *table(["Run", "Without [s]", "With [s]", "Predicted without [s]", "Predicted with [s]", "Saved [%]",
                    "Predicted saved [%]", "Off [%]"], gains), "",
            f"- {spread(gain_errors)}.", ""]
