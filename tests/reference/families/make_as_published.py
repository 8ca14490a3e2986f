"""Completes folders as make_with_transformers.py does, of models that transformers has in another
form than their files: make_as_published.py FOLDER...

Step 3.5 is the text model of transformers' Step 3.7 with a head; GTE has a scaling of RoPE of its
own; InternLM 2 is Llama with queries, keys and values in one tensor; Jina Embeddings v3 has
adapters of tasks beside its matrices. Reward models are their text
models with the heads of their repositories (reward_models.py). NLLB-MoE mixes its
experts as transformers 4 does: 5.24 takes the mask of the best ones for their numbers. Configs stay as they are published,
and tensors get the published names, by transformers' own table of conversions.
"""

import json
import re
import sys

import reward_models
import torch
import transformers  # noqa: F401
from transformers.modeling_outputs import MoeCausalLMOutputWithPast
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.gte.modeling_gte import GteModel
from transformers.models.nllb_moe.modeling_nllb_moe import NllbMoeSparseMLP
from transformers.models.step3p7 import modeling_step3p7 as step

STEP_NAMES = (
    (r"\.mlp\.gate\.weight", ".moe.gate.weight"),
    (r"\.mlp\.gate\.e_score_correction_bias", ".moe.router_bias"),
    (r"\.mlp\.experts\.down_proj", ".moe.down_proj.weight"),
    (r"\.mlp\.shared_experts\.", ".share_expert."),
)
STEP_FUSED = re.compile(r"\.mlp\.experts\.gate_up_proj")
MOLMO_NAMES = (
    (r"^layers\.", "model.transformer.blocks."),
    (r"^norm\.", "model.transformer.ln_f."),
    (r"^wte\.", "model.transformer.wte."),
)


INTERNLM_NAMES = (
    (r"embed_tokens", "tok_embeddings"),
    (r"self_attn\.o_proj", "attention.wo"),
    (r"self_attn\.wqkv", "attention.wqkv"),
    (r"input_layernorm", "attention_norm"),
    (r"post_attention_layernorm", "ffn_norm"),
    (r"mlp\.gate_proj", "feed_forward.w1"),
    (r"mlp\.up_proj", "feed_forward.w3"),
    (r"mlp\.down_proj", "feed_forward.w2"),
    (r"lm_head", "output"),
)


class Step3p5ForCausalLM(step.Step3p7PreTrainedModel):
    config: step.Step3p7TextConfig

    def __init__(self, config):
        super().__init__(config)
        self.model = step.Step3p7TextModel(config)
        self.lm_head = torch.nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def _init_weights(self, module):
        super()._init_weights(module)
        if isinstance(module, step.Step3p7TopKRouter):
            bias = module.e_score_correction_bias
            bias.copy_(torch.linspace(0.2, -0.2, len(bias)).bfloat16())

    def forward(self, input_ids, **options):
        result = self.model(input_ids, **options)
        return MoeCausalLMOutputWithPast(
            logits=self.lm_head(result[0]), hidden_states=result.hidden_states
        )


def ntk_frequencies(config, _device=None, **_options):
    """Of vLLM's layers/rotary_embedding/ntk_scaling_rope.py."""
    rope, dim = config.rope_parameters, config.hidden_size // config.num_attention_heads
    base = rope["rope_theta"] * rope["factor"]
    frequencies = 1 / base ** (torch.arange(0, dim, 2, dtype=torch.float) / dim)
    return frequencies / rope["factor"] ** (2 / dim), 1.0


def renamed(tensors, names):
    made = {}
    for name, value in tensors.items():
        for pattern, text in names:
            name = re.sub(pattern, text, name)
        made[name] = value
    return made


def published_step(tensors, _config):
    """Gates and up projections of the experts apart."""
    for name in [name for name in tensors if STEP_FUSED.search(name)]:
        gate, up = tensors.pop(name).chunk(2, 1)
        tensors[STEP_FUSED.sub(".moe.gate_proj.weight", name)] = gate.contiguous()
        tensors[STEP_FUSED.sub(".moe.up_proj.weight", name)] = up.contiguous()
    return renamed(tensors, STEP_NAMES)


def published_molmo(tensors, config):
    """Transformers halves the embeddings, which end in the additional ones."""
    parts = ("wte.embedding", "wte.new_embedding")
    whole = torch.cat([tensors[part] for part in parts])
    sizes = (config["vocab_size"], config["additional_vocab_size"])
    tensors |= {part: rows.clone() for part, rows in zip(parts, whole.split(sizes))}
    return renamed(tensors, MOLMO_NAMES)


def published_internlm(tensors, config):
    """Rows of wqkv by key-value head: its queries, then key and value."""
    groups = config["num_key_value_heads"]
    for layer in range(config["num_hidden_layers"]):
        name = f"model.layers.{layer}.self_attn."
        parts = [tensors.pop(f"{name}{part}_proj.weight") for part in "qkv"]
        width = parts[0].shape[-1]
        heads = torch.cat([part.view(groups, -1, width) for part in parts], 1)
        tensors[f"{name}wqkv.weight"] = heads.reshape(-1, width)
    return renamed(tensors, INTERNLM_NAMES)


def published_jina(tensors, config):
    """Adapters of tasks beside every matrix and table, which a pass without a task ignores."""
    tasks, rank = len(config["lora_adaptations"]), config["lora_rank"]
    made, noise = {}, torch.Generator().manual_seed(7)
    for name, value in tensors.items():
        if value.ndim == 1:
            made[f"roberta.{name}"] = value
            continue
        path = "roberta." + name.removesuffix("weight") + "parametrizations.weight."
        rows, columns = value.shape
        shapes = {"A": (tasks, rank, columns), "B": (tasks, rows, rank)}
        if "embeddings" in name:
            shapes = {"A": (tasks, rows, rank), "B": (tasks, rank, columns)}
        for part, shape in shapes.items():
            made[f"{path}0.lora_{part}"] = torch.randn(shape, generator=noise).bfloat16()
        made[path + "original"] = value
    return made


def mixed_nllb(self, hidden_states, padding_mask=None):
    tokens = hidden_states.flatten(0, 1)
    weights = self.router(tokens, padding_mask)[1].to(tokens.dtype)
    kept = 1 - self.experts.moe_token_dropout
    mixed = sum(
        kept * weights[:, i : i + 1] * self.experts[f"expert_{i}"](tokens)
        for i in range(self.num_experts)
    )
    return mixed.view_as(hidden_states)


NAMES = {
    "step3p5": published_step,
    "molmo2_text": published_molmo,
    "internlm2": published_internlm,
    "xlm-roberta": published_jina,
}
# Transformers' names of types that it has under another one.
TYPES = {"new": "gte", "internlm2": "llama", "xlm-roberta": "jina_embeddings_v3"}

NllbMoeSparseMLP.forward = mixed_nllb
ROPE_INIT_FUNCTIONS["ntk"] = ntk_frequencies
sys.modules["transformers"].NewModel = GteModel
sys.modules["transformers"].Step3p5ForCausalLM = Step3p5ForCausalLM
sys.modules["transformers"].InternLM2ForCausalLM = transformers.LlamaForCausalLM
for reward_model in reward_models.CLASSES:
    setattr(sys.modules["transformers"], reward_model.__name__, reward_model)
configs = {}
for folder in sys.argv[1:]:
    with open(f"{folder}/config.json") as file:
        configs[folder] = file.read()
    config = json.loads(configs[folder])
    if "rope_theta" in config.get("attn_config", {}):  # DBRX, which transformers 5 does not read there
        config["rope_parameters"] = {"rope_theta": config["attn_config"]["rope_theta"]}
    if "rotary_emb_base" in config:
        config["architectures"] = ["JinaEmbeddingsV3Model"]
        config["rope_parameters"] = {"rope_theta": config["rotary_emb_base"]}
    config["model_type"] = TYPES.get(config["model_type"], config["model_type"])
    with open(f"{folder}/config.json", "w") as file:
        json.dump(config, file)

import make_with_transformers  # noqa: E402, F401 (makes the folders of the command line)
from weights import read_safetensors, write_safetensors  # noqa: E402

for folder, text in configs.items():
    with open(f"{folder}/config.json", "w") as file:
        file.write(text)
    path, config = f"{folder}/model.safetensors", json.loads(text)
    if config["model_type"] in NAMES:
        write_safetensors(path, NAMES[config["model_type"]](read_safetensors(path), config))
