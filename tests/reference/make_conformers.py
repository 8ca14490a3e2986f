#!/usr/bin/env python3
"""Makes tiny models whose audio tower is a Conformer, with inputs, the reference's outputs, and greedily generated tokens.

usage: make_conformers.py [FOLDER [NAME …]]   (default: tests/data/golden/models, all models)

As make_towers.py. Weights are drawn and stored in bfloat16, outputs computed in float64. reference.json has the
parameters and, as torch's FlopCounterMode counts them, the FLOPs of a prefill with two clips and without sound.
Needs torch, transformers and safetensors.
"""

import contextlib
import json
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from make_towers import AUDIO, SOUND_BEGINS, draw_weights, generate, pixels, record
from safetensors.torch import load_file, save_file
from torch.utils.flop_counter import FlopCounterMode
from tower_configs import GEMMA4_TEXT

ROOT = Path(__file__).resolve().parent.parent / "data/golden/models"
NEW_TOKENS = 6
TEXT = {**GEMMA4_TEXT, "use_bidirectional_attention": None, "num_hidden_layers": 2,
        "layer_types": ["sliding_attention", "full_attention"]}
# Two convolutions leave a quarter of as many mel bins as the first one has channels.
SOUND = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
         "subsampling_conv_channels": [8, 4], "conv_kernel_size": 3, "attention_chunk_size": 4,
         "attention_context_left": 5, "attention_context_right": 0, "attention_logit_cap": 3.0,
         "output_proj_dims": 24, "residual_weight": 0.5}
BINS = 8

# name: class, config, frames of a clip. 22 frames become 11 rows, then 6; 32 become 8.
MODELS = {
    "gemma4_clips": ("Gemma4ForConditionalGeneration", {
        "text_config": TEXT, "vision_config": None, "audio_token_id": AUDIO,
        "audio_config": {**SOUND, "use_clipped_linears": True}}, 22),
    "gemma4_unclipped": ("Gemma4ForConditionalGeneration", {
        "text_config": TEXT, "vision_config": None, "audio_token_id": AUDIO,
        "audio_config": {**SOUND, "num_hidden_layers": 1, "use_clipped_linears": False}}, 32),
}


def tokens_of(frames):
    """Rows of a clip behind two convolutions with stride 2."""
    return ((frames + 1) // 2 + 1) // 2


def clips_of(generator, count, frames):
    """Text with so many clips, each of them whole."""
    def text(tokens):
        return torch.randint(3, 90, (1, tokens), generator=generator)

    parts = [text(3)]
    for _ in range(count):
        parts += [torch.full((1, tokens_of(frames)), AUDIO), text(2)]
    ids = torch.cat(parts, dim=1)
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids),
            "input_features": pixels(generator, count, frames, BINS),
            "input_features_mask": torch.ones((count, frames), dtype=torch.bool)}


def draw_bounds(model, generator):
    """Bounds of clipped layers that some values exceed, on either side by another amount."""
    with torch.no_grad():
        for name, bound in model.named_buffers():
            if not name.endswith(("put_min", "put_max")):
                continue
            size = 0.8 + 0.8 * torch.rand((), generator=generator)
            bound.copy_(-size if name.endswith("_min") else size)


def round_values(model):
    """Values that bfloat16 stores exactly."""
    stored = [value for name, value in model.named_buffers()
              if name.endswith(("_min", "_max", "layer_scalar"))]
    with torch.no_grad():
        for value in [*model.parameters(), *stored]:
            value.copy_(value.bfloat16())


def draw_norms(model, generator):
    """Norms that draw_weights takes for other vectors."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" in name and weight.dim() == 1:
                weight.copy_(1 + 0.1 * torch.randn(weight.shape, generator=generator))


@contextlib.contextmanager
def casts_ignored():
    """The class casts queries, keys, values and norms to float32; in float64 they stay."""
    cast = torch.Tensor.float
    torch.Tensor.float = lambda tensor: tensor if tensor.dtype == torch.float64 else cast(tensor)
    yield
    torch.Tensor.float = cast


def record_sound(model, inputs):
    """Outputs of the model, and its audio tokens."""
    kept = {}
    hook = model.model.embed_audio.register_forward_hook(
        lambda _module, _inputs, output: kept.update(audio_features=output.flatten(0, 1)))
    outputs = record(model, dict(inputs))
    hook.remove()
    return {**outputs, **kept}


def flops_of(model, inputs):
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        model(**inputs, use_cache=False)
    return counter.get_total_flops()


def counts_of(model, inputs):
    text = {"input_ids": torch.ones_like(inputs["input_ids"])}
    return {"parameters": sum(parameter.numel() for parameter in model.parameters()),
            "frames": inputs["input_features"].shape[1], "clips": len(inputs["input_features"]),
            "tokens": inputs["input_ids"].shape[1],
            "flops": flops_of(model, inputs), "flops_without_sound": flops_of(model, text)}


def make(folder, name, class_name, config, frames):
    generator = torch.Generator().manual_seed(11)
    model_class = getattr(transformers, class_name)
    model = model_class._from_config(model_class.config_class(**config),
                                     attn_implementation="eager").float().eval()
    draw_weights(model, generator)
    draw_norms(model, generator)
    draw_bounds(model, generator)
    with torch.no_grad():
        model.get_input_embeddings().weight[SOUND_BEGINS:] = 0  # no placeholder is generated
    round_values(model)
    inputs = clips_of(generator, 2, frames)
    to_generate = clips_of(generator, 1, frames)
    target = folder / name
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as saved:
        model.save_pretrained(saved)
        weights = {key: value.bfloat16() if value.is_floating_point() else value
                   for key, value in load_file(Path(saved) / "model.safetensors").items()}
        written = (Path(saved) / "config.json").read_text()
    (target / "config.json").write_text(
        written.replace('"dtype": "float32"', '"dtype": "bfloat16"'))
    counts = counts_of(model, inputs)
    with casts_ignored():
        outputs = {**record_sound(model, inputs), **generate(model, to_generate, NEW_TOKENS)}
    expected = {key: value.float() if value.is_floating_point() else value
                for key, value in outputs.items()}
    tensors = {"input_features": inputs["input_features"],
               "generate.input_features": to_generate["input_features"]}
    document = {"input_ids": inputs["input_ids"].tolist(), "input_features": "inputs.safetensors",
                "generate": {"prompt_ids": to_generate["input_ids"].tolist(),
                             "input_features": "inputs.safetensors",
                             "max_new_tokens": NEW_TOKENS}}
    for file, values in (("model", weights), ("expected", expected), ("inputs", tensors)):
        save_file({key: value.clone().contiguous() for key, value in values.items()},
                  target / f"{file}.safetensors")
    (target / "inputs.json").write_text(json.dumps(document) + "\n")
    (target / "reference.json").write_text(json.dumps(
        {"torch": torch.__version__, "transformers": transformers.__version__, **counts}) + "\n")
    print(name, counts)


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    for name in sys.argv[2:] or MODELS:
        make(folder, name, *MODELS[name])
