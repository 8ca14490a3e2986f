"""Training steps of plans that shard gradients or weights (FSDP), beside headroom's predictions."""

from csv import DictReader

from published_base import DATA, off, signed, spread, table

# d_model, n_heads, n_layers of llm-foundry's scripts/train/yamls/pretrain.
MPT_SIZES = {"125m": (768, 12, 12), "350m": (1024, 16, 24), "760m": (1536, 12, 24), "1b": (2048, 16, 24),
             "3b": (2560, 20, 32), "7b": (4096, 32, 32), "13b": (5120, 40, 40), "30b": (7168, 56, 48), "70b": (8192, 64, 80)}


def mpt_config(model, seq):
    """GPT-2 with these sizes has MPT's parameters and operators: learned positions, biases, tied embeddings."""
    hidden, heads, layers = MPT_SIZES[model]
    return {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": hidden, "n_head": heads, "n_layer": layers,
            "n_positions": seq, "vocab_size": 50368, "resid_pdrop": 0, "attn_pdrop": 0, "embd_pdrop": 0}


def step_words(row, model):
    """The state types do not change these times; --memory, since memory is not judged here."""
    zero = 2 if row.get("sharding") == "SHARD_GRAD_OP" else 3
    words = ["fit", model, "--machine", row["machine"], "--phase", "train", "--count", row["devices"], "--seq", row["seq"],
             "--batch", row["global_batch"], "--micro-batch", row["micro_batch"], "--attention", "fused", "--zero", zero,
             "--dp-overlap", "on", "--recompute", row["recompute"], "--memory", "10TB"]
    return [str(word) for word in words]


def read(name):
    with open(DATA / "training" / name, encoding="utf-8") as file:
        return list(DictReader(file))


def predicted(tool, row, model):
    """Measured and predicted seconds, and if the measured ones lie inside the range."""
    time = tool.json(*step_words(row, model))["time"]
    tokens = int(row["global_batch"]) * int(row["seq"]) / int(row["devices"])
    measured = tokens / float(row["tokens_per_s_per_device"])
    return measured, time["iteration_s"], time["low_s"] <= measured <= time["high_s"]


def mosaicml(tool, groups):
    lines, errors, outside = [], [], 0
    for row in read("mosaicml.csv"):
        name = f"mpt-{row['model']}-{row['seq']}"
        measured, seconds, inside = predicted(tool, row, tool.config(name, mpt_config(row["model"], int(row["seq"]))))
        errors.append(off(seconds, measured))
        outside += not inside
        groups.add(f"training steps, MosaicML, {row['machine']}", errors[-1], inside)
        lines.append([f"{row['model']}, {row['seq']} tokens, {row['devices']} × {row['machine']}, {row['micro_batch']} at once"
                      f"{', recomputed' if row['recompute'] == 'full' else ''}",
                      f"{measured:.2f}", f"{seconds:.2f}", signed(errors[-1])])
    return lines, errors, outside


def torchtitan(tool, groups):
    lines, errors, outside = [], [], 0
    for row in read("torchtitan.csv"):
        measured, seconds, inside = predicted(tool, row, row["model"])
        errors.append(off(seconds, measured))
        outside += not inside
        groups.add(f"training steps, torchtitan, {row['machine']}", errors[-1], inside)
        lines.append([f"{row['model']}, {row['devices']} × {row['machine']}"
                      f"{', recomputed' if row['recompute'] == 'full' else ''}",
                      f"{measured:.2f}", f"{seconds:.2f}", signed(errors[-1])])
    return lines, errors, outside


def sections(tool, groups):
    head = ["Run", "Measured [s]", "Predicted [s]", "Off [%]"]
    titan, titan_errors, titan_outside = torchtitan(tool, groups)
    mosaic, mosaic_errors, mosaic_outside = mosaicml(tool, groups)
    return ["## Training steps with sharded weights", "",
            "PyTorch's FSDP over all devices. torchtitan's docs/performance.md "
            "([torchtitan.csv](../tests/data/training/torchtitan.csv)); nothing is fitted to these rows.", "",
            *table(head, titan), "",
            f"- {spread(titan_errors)}; {titan_outside} of {len(titan)} outside the predicted range.", "",
            "MosaicML's llm-foundry ([mosaicml.csv](../tests/data/training/mosaicml.csv)), in 16 bit and up to 4,096 tokens: its "
            "longer rows ran Triton's kernel of FlashAttention 1, which takes 1.3 to 2.5 times as long as FlashAttention 2 (arXiv "
            "2307.08691). The length of a backward pass over Megatron-LM's was fitted to the rows of A100 from 1b.", "",
            *table(head, mosaic), "",
            f"- {spread(mosaic_errors)}; {mosaic_outside} of {len(mosaic)} outside the predicted range.", ""]
