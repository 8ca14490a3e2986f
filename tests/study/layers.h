// Layers for the tests of the complexity study, as config.json texts.
#pragma once

#include <string>

#include "headroom/complexity.h"
#include "support/data.h"

namespace headroom::test {

inline LayerComplexity layer_of(const std::string& config) {
  Model model;
  model.spec = read_model_spec(config, "config.json", "layer");
  const AttentionImplementation attention = default_attention(model.spec);
  return layer_complexity(std::move(model), attention);
}

inline const std::string kSelfAttention = R"({"model_type": "attention", "hidden_size": 512,
    "num_attention_heads": 8, "head_dim": 64})";
inline const std::string kLinearAttention = R"({"model_type": "attention", "hidden_size": 512,
    "num_attention_heads": 8, "head_dim": 64, "attention_kind": "linear"})";
inline const std::string kCausalLinearAttention = R"({"model_type": "attention",
    "hidden_size": 512, "num_attention_heads": 8, "head_dim": 64, "attention_kind": "linear",
    "is_causal": true})";
inline const std::string kMaskedAttention = R"({"model_type": "attention", "hidden_size": 512,
    "num_attention_heads": 8, "head_dim": 64, "is_causal": true})";
inline const std::string kWindowAttention = R"({"model_type": "attention", "hidden_size": 512,
    "num_attention_heads": 8, "head_dim": 64, "sliding_window": 128})";
inline const std::string kRecurrent =
    R"({"model_type": "rnn", "hidden_size": 512, "num_layers": 1, "bias": true})";
inline const std::string kConvolution = R"({"model_type": "convolution", "hidden_size": 512,
    "kernel_size": 3, "is_causal": false})";
/// Dilations 1, 3, 9: each layer's taps are one receptive field of the previous layer apart.
inline const std::string kDilatedConvolution = R"({"model_type": "convolution",
    "hidden_size": 512, "kernel_size": 3, "is_causal": true, "num_layers": 3,
    "dilation_base": 3})";
inline const std::string kFeedForward = R"({"model_type": "feed_forward", "hidden_size": 512,
    "intermediate_size": 2048, "hidden_act": "relu"})";

}  // namespace headroom::test
