#!/usr/bin/env python3
"""Makes tiny models with audio towers, with inputs and the reference's outputs.

usage: make_audio_models.py [FOLDER [NAME …]]   (default: tests/data/golden/models, all models)

As make_towers.py, whose sizes it shares. Needs torch, transformers and safetensors.
"""

import sys
from pathlib import Path

import torch

from make_towers import AUDIO, IMAGE, ROOT, SOUND, TEXT, VOXTRAL, clips, make, pixels, prompt

SMALL_TEXT = {**TEXT, "tie_word_embeddings": False, "head_dim": 12}
WHISPER = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4,
           "num_hidden_layers": 2, "num_mel_bins": 16, "max_source_positions": 10}
GLM_ASR = {**{key: VOXTRAL[key] for key in VOXTRAL if key != "max_source_positions"},
           "max_position_embeddings": 20}
QWEN3_ASR = {"model_type": "qwen3_asr_encoder", "d_model": 32, "encoder_ffn_dim": 48,
             "encoder_attention_heads": 4, "encoder_layers": 2, "num_mel_bins": 20,
             "n_window": 50, "n_window_infer": 200, "downsample_hidden_size": 6,
             "max_position_embeddings": 13, "output_dim": 48}
# Distances from 4 on share buckets.
WAVLM = {**SOUND, "num_buckets": 16, "max_bucket_distance": 12}


def unmasked(inputs):
    """The inputs with masks that hide nothing."""
    for part in (inputs, inputs["generate"]):
        count, _, frames = part["input_features"].shape
        part["input_features_mask"] = torch.ones((count, frames), dtype=torch.long)
    return inputs


def padded_clips(generator, bins, frames, tokens, padded):
    """A sequence with two clips, completed with silence that the masks hide."""
    def sound(count):
        features = pixels(generator, count, bins, padded)
        features[..., frames:] = 0
        mask = torch.zeros((count, padded), dtype=torch.long)
        mask[:, :frames] = 1
        return {"input_features": features, "input_features_mask": mask}

    def inputs(count):
        ids = prompt(generator, *[tokens] * count)
        return {"input_ids": ids.where(ids != IMAGE, AUDIO), **sound(count)}

    return {**inputs(2), "generate": inputs(1)}


# name: model class, config, inputs
MODELS = {
    "qwen3_asr_clips": ("Qwen3ASRForConditionalGeneration", {
        "text_config": {**SMALL_TEXT, "model_type": "qwen3"}, "audio_config": QWEN3_ASR,
        "audio_token_id": AUDIO, "tie_word_embeddings": False},
        lambda g: padded_clips(g, 20, 330, 43, 400)),
    "glmasr_clips": ("GlmAsrForConditionalGeneration", {
        "text_config": SMALL_TEXT, "audio_config": GLM_ASR, "audio_token_id": AUDIO,
        "tie_word_embeddings": False}, lambda g: unmasked(clips(g))),
    "audioflamingo3_clips": ("AudioFlamingo3ForConditionalGeneration", {
        "text_config": {**SMALL_TEXT, "model_type": "qwen2"}, "audio_config": WHISPER,
        "audio_token_id": AUDIO}, lambda g: unmasked(clips(g, 20))),
    "wavlm": ("WavLMModel", WAVLM, lambda g: {"input_values": pixels(g, 2, 200)}),
    "wavlm_frames": ("WavLMForAudioFrameClassification",
                     {**WAVLM, "do_stable_layer_norm": True, "feat_extract_norm": "layer"},
                     lambda g: {"input_values": pixels(g, 2, 200)}),
}

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    for name in sys.argv[2:] or MODELS:
        make(folder, name, *MODELS[name])
