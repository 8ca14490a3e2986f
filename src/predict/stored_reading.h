// Weights that headroom's GEMMs read as they are stored. Internal to src/predict.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headroom/graph.h"
#include "headroom/model_spec.h"
#include "headroom/workload.h"
#include "kernel_calls.h"
#include "weight_formats.h"

namespace headroom::detail {

/// Paths of the matrices of multi-head latent attention that decode absorbs, reading them as plain
/// numbers, and that prefill multiplies with.
[[nodiscard]] std::set<std::string> absorbed_weights(const ModelSpec& spec);

/// The operators of a graph that read their weights as they are stored, in blocks or in groups;
/// all other weights are held as float32. The measured module decides by the same conditions; a
/// test compares bytes.
class StoredReading {
 public:
  /// `spec` and `graph` must outlive it. Throws Error{invalid_input} for a format that no kernel
  /// reads.
  StoredReading(const ModelSpec& spec, const Graph& graph);

  /// Returns whether no operator reads weights in blocks.
  [[nodiscard]] bool empty() const noexcept { return copies_.empty(); }

  /// Formats that GEMMs read, by the names of their curves.
  [[nodiscard]] const std::set<std::string>& gemm_formats() const noexcept { return gemm_formats_; }

  /// One copy of a weight in blocks.
  struct Copy {
    WeightId weight = 0;
    Integer elements = 0;
    Integer bytes = 0;
  };

  /// All copies in blocks together, without the weight.
  [[nodiscard]] Copy all_copies() const;
  /// Number of copies of a weight in blocks.
  [[nodiscard]] std::int64_t copies_of(WeightId weight) const;
  /// Bytes of one copy; empty for one that is not in blocks.
  [[nodiscard]] std::optional<Integer> bytes_of(const Weight& weight, std::int64_t layer) const;

  /// The calls of a node, whose GEMMs read the formats of its weights over all layers of the block:
  /// each format by its share of layers and outputs. Throws Error{invalid_input} for a format of
  /// which `profile` has no times.
  [[nodiscard]] std::vector<KernelCall> stored_calls(const NodePlace& place,
                                                     std::span<const KernelCall> plain,
                                                     const ThreadProfile& profile) const;

 private:
  void find_floats(const ModelSpec& spec);
  void add_copies(const Block& block, const Node& node);
  /// Name of the GEMMs that read `format` as it is stored; empty if none do.
  [[nodiscard]] std::string gemms_of(const StorageFormat& format) const;
  /// Returns whether these GEMMs read rows of `in` values.
  [[nodiscard]] bool fits(const StorageFormat& format, std::int64_t in) const;
  [[nodiscard]] bool reads_stored(const Node& node, std::int64_t layer) const;
  /// Shares of a node's GEMMs by format; "" for float32.
  [[nodiscard]] std::map<std::string, double> format_shares(const NodePlace& place) const;

  const Graph& graph_;
  WeightFormats formats_;
  bool in_groups_;
  std::set<std::string> read_as_floats_;  ///< paths, of other operators than GEMMs and lookups
  std::map<std::pair<std::string, std::int64_t>, Copy> copies_;  ///< by path and layer
  std::set<std::string> gemm_formats_;
};

/// The stored weights of a run of `workload` by headroom's own kernels; empty where all run as
/// plain numbers: the workload converts them to such a type, or no rule stores them otherwise.
/// Throws Error{invalid_input} for a type that no kernel reads, such as float16.
[[nodiscard]] std::optional<StoredReading> stored_reading(const ModelSpec& spec, const Graph& graph,
                                                          const Workload& workload);

}  // namespace headroom::detail
