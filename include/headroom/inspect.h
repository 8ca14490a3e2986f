// Inspection: the tensors of a model's files, and their reconciliation with its config. Files of an
// architecture that headroom does not know give parameters and bytes, nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/integer.h"
#include "headroom/model_source.h"
#include "headroom/workload.h"

namespace headroom {

enum class FileFormat { safetensors, gguf };

[[nodiscard]] std::string_view name_of(FileFormat format) noexcept;

/// Sums over tensors. `values` are logical: a packed tensor counts its unpacked values.
struct TensorTotals {
  std::int64_t tensors = 0;
  Integer values = 0;
  Integer bytes = 0;

  TensorTotals& operator+=(const TensorTotals& other);
  /// Stored bits per value; empty without values.
  [[nodiscard]] std::optional<double> bits_per_value() const;
};

/// Tensors of one storage type: "BF16", "Q4_K", "GPTQ 4-bit".
struct TypeRow {
  std::string type;
  TensorTotals totals;
};

/// Tensors of one component. With a config, the component is the graph's ("attention.qkv") and the
/// category is that of the parameter sums; without one, it is the tensor name with {} for numbers.
struct ComponentRow {
  std::string category;
  std::string component;
  TensorTotals totals;
};

/// Tensors that are not weights of the model: buffers, tied copies, unused heads, …
struct ExtraRow {
  std::string kind;
  TensorTotals totals;
  std::string example;
};

enum class ProblemKind {
  missing_tensor,  ///< required by the config, absent from the files
  unknown_tensor,  ///< in the files, not in the config's graph
  wrong_shape,
};

[[nodiscard]] std::string_view name_of(ProblemKind kind) noexcept;

/// A disagreement between config and files.
struct Problem {
  ProblemKind kind = ProblemKind::missing_tensor;
  std::string tensor;
  std::string detail;
};

/// The files reconciled with the graph of their config.
struct Reconciliation {
  Model model;
  Integer expected_parameters = 0;  ///< of the graph
  Integer found_parameters = 0;     ///< of weights with a tensor of the right shape
  std::vector<Problem> problems;    ///< the first 100
  std::int64_t problem_count = 0;   ///< of all
};

struct Inspection {
  std::string path;
  FileFormat format = FileFormat::safetensors;
  std::int64_t files = 0;
  TensorTotals all;                      ///< every tensor
  TensorTotals weights;                  ///< without extras: `values` are the parameters
  std::vector<TypeRow> types;            ///< of all tensors, most bytes first
  std::vector<ComponentRow> components;  ///< of weights
  std::vector<ExtraRow> extras;
  std::optional<Reconciliation> reconciliation;  ///< empty without a readable config
  std::string config_error;                      ///< why the config could not be read
  std::vector<std::string> notes;

  /// False if the config cannot be read or any problem was found; true without a config.
  [[nodiscard]] bool is_explained() const noexcept;
};

/// Reads the headers of the files at `path`: a safetensors file, a folder or its index.json, or a
/// GGUF file. Throws Error{invalid_input} if a header is invalid.
[[nodiscard]] Inspection inspect(const std::string& path);

/// As `inspect`, without a config: components are tensor names.
[[nodiscard]] Inspection inspect_headers(const std::string& path);

// Models of an unknown architecture.

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
