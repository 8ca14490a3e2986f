// Helpers of the converter's classes: tensors by their names in the checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "measured/gguf_converter.h"

namespace headroom::test {

using Names = std::vector<std::pair<std::string_view, std::string_view>>;

[[nodiscard]] bool has(const std::string& name, std::string_view part);
void rename(ConvertedTensors& tensors, const std::string& from, const std::string& to);
[[nodiscard]] std::vector<std::string> names_of(const ConvertedTensors& tensors);
/// Rows [first, first + count) of a matrix.
[[nodiscard]] ConvertedTensor rows_of(const ConvertedTensor& tensor, std::int64_t first,
                                      std::int64_t count);
/// LlamaModel.permute on the query and key projections.
void permute_queries_and_keys(const nlohmann::json& config, ConvertedTensors& tensors);
/// Exchanges the last two of three dimensions.
void transpose_last(ConvertedTensor& tensor);
/// Removes sizes of 1.
void squeeze(ConvertedTensor& tensor);
/// kv_b_proj becomes [heads, rank, nope] for keys and [heads, width, rank] for values; their values
/// stay in place, since only sizes are compared.
void split_key_values(const nlohmann::json& config, ConvertedTensors& tensors);
/// The layers of this type.
[[nodiscard]] std::vector<bool> typed_layers(const nlohmann::json& config, std::string_view type);

/// Classes of models whose layers differ: state spaces, convolutions, gated delta rule.
[[nodiscard]] std::vector<GgufConverter> hybrid_converters();
/// Classes of models whose files hold lists of layers in metadata, or fused or copied vectors.
[[nodiscard]] std::vector<GgufConverter> listed_converters();
/// Classes of models that share most of another's, or whose layers have sizes of their own.
[[nodiscard]] std::vector<GgufConverter> clone_converters();

}  // namespace headroom::test
