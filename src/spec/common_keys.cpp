#include "common_keys.h"

#include <fmt/format.h>

namespace headroom::detail {

std::int64_t product(const ConfigReader& config, std::string_view key, std::int64_t a,
                     std::int64_t b) {
  std::int64_t result = 0;
  if (!__builtin_mul_overflow(a, b, &result)) return result;
  config.fail(key, fmt::format("{} times {} does not fit 64 bits", a, b), "write a smaller number");
}

ActivationKind read_activation(ConfigReader& config, ConfigReader::Keys keys,
                               ActivationKind otherwise) {
  return config.choice_or<ActivationKind>(keys,
                                          {{"relu", ActivationKind::relu},
                                           {"gelu", ActivationKind::gelu},
                                           {"gelu_python", ActivationKind::gelu},
                                           {"gelu_pytorch_tanh", ActivationKind::gelu_tanh},
                                           {"gelu_new", ActivationKind::gelu_new},
                                           {"silu", ActivationKind::silu},
                                           {"swish", ActivationKind::silu},
                                           {"tanh", ActivationKind::tanh}},
                                          otherwise);
}

AttentionSpec multi_head_attention(const ConfigReader& config, std::string_view heads_key,
                                   std::int64_t heads, std::int64_t hidden_size) {
  if (hidden_size % heads != 0) {
    config.fail(heads_key,
                fmt::format("{} heads do not divide a hidden size of {}", heads, hidden_size),
                "use a number of heads that divides it, or set the head size if the family has "
                "a key for it");
  }
  AttentionSpec attention;
  attention.num_attention_heads = heads;
  attention.num_key_value_heads = heads;
  attention.head_dim = hidden_size / heads;
  attention.value_head_dim = attention.head_dim;
  return attention;
}

namespace {

/// Quantization changes the storage of weights, not their number or the operators.
void read_quantization(ConfigReader& config, ModelSpec& spec) {
  if (auto quantization = config.object("quantization_config")) {
    spec.quantization = quantization->text_or({"quant_method", "quant_type"}, "an unnamed method");
  }
}

}  // namespace

void read_common_keys(ConfigReader& config, ModelSpec& spec) {
  spec.torch_dtype = config.text_or({"torch_dtype", "dtype"}, "");
  // Tokens and text generation.
  config.ignore({"bos_token_id",
                 "eos_token_id",
                 "pad_token_id",
                 "sep_token_id",
                 "cls_token_id",
                 "mask_token_id",
                 "unk_token_id",
                 "decoder_start_token_id",
                 "bad_words_ids",
                 "forced_bos_token_id",
                 "forced_eos_token_id",
                 "suppress_tokens",
                 "begin_suppress_tokens",
                 "tokenizer_class",
                 "prefix",
                 "max_length",
                 "min_length",
                 "do_sample",
                 "early_stopping",
                 "num_beams",
                 "num_beam_groups",
                 "diversity_penalty",
                 "temperature",
                 "top_k",
                 "top_p",
                 "typical_p",
                 "repetition_penalty",
                 "length_penalty",
                 "no_repeat_ngram_size",
                 "encoder_no_repeat_ngram_size",
                 "num_return_sequences",
                 "exponential_decay_length_penalty",
                 "remove_invalid_values",
                 "task_specific_params"});
  // Training, storage and calling conventions.
  config.ignore({"_name_or_path",
                 "name_or_path",
                 "transformers_version",
                 "initializer_range",
                 "initializer_factor",
                 "finetuning_task",
                 "problem_type",
                 "use_cache",
                 "output_attentions",
                 "output_hidden_states",
                 "output_scores",
                 "output_past",
                 "return_dict",
                 "return_dict_in_generate",
                 "torchscript",
                 "use_bfloat16",
                 "tf_legacy_loss",
                 "gradient_checkpointing",
                 "_attn_implementation",
                 "_attn_implementation_autoset",
                 "attn_implementation",
                 "pretraining_tp",
                 "directionality",
                 "pooler_fc_size",
                 "pooler_num_attention_heads",
                 "pooler_num_fc_layers",
                 "pooler_size_per_head",
                 "pooler_type"});
  config.ignore({"model_size",
                 "transformers.js_config",
                 "unsloth_version",
                 "unsloth_fixed",
                 "auto_map",
                 "model_name",
                 "num_labels",
                 "custom_pipelines",
                 "vision_config_dict",
                 "attn_config_dict",
                 "trust_remote_code",
                 "rope_interleaved",
                 "language",
                 "use_flash_attn",
                 "use_flash_attention_2",
                 "_flash_attn_2_enabled",
                 "flash_attn",
                 "fused_dense",
                 "attn_pdrop_type",
                 "output_last_hidden_states",
                 "tokenizer_model_max_length",
                 "init_std",
                 "embed_init_std",
                 "head_dim_source",
                 "quantization",
                 "neuron",
                 "compression_config"});
  read_quantization(config, spec);
  // Settings that change a figure: only the usual value is supported.
  config.expect_number("chunk_size_feed_forward", 0);
  // Phi-4-mini sets both to 1: full attention in every layer, positions as trained.
  config.expect_number("full_attn_mod", 1);
  config.expect_number("interpolate_factor", 1);
  config.expect_empty("pruned_heads");
  config.expect_flag("add_cross_attention", false);
  config.expect_flag("is_decoder", false);
  config.expect_flag("tie_encoder_decoder", false);
}

}  // namespace headroom::detail
