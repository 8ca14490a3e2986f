#include "common_keys.h"

#include <fmt/format.h>

#include <cmath>

#include "cross_attention.h"
#include "quantization/quantization.h"
#include "reading_limits.h"

namespace headroom::detail {

std::int64_t product(const ConfigReader& config, std::string_view key, std::int64_t a,
                     std::int64_t b) {
  std::int64_t result = 0;
  if (!__builtin_mul_overflow(a, b, &result)) return result;
  config.fail(key, fmt::format("{} times {} does not fit 64 bits", a, b), "write a smaller number");
}

std::int64_t truncated(const ConfigReader& config, std::string_view key, double factor,
                       std::int64_t size) {
  const double result = factor * static_cast<double>(size);
  if (result >= 0 && result <= static_cast<double>(kLargestSize)) {
    return static_cast<std::int64_t>(result);
  }
  config.fail(key, fmt::format("gives no size: {} times {}", factor, size),
              "write the number of the model's config");
}

std::int64_t dinov2_gated_width(std::int64_t inner) {
  constexpr std::int64_t kGranule = 8;
  return ceil_div(inner * 2 / 3, kGranule) * kGranule;
}

std::int64_t square_side(const ConfigReader& config, std::string_view key, std::int64_t count) {
  const auto side = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(count))));
  if (side * side == count) return side;
  config.fail(key, fmt::format("is {}, not a square", count), "use the square of a whole number");
}

ActivationKind read_activation(ConfigReader& config, ConfigReader::Keys keys,
                               ActivationKind otherwise) {
  return config.choice_or<ActivationKind>(keys,
                                          {{"relu", ActivationKind::relu},
                                           {"relu2", ActivationKind::relu_squared},
                                           {"gelu", ActivationKind::gelu},
                                           {"gelu_python", ActivationKind::gelu},
                                           {"gelu_pytorch_tanh", ActivationKind::gelu_tanh},
                                           {"gelu_new", ActivationKind::gelu_new},
                                           {"gelu_fast", ActivationKind::gelu_new},
                                           {"quick_gelu", ActivationKind::quick_gelu},
                                           {"silu", ActivationKind::silu},
                                           {"swish", ActivationKind::silu},
                                           {"tanh", ActivationKind::tanh}},
                                          otherwise);
}

FeatureMapKind read_feature_map(ConfigReader& config) {
  return config.choice_or<FeatureMapKind>({"feature_map"},
                                          {{"elu+1", FeatureMapKind::elu_plus_one},
                                           {"relu", FeatureMapKind::relu},
                                           {"exp", FeatureMapKind::exp},
                                           {"softmax", FeatureMapKind::softmax}},
                                          FeatureMapKind::elu_plus_one);
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

std::string without_torch(const std::string& type) {
  constexpr std::string_view kModule = "torch.";
  return type.starts_with(kModule) ? type.substr(kModule.size()) : type;
}

std::string read_dtype(ConfigReader& config, ModelSpec& spec) {
  std::string current = without_torch(config.text_or({"dtype"}, ""));
  const std::string former = without_torch(config.text_or({"torch_dtype"}, ""));
  if (current.empty() || former.empty() || current == former) {
    return current.empty() ? former : current;
  }
  spec.assumptions.push_back(
      fmt::format("dtype ({}) differs from torch_dtype ({}), its former name: counted with dtype",
                  current, former));
  return current;
}

void read_common_keys(ConfigReader& config, ModelSpec& spec) {
  // A multimodal config may state the type of its text model only.
  if (const std::string dtype = read_dtype(config, spec); !dtype.empty()) spec.torch_dtype = dtype;
  read_quantization(config, spec);
  expect_usual_layers(config);
  const bool crosses = keeps_cross_attention(spec);
  if (!crosses) config.expect_flag("add_cross_attention", false);
  // Encoders that also have a class for causal language models; the others ignore the key or have
  // a cross-attention with it.
  const bool is_causal = spec.encoder && spec.encoder->self_attention.causal;
  if (is_causal || crosses) return;
  config.expect_flag("is_decoder", false);
}

void expect_usual_layers(ConfigReader& config) {
  // Settings that change a figure: only the usual value is supported.
  config.expect_number("chunk_size_feed_forward", 0);
  // Phi-4-mini sets both to 1: full attention in every layer, positions as trained.
  config.expect_number("full_attn_mod", 1);
  config.expect_number("interpolate_factor", 1);
  config.expect_empty("pruned_heads");
  config.expect_flag("tie_encoder_decoder", false);
}

}  // namespace headroom::detail
