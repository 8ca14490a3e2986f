"""Model folders: weights, inputs and outputs next to a config.json."""
import json

import torch
from weights import Weights, read_safetensors, write_safetensors

SEQ, PROMPT, NEW = 13, 8, 6
MARGIN = 2e-3  # the greedy choice must be equal on every machine


def tokens(seed, *shape, vocab, low=3):
    return torch.randint(low, vocab, shape, generator=torch.Generator().manual_seed(seed))


def greedy(logits_of, prompt, steps):
    """ids [1, prompt + steps], the logits of each step [1, steps, vocab], and the smallest margin
    of a choice."""
    ids, rows = prompt, []
    for _ in range(steps):
        rows.append(logits_of(ids)[:, -1])
        ids = torch.cat([ids, rows[-1].argmax(-1, keepdim=True)], 1)
    logits = torch.stack(rows, 1)
    best = logits.topk(2, -1).values
    return ids, logits, (best[..., 0] - best[..., 1]).min().item()


def write_folder(path, weights, inputs, expected):
    with open(f"{path}/inputs.json", "w") as file:
        json.dump(inputs, file)
        file.write("\n")
    write_safetensors(f"{path}/model.safetensors", weights.tensors)
    write_safetensors(f"{path}/expected.safetensors", expected)


def decoder(family, config, seed, seq=SEQ, steps=NEW):
    """Weights, inputs and outputs of a decoder; None if a greedy choice is too close."""
    weights, vocab = Weights(seed), config["vocab_size"]
    ids, prompt = tokens(seed, 2, seq, vocab=vocab), tokens(seed + 1, 1, PROMPT, vocab=vocab)
    expected = family(weights, config, ids)
    expected["generate.ids"], expected["generate.logits"], lead = greedy(
        lambda ids: family(weights, config, ids)["logits"], prompt, steps
    )
    generate = {
        "prompt_ids": prompt.tolist(),
        "max_new_tokens": steps,
        "expected_ids": expected["generate.ids"].tolist(),
    }
    return (
        (weights, {"input_ids": ids.tolist(), "generate": generate}, expected)
        if lead > MARGIN
        else None
    )


def encoder(family, config, seed, seq=SEQ):
    """Token types, and padding on the right of row 1."""
    weights = Weights(seed)
    ids = tokens(seed, 2, seq, vocab=config["vocab_size"])
    mask = torch.ones_like(ids)
    mask[1, seq - 5 :] = 0
    ids[1, seq - 5 :] = config.get("pad_token_id") or 0
    inputs = {"input_ids": ids.tolist(), "attention_mask": mask.tolist()}
    types = torch.zeros_like(ids)
    if config.get("type_vocab_size", 1) > 1:
        types[0, seq // 2 :] = 1
        inputs["token_type_ids"] = types.tolist()
    return weights, inputs, family(weights, config, ids, mask, types)


def encoder_decoder(family, config, seed, seq=SEQ, steps=NEW):
    weights, vocab = Weights(seed), config["vocab_size"]
    ids = tokens(seed, 2, seq, vocab=vocab)
    mask = torch.ones_like(ids)
    mask[1, seq - 6 :] = 0
    ids[1, seq - 6 :] = config["pad_token_id"]
    start = torch.full((2, 1), config["decoder_start_token_id"])
    target = torch.cat([start, tokens(seed + 1, 2, 11, vocab=vocab)], 1)
    expected = family(weights, config, ids, mask, target)
    source = tokens(seed + 2, 1, seq - 4, vocab=vocab)
    prompt = torch.cat([start[:1], tokens(seed + 3, 1, PROMPT - 1, vocab=vocab)], 1)
    expected["generate.ids"], expected["generate.logits"], lead = greedy(
        lambda ids: family(weights, config, source, torch.ones_like(source), ids)["logits"],
        prompt,
        steps,
    )
    inputs = {
        "input_ids": ids.tolist(),
        "attention_mask": mask.tolist(),
        "decoder_input_ids": target.tolist(),
        "generate": {
            "encoder_input_ids": source.tolist(),
            "decoder_prompt_ids": prompt.tolist(),
            "max_new_tokens": steps,
            "expected_ids": expected["generate.ids"].tolist(),
        },
    }
    return (weights, inputs, expected) if lead > MARGIN else None


def largest_excess(got, expected, relevant=None):
    """The largest ratio of difference to tolerance, 2e-5 + 2e-5 times the largest value."""
    got, expected = got.float(), expected.float()
    if relevant is not None:
        got, expected = got[relevant], expected[relevant]
    return ((got - expected).abs().max() / (2e-5 + 2e-5 * expected.abs().max())).item()


def read_folder(path):
    with open(f"{path}/config.json") as file:
        config = json.load(file)
    with open(f"{path}/inputs.json") as file:
        inputs = json.load(file)
    return (
        config,
        inputs,
        Weights(tensors=read_safetensors(f"{path}/model.safetensors")),
        read_safetensors(f"{path}/expected.safetensors"),
    )
