// Memory of a training step, operator by operator: saved tensors accumulate forward and are freed
// backward, while gradients of activations come and go.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "headroom/analysis.h"

namespace headroom {
namespace {

/// Saved tensors of one node, in bytes.
struct NodeLedger {
  Integer every_run = 0;
  Integer first_run = 0;  ///< one for all layers
  Integer dropped = 0;    ///< in every run, computed again
};

/// Bytes of a graph's tensors for one workload.
class StepSizes {
 public:
  StepSizes(const Graph& graph, const Analysis& analysis, const Workload& workload)
      : graph_(graph), values_(bindings_of(workload, graph)) {
    std::map<std::string, Expr> repeats;
    for (const Block& block : graph.blocks) {
      for (const Node& node : block.nodes) repeats[block.path + "." + node.path] = block.repeat;
    }
    for (const SavedTensor& saved : analysis.saved) {
      const Integer bytes = saved.bytes.evaluate(values_);
      NodeLedger& ledger = ledgers_[saved.path];
      const bool is_each = saved.repeat == repeats.at(saved.path);
      if (!stays_saved(saved, workload.recompute)) {
        ledger.dropped += bytes;
      } else {
        (is_each ? ledger.every_run : ledger.first_run) += bytes;
      }
    }
    find_gradients();
  }

  [[nodiscard]] const NodeLedger& ledger_of(const std::string& path) const {
    static const NodeLedger nothing;
    const auto found = ledgers_.find(path);
    return found == ledgers_.end() ? nothing : found->second;
  }
  [[nodiscard]] std::int64_t runs_of(const Block& block) const {
    return block.repeat.evaluate_int64(values_);
  }
  [[nodiscard]] Integer bytes_of(TensorId tensor) const {
    const Expr bytes = graph_.tensors[tensor].elements() * Symbol::activation_bytes;
    return bytes.evaluate(values_);
  }
  /// Inputs of a layer, which full recomputation saves.
  [[nodiscard]] Integer layer_input(const Block& block) const {
    return bytes_of(block.carried_in) + (block.carried_text ? bytes_of(block.carried_text->in) : 0);
  }
  [[nodiscard]] bool has_gradient(TensorId tensor) const { return gradients_.contains(tensor); }

 private:
  /// Marks the tensors that depend on a trained weight.
  void find_gradients() {
    for (const Block& block : graph_.blocks) {
      // The first run makes what later ones carry in.
      for (int pass = 0; pass < 2; ++pass) {
        for (const Node& node : block.nodes) mark(node);
        if (!block.is_layers()) break;
        if (has_gradient(block.carried_out)) gradients_.insert(block.carried_in);
        const auto& text = block.carried_text;
        if (text && has_gradient(text->out)) gradients_.insert(text->in);
      }
    }
  }
  void mark(const Node& node) {
    const auto is_trained_weight = [&](WeightId weight) {
      return graph_.weights[weight].kind == WeightKind::parameter &&
             graph_.weights[weight].training == Training::trained;
    };
    const auto is_marked = [&](TensorId input) { return has_gradient(input); };
    const bool depends = std::ranges::any_of(node.weights, is_trained_weight) ||
                         std::ranges::any_of(node.inputs, is_marked);
    const bool is_real = graph_.tensors[node.output].type == ElementType::activation;
    if (depends && is_real) gradients_.insert(node.output);
  }

  const Graph& graph_;
  Bindings values_;
  std::map<std::string, NodeLedger> ledgers_;
  std::set<TensorId> gradients_;
};

/// Runs the step.
class TrainingStep {
 public:
  TrainingStep(const Graph& graph, const Analysis& analysis, const Workload& workload)
      : graph_(graph), recompute_(workload.recompute), sizes_(graph, analysis, workload) {}

  std::vector<TrainingMoment> run() && {
    for (const Block& block : graph_.blocks) {
      for (std::int64_t run = 0; run < sizes_.runs_of(block); ++run) run_forward(block, run);
    }
    for (auto block = graph_.blocks.rbegin(); block != graph_.blocks.rend(); ++block) {
      for (std::int64_t run = sizes_.runs_of(*block); run-- > 0;) run_backward(*block, run);
    }
    return std::move(moments_);
  }

 private:
  void run_forward(const Block& block, std::int64_t run) {
    for (std::size_t i = 0; i < block.nodes.size(); ++i) {
      saved_ += saved_by(block, i, run);
      add_moment(block, i, run, PassDirection::forward);
    }
  }

  void run_backward(const Block& block, std::int64_t run) {
    for (std::size_t i = block.nodes.size(); i-- > 0;) {
      const Node& node = block.nodes[i];
      if (begins_recomputing(block, i)) recomputed_ += dropped_in(block, node.layer);
      add_gradients(node);
      add_moment(block, i, run, PassDirection::backward);
      free_gradient(node.output);
      saved_ -= saved_by(block, i, run);
      recomputed_ -= sizes_.ledger_of(path_of(block, i)).dropped;
    }
    if (run > 0) hand_back(block);
  }

  /// Bytes that a node saves in a run; a layer's first node also the layer's input.
  [[nodiscard]] Integer saved_by(const Block& block, std::size_t node, std::int64_t run) const {
    const NodeLedger& ledger = sizes_.ledger_of(path_of(block, node));
    const bool is_first = node == 0 || block.nodes[node - 1].layer != block.nodes[node].layer;
    const bool keeps_input = block.is_layers() && recompute_ == Recompute::full && is_first;
    return ledger.every_run + (run == 0 ? ledger.first_run : 0) +
           (keeps_input ? sizes_.layer_input(block) : 0);
  }

  /// Full recomputation runs a whole layer before its backward pass, selective its core before the
  /// core's.
  [[nodiscard]] bool begins_recomputing(const Block& block, std::size_t node) const {
    const std::int64_t layer = block.nodes[node].layer;
    const auto is_later = [&](std::size_t other) {
      return block.nodes[other].layer == layer &&
             (recompute_ == Recompute::full || drops(block, other));
    };
    if (recompute_ == Recompute::selective && !drops(block, node)) return false;
    for (std::size_t other = node + 1; other < block.nodes.size(); ++other) {
      if (is_later(other)) return false;
    }
    return recompute_ != Recompute::none && block.is_layers();
  }
  [[nodiscard]] bool drops(const Block& block, std::size_t node) const {
    return sizes_.ledger_of(path_of(block, node)).dropped > 0;
  }
  [[nodiscard]] Integer dropped_in(const Block& block, std::int64_t layer) const {
    Integer bytes = 0;
    for (std::size_t i = 0; i < block.nodes.size(); ++i) {
      if (block.nodes[i].layer == layer) bytes += sizes_.ledger_of(path_of(block, i)).dropped;
    }
    return bytes;
  }

  void add_gradients(const Node& node) {
    if (!sizes_.has_gradient(node.output)) return;
    add_gradient(node.output);
    for (const TensorId input : node.inputs) add_gradient(input);
  }
  void add_gradient(TensorId tensor) {
    if (!sizes_.has_gradient(tensor) || !live_.insert(tensor).second) return;
    gradients_ += sizes_.bytes_of(tensor);
  }
  void free_gradient(TensorId tensor) {
    if (live_.erase(tensor) > 0) gradients_ -= sizes_.bytes_of(tensor);
  }

  /// The gradient of what a run reads is that of what the run before hands on.
  void hand_back(const Block& block) {
    hand_back(block.carried_in, block.carried_out);
    if (block.carried_text) hand_back(block.carried_text->in, block.carried_text->out);
  }
  void hand_back(TensorId in, TensorId out) {
    if (!live_.contains(in)) return;
    free_gradient(in);
    add_gradient(out);
  }

  void add_moment(const Block& block, std::size_t node, std::int64_t run, PassDirection direction) {
    moments_.push_back({path_of(block, node), run, direction, saved_, recomputed_, gradients_});
  }

  static std::string path_of(const Block& block, std::size_t node) {
    return block.path + "." + block.nodes[node].path;
  }

  const Graph& graph_;
  Recompute recompute_;
  StepSizes sizes_;
  std::vector<TrainingMoment> moments_;
  std::set<TensorId> live_;
  Integer saved_ = 0;
  Integer recomputed_ = 0;
  Integer gradients_ = 0;
};

}  // namespace

Integer TrainingMoment::total() const {
  return checked_add(checked_add(saved, recomputed), gradients);
}

std::vector<TrainingMoment> training_moments(const Graph& graph, const Analysis& analysis,
                                             const Workload& workload) {
  if (workload.phase != Phase::train) return {};
  return TrainingStep(graph, analysis, workload).run();
}

}  // namespace headroom
