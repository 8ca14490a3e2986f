// How a family's models are written in GGUF: the words of its metadata, and the converter's changes
// to its weights.
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

namespace headroom::detail {

/// A metadata key without its architecture prefix, and the config's key for the same value.
struct GgufKey {
  std::string_view metadata;
  std::string_view config;
};

/// A config key that is true when a tensor exists, and false when it does not.
struct GgufFlag {
  std::string_view tensor;
  std::string_view config;
};

/// A config key that has this value, as JSON text, in every model of the architecture.
struct GgufConstant {
  std::string_view config;
  std::string_view json;
};

/// How to tell that a model's head is tied to its word table.
enum class GgufTie {
  no_output_tensor,  ///< the file has no output.weight
  always,            ///< some converters stored the table a second time
};

/// When the config gets `head_dim`.
enum class GgufHeadDim {
  where_unusual,  ///< where it is not hidden_size / num_attention_heads
  always,
  never,
};

/// Completes the config where one key does not map to one key.
using GgufFinish = void (*)(const GgufMetadataReader& metadata, ConfigDraft& config);

/// One value of general.architecture.
struct GgufArchitecture {
  std::string_view name;
  std::string_view
      needs{};  ///< a count that must be above 0; tells architectures of one name apart
  std::span<const GgufKey> common{};  ///< keys that several architectures share
  std::vector<GgufKey> own{};
  std::vector<GgufFlag> flags{};
  std::vector<GgufConstant> constants{};
  GgufTie tie = GgufTie::no_output_tensor;
  GgufHeadDim head_dim = GgufHeadDim::where_unusual;
  GgufFinish finish = nullptr;
};

/// A family in GGUF. `architectures` is empty where its files carry another family's name.
struct GgufForm {
  GgufForm(GgufConversion change, std::vector<GgufArchitecture> names)
      : conversion(change), architectures(std::move(names)) {}
  GgufConversion conversion;
  std::vector<GgufArchitecture> architectures;
};

/// Keys of a decoder with RMSNorm, with LayerNorm, and of one with routed experts.
[[nodiscard]] std::span<const GgufKey> gguf_rms_norm_keys();
[[nodiscard]] std::span<const GgufKey> gguf_layer_norm_keys();
[[nodiscard]] std::span<const GgufKey> gguf_expert_keys();
/// Llama's optional biases, by the tensors that hold them.
[[nodiscard]] std::vector<GgufFlag> gguf_llama_biases();

/// Adds rope_scaling, as Llama's config has it.
void finish_rope_scaling(const GgufMetadataReader& metadata, ConfigDraft& config);
/// Adds layer_types: which layers have a window, listed one by one.
void finish_windows(const GgufMetadataReader& metadata, ConfigDraft& config);
/// Adds partial_rotary_factor.
void finish_partial_rotary(const GgufMetadataReader& metadata, ConfigDraft& config);
/// The fraction of a head's dimensions that RoPE rotates.
[[nodiscard]] double gguf_rotary_fraction(const GgufMetadataReader& metadata);

}  // namespace headroom::detail
