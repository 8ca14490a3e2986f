// The encoder shared by BERT and its descendants.
#pragma once

#include "common_keys.h"

namespace headroom::detail {

/// Reads sizes, embeddings with learned positions and token types, and post-norm layers with biases
/// everywhere into `spec.encoder`.
void read_bert_encoder(ConfigReader& config, ModelSpec& spec,
                       ActivationKind activation_when_absent);

/// As read_bert_encoder, without the key `position_embedding_type`.
void read_bert_layers(ConfigReader& config, ModelSpec& spec, ActivationKind activation_when_absent);

/// An untied head for masked words has two biases: its projection's, and one that is not read.
void count_unread_head_bias(ModelSpec& spec);

/// Reads num_hidden_layers layers of num_attention_heads heads and a plain FFN of
/// intermediate_size, with biases everywhere. Norms and dropout are left to the caller.
[[nodiscard]] StackSpec read_biased_layers(ConfigReader& config, std::int64_t hidden_size,
                                           ActivationKind activation);

}  // namespace headroom::detail
