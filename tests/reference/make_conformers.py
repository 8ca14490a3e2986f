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
from transformers.models.gemma3n import modeling_gemma3n

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
# The last 16 ids of the text model's table are hard tokens of images and sound, which their embedders
# have tables of; a clip ends with such a token. Of the vision tower only the embedder is made.
GEMMA3N_TEXT = {
    "model_type": "gemma3n_text", "hidden_size": 32, "intermediate_size": [40] * 3,
    "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 3, "head_dim": 12,
    "vocab_size": 101, "vocab_size_per_layer_input": 85, "hidden_size_per_layer_input": 14,
    "layer_types": ["sliding_attention", "full_attention", "full_attention"], "sliding_window": 7,
    "num_kv_shared_layers": 1, "laurel_rank": 6, "altup_num_inputs": 3,
    "activation_sparsity_pattern": [0.9, 0.0, 0.0], "final_logit_softcapping": 5.0,
    "max_position_embeddings": 96, "pad_token_id": 0}
IMAGE_OFFSET, SOUND_OFFSET, HARD_TOKENS = 85, 93, 8
GEMMA3N = {"text_config": GEMMA3N_TEXT, "boa_token_id": 84, "eoi_token_id": IMAGE_OFFSET,
           "image_token_id": IMAGE_OFFSET + 1, "eoa_token_id": SOUND_OFFSET, "audio_token_id": AUDIO,
           "vision_config": {"vocab_size": HARD_TOKENS, "vocab_offset": IMAGE_OFFSET}}
GEMMA3N_SOUND = {
    "vocab_size": HARD_TOKENS, "vocab_offset": SOUND_OFFSET, "hidden_size": 16,
    "input_feat_size": BINS, "sscp_conv_channel_size": [8, 4], "conf_num_hidden_layers": 2,
    "conf_num_attention_heads": 2, "conf_conv_kernel_size": 3, "conf_attention_chunk_size": 4,
    "conf_attention_context_left": 5, "conf_attention_context_right": 0,
    "conf_attention_logit_cap": 3.0, "conf_reduction_factor": 4}

# name: class, config, frames of a clip. 22 frames become 11 rows, then 6; 32 become 8.
MODELS = {
    "gemma4_clips": ("Gemma4ForConditionalGeneration", {
        "text_config": TEXT, "vision_config": None, "audio_token_id": AUDIO,
        "audio_config": {**SOUND, "use_clipped_linears": True}}, 22),
    "gemma4_unclipped": ("Gemma4ForConditionalGeneration", {
        "text_config": TEXT, "vision_config": None, "audio_token_id": AUDIO,
        "audio_config": {**SOUND, "num_hidden_layers": 1, "use_clipped_linears": False}}, 32),
    # 22 frames become 6 rows, whose first and fifth are tokens before 3 of padding; 68 become 17 rows
    # and 9 tokens, none of padding.
    "gemma3n_padded": ("Gemma3nForConditionalGeneration", {
        **GEMMA3N, "audio_soft_tokens_per_image": 5,
        "audio_config": {**GEMMA3N_SOUND, "gradient_clipping": 0.75}}, 22),
    "gemma3n_whole": ("Gemma3nForConditionalGeneration", {
        **GEMMA3N, "audio_soft_tokens_per_image": 9,
        "audio_config": {**GEMMA3N_SOUND, "conf_num_hidden_layers": 1, "conf_reduction_factor": 2,
                         "conf_attention_chunk_size": 5, "conf_attention_context_left": 3}}, 68),
}


def tokens_of(frames):
    """Rows of a clip behind two convolutions with stride 2."""
    return ((frames + 1) // 2 + 1) // 2


def clips_of(generator, config, count, frames):
    """Text with so many clips, each of them whole; of Gemma 3n, padding and a hard token end each."""
    padded = config.get("audio_soft_tokens_per_image")

    def text(tokens):
        return torch.randint(3, IMAGE_OFFSET if padded else 90, (1, tokens), generator=generator)

    ends = [torch.tensor([[SOUND_OFFSET]])] if padded else []
    parts = [text(3)]
    for _ in range(count):
        parts += [torch.full((1, padded or tokens_of(frames)), AUDIO), *ends, text(2)]
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


class DoubleTorch:
    """torch, whose float32 is float64."""
    float32 = torch.float64

    def __getattr__(self, name):
        return getattr(torch, name)


@contextlib.contextmanager
def casts_ignored():
    """The classes cast queries, keys, values and norms to float32; in float64 they stay."""
    cast = torch.Tensor.float
    torch.Tensor.float = lambda tensor: tensor if tensor.dtype == torch.float64 else cast(tensor)
    modeling_gemma3n.torch = DoubleTorch()
    yield
    modeling_gemma3n.torch = torch
    torch.Tensor.float = cast


@contextlib.contextmanager
def vision_tower_left_out():
    """Gemma 3n's class always makes the vision tower, of 294 million parameters."""
    from_config = modeling_gemma3n.AutoModel.from_config
    modeling_gemma3n.AutoModel.from_config = lambda config, **options: (
        torch.nn.Identity() if config.model_type == "gemma3n_vision"
        else from_config(config, **options))
    yield
    modeling_gemma3n.AutoModel.from_config = from_config


def record_sound(model, inputs):
    """Outputs of the model, its audio tokens, and of Gemma 3n those of its Conformer's layers."""
    kept = {}

    def keep_tokens(_module, _inputs, named, output):
        if named.get("input_ids") is None:  # not an embedding of hard tokens
            kept.update(audio_features=output.flatten(0, 1))

    hooks = [model.model.embed_audio.register_forward_hook(keep_tokens, with_kwargs=True)]
    if is_gemma3n(model):
        for i, layer in enumerate(model.model.audio_tower.conformer):
            hooks.append(layer.register_forward_hook(
                lambda _module, _inputs, output, i=i: kept.update(
                    {f"audio.layers.{i}.output": output})))
    outputs = record(model, dict(inputs))
    for hook in hooks:
        hook.remove()
    return {**outputs, **kept}


def is_gemma3n(model):
    return isinstance(model, transformers.Gemma3nForConditionalGeneration)


def flops_of(model, inputs):
    counter = FlopCounterMode(display=False)
    with counter, torch.no_grad():
        model(**inputs, use_cache=False)
    return counter.get_total_flops()


def counts_of(model, inputs):
    text = {"input_ids": torch.ones_like(inputs["input_ids"])}
    return {**(embedder_counts(model, text) if is_gemma3n(model) else {}),
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "frames": inputs["input_features"].shape[1], "clips": len(inputs["input_features"]),
            "tokens": inputs["input_ids"].shape[1],
            "flops": flops_of(model, inputs), "flops_without_sound": flops_of(model, text)}


def embedder_counts(model, text):
    """FLOPs of the hard tokens' embeddings, which the class computes of every token and mostly drops."""
    flops = 0
    for embedder in (model.model.embed_vision, model.model.embed_audio):
        ids = torch.full_like(text["input_ids"], embedder.vocab_offset)
        counter = FlopCounterMode(display=False)
        with counter, torch.no_grad():
            embedder(input_ids=ids)
        flops += counter.get_total_flops()
    return {"flops_of_hard_tokens": flops,
            "audio_tower_parameters": sum(parameter.numel()
                                          for parameter in model.model.audio_tower.parameters()),
            "vision_embedder_parameters": sum(parameter.numel() for parameter in
                                              model.model.embed_vision.parameters())}


def make(folder, name, class_name, config, frames):
    generator = torch.Generator().manual_seed(11)
    model_class = getattr(transformers, class_name)
    with vision_tower_left_out():
        model = model_class._from_config(model_class.config_class(**config),
                                         attn_implementation="eager").float().eval()
    draw_weights(model, generator)
    draw_norms(model, generator)
    draw_bounds(model, generator)
    with torch.no_grad():
        first = IMAGE_OFFSET if is_gemma3n(model) else SOUND_BEGINS
        model.get_input_embeddings().weight[first:] = 0  # no placeholder or hard token is generated
    round_values(model)
    inputs = clips_of(generator, config, 2, frames)
    to_generate = clips_of(generator, config, 1, frames)
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
