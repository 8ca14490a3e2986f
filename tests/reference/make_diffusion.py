#!/usr/bin/env python3
"""Makes tests/data/diffusion: diffusion transformers, counted by diffusers and torch.

usage: make_diffusion.py [FOLDER [NAME …]]

Every file has the config of a model, its parameters, the shapes of its stored tensors, and runs:
sizes of one forward pass and the matrix FLOPs that torch.utils.flop_counter saw in it. Tiny models
run on the CPU; models of published sizes on the meta device, which computes shapes alone. Needs
torch and diffusers; made with torch 2.15.0 and diffusers 0.42.1.
"""

import json
import sys
from pathlib import Path

import diffusers
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

FLUX = dict(axes_dims_rope=[2, 4, 6], attention_head_dim=12, num_attention_heads=2, in_channels=12,
            joint_attention_dim=20, pooled_projection_dim=10, num_layers=2, num_single_layers=3)
SD3 = dict(sample_size=16, patch_size=2, in_channels=6, out_channels=5, num_layers=3,
           attention_head_dim=8, num_attention_heads=3, joint_attention_dim=20,
           caption_projection_dim=24, pooled_projection_dim=10, pos_embed_max_size=12)
PIXART = dict(num_attention_heads=3, attention_head_dim=8, num_layers=2, cross_attention_dim=24,
              sample_size=16, caption_channels=20)
WAN = dict(num_attention_heads=2, attention_head_dim=12, ffn_dim=40, num_layers=2, text_dim=20,
           freq_dim=32)

FLUX_1 = dict(attention_head_dim=128, guidance_embeds=True, in_channels=64, joint_attention_dim=4096,
              num_attention_heads=24, num_layers=19, num_single_layers=38, patch_size=1,
              pooled_projection_dim=768)
SD_3 = dict(attention_head_dim=64, caption_projection_dim=1536, in_channels=16,
            joint_attention_dim=4096, num_attention_heads=24, num_layers=24, out_channels=16,
            patch_size=2, pooled_projection_dim=2048, pos_embed_max_size=192, sample_size=128)
WAN_1_3B = dict(attention_head_dim=128, cross_attn_norm=True, eps=1e-6, ffn_dim=8960, freq_dim=256,
                in_channels=16, num_attention_heads=12, num_layers=30, out_channels=16,
                patch_size=[1, 2, 2], qk_norm="rms_norm_across_heads", rope_max_seq_len=1024,
                text_dim=4096)

# name: class, settings, runs of (batch, height, width, frames, text tokens) in pixels
TINY_RUNS = [(1, 64, 96, 1, 7), (2, 32, 48, 1, 5)]
VIDEO_RUNS = [(1, 32, 48, 9, 7), (2, 64, 32, 1, 5)]
MODELS = {
    "flux_tiny": ("FluxTransformer2DModel", FLUX, TINY_RUNS),
    "flux_guidance_tiny": ("FluxTransformer2DModel", {**FLUX, "guidance_embeds": True}, TINY_RUNS),
    "sd3_tiny": ("SD3Transformer2DModel", SD3, TINY_RUNS),
    "sd35_tiny": ("SD3Transformer2DModel",
                  {**SD3, "qk_norm": "rms_norm", "dual_attention_layers": [0, 1]}, TINY_RUNS),
    "pixart_tiny": ("PixArtTransformer2DModel", PIXART, TINY_RUNS),
    "pixart_sized_tiny": ("PixArtTransformer2DModel",
                          {**PIXART, "use_additional_conditions": True}, TINY_RUNS),
    "wan_tiny": ("WanTransformer3DModel", WAN, VIDEO_RUNS),
    "wan_plain_tiny": ("WanTransformer3DModel", {**WAN, "cross_attn_norm": False}, VIDEO_RUNS),
    "wan_image_tiny": ("WanTransformer3DModel",
                       {**WAN, "in_channels": 36, "image_dim": 20, "added_kv_proj_dim": 24},
                       [(1, 32, 48, 9, 512), (2, 64, 32, 1, 512)]),
    "wan_two_images_tiny": ("WanTransformer3DModel",
                            {**WAN, "in_channels": 36, "image_dim": 20, "added_kv_proj_dim": 24,
                             "pos_embed_seq_len": 10}, [(1, 32, 48, 9, 512)]),
    "flux.1-dev": ("FluxTransformer2DModel", FLUX_1, [(1, 1024, 1024, 1, 512)]),
    "flux.1-schnell": ("FluxTransformer2DModel", {**FLUX_1, "guidance_embeds": False},
                       [(1, 1024, 1024, 1, 512)]),
    "stable-diffusion-3-medium": ("SD3Transformer2DModel", SD_3, [(2, 1024, 1024, 1, 333)]),
    "stable-diffusion-3.5-medium": ("SD3Transformer2DModel",
                                    {**SD_3, "pos_embed_max_size": 384, "qk_norm": "rms_norm",
                                     "dual_attention_layers": list(range(13))},
                                    [(1, 1024, 1024, 1, 333)]),
    "stable-diffusion-3.5-large": ("SD3Transformer2DModel",
                                   {**SD_3, "num_attention_heads": 38, "num_layers": 38,
                                    "caption_projection_dim": 2432, "qk_norm": "rms_norm"},
                                   [(1, 1024, 1024, 1, 333)]),
    "pixart-sigma-xl": ("PixArtTransformer2DModel",
                        dict(caption_channels=4096, sample_size=128,
                             use_additional_conditions=False), [(1, 1024, 1024, 1, 300)]),
    "pixart-alpha-xl": ("PixArtTransformer2DModel",
                        dict(caption_channels=4096, sample_size=128), [(1, 1024, 1024, 1, 120)]),
    "wan2.1-t2v-1.3b": ("WanTransformer3DModel", WAN_1_3B, [(1, 480, 832, 81, 512)]),
    "wan2.1-t2v-14b": ("WanTransformer3DModel",
                       {**WAN_1_3B, "ffn_dim": 13824, "num_attention_heads": 40, "num_layers": 40},
                       [(1, 720, 1280, 81, 512)]),
    "wan2.1-i2v-14b": ("WanTransformer3DModel",
                       {**WAN_1_3B, "ffn_dim": 13824, "num_attention_heads": 40, "num_layers": 40,
                        "in_channels": 36, "image_dim": 1280, "added_kv_proj_dim": 5120},
                       [(1, 480, 832, 81, 512)]),
}


def inputs_of(model, batch, height, width, frames, text):
    """Inputs of one forward pass, as the class's pipeline makes them."""
    config = model.config
    if isinstance(model, diffusers.FluxTransformer2DModel):
        rows = (height // 16) * (width // 16)
        inputs = dict(hidden_states=torch.randn(batch, rows, config.in_channels),
                      encoder_hidden_states=torch.randn(batch, text, config.joint_attention_dim),
                      pooled_projections=torch.randn(batch, config.pooled_projection_dim),
                      timestep=torch.ones(batch), img_ids=torch.zeros(rows, 3),
                      txt_ids=torch.zeros(text, 3))
        return {**inputs, "guidance": torch.ones(batch)} if config.guidance_embeds else inputs
    if isinstance(model, diffusers.WanTransformer3DModel):
        latent = (batch, config.in_channels, (frames - 1) // 4 + 1, height // 8, width // 8)
        inputs = dict(hidden_states=torch.randn(latent), timestep=torch.ones(batch),
                      encoder_hidden_states=torch.randn(batch, text, config.text_dim))
        if config.image_dim is None:
            return inputs
        # Of an image each, or of the first and the last frame.
        rows = config.pos_embed_seq_len
        shape = (batch, 257) if rows is None else (2 * batch, rows // 2)
        return {**inputs, "encoder_hidden_states_image": torch.randn(*shape, config.image_dim)}
    latent = torch.randn(batch, config.in_channels, height // 8, width // 8)
    if isinstance(model, diffusers.SD3Transformer2DModel):
        return dict(hidden_states=latent, timestep=torch.ones(batch),
                    encoder_hidden_states=torch.randn(batch, text, config.joint_attention_dim),
                    pooled_projections=torch.randn(batch, config.pooled_projection_dim))
    sizes = dict(resolution=torch.ones(batch, 2), aspect_ratio=torch.ones(batch, 1))
    if not model.use_additional_conditions:
        sizes = dict(resolution=None, aspect_ratio=None)
    return dict(hidden_states=latent, timestep=torch.ones(batch), added_cond_kwargs=sizes,
                encoder_hidden_states=torch.randn(batch, text, config.caption_channels))


def matrix_flops(model, sizes):
    with FlopCounterMode(display=False) as counter, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        model(**inputs_of(model, *sizes))
    return counter.get_total_flops()


def record(name, class_name, settings, runs):
    tiny = name.endswith("_tiny")
    with torch.device("cpu" if tiny else "meta"):
        model = getattr(diffusers, class_name)(**settings).eval()
        counted = [dict(zip(("batch", "height", "width", "frames", "text"), sizes),
                        matrix_flops=matrix_flops(model, sizes)) for sizes in runs]
    result = {"config": {"_class_name": class_name, **settings},
              "parameters": sum(p.numel() for p in model.parameters()), "runs": counted}
    if tiny:
        result["tensors"] = {key: list(value.shape) for key, value in model.state_dict().items()}
    return result


def main():
    default = Path(__file__).parent.parent / "data" / "diffusion"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else default
    folder.mkdir(exist_ok=True)
    for name in sys.argv[2:] or MODELS:
        class_name, settings, runs = MODELS[name]
        result = record(name, class_name, settings, runs)
        (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
