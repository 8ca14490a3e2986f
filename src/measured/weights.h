// The weights of a model in memory: from a checkpoint, or random numbers of a seed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint.h"
#include "headroom/graph.h"
#include "kernels/aligned.h"
#include "kernels/embedding.h"
#include "kernels/gemm.h"
#include "weight_reader.h"

namespace headroom::measured {

/// Where weights come from. `load` is called once for every weight of every layer.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  /// The values of `weight`, [out, in] row-major, in layer `layer`. `shape` has its sizes. Throws
  /// Error{invalid_input} naming file and tensor when it is missing or has another shape.
  virtual AlignedVector<float> load(const Weight& weight, const std::vector<std::int64_t>& shape,
                                    std::int64_t layer) = 0;
  /// Throws Error{invalid_input} when the source has weights that nobody asked for.
  virtual void finish() = 0;
};

/// Normal-like numbers of standard deviation 1/sqrt(in), norms of 1, biases near 0; the same for
/// the same seed, path and layer. Timing does not depend on values, as long as they are finite.
[[nodiscard]] std::unique_ptr<WeightSource> random_weights(std::uint64_t seed);

/// The tensors of a checkpoint, by the family's names.
[[nodiscard]] std::unique_ptr<WeightSource> checkpoint_weights(const ModelSpec& spec,
                                                               checkpoint::Checkpoint source);

/// The tensors that `reader` has, by the names that it says the family's weights have.
[[nodiscard]] std::unique_ptr<WeightSource> stored_weights(
    const ModelSpec& spec, std::unique_ptr<detail::WeightReader> reader);

struct WeightOptions {
  Backend backend = Backend::eigen;
  WeightStorage storage = WeightStorage::float32;
  RowRange rows = RowRange::both;  ///< numbers of rows that linear layers are laid out for
  std::int64_t typical_rows = 128;
};

/// All weights of a model: linear layers packed for the backend, tables and norms beside them. Each
/// is held once, except that a table of embeddings is held apart from the layer that it is tied to
/// where that layer's layout is the backend's own secret (oneDNN for many rows).
class ModelWeights {
 public:
  /// Loads everything that the graph of a whole prefill uses. Throws Error{invalid_input}.
  ModelWeights(const ModelSpec& spec, WeightSource& source, const WeightOptions& options);

  /// The linear layer whose first weight has this path, or one expert's, or that of
  /// one position of a convolution's kernel. `layer` is that of the
  /// stack whose weights are meant.
  [[nodiscard]] PackedLinear& linear(const std::string& path, std::int64_t layer,
                                     std::int64_t expert = 0) const;
  /// A norm, a bias, or table of positions.
  [[nodiscard]] const float* values(const std::string& path, std::int64_t layer) const;
  /// Reads rows of a table of words. The reader is valid as long as the weights are.
  [[nodiscard]] RowReader word_rows(const std::string& path) const;
  /// Numbers that were loaded, tied ones once.
  [[nodiscard]] std::int64_t parameters() const noexcept { return parameters_; }
  /// Bytes of all weights that were loaded in the type that they are stored in, tied ones once.
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
  /// Bytes that they take in memory as they are laid out.
  [[nodiscard]] std::int64_t held_bytes() const;

 private:
  using Key = std::pair<std::string, std::int64_t>;
  struct Job;

  [[nodiscard]] std::vector<Job> jobs() const;
  void load(const Weight& weight, std::int64_t layer, WeightSource& source);
  void keep_as_is();
  void pack(const Node& node, std::int64_t layer);
  [[nodiscard]] std::vector<std::unique_ptr<PackedLinear>> pack_taps(const Node& node,
                                                                     std::int64_t layer,
                                                                     std::int64_t taps,
                                                                     LinearOptions packing) const;
  void drop_packed(const Node& node, std::int64_t layer);
  void shrink_table(const Node& embedding);
  [[nodiscard]] std::vector<std::int64_t> shape_of(const Weight& weight) const;

  WeightOptions options_;
  Graph graph_;
  std::set<WeightId> read_as_is_;          ///< by other operators than linear ones
  std::set<std::string> kept_for_decode_;  ///< packed for a prefill, and read as they are besides
  std::set<Key> loaded_;
  std::map<Key, AlignedVector<float>> values_;
  std::map<std::string, PooledVector<std::uint16_t>> bfloat16_tables_;
  std::map<Key, std::vector<std::unique_ptr<PackedLinear>>> linears_;  ///< one an expert, or a tap
  std::int64_t parameters_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace headroom::measured
