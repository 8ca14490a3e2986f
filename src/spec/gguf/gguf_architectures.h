// What each architecture of GGUF is in the words of Hugging Face's configs.
// Source: class Keys in gguf-py/gguf/constants.py and set_gguf_parameters of each class in
// convert_hf_to_gguf.py, github.com/ggml-org/llama.cpp.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "gguf_metadata_reader.h"

namespace headroom::detail {

/// A metadata key without the architecture in front, and the config's key for the same.
struct GgufKey {
  std::string_view metadata;
  std::string_view config;
};

/// A config key that is true when a tensor is there, and false when it is not.
struct GgufFlag {
  std::string_view tensor;
  std::string_view config;
};

/// A config key that has this value, JSON text, in every model of the architecture.
struct GgufConstant {
  std::string_view config;
  std::string_view json;
};

/// How a model's head is known to be tied to its table of words.
enum class GgufTie {
  no_output_tensor,  ///< when the file has no output.weight
  always,            ///< converters have stored the table a second time
};

/// When a config says how wide a head is.
enum class GgufHeadDim {
  where_unusual,  ///< not hidden_size / num_attention_heads
  always,
  never,
};

/// What keys cannot say one by one.
using GgufFinish = void (*)(const GgufMetadataReader& metadata, nlohmann::json& config);

struct GgufArchitecture {
  std::string_view name{};
  std::string_view
      needs{};  ///< a count that must be there and not 0; of equal names, the first fits
  std::string_view model_type{};
  std::string_view architecture{};
  std::span<const GgufKey> common{};  ///< a list that several architectures share
  std::span<const GgufKey> own{};
  std::span<const GgufFlag> flags{};
  std::span<const GgufConstant> constants{};
  GgufTie tie = GgufTie::no_output_tensor;
  GgufHeadDim head_dim = GgufHeadDim::where_unusual;
  GgufFinish finish = nullptr;
};

[[nodiscard]] std::span<const GgufArchitecture> gguf_dense_architectures();
[[nodiscard]] std::span<const GgufArchitecture> gguf_expert_architectures();

/// Adds rope_scaling, as Llama's config has it.
void finish_rope_scaling(const GgufMetadataReader& metadata, nlohmann::json& config);

}  // namespace headroom::detail
