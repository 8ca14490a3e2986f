#!/usr/bin/env python3
"""Writes the sizes that configs may leave out, and the parameters of configs of a type alone.

usage: make_class_sizes.py

Needs torch and transformers 5. Writes src/spec/class_sizes.json, whose sizes are the defaults of the
config classes, and tests/data/defaults/types.csv, with the parameters of models with these configs
on the meta device; tied weights count once. The model types are those of docs/families.md.
"""

import csv
import json
import re
from pathlib import Path

import torch
import transformers
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

ROOT = Path(__file__).resolve().parents[2]
KEYS = """hidden_size intermediate_size num_hidden_layers num_attention_heads vocab_size d_model d_ff
    d_kv d_inner n_embd n_head n_layer n_heads n_layers dim hidden_dim num_layers num_heads ffn_dim
    ffn_hidden_size encoder_attention_heads encoder_ffn_dim encoder_layers decoder_attention_heads
    decoder_ffn_dim decoder_layers moe_intermediate_size shared_expert_intermediate_size num_experts
    num_local_experts n_routed_experts num_experts_per_tok shared_intermediate_size kv_lora_rank
    qk_nope_head_dim qk_rope_head_dim v_head_dim top_k_experts dense_intermediate_size
    intermediate_size_mlp""".split()
# Sizes under other names, that the readers have no default of their own for, or another one.
MORE = {
    "deepseek_v2": {"num_experts_per_tok": 6},  # null in the class; the paper has 6
    "dinov2": {"patch_size": 14},
    "ernie4_5": {"num_key_value_heads": 2, "head_dim": 128},
    "ernie4_5_moe": {"num_key_value_heads": 4},
    "gemma2": {"num_key_value_heads": 4},
    "gemma4_text": {"num_key_value_heads": 4},
    "internlm3": {"num_key_value_heads": 2, "head_dim": 128},
    "kimi_linear": {"num_experts": 256, "num_experts_per_token": 8},
    "qwen2_5_vl_text": {"num_key_value_heads": 8},
    "qwen2_vl_text": {"num_key_value_heads": 8},
    "qwen2_5_omni_text": {"num_key_value_heads": 4},
    "qwen3_omni_moe_text": {"num_key_value_heads": 4},
    "qwen3_moe": {"num_experts": 128},
    "qwen3_vl_moe_text": {"num_key_value_heads": 16, "num_experts": 60},
    "vaultgemma": {"num_key_value_heads": 4},
    "xglm": {"attention_heads": 16},
    "xlm-roberta-xl": {"max_position_embeddings": 514},
}
# Models whose class describes the text model and the tower that a config leaves out, and keys of
# these that no figure needs.
WHOLE = ("aya_vision", "cohere2_vision", "glmasr", "got_ocr2", "lighton_ocr", "llava", "llava_next",
         "llava_next_video", "llava_onevision", "mistral3", "paligemma", "qwen3_asr", "video_llava",
         "vipllava", "voxtral")
NO_SIZES = ("attention_dropout", "hidden_act", "initializer_range", "is_encoder_decoder", "use_cache")
# Their readers have all sizes, or the class in transformers is another.
OWN = ("exaone", "gemma3_text", "lfm2", "lfm2_moe", "lfm3")
# Classes of the text model alone, whose configs have another type.
TEXT_ALONE = ("MllamaForCausalLM",)
MAPPINGS = ("CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "SEQ_TO_SEQ_CAUSAL_LM",
            "SPEECH_SEQ_2_SEQ", "MASKED_LM", "CTC")
HEADS = ("SEQUENCE_CLASSIFICATION", "TOKEN_CLASSIFICATION", "QUESTION_ANSWERING", "MULTIPLE_CHOICE",
         "NEXT_SENTENCE_PREDICTION", "PRETRAINING", "IMAGE_CLASSIFICATION", "AUDIO_CLASSIFICATION",
         "AUDIO_FRAME_CLASSIFICATION")
# Classes whose default parts headroom refuses, those that allocate weights which files lack, and one
# whose head it has no form for.
NOT_READ = ("VisionEncoderDecoderModel", "LongcatFlashForCausalLM", "LongcatFlashModel",
            "RoFormerForMultipleChoice")
# Classes that no mapping lists.
MORE_CLASSES = {"clip_text_model": ["CLIPTextModelWithProjection"],
                "clip_vision_model": ["CLIPVisionModelWithProjection"]}


def model_types():
    table = (ROOT / "docs/families.md").read_text().split("<!-- table of families: begin -->")[1]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return sorted(name for cell in cells for name in re.findall("`([^`]+)`", cell))


def classes_of(model_type):
    """At most two classes of each, with a head, if there is one, and without; then other heads."""
    def classes(mappings):
        names = [mapping.get(model_type) for mapping in mappings]
        names = [name[0] if isinstance(name, (list, tuple)) else name for name in names]
        return [name for name in dict.fromkeys(names) if name and name not in TEXT_ALONE]

    def mappings_of(heads):
        return [getattr(modeling_auto, f"MODEL_FOR_{head}_MAPPING_NAMES", {}) for head in heads]

    found = classes([*mappings_of(MAPPINGS), modeling_auto.MODEL_MAPPING_NAMES])[:2]
    found += classes(mappings_of(HEADS)) + MORE_CLASSES.get(model_type, [])
    return [name for name in dict.fromkeys(found) if name not in NOT_READ]


def sizes(model_type):
    config_class = CONFIG_MAPPING[model_type]
    fields = {name: field.default for name, field in config_class.__dataclass_fields__.items()}
    spellings = getattr(config_class, "attribute_map", None) or {}
    row = {}
    for key in KEYS:
        value = fields.get(key, fields.get(spellings.get(key, key)))
        if type(value) is int and value > 0:
            row[key] = value
    return row | MORE.get(model_type, {})


def parts(model_type):
    """The configs that the class fills in for its parts."""
    row = {}
    for key, part in CONFIG_MAPPING[model_type].sub_configs_defaults.items():
        own = {name: value for name, value in (part.init_kwargs or {}).items()
               if name not in NO_SIZES}
        row[key] = {"model_type": part.model_type} | own
    return row


def has_sub_configs(model_type):
    keys = CONFIG_MAPPING[model_type]().to_dict()
    return any(key in keys for key in ("text_config", "thinker_config", "encoder"))


def parameters(name, config_class):
    model_class = getattr(transformers, name)
    with torch.device("meta"):
        model = model_class(config_class(architectures=[name]))
    model.tie_weights()
    return sum({id(weight): weight.numel() for weight in model.parameters()}.values())


types = [name for name in model_types() if name in CONFIG_MAPPING and name not in OWN]
table = {name: sizes(name) for name in types if not has_sub_configs(name) and sizes(name)}
table = dict(sorted((table | {name: parts(name) for name in WHOLE}).items()))
lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in table.items())
(ROOT / "src/spec/class_sizes.json").write_text(f"{{\n{lines}\n}}\n")

rows = []
for model_type in types:
    for name in classes_of(model_type):
        try:
            rows.append((model_type, name, parameters(name, CONFIG_MAPPING[model_type])))
        except (AttributeError, ImportError, TypeError, ValueError) as error:
            print(f"{name} has no default model: {str(error)[:80]}")
with open(ROOT / "tests/data/defaults/types.csv", "w", newline="") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("model_type", "model_class", "params_total"))
    writer.writerows(rows)
