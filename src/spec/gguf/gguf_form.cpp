#include "gguf_form.h"

#include <algorithm>

namespace headroom::detail {
namespace {

constexpr GgufKey kRmsNormKeys[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"rope.freq_base", "rope_theta"},
};

// The key of epsilon differs between families.
constexpr GgufKey kLayerNormKeys[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"rope.freq_base", "rope_theta"},
};

constexpr GgufKey kExpertKeys[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"rope.freq_base", "rope_theta"},
    {"expert_used_count", "num_experts_per_tok"},
};

constexpr GgufKey kHybridKeys[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"rope.freq_base", "rope_theta"},
};

}  // namespace

std::span<const GgufKey> gguf_rms_norm_keys() { return kRmsNormKeys; }

std::span<const GgufKey> gguf_layer_norm_keys() { return kLayerNormKeys; }

std::span<const GgufKey> gguf_expert_keys() { return kExpertKeys; }

std::span<const GgufKey> gguf_hybrid_keys() { return kHybridKeys; }

std::vector<GgufFlag> gguf_llama_biases() {
  return {{"blk.0.attn_output.bias", "attention_bias"}, {"blk.0.ffn_down.bias", "mlp_bias"}};
}

void finish_rope_scaling(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const auto type = metadata.text("rope.scaling.type");
  if (!type || *type == "none") return;
  ConfigDraft scaling = config.add_object("rope_scaling");
  scaling.set_text("rope_type", *type);
  scaling.copy(metadata, "rope.scaling.factor", "factor");
  scaling.copy(metadata, "rope.scaling.original_context_length",
               "original_max_position_embeddings");
}

void finish_windows(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const auto windowed = metadata.flags_by_layer("attention.sliding_window_pattern");
  if (!windowed) return;
  std::vector<std::string> types;
  for (const bool is_windowed : *windowed) {
    types.emplace_back(is_windowed ? "sliding_attention" : "full_attention");
  }
  config.set_texts("layer_types", types);
}

void finish_prediction_layers(const GgufMetadataReader& metadata, ConfigDraft& config) {
  config.set_count("num_hidden_layers", metadata.layers());
}

std::vector<bool> finish_key_value_heads(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const std::vector<std::int64_t> heads = metadata.counts_by_layer("attention.head_count_kv");
  std::vector<bool> attends;
  std::int64_t most = 0;
  for (const std::int64_t count : heads) {
    const bool differs = count != 0 && most != 0 && count != most;
    if (differs) metadata.fail("attention.head_count_kv", "differs between attention layers");
    attends.push_back(count != 0);
    most = std::max(most, count);
  }
  if (most > 0) config.set_count("num_key_value_heads", most);
  return attends;
}

double gguf_rotary_fraction(const GgufMetadataReader& metadata) {
  const auto width = metadata.count("embedding_length").value_or(0);
  const auto heads = metadata.count("attention.head_count").value_or(0);
  const auto usual = heads > 0 ? width / heads : 0;
  const auto head_dim = metadata.count("attention.key_length").value_or(usual);
  const auto rotary = metadata.count("rope.dimension_count").value_or(head_dim);
  if (head_dim <= 0 || rotary > head_dim) {
    metadata.fail("rope.dimension_count", "exceeds the head size");
  }
  return static_cast<double>(rotary) / static_cast<double>(head_dim);
}

void finish_partial_rotary(const GgufMetadataReader& metadata, ConfigDraft& config) {
  config.set_number("partial_rotary_factor", gguf_rotary_fraction(metadata));
}

}  // namespace headroom::detail
