// The encoder that BERT and its descendants share.
#pragma once

#include "common_keys.h"

namespace headroom::detail {

/// Sizes, embeddings with learned positions and token types, and post-norm layers with biases
/// everywhere, into `spec.encoder`.
void read_bert_encoder(ConfigReader& config, ModelSpec& spec,
                       ActivationKind activation_when_absent);

}  // namespace headroom::detail
