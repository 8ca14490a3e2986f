// Bytes of one model's weights under a quantisation, in which the query matrices are the rest.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "headroom/storage.h"
#include "support/data.h"

namespace headroom::test {

/// Qwen3-0.6B's query matrices, [2048, 1024] in 28 layers.
inline constexpr std::int64_t kQueryLayers = 28;
inline constexpr std::int64_t kQueryRows = 2048;
inline constexpr std::int64_t kQueryColumns = 1024;
inline constexpr std::int64_t kQueryValues = kQueryRows * kQueryColumns;
inline constexpr std::int64_t kPlainQuery = 2 * kQueryValues;

/// Qwen3-0.6B with this quantisation beside bfloat16.
[[nodiscard]] inline ModelSpec qwen_with(const nlohmann::json& quantization) {
  nlohmann::json config = nlohmann::json::parse(find_preset("qwen3-0.6b")->json).at("config");
  config["torch_dtype"] = "bfloat16";
  config["quantization_config"] = quantization;
  return spec_of(config);
}

/// Bytes of all its weights.
[[nodiscard]] inline Integer qwen_bytes(const nlohmann::json& quantization) {
  const ModelSpec spec = qwen_with(quantization);
  return stored_weights(spec, build_graph(spec, {})).bytes;
}

}  // namespace headroom::test
