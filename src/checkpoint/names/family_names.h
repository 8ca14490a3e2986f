// The families' tables of names, one file each, and the registry's type.
#pragma once

#include "../names.h"

namespace headroom::checkpoint {

/// The names of a model of one family.
using FamilyNames = NameTable (*)(const ModelSpec& spec);

[[nodiscard]] NameTable albert_names(const ModelSpec& spec);
[[nodiscard]] NameTable bart_names(const ModelSpec& spec);
[[nodiscard]] NameTable bert_names(const ModelSpec& spec);
[[nodiscard]] NameTable bloom_names(const ModelSpec& spec);
[[nodiscard]] NameTable convolution_names(const ModelSpec& spec);
[[nodiscard]] NameTable deepseek_names(const ModelSpec& spec);
[[nodiscard]] NameTable distilbert_names(const ModelSpec& spec);
[[nodiscard]] NameTable electra_names(const ModelSpec& spec);
[[nodiscard]] NameTable falcon_names(const ModelSpec& spec);
[[nodiscard]] NameTable gemma_names(const ModelSpec& spec);
[[nodiscard]] NameTable glm_names(const ModelSpec& spec);
[[nodiscard]] NameTable glm4_moe_names(const ModelSpec& spec);
[[nodiscard]] NameTable gpt2_names(const ModelSpec& spec);
[[nodiscard]] NameTable gpt_bigcode_names(const ModelSpec& spec);
[[nodiscard]] NameTable gpt_neo_names(const ModelSpec& spec);
[[nodiscard]] NameTable gpt_neox_names(const ModelSpec& spec);
[[nodiscard]] NameTable gpt_oss_names(const ModelSpec& spec);
[[nodiscard]] NameTable gptj_names(const ModelSpec& spec);
[[nodiscard]] NameTable granitemoe_names(const ModelSpec& spec);
[[nodiscard]] NameTable linear_transformer_names(const ModelSpec& spec);
[[nodiscard]] NameTable llama_names(const ModelSpec& spec);
[[nodiscard]] NameTable llama4_names(const ModelSpec& spec);
[[nodiscard]] NameTable mixtral_names(const ModelSpec& spec);
[[nodiscard]] NameTable modernbert_names(const ModelSpec& spec);
[[nodiscard]] NameTable mpt_names(const ModelSpec& spec);
[[nodiscard]] NameTable olmo2_names(const ModelSpec& spec);
[[nodiscard]] NameTable opt_names(const ModelSpec& spec);
[[nodiscard]] NameTable phi_names(const ModelSpec& spec);
[[nodiscard]] NameTable phi3_names(const ModelSpec& spec);
[[nodiscard]] NameTable qwen3_names(const ModelSpec& spec);
[[nodiscard]] NameTable qwen_moe_names(const ModelSpec& spec);
[[nodiscard]] NameTable recurrent_names(const ModelSpec& spec);
[[nodiscard]] NameTable roberta_names(const ModelSpec& spec);
[[nodiscard]] NameTable stablelm_names(const ModelSpec& spec);
[[nodiscard]] NameTable starcoder2_names(const ModelSpec& spec);
[[nodiscard]] NameTable t5_names(const ModelSpec& spec);
[[nodiscard]] NameTable transformer_names(const ModelSpec& spec);
[[nodiscard]] NameTable vit_names(const ModelSpec& spec);
[[nodiscard]] NameTable whisper_names(const ModelSpec& spec);

/// Tables that others take up: of Llama-like decoders, BERT's layers, BLOOM's, and of experts as
/// Qwen and DeepSeek store them.
[[nodiscard]] std::span<const NameRule> llama_rules();
[[nodiscard]] std::span<const NameRule> query_key_norm_rules();
[[nodiscard]] std::span<const NameRule> bert_rules();
[[nodiscard]] std::span<const NameRule> bloom_rules();
[[nodiscard]] std::span<const NameRule> routed_expert_rules();

}  // namespace headroom::checkpoint
