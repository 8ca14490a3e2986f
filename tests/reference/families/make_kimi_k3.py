"""Completes folders of Kimi K3 and of its text model: make_kimi_k3.py CODE_FOLDER FOLDER...

CODE_FOLDER has configuration_kimi_k3.py, modeling_kimi_linear.py and modeling_kimi_k3.py of
moonshotai/Kimi-K3, whose classes run on a CPU here: with fla-core's own references in place of its
GPU kernels, eager attention, and a causal mask as transformers makes it. Reads config.json, and
writes weights in bfloat16, inputs, and outputs in float64 beside it.
"""

import importlib.util
import json
import sys
import types

import torch
import torch.nn.functional as F
import transformers
from torch.utils.flop_counter import FlopCounterMode
from folders import MARGIN, NEW, PROMPT, SEQ, greedy, tokens
from weights import TYPES, write_safetensors

import fla.modules
import fla.ops.kda
import fla.ops.utils.index
import fla.utils
from fla.ops.kda.gate import naive_kda_lowerbound_gate
from fla.ops.kda.naive import naive_recurrent_kda

SEEDS = range(100, 150)


class ShortConvolution(torch.nn.Conv1d):
    def __init__(self, hidden_size, kernel_size, activation):
        super().__init__(
            hidden_size, hidden_size, kernel_size, groups=hidden_size, padding=kernel_size - 1, bias=False
        )

    def forward(self, x, **_options):
        return F.silu(super().forward(x.mT)[..., : x.shape[1]].mT), None


class FusedRMSNormGated(torch.nn.Module):
    def __init__(self, hidden_size, eps, activation):
        super().__init__()
        self.weight, self.eps = torch.nn.Parameter(torch.ones(hidden_size)), eps

    def forward(self, x, gate):
        return F.rms_norm(x, x.shape[-1:], self.weight, self.eps) * gate.sigmoid()


def kda(q, k, v, g, beta, A_log, dt_bias, lower_bound, **_options):
    """Runs what the kernels fuse: normalises queries and keys, and computes decays and rates."""
    q, k = (x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-6) for x in (q, k))
    return naive_recurrent_kda(
        q, k, v, naive_kda_lowerbound_gate(g, A_log, dt_bias, lower_bound), beta.sigmoid()
    )


def causal_mask(input_embeds, **_options):
    length = input_embeds.shape[1]
    return torch.full((1, 1, length, length), float("-inf")).triu(1)


def load(folder):
    """The published modules, on today's transformers."""
    fla.modules.ShortConvolution, fla.modules.FusedRMSNormGated = ShortConvolution, FusedRMSNormGated
    fla.ops.kda.chunk_kda = fla.ops.kda.fused_recurrent_kda = kda
    generic = transformers.utils.generic
    generic.OutputRecorder = getattr(generic, "OutputRecorder", lambda *_arguments, **_options: None)
    generic.check_model_inputs = lambda function: function
    transformers.pytorch_utils.ALL_LAYERNORM_LAYERS = []
    torch.compile = lambda *_arguments, **_options: lambda function: function
    sys.modules["kimi"] = types.ModuleType("kimi")
    modules = []
    for name in ("configuration_kimi_k3", "modeling_kimi_linear", "modeling_kimi_k3"):
        spec = importlib.util.spec_from_file_location(f"kimi.{name}", f"{folder}/{name}.py")
        modules.append(importlib.util.module_from_spec(spec))
        sys.modules[f"kimi.{name}"] = modules[-1]
        spec.loader.exec_module(modules[-1])
    configs, text, images = modules
    text.create_causal_mask = causal_mask
    text.KimiPreTrainedModel._can_record_outputs = {}
    for kind in (text.KimiPreTrainedModel, images.KimiK3PreTrainedModel):
        kind._init_weights = lambda *_arguments: None
    text.KimiLinearForCausalLM._tied_weights_keys = {}
    images.KimiK3ForConditionalGeneration.tie_weights = lambda *_arguments, **_options: None
    return configs, text, images


def build(published, config):
    """The model and its text model."""
    configs, text, images = published
    if config["model_type"] != "kimi_k3":
        model = whole = text.KimiLinearForCausalLM(configs.KimiLinearConfig(**config))
    else:
        whole = images.KimiK3ForConditionalGeneration(configs.KimiK3Config(**config))
        model = whole.language_model
        for block in whole.vision_tower.encoder.blocks:
            block.attn_implementation = "eager"
    model.config._attn_implementation = "eager"
    return whole.float().eval(), model


def draw(model, seed):
    """Vectors keep their initial values and get some noise; matrices get a gain below 1, and those
    that score blocks one above it."""
    noise = torch.Generator().manual_seed(seed)
    for name, weight in model.named_parameters():
        values = torch.randn(weight.shape, generator=noise, dtype=TYPES["F32"])
        if name.endswith(("dt_bias", "correction_bias")):
            weight.copy_(0.2 * values)
        elif weight.ndim == 1:
            weight.add_(0.1 * values)
        elif "embed" in name:
            weight.copy_(0.5 * values)
        else:
            gain = 2 if "res_proj" in name else 0.6
            weight.copy_(gain * values * weight.shape[-1] ** -0.5)
        weight.copy_(weight.bfloat16())


def widen():
    """float64 where the code asks for float32: rounding errors are then headroom's alone."""
    torch.float32 = torch.float = torch.float64
    torch.complex64 = torch.complex128
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)


def widened(whole):
    """The model in float64. RMSNorm without an eps has float32's."""
    for module in whole.modules():
        if isinstance(module, torch.nn.RMSNorm) and module.eps is None:
            module.eps = torch.finfo(TYPES["F32"]).eps
    return whole.double()


def embedded(whole, model, ids, images):
    """Embeddings with the rows of images in their tokens' places, of which each image has one for
    every row: the class itself puts them in the place of one token."""
    states = model.model.embed_tokens(ids)
    if images:
        features = whole.mm_projector(
            whole._extract_image_features(images["pixel_values"], images["image_grid_thw"])
        )
        states[ids == whole.config.media_placeholder_token_id] = torch.cat(features)
    return states


def outputs(whole, model, ids, images):
    """Each layer's output, the first and last hidden states, and the logits."""
    expected, last = {}, f"hidden_states.{len(model.model.layers)}"

    def record(name):
        def hook(_module, _inputs, output):
            expected[name] = (output[0] if isinstance(output, tuple) else output).clone()

        return hook

    modules = {last: model.model.norm}
    modules |= {f"layers.{i}.output": layer for i, layer in enumerate(model.model.layers)}
    if images:
        blocks = whole.vision_tower.encoder.blocks
        modules |= {f"vision.layers.{i}.output": block for i, block in enumerate(blocks)}
    hooks = [module.register_forward_hook(record(name)) for name, module in modules.items()]
    states = embedded(whole, model, ids, images)
    logits = model(inputs_embeds=states, use_cache=False).logits
    for hook in hooks:
        hook.remove()
    return expected | {"hidden_states.0": states, "logits": logits}


def image_inputs(config, seed):
    """Two images of 4 × 6 and 4 × 2 patches for the first pass, and one for the generation; the ids
    of both have a placeholder for each square of 2 × 2 patches."""
    token, side = config["media_placeholder_token_id"], config["vision_config"]["patch_size"]
    vocab, noise = config["text_config"]["vocab_size"], torch.Generator().manual_seed(seed)

    def prompt(seed, *grids):
        parts = [tokens(seed, 1, 3, vocab=vocab - 4)]
        for rows, columns in grids:
            image = torch.full((1, rows * columns // 4), token)
            parts += [image, tokens(seed + rows + columns, 1, 2, vocab=vocab - 4)]
        rows = sum(rows * columns for rows, columns in grids)
        return torch.cat(parts, 1), {
            "pixel_values": torch.randn(
                rows, 3, side, side, generator=noise, dtype=TYPES["F32"]
            ).double(),
            "image_grid_thw": torch.tensor([[1, *grid] for grid in grids]),
        }

    return prompt(seed, (4, 6), (4, 2)), prompt(seed + 1, (4, 6))


def image_flops(whole, images):
    """FLOPs of the tower and the projector by torch's FlopCounterMode, image by image: eager
    attention multiplies the rows of all images."""
    flops = 0
    grids = images["image_grid_thw"]
    rows = images["pixel_values"].split(grids.prod(-1).tolist())
    for pixels, grid in zip(rows, grids):
        with FlopCounterMode(display=False) as counter:
            whole.mm_projector(whole._extract_image_features(pixels, grid[None]))
        flops += counter.get_total_flops()
    return flops


def written(images):
    """Returns the keys of inputs.json that describe images."""
    if not images:
        return {}
    grids = images["image_grid_thw"].tolist()
    return {"pixel_values": "inputs.safetensors", "image_grid_thw": grids}


@torch.no_grad()
def make(published, folder, config, seed):
    """Writes the folder, unless a greedy choice is too close."""
    torch.manual_seed(seed)
    whole, model = build(published, config)
    draw(whole, seed)
    write_safetensors(
        f"{folder}/model.safetensors",
        {name: value.bfloat16() for name, value in whole.state_dict().items()},
    )
    widened(whole)
    vocab = model.config.vocab_size
    if whole is model:
        ids, images = tokens(seed, 2, SEQ, vocab=vocab), {}
        prompt, prompt_images = tokens(seed + 1, 1, PROMPT, vocab=vocab), {}
    else:
        (ids, images), (prompt, prompt_images) = image_inputs(config, seed)
        pixels = {"pixel_values": images, "generate.pixel_values": prompt_images}
        write_safetensors(
            f"{folder}/inputs.safetensors",
            {name: values["pixel_values"].to(TYPES["F32"]) for name, values in pixels.items()},
        )
    expected = outputs(whole, model, ids, images)
    made, logits, lead = greedy(
        lambda ids: outputs(whole, model, ids, prompt_images)["logits"], prompt, NEW
    )
    expected |= {"generate.ids": made, "generate.logits": logits}
    generate = {"prompt_ids": prompt.tolist(), **written(prompt_images), "max_new_tokens": NEW}
    generate["expected_ids"] = made.tolist()
    with open(f"{folder}/inputs.json", "w") as file:
        json.dump({"input_ids": ids.tolist(), **written(images), "generate": generate}, file)
        file.write("\n")
    narrow = {
        name: value.to(TYPES["F32"]) if value.is_floating_point() else value
        for name, value in expected.items()
    }
    write_safetensors(f"{folder}/expected.safetensors", narrow)
    if images:
        print(folder, "FLOPs of its images", image_flops(whole, images))
    return lead > MARGIN


published = load(sys.argv[1])
widen()
for folder in sys.argv[2:]:
    with open(f"{folder}/config.json") as file:
        config = json.load(file)
    print(folder, next(seed for seed in SEEDS if make(published, folder, config, seed)))
