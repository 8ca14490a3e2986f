"""Completes folders as make_with_transformers.py does, of models that transformers has in another
form than their files: make_as_published.py FOLDER...

Step 3.5 is the text model of transformers' Step 3.7 with a head; GTE has a scaling of RoPE of its
own. Configs stay as they are published, and tensors get the published names, by transformers' own
table of conversions.
"""

import json
import re
import sys

import torch
import transformers  # noqa: F401
from transformers.modeling_outputs import MoeCausalLMOutputWithPast
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.gte.modeling_gte import GteModel
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


NAMES = {"step3p5": published_step, "molmo2_text": published_molmo}

ROPE_INIT_FUNCTIONS["ntk"] = ntk_frequencies
sys.modules["transformers"].NewModel = GteModel
sys.modules["transformers"].Step3p5ForCausalLM = Step3p5ForCausalLM
configs = {}
for folder in sys.argv[1:]:
    with open(f"{folder}/config.json") as file:
        configs[folder] = file.read()
    with open(f"{folder}/config.json", "w") as file:  # under transformers' name of its type
        json.dump(json.loads(configs[folder].replace('"new"', '"gte"')), file)

import make_with_transformers  # noqa: E402, F401 (makes the folders of the command line)
from weights import read_safetensors, write_safetensors  # noqa: E402

for folder, text in configs.items():
    with open(f"{folder}/config.json", "w") as file:
        file.write(text)
    path, config = f"{folder}/model.safetensors", json.loads(text)
    if config["model_type"] in NAMES:
        write_safetensors(path, NAMES[config["model_type"]](read_safetensors(path), config))
