"""Live models of the real transformers library: the parameters that headroom counts from a config
are those of the model that the library builds from it. Skipped without torch and transformers."""
import os
import unittest
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
try:
    import torch
    import transformers
except ImportError:
    transformers = None

import headroom
from documentation import run_example

SMALL = {"vocab_size": 96, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
         "num_attention_heads": 4, "max_position_embeddings": 64}
GROUPED = {**SMALL, "num_key_value_heads": 2}
TOKENS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}

# Class of the model, class of its config, and the config's keys.
MODELS = [
    ("BertModel", "BertConfig", SMALL),
    ("BertForMaskedLM", "BertConfig", SMALL),
    ("RobertaForSequenceClassification", "RobertaConfig", SMALL),
    ("DistilBertModel", "DistilBertConfig",
     {"vocab_size": 96, "dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4}),
    ("AlbertModel", "AlbertConfig", {**SMALL, "embedding_size": 16}),
    ("GPT2LMHeadModel", "GPT2Config",
     {"vocab_size": 96, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, **TOKENS}),
    ("GPTNeoXForCausalLM", "GPTNeoXConfig", {**SMALL, **TOKENS}),
    ("OPTForCausalLM", "OPTConfig",
     {"vocab_size": 96, "hidden_size": 32, "ffn_dim": 48, "num_hidden_layers": 2,
      "num_attention_heads": 4, "max_position_embeddings": 64, "word_embed_proj_dim": 32,
      **TOKENS}),
    ("LlamaForCausalLM", "LlamaConfig", {**GROUPED, **TOKENS}),
    ("MistralForCausalLM", "MistralConfig", {**GROUPED, **TOKENS}),
    ("MixtralForCausalLM", "MixtralConfig", {**GROUPED, **TOKENS, "num_local_experts": 4}),
    ("Qwen2ForCausalLM", "Qwen2Config", {**GROUPED, **TOKENS, "tie_word_embeddings": True}),
    ("Qwen3ForCausalLM", "Qwen3Config", {**GROUPED, **TOKENS, "head_dim": 16}),
    ("Gemma2ForCausalLM", "Gemma2Config", {**GROUPED, **TOKENS, "head_dim": 8}),
    ("PhiForCausalLM", "PhiConfig", {**SMALL, **TOKENS}),
    ("T5ForConditionalGeneration", "T5Config",
     {"vocab_size": 96, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4,
      "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}),
    ("BartForConditionalGeneration", "BartConfig",
     {"vocab_size": 96, "d_model": 32, "encoder_layers": 2, "decoder_layers": 1,
      "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
      "decoder_ffn_dim": 48, "max_position_embeddings": 64, **TOKENS,
      "decoder_start_token_id": 2, "forced_eos_token_id": 2}),
    ("ViTForImageClassification", "ViTConfig",
     {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
      "num_attention_heads": 4, "image_size": 32, "patch_size": 8}),
]


def build(architecture, config_class, keys):
    """A live model with random weights."""
    config = getattr(transformers, config_class)(**keys)
    return getattr(transformers, architecture)(config)


@unittest.skipIf(transformers is None, "torch and transformers are not installed")
class LiveModels(unittest.TestCase):
    def test_the_count_is_that_of_the_live_model(self):
        for architecture, config_class, keys in MODELS:
            with self.subTest(architecture), warnings.catch_warnings():
                warnings.simplefilter("error")  # from_hf warns if the counts differ
                live = build(architecture, config_class, keys)
                counted = sum(p.numel() for p in live.parameters())
                model = headroom.from_hf(live)
                self.assertEqual(model.live_parameters, counted)
                self.assertEqual(model.parameters, counted)
                self.assertEqual(headroom.analyze(live).parameters, counted)

    def test_a_config_alone_counts_as_its_class_says(self):
        for architecture, config_class, keys in MODELS:
            with self.subTest(architecture):
                live = build(architecture, config_class, keys)
                config = live.config
                config.architectures = [architecture]
                model = headroom.from_hf(config)
                self.assertIsNone(model.live_parameters)
                self.assertEqual(model.parameters, sum(p.numel() for p in live.parameters()))

    def test_a_changed_model_is_told_apart_from_its_config(self):
        live = build(*MODELS[0])
        live.extra = torch.nn.Linear(4, 4)
        with self.assertWarnsRegex(UserWarning, "its config gives"):
            headroom.from_hf(live)

    def test_the_example_of_the_page_runs(self):
        run_example(1, {"headroom": headroom})

    def test_the_name_is_given_or_its_type(self):
        live = build(*MODELS[0])
        self.assertEqual(headroom.analyze(headroom.from_hf(live)).name, "bert")
        self.assertEqual(headroom.analyze(headroom.from_hf(live, "mine")).name, "mine")


if __name__ == "__main__":
    unittest.main()
