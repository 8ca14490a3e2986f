"""Completes model folders by running transformers: make_with_transformers.py FOLDER...

For families, options and heads that this reference lacks. Reads config.json and writes it anew as
transformers does, with weights in bfloat16, inputs and outputs beside it. The second sequence of
classifiers and encoders ends in padding.
"""

import json
import os
import re
import sys

import torch
import transformers
from folders import MARGIN, NEW, PROMPT, SEQ, greedy, tokens
from weights import read_safetensors, write_safetensors

SEEDS = range(100, 150)
PADDING = 6  # tokens
OUTPUTS = ("logits", "start_logits", "end_logits", "last_hidden_state", "pooler_output")
STATES = ("hidden_states", "encoder_hidden_states", "decoder_hidden_states")
ENCODERS = ("bert",)  # that also have a class for causal language models
EMBEDDINGS = ("embed", "wte", "wpe", "shared")


def drawn(model):
    """Names and parameters but for tables of sines."""
    tables = [id(part.weight) for part in model.modules() if hasattr(part, "create_weight")]
    return [(name, part) for name, part in model.named_parameters() if id(part) not in tables]


def draw(model, seed):
    """Vectors keep their initial values and get some noise; matrices get a gain below 1, which
    keeps rounding errors small."""
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in drawn(model):
            values = torch.randn(weight.shape, generator=noise)
            if weight.ndim == 1:
                weight.add_(0.1 * values)
            elif any(word in name for word in EMBEDDINGS):
                weight.copy_(0.5 * values)
            else:
                weight.copy_(0.6 * values * weight.shape[-1] ** -0.5)
        for name, table in model.named_buffers():
            if name.endswith("tid2eid"):  # DeepSeek-V4's experts by token
                chances = torch.rand(table.shape[0], model.config.n_routed_experts, generator=noise)
                table.copy_(chances.argsort(-1)[:, : table.shape[1]])
            if name.endswith("e_score_correction_bias"):
                values = torch.randn(table.shape, generator=noise)
                table.copy_((0.1 * values).bfloat16())


def build(config, seed):
    torch.set_default_dtype(torch.float32)
    kind = getattr(transformers, config["architectures"][0])
    torch.manual_seed(seed)
    model = kind._from_config(kind.config_class.from_dict(config), attn_implementation="eager")
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")
    draw(model, seed)
    with torch.no_grad():  # the parameters alone: buffers hold frequencies of RoPE
        for _name, weight in drawn(model):
            weight.copy_(weight.bfloat16())
    return model.eval()


def generates(model):
    """True for decoders with a language-model head."""
    name = type(model).__name__
    if model.config.model_type in ENCODERS:
        return False
    heads = ("ForCausalLM", "LMHeadModel", "DoubleHeadsModel")
    return name.endswith(heads) and not model.config.is_encoder_decoder


def make_inputs(model, seed, vocab):
    """Token ids; padding and its mask unless the model generates; the decoder's ids."""
    ids = tokens(seed, 2, SEQ, vocab=vocab)
    inputs = {"input_ids": ids}
    padding = getattr(model.config, "pad_token_id", None)  # CodeGen has none
    end = model.config.eos_token_id
    if generates(model) or padding is None:
        return inputs
    inputs["attention_mask"] = torch.ones_like(ids)
    if model.config.is_encoder_decoder and "Classification" in type(model).__name__:
        ids[ids == end] = end + 1
        ids[:, -1] = end
    else:
        ids[ids == padding] = padding + 1
        ids[1, -PADDING:] = padding
        inputs["attention_mask"][1, -PADDING:] = 0
        if model.config.is_encoder_decoder:
            inputs["decoder_input_ids"] = tokens(seed + 2, 2, SEQ - PADDING, vocab=vocab)
    return inputs


def all_outputs(model, inputs):
    """The head's outputs and all hidden states."""
    result = model(**inputs, output_hidden_states=True)
    expected = {name: result[name] for name in OUTPUTS if name in result}
    for name in STATES:
        for i, state in enumerate(result.get(name) or ()):
            expected[f"{name}.{i}"] = state
    return expected


def outputs(model, ids):
    """Each layer's output, the first and last hidden states, and the logits of every head."""
    expected = {}

    def record(layer):
        def hook(_module, _inputs, output):
            value = output[0] if isinstance(output, (tuple, list)) else output
            expected[f"layers.{layer}.output"] = value.detach().clone()

        return hook

    base = getattr(model, model.base_model_prefix, model)
    base = getattr(base, "decoder", base)  # an encoder-decoder's, alone
    layers = next(getattr(base, name) for name in ("layers", "h", "blocks") if hasattr(base, name))
    hooks = [layer.register_forward_hook(record(i)) for i, layer in enumerate(layers)]
    result = model(ids, use_cache=False, output_hidden_states=True)
    for hook in hooks:
        hook.remove()
    states = result.hidden_states
    expected["hidden_states.0"] = states[0]
    expected[f"hidden_states.{len(states) - 1}"] = states[-1]
    name = "logits" if "logits" in result else "last_hidden_state"
    names = [name, "mc_logits"] if "mc_logits" in result else [name]
    return expected | {name: result[name] for name in names}


def publish_names(folder):
    """Kimi Linear's names of dense networks; transformers 5.24 renames more than it should."""
    path = f"{folder}/model.safetensors"
    dense = re.compile(r"block_sparse_moe\.(gate|up|down)_proj")
    tensors = read_safetensors(path)
    if any(dense.search(name) for name in tensors):
        write_safetensors(
            path, {dense.sub(r"mlp.\1_proj", name): value for name, value in tensors.items()}
        )


@torch.no_grad()
def make(folder, config, seed):
    """Writes the folder, unless a greedy choice is too close."""
    model = build(config, seed)
    vocab = config["vocab_size"]
    tensors, prompt = make_inputs(model, seed, vocab), tokens(seed + 1, 1, PROMPT, vocab=vocab)
    stored = {
        name: value.bfloat16() if value.is_floating_point() else value
        for name, value in model.state_dict().items()
        if name not in model.all_tied_weights_keys
    }
    model.save_pretrained(folder, state_dict=stored)
    publish_names(folder)
    model = model.double()
    torch.set_default_dtype(torch.float64)  # of constants that a class makes
    inputs, lead = {name: ids.tolist() for name, ids in tensors.items()}, MARGIN * 2
    alone = "attention_mask" not in tensors
    expected = outputs(model, tensors["input_ids"]) if alone else all_outputs(model, tensors)
    if generates(model):
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
