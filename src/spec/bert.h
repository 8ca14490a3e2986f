// The encoder shared by BERT and its descendants.
#pragma once

#include "common_keys.h"

namespace headroom::detail {

/// Reads sizes, embeddings with learned positions and token types, and post-norm layers with biases
/// everywhere into `spec.encoder`.
void read_bert_encoder(ConfigReader& config, ModelSpec& spec,
                       ActivationKind activation_when_absent);

}  // namespace headroom::detail
