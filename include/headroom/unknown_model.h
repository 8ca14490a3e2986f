// The model types that headroom reads, and models of an architecture that it does not know: their
// files give parameters and bytes, nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/inspect.h"
#include "headroom/workload.h"

namespace headroom {

/// A value of `model_type` that headroom reads.
struct ModelTypeInfo {
  std::string model_type;
  std::string architecture;  ///< its default class
  bool reads_gguf = false;   ///< also from GGUF files
};

/// All of them, sorted by model_type.
[[nodiscard]] std::vector<ModelTypeInfo> list_model_types();

/// Up to three known types with the names nearest to `model_type`; empty if none is near.
[[nodiscard]] std::vector<std::string> nearest_model_types(std::string_view model_type);

/// A shard index (model.safetensors.index.json) whose shards are not all at hand.
struct ShardIndexTotals {
  std::int64_t tensors = 0;
  std::int64_t absent_files = 0;
  Integer total_bytes = 0;                    ///< its metadata.total_size
  std::optional<Integer> total_parameters{};  ///< its metadata.total_parameters
};

/// Sizes of a decoder that nearly every config and GGUF file states.
struct StandardSizes {
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;
};

/// Estimates as for a plain decoder with full attention in every layer. Other architectures differ.
struct UnknownModelEstimates {
  StandardSizes sizes;
  std::int64_t batch_size = 1;
  std::int64_t seq_len = 0;
  std::int64_t past_len = 0;
  DType kv_dtype = DType::float32;
  Integer kv_cache_bytes = 0;  ///< 2·layers·batch·(past + seq)·kv_heads·head_dim·type
  Integer kv_cache_bytes_per_token = 0;  ///< of one sequence
  /// N: the exact count, else the bytes divided by those of the config's torch_dtype.
  std::optional<Integer> parameters{};
  std::optional<Integer> matrix_flops{};  ///< 2·N·batch·seq
};

/// Exact sums over the files of a model whose architecture is unknown.
struct UnknownModel {
  std::string path;
  std::string model_type;    ///< as its config or GGUF file says; may be empty
  std::string architecture;  ///< the class of `architectures`; may be empty
  std::vector<std::string> nearest_types{};
  std::optional<Inspection> files{};  ///< empty: shards are absent, `index` has the sums
  std::optional<ShardIndexTotals> index{};
  std::optional<UnknownModelEstimates> estimates{};
  std::string why_no_estimates;  ///< the key that the config lacks, or "config.json"
  std::vector<std::string> notes{};

  /// Parameters; empty if the shards are absent and their index does not state them.
  [[nodiscard]] std::optional<Integer> parameters() const;
  /// Bytes of the weights.
  [[nodiscard]] Integer weight_bytes() const;
};

/// The model at `path`, or of this name in a local store, if it is a folder, a safetensors file or
/// a GGUF file with weights whose architecture is unknown: its config has an unknown model_type, or
/// there is no config. Empty otherwise. `request` gives batch, lengths and types of the estimates.
/// Throws Error{invalid_input} if a header or the config is invalid.
[[nodiscard]] std::optional<UnknownModel> read_unknown_model(const std::string& path,
                                                             const WorkloadRequest& request);

}  // namespace headroom
