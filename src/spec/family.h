// What every family's reader shares: the registry's type, heads by class name, and the keys that
// mean the same everywhere.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "config_reader.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// A class that a config's `architectures` can name, and the head that it puts on the stacks.
struct Architecture {
  std::string_view name;
  HeadSpec head;
};

/// Fills `spec` from a config of one family. Sets everything but name and model_type.
using FamilyReader = void (*)(ConfigReader& config, ModelSpec& spec);

void read_albert(ConfigReader& config, ModelSpec& spec);
void read_attention_layer(ConfigReader& config, ModelSpec& spec);
void read_bart(ConfigReader& config, ModelSpec& spec);
void read_bert(ConfigReader& config, ModelSpec& spec);
void read_bloom(ConfigReader& config, ModelSpec& spec);
void read_cohere(ConfigReader& config, ModelSpec& spec);
void read_cohere2(ConfigReader& config, ModelSpec& spec);
void read_convolution_layer(ConfigReader& config, ModelSpec& spec);
void read_cross_attention_layer(ConfigReader& config, ModelSpec& spec);
void read_deepseek_v2(ConfigReader& config, ModelSpec& spec);
void read_deepseek_v3(ConfigReader& config, ModelSpec& spec);
void read_distilbert(ConfigReader& config, ModelSpec& spec);
void read_electra(ConfigReader& config, ModelSpec& spec);
void read_falcon(ConfigReader& config, ModelSpec& spec);
void read_feed_forward_layer(ConfigReader& config, ModelSpec& spec);
void read_gemma(ConfigReader& config, ModelSpec& spec);
void read_gemma2(ConfigReader& config, ModelSpec& spec);
void read_gemma3_text(ConfigReader& config, ModelSpec& spec);
void read_glm(ConfigReader& config, ModelSpec& spec);
void read_gemma3(ConfigReader& config, ModelSpec& spec);
void read_llama4(ConfigReader& config, ModelSpec& spec);
void read_minimax_m2(ConfigReader& config, ModelSpec& spec);
void read_qwen3_next(ConfigReader& config, ModelSpec& spec);
void read_glm_moe_dsa(ConfigReader& config, ModelSpec& spec);
void read_glm4_moe(ConfigReader& config, ModelSpec& spec);
void read_glm4(ConfigReader& config, ModelSpec& spec);
void read_gpt2(ConfigReader& config, ModelSpec& spec);
void read_gpt_bigcode(ConfigReader& config, ModelSpec& spec);
void read_gpt_neo(ConfigReader& config, ModelSpec& spec);
void read_gpt_neox(ConfigReader& config, ModelSpec& spec);
void read_gpt_oss(ConfigReader& config, ModelSpec& spec);
void read_gptj(ConfigReader& config, ModelSpec& spec);
void read_granite(ConfigReader& config, ModelSpec& spec);
void read_granitemoe(ConfigReader& config, ModelSpec& spec);
void read_gru(ConfigReader& config, ModelSpec& spec);
void read_linear_transformer(ConfigReader& config, ModelSpec& spec);
void read_llama(ConfigReader& config, ModelSpec& spec);
void read_llama4_text(ConfigReader& config, ModelSpec& spec);
void read_lstm(ConfigReader& config, ModelSpec& spec);
void read_marian(ConfigReader& config, ModelSpec& spec);
void read_mistral(ConfigReader& config, ModelSpec& spec);
void read_mixtral(ConfigReader& config, ModelSpec& spec);
void read_modernbert(ConfigReader& config, ModelSpec& spec);
void read_mpt(ConfigReader& config, ModelSpec& spec);
void read_olmo(ConfigReader& config, ModelSpec& spec);
void read_olmo2(ConfigReader& config, ModelSpec& spec);
void read_opt(ConfigReader& config, ModelSpec& spec);
void read_pegasus(ConfigReader& config, ModelSpec& spec);
void read_phi(ConfigReader& config, ModelSpec& spec);
void read_phi3(ConfigReader& config, ModelSpec& spec);
void read_phimoe(ConfigReader& config, ModelSpec& spec);
void read_qwen2(ConfigReader& config, ModelSpec& spec);
void read_qwen2_moe(ConfigReader& config, ModelSpec& spec);
void read_qwen3(ConfigReader& config, ModelSpec& spec);
void read_qwen3_moe(ConfigReader& config, ModelSpec& spec);
void read_rnn(ConfigReader& config, ModelSpec& spec);
void read_roberta(ConfigReader& config, ModelSpec& spec);
void read_smollm3(ConfigReader& config, ModelSpec& spec);
void read_stablelm(ConfigReader& config, ModelSpec& spec);
void read_starcoder2(ConfigReader& config, ModelSpec& spec);
void read_t5(ConfigReader& config, ModelSpec& spec);
void read_transformer(ConfigReader& config, ModelSpec& spec);
void read_vit(ConfigReader& config, ModelSpec& spec);
void read_whisper(ConfigReader& config, ModelSpec& spec);
void read_xlm_roberta(ConfigReader& config, ModelSpec& spec);

/// Sets `spec.architecture` and `spec.head` from `architectures`; the first of `known` is what a
/// config without that key means. Throws for a class that is not in `known`.
void read_architecture(ConfigReader& config, ModelSpec& spec,
                       std::initializer_list<Architecture> known);

/// Gives the classifier the number of labels that the config says, by `num_labels` or `id2label`; 2
/// where it says nothing, as Hugging Face leaves the default out.
void read_num_labels(ConfigReader& config, ModelSpec& spec);

/// The activation that `keys` name, by Hugging Face's words.
[[nodiscard]] ActivationKind read_activation(ConfigReader& config, ConfigReader::Keys keys,
                                             ActivationKind otherwise);

/// Multi-head attention of `heads` heads over `hidden_size`. Throws when they do not divide it.
[[nodiscard]] AttentionSpec multi_head_attention(const ConfigReader& config,
                                                 std::string_view heads_key, std::int64_t heads,
                                                 std::int64_t hidden_size);

/// a·b, which `key` decides. Throws where that does not fit 64 bits.
[[nodiscard]] std::int64_t product(const ConfigReader& config, std::string_view key, std::int64_t a,
                                   std::int64_t b);

/// The classes that Hugging Face makes of every decoder, whose names begin with `prefix`;
/// `language_model_class` is the whole name of the one that predicts tokens.
void read_decoder_architecture(ConfigReader& config, ModelSpec& spec, const std::string& prefix,
                               std::string_view language_model_class,
                               const LanguageModelHeadSpec& language_model);

/// Marks the keys of any Hugging Face config that change no figure, and refuses those that would.
void read_common_keys(ConfigReader& config, ModelSpec& spec);

/// A head that is a pooler alone, a classifier, or a projection to the vocabulary.
[[nodiscard]] HeadSpec pooler_head();
[[nodiscard]] HeadSpec classifier_head(const ClassifierSpec& classifier);
[[nodiscard]] HeadSpec language_model_head(const LanguageModelHeadSpec& language_model);

/// BERT's head of masked-word prediction: a dense layer with `activation`, a norm, and a projection
/// that is the word table unless `tie_word_embeddings` is false.
[[nodiscard]] LanguageModelHeadSpec masked_language_model_head(ConfigReader& config,
                                                               ActivationKind activation);

}  // namespace headroom::detail
