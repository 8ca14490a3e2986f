// WeightStorage: how a model's weights are stored, as facts of its files: formats of values with
// their scales, and the modules that each format applies to.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headroom/graph.h"
#include "headroom/integer.h"
#include "headroom/model_source.h"
#include "headroom/model_spec.h"
#include "headroom/workload.h"

namespace headroom {

/// Types that a model's weights can be converted to. Each stands for a recipe with its real mix of
/// formats: `q4_k_m` keeps some matrices in Q6_K, `float8` the embeddings and the head in 16 bit.
enum class WeightType {
  float32,
  bfloat16,
  float16,
  float8,
  int8,
  int4,
  nf4,
  mxfp4,
  nvfp4,
  q8_0,
  q6_k,
  q5_k_m,
  q4_k_m,
  q4_0,
};

/// The word on the command line, on screen and in JSON.
[[nodiscard]] std::string_view name_of(WeightType type) noexcept;

/// `spec` with its weights converted to `type`.
[[nodiscard]] ModelSpec stored_as(ModelSpec spec, WeightType type);

/// Bytes of one weight, all its copies together.
struct StoredWeight {
  Integer bytes = 0;
  /// Bytes by copy, where the copies differ (first and last layers in 16 bits); empty where all are
  /// equal.
  std::vector<Integer> bytes_of_copy{};
};

/// Weights that share a format, for display.
struct StorageGroup {
  std::string format;      ///< "FP8, a scale per 128 × 128", "BF16"
  Integer parameters = 0;  ///< buffers included
  Integer bytes = 0;
};

/// All weights of a graph as they are stored.
struct StoredWeights {
  std::vector<StoredWeight> weights;   ///< by WeightId
  std::vector<StorageGroup> groups;    ///< by descending bytes
  std::string origin;                  ///< "config.json, quantization_config: fp8", "GGUF tensors"
  Integer bytes = 0;                   ///< sum of `weights`, parameters and buffers
  std::vector<StorageGroup> extras{};  ///< tensors of the files that are no weights, by kind
  std::vector<std::string> notes{};    ///< what could not be taken from files or config
};

/// The weights of `graph` as `spec.storage` stores them. Throws Error{overflow}.
[[nodiscard]] StoredWeights stored_weights(const ModelSpec& spec, const Graph& graph);

/// The weights of `graph` as the files of `model` hold them, to the byte: weights and extras sum to
/// the files' tensors. Without files, or with files that lack a weight of the graph, those of its
/// spec; a note names the latter. Throws Error{invalid_input} if the files cannot be read.
[[nodiscard]] StoredWeights stored_weights(const Model& model, const Graph& graph);

/// `model` with the types of its files as the rules of its spec, so that stored_weights(spec,
/// graph) holds for any graph of it. Rules of a packed format (GPTQ, FP8 with scales) stay those of
/// the config. A note says where files and rules differ. Without files the model is as it was.
/// Throws Error{invalid_input} if the files cannot be read.
[[nodiscard]] Model with_file_types(Model model);

enum class InferenceRecipe {
  w8a8,        ///< 8-bit integer weights and GEMMs
  w8a8_fp8,    ///< FP8 weights and GEMMs
  w8a16,       ///< 8-bit integer weights, 16-bit GEMMs
  w4a16,       ///< 4-bit integer weights, 16-bit GEMMs
  w4a4,        ///< 4-bit integer weights and GEMMs
  w4a4_mxfp4,  ///< MXFP4 weights and GEMMs
  w4a4_nvfp4,  ///< NVFP4 weights and GEMMs
};

/// A recipe's types. Activations between operators have 16 bits in all of them.
struct InferenceRecipeInfo {
  InferenceRecipe recipe;
  std::string_view name;
  WeightType weights;
  std::optional<DType> arithmetic;  ///< of the layers' GEMMs; empty: that of the activations
  std::string_view source;
};

/// All recipes, in order of the enumeration.
[[nodiscard]] const std::array<InferenceRecipeInfo, 7>& inference_recipes() noexcept;
[[nodiscard]] const InferenceRecipeInfo& info(InferenceRecipe recipe) noexcept;

/// `graph` with the stored bytes of every weight. `stored` must come from `stored_weights`.
[[nodiscard]] Graph with_stored_bytes(Graph graph, const StoredWeights& stored);

/// The graph of `spec` with its weights as they are stored. Throws as build_graph does.
[[nodiscard]] Graph build_stored_graph(const ModelSpec& spec, const GraphOptions& options);

/// `spec` with its weights converted to `type`; unchanged without one.
[[nodiscard]] ModelSpec converted(ModelSpec spec, std::optional<WeightType> type);

/// "int4"; without a type "stored", as the files store them.
[[nodiscard]] std::string_view name_of(std::optional<WeightType> type) noexcept;

}  // namespace headroom
