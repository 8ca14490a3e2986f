// Weights of a model in memory, from a checkpoint or from a random seed.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "checkpoint.h"
#include "headroom/graph.h"
#include "headroom/measurement.h"
#include "kernels/aligned.h"
#include "kernels/embedding.h"
#include "kernels/gemm.h"
#include "rank_context.h"
#include "stored_blocks.h"
#include "weight_reader.h"
#include "weight_slice.h"

namespace headroom::measured {

/// Form in which kernels can read a source's weight other than as values.
enum class StoredForm { values_only, blocks, groups };

/// Type in which a source holds a weight.
struct SourceType {
  std::string name{};  ///< "Q4_K", "F16"; empty for float32, or if the source has no types
  std::optional<checkpoint::GgmlType> blocks{};  ///< if kernels can read its blocks
  StoredForm form = StoredForm::values_only;
};

/// A weight in groups of codes: matrices whose rows together are its rows, in order.
using StoredGroups = std::vector<checkpoint::GroupedWeights>;

/// Source of weights. `load`, `load_blocks` or `load_groups` is called once for every weight of
/// every layer.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  /// Returns the values of `weight` in layer `layer`, [out, in] row-major; `shape` has its sizes.
  /// Throws Error{invalid_input} naming file and tensor if it is missing or has another shape.
  virtual AlignedVector<float> load(const Weight& weight, const std::vector<std::int64_t>& shape,
                                    std::int64_t layer) = 0;
  /// The part of `load`'s values that `slices` of its dimensions select, with zeros for padding. A
  /// source that can reads no other values.
  virtual AlignedVector<float> load_part(const Weight& weight,
                                         const std::vector<std::int64_t>& shape, std::int64_t layer,
                                         std::span<const WeightSlice> slices);
  /// The type in which the source holds `weight`.
  [[nodiscard]] virtual SourceType type_of(const Weight& /*weight*/,
                                           const std::vector<std::int64_t>& /*shape*/,
                                           std::int64_t /*layer*/) const {
    return {};
  }
  /// As `load`, in the blocks that `type_of` names.
  virtual StoredBlocks load_blocks(const Weight& weight, const std::vector<std::int64_t>& shape,
                                   std::int64_t layer);
  /// As `load`, in groups of codes, if `type_of` names this form.
  virtual StoredGroups load_groups(const Weight& weight, const std::vector<std::int64_t>& shape,
                                   std::int64_t layer);
  /// Bytes of the weight in its files, each tensor counted for the first weight that asks; empty if
  /// the source counts none.
  virtual std::optional<std::int64_t> count_file_bytes(const Weight& /*weight*/,
                                                       std::int64_t /*layer*/) {
    return std::nullopt;
  }
  /// Throws Error{invalid_input} if the source has tensors that were never loaded.
  virtual void finish() = 0;
};

/// Random weights of standard deviation 1/sqrt(in); norms are 1. The same seed, path and layer give
/// the same numbers. Timing does not depend on values, as long as they are finite.
[[nodiscard]] std::unique_ptr<WeightSource> random_weights(std::uint64_t seed);

/// Random weights like those, in the types of `spec.storage`: matrices in blocks or groups that
/// kernels read have random codes, and `load` returns the values of these codes. Matrices of 16
/// bits beside groups have those numbers, rounded.
[[nodiscard]] std::unique_ptr<WeightSource> random_stored(const ModelSpec& spec,
                                                          std::uint64_t seed);

/// Weights of a checkpoint, under the family's tensor names.
[[nodiscard]] std::unique_ptr<WeightSource> checkpoint_weights(const ModelSpec& spec,
                                                               checkpoint::Checkpoint source);

/// Weights from `reader`, under the tensor names that it gives for the family.
[[nodiscard]] std::unique_ptr<WeightSource> stored_weights(
    const ModelSpec& spec, std::unique_ptr<detail::WeightReader> reader);

struct WeightOptions {
  Backend backend = Backend::eigen;
  HeldType storage = HeldType::float32;
  RowRange rows = RowRange::both;  ///< numbers of rows that linear layers are packed for
  std::int64_t typical_rows = 128;
  ActivationPath activations = ActivationPath::float32;  ///< of weights in fewer bits
  std::optional<RowRange> head_rows{};                   ///< of the head's layers; unset: as `rows`
  const RankContext* rank = nullptr;                     ///< whose slices are loaded; null: all
};

/// Weights in groups of GEMMs with int8 activations.
struct GroupProducts {
  std::int64_t integers = 0;        ///< parameters whose codes can multiply as integers
  std::set<std::string> decoded{};  ///< types that are decoded for float32 activations
};

/// All weights of a model: linear layers packed for the backend; tables and norms as they are. Each
/// is stored once. Exception: an embedding table tied to a linear layer is stored twice if that
/// layer's packing is opaque (oneDNN, many rows).
class ModelWeights {
 public:
  /// Loads every weight of the prefill graph, or the rank's slices. Throws Error{invalid_input},
  /// and Interrupted.
  ModelWeights(const ModelSpec& spec, WeightSource& source, const WeightOptions& options);

  /// Packed linear layer whose first weight has this path. `layer` is the index in the stack that
  /// stores the weights; `expert` selects an expert, or a tap of a convolution's kernel.
  [[nodiscard]] PackedLinear& linear(const std::string& path, std::int64_t layer,
                                     std::int64_t expert = 0) const;
  /// Values of a norm, a bias or a position table.
  [[nodiscard]] const float* values(const std::string& path, std::int64_t layer) const;
  /// Returns a reader of the rows of a word embedding table. It stays valid as long as the weights.
  [[nodiscard]] RowReader word_rows(const std::string& path) const;
  /// Number of parameters loaded; tied weights count once.
  [[nodiscard]] std::int64_t parameters() const noexcept { return parameters_; }
  /// Bytes of all loaded weights in their storage type; tied weights count once.
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
  /// Types of the loaded weights, by descending bytes; empty unless they are held as stored.
  [[nodiscard]] std::vector<WeightFormat> formats() const;
  /// How int8 activations multiply the GEMMs' weights in groups; all 0 with other activations.
  [[nodiscard]] const GroupProducts& group_products() const noexcept { return group_products_; }
  /// Bytes of memory that the packed layers and unpacked values use.
  [[nodiscard]] std::int64_t held_bytes() const;

 private:
  using Key = std::pair<std::string, std::int64_t>;
  struct Job;

  void load_all(const ModelSpec& spec, WeightSource& source);

  [[nodiscard]] std::vector<Job> jobs() const;
  void load(const Weight& weight, std::int64_t layer, WeightSource& source);
  /// Loads the weights of `node`, in blocks or groups if all its matrices have some.
  void load_weights(const Node& node, std::int64_t layer, WeightSource& source);
  [[nodiscard]] bool can_stay_stored(const Node& node, std::int64_t layer,
                                     const WeightSource& source) const;
  void load_blocks(const Weight& weight, std::int64_t layer, WeightSource& source);
  void load_groups(const Weight& weight, std::int64_t layer, WeightSource& source);
  /// Counts a loaded weight, in memory as `format` and `stored_bytes` in its storage type.
  void count(const Weight& weight, WeightFormat format, std::int64_t stored_bytes);
  void pack_blocks(const Node& node, std::int64_t layer);
  void pack_groups(const Node& node, std::int64_t layer);
  void count_products(const StoredGroups& groups, const std::string& type);
  /// Lays out the tables in blocks or groups that no packed layer has.
  void keep_stored_tables();
  void find_unpacked_weights();
  /// Loads the weights that no operator reads but that are part of the model.
  void load_unread(const ModelSpec& spec, WeightSource& source);
  void pack(const Node& node, std::int64_t layer);
  /// Use of the values of weight `index` of `node` once it is packed: released where
  /// drop_packed_values drops them.
  [[nodiscard]] SourceMemory source_of(const Node& node, std::size_t index,
                                       const LinearOptions& packing) const;
  void normalise_weight(const Node& node, std::int64_t layer);
  [[nodiscard]] std::vector<std::unique_ptr<PackedLinear>> pack_taps(const Node& node,
                                                                     std::int64_t layer,
                                                                     std::int64_t taps,
                                                                     LinearOptions packing) const;
  void drop_packed_values(const Node& node, std::int64_t layer);
  void narrow_table(const Node& embedding);
  [[nodiscard]] std::vector<std::int64_t> shape_of(const Weight& weight) const;

  WeightOptions options_;
  Graph graph_;
  std::set<WeightId> read_unpacked_;     ///< read by other operators than linear layers
  std::set<std::string> also_unpacked_;  ///< read by a linear layer and unpacked by others
  std::set<Key> loaded_;
  std::set<WeightId> read_as_floats_;  ///< by operators without kernels for blocks
  std::map<Key, AlignedVector<float>> values_;
  std::map<Key, StoredBlocks> blocks_;  ///< loaded and not yet packed
  std::map<Key, StoredGroups> groups_;  ///< likewise
  std::map<Key, std::string> group_types_;
  GroupProducts group_products_;
  std::map<std::string, WeightFormat> formats_;
  std::map<std::string, UnfilledVector<std::uint16_t>> bfloat16_tables_;
  std::map<std::string, std::unique_ptr<PackedLinear>> stored_tables_;
  std::map<Key, std::vector<std::unique_ptr<PackedLinear>>>
      linears_;  ///< one per expert or convolution tap
  std::int64_t parameters_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace headroom::measured
