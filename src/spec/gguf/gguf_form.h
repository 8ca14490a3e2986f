// A family's GGUF format: its metadata keys, and the converter's changes to its weights.
// Source: class Keys in gguf-py/gguf/constants.py, and set_gguf_parameters and modify_tensors of
// each class in convert_hf_to_gguf.py, github.com/ggml-org/llama.cpp.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "config_draft.h"
#include "gguf_metadata_reader.h"
#include "stored/gguf_conversion.h"
#include "stored/stored_names.h"

namespace headroom::detail {

/// A metadata key without its architecture prefix, and the config's key for that value.
struct GgufKey {
  std::string_view metadata;
  std::string_view config;
};

/// A config key that is true if and only if a tensor exists.
struct GgufFlag {
  std::string_view tensor;
  std::string_view config;
};

/// A config key with this JSON value in every model of the architecture.
struct GgufConstant {
  std::string_view config;
  std::string_view json;
};

/// How a file shows that the head is tied to the word embeddings.
enum class GgufTie {
  no_output_tensor,  ///< the file has no output.weight
  always,            ///< even with output.weight, which some converters duplicate
};

/// When to write `head_dim` to the config.
enum class GgufHeadDim {
  where_unusual,  ///< if it is not hidden_size / num_attention_heads
  always,
  never,
};

/// Completes the config where keys do not map one to one.
using GgufFinish = void (*)(const GgufMetadataReader& metadata, ConfigDraft& config);

/// One value of general.architecture and its keys.
struct GgufArchitecture {
  std::string_view name;
  std::string_view needs{};  ///< a positive count or a flag; distinguishes those of one name
  std::span<const GgufKey> common{};  ///< keys shared by several architectures
  std::vector<GgufKey> own{};
  std::vector<GgufFlag> flags{};
  std::vector<GgufConstant> constants{};
  GgufTie tie = GgufTie::no_output_tensor;
  GgufHeadDim head_dim = GgufHeadDim::where_unusual;
  GgufFinish finish = nullptr;
};

/// A family's GGUF format. `architectures` is empty if its files use another family's name.
struct GgufForm {
  GgufForm(GgufConversion change, std::vector<GgufArchitecture> names,
           std::vector<std::span<const NameRule>> own_rules = {})
      : conversion(change), architectures(std::move(names)), rules(std::move(own_rules)) {}
  GgufConversion conversion;
  std::vector<GgufArchitecture> architectures;
  std::vector<std::span<const NameRule>> rules;  ///< precede those of all families
};

/// Keys of decoders with RMSNorm, with LayerNorm, and with routed experts.
[[nodiscard]] std::span<const GgufKey> gguf_rms_norm_keys();
[[nodiscard]] std::span<const GgufKey> gguf_layer_norm_keys();
[[nodiscard]] std::span<const GgufKey> gguf_expert_keys();
/// Keys of decoders that mix attention with other layers.
[[nodiscard]] std::span<const GgufKey> gguf_hybrid_keys();
/// Llama's optional biases, by the tensors that store them.
[[nodiscard]] std::vector<GgufFlag> gguf_llama_biases();

/// Adds rope_scaling in Llama's format.
void finish_rope_scaling(const GgufMetadataReader& metadata, ConfigDraft& config);
/// Adds layer_types, which lists the layers with a window.
void finish_windows(const GgufMetadataReader& metadata, ConfigDraft& config);
/// Adds partial_rotary_factor.
void finish_partial_rotary(const GgufMetadataReader& metadata, ConfigDraft& config);
/// Sets num_hidden_layers without the layers for multi-token prediction.
void finish_prediction_layers(const GgufMetadataReader& metadata, ConfigDraft& config);
/// Sets num_key_value_heads, and returns the layers with any: those of attention.
[[nodiscard]] std::vector<bool> finish_key_value_heads(const GgufMetadataReader& metadata,
                                                       ConfigDraft& config);
/// The fraction of a head's dimensions that RoPE rotates.
[[nodiscard]] double gguf_rotary_fraction(const GgufMetadataReader& metadata);

}  // namespace headroom::detail
