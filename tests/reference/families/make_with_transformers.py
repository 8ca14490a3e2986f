"""Completes model folders by running transformers: make_with_transformers.py FOLDER...

For options of families that this reference lacks. Reads config.json and writes it anew as
transformers does, with weights in bfloat16, inputs and outputs beside it.
"""

import json
import os
import sys

import torch
import transformers
from folders import MARGIN, NEW, PROMPT, SEQ, greedy, tokens
from weights import write_safetensors

SEEDS = range(100, 150)


def draw(model, seed):
    """Vectors keep their initial values and get some noise; matrices get a gain below 1, which
    keeps rounding errors small."""
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            values = torch.randn(weight.shape, generator=noise)
            if weight.ndim == 1:
                weight.add_(0.1 * values)
            elif "embed" in name:
                weight.copy_(0.5 * values)
            else:
                weight.copy_(0.6 * values * weight.shape[-1] ** -0.5)


def build(config, seed):
    kind = getattr(transformers, config["architectures"][0])
    torch.manual_seed(seed)
    model = kind._from_config(kind.config_class.from_dict(config), attn_implementation="eager")
    model.set_experts_implementation("eager")
    draw(model, seed)
    with torch.no_grad():  # the parameters alone: buffers hold frequencies of RoPE
        for weight in model.parameters():
            weight.copy_(weight.bfloat16())
    return model.eval()


def outputs(model, ids):
    """Each layer's output, the first and last hidden states, and the logits."""
    expected = {}

    def record(layer):
        def hook(_module, _inputs, output):
            value = output[0] if isinstance(output, tuple) else output
            expected[f"layers.{layer}.output"] = value.detach().clone()

        return hook

    layers = model.get_submodule(model.base_model_prefix if hasattr(model, "lm_head") else "").layers
    hooks = [layer.register_forward_hook(record(i)) for i, layer in enumerate(layers)]
    result = model(ids, use_cache=False, output_hidden_states=True)
    for hook in hooks:
        hook.remove()
    states = result.hidden_states
    expected["hidden_states.0"] = states[0]
    expected[f"hidden_states.{len(states) - 1}"] = states[-1]
    name = "logits" if "logits" in result else "last_hidden_state"
    return expected | {name: result[name]}


@torch.no_grad()
def make(folder, config, seed):
    """Writes the folder, unless a greedy choice is too close."""
    model = build(config, seed)
    vocab = config["vocab_size"]
    ids, prompt = tokens(seed, 2, SEQ, vocab=vocab), tokens(seed + 1, 1, PROMPT, vocab=vocab)
    stored = {name: value.bfloat16() for name, value in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        stored.pop("lm_head.weight", None)
    model.save_pretrained(folder, state_dict=stored)
    model = model.double()
    inputs, expected, lead = {"input_ids": ids.tolist()}, outputs(model, ids), MARGIN * 2
    if "logits" in expected:
        made, logits, lead = greedy(lambda ids: model(ids, use_cache=False).logits, prompt, NEW)
        expected |= {"generate.ids": made, "generate.logits": logits}
        inputs["generate"] = {
            "prompt_ids": prompt.tolist(),
            "max_new_tokens": NEW,
            "expected_ids": made.tolist(),
        }
    with open(f"{folder}/inputs.json", "w") as file:
        json.dump(inputs, file)
        file.write("\n")
    write_safetensors(
        f"{folder}/expected.safetensors",
        {name: value.float() if value.is_floating_point() else value for name, value in expected.items()},
    )
    return lead > MARGIN


for folder in sys.argv[1:]:
    with open(f"{folder}/config.json") as file:
        config = json.load(file)
    seed = next(seed for seed in SEEDS if make(folder, config, seed))
    generation = f"{folder}/generation_config.json"
    if os.path.exists(generation):
        os.remove(generation)
    print(folder, seed)
