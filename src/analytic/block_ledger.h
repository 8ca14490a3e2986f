// One block's rows of the ledger: which copies of a saved tensor count, and under which
// recomputation they stay. Internal to src/analytic.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "headroom/analysis.h"

namespace headroom::detail {

/// The node that produces each tensor.
using Producers = std::map<TensorId, const Node*>;

/// Tables of cosines and sines, by theta and width: layers with equal RoPE parameters share one.
using RotaryTables = std::set<std::pair<double, std::int64_t>>;

/// Adds rows for the tensors that the nodes of one block save. A saved tensor is identified by its
/// TensorId and its name, since several parts of one tensor may be saved.
class BlockLedger {
 public:
  /// `layer_inputs`: what earlier layers read from the layer before them, and have saved.
  BlockLedger(const Block& block, const Producers& producers,
              const std::set<TensorId>& layer_inputs, std::vector<SavedTensor>& ledger);

  /// Continues with the tensors that `node` saves.
  void start(const Node& node) { node_ = &node; }

  /// Saves a tensor of the graph, once for all operators that need it.
  void keep(TensorId tensor, const std::string& what, const Expr& bytes,
            KeptUnder kept = KeptUnder::selective);
  /// Saves a tensor that is internal to this operator.
  void keep_new(const std::string& what, const Expr& bytes, SavedKind kind = SavedKind::tensor);
  /// Saves a tensor of the attention core, which selective recompute drops.
  void keep_core(const std::string& what, const Expr& bytes, SavedKind kind);
  /// Saves one tensor for all layers, which stays under any recomputation.
  void keep_shared(const std::string& what, const Expr& bytes);

 private:
  [[nodiscard]] std::string path() const { return block_.path + "." + node_->path; }
  /// The all-gather that produced `tensor`; null if none.
  [[nodiscard]] const Collective* gathered_by(TensorId tensor) const;
  /// The node that computes `tensor`, which a collective of the backward pass may pass on; null for
  /// an input of the graph.
  [[nodiscard]] const Node* source_of(TensorId tensor) const;
  /// The part that makes the node's internal tensors again.
  [[nodiscard]] LayerPart internal_part() const;
  /// Of a tensor that the node saves, and no earlier one.
  [[nodiscard]] SavedReaders reader() const;
  /// Adds the node to the readers of a row.
  void add_reader(std::size_t row);

  const Block& block_;
  const Producers& producers_;
  const std::set<TensorId>& layer_inputs_;
  std::vector<SavedTensor>& ledger_;
  const Node* node_ = nullptr;
  std::set<TensorId> made_;  ///< produced by a layer or carried from the previous one
  /// Already saved: their rows in ledger_, or kNoRow.
  std::map<std::pair<TensorId, std::string>, std::size_t> known_;
};

}  // namespace headroom::detail
