#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "enum_table.h"
#include "headroom/error.h"
#include "headroom/parallel_plan.h"
#include "op_kind.h"

namespace headroom {
namespace {

constexpr std::array kAttentionTargets{Part::attention_qkv, Part::attention_out,
                                       Part::cross_attention_query, Part::cross_attention_key_value,
                                       Part::cross_attention_out};
constexpr std::array kFeedForwardTargets{Part::mlp_up, Part::mlp_down};

struct TargetInfo {
  AdapterTargets targets;
  std::string_view name;
  std::string_view matrices;  ///< in messages
  std::string_view remedy;    ///< for a model that lacks them
};
constexpr std::string_view kChooseTransformer =
    "leave the adapters out, or choose a Transformer, such as llama-3-8b";
constexpr TargetInfo kTargets[] = {
    {AdapterTargets::query_value, "query-value", "queries and of values",
     "let them change all matrices of attention"},
    {AdapterTargets::attention, "attention", "attention", kChooseTransformer},
    {AdapterTargets::all, "all", "attention and feed-forward networks", kChooseTransformer},
};
static_assert(detail::lists_every<kTargets>(&TargetInfo::targets));

const TargetInfo& info_of(AdapterTargets targets) {
  return kTargets[static_cast<std::size_t>(targets)];
}

bool is_target(const Node& node, AdapterTargets targets) {
  if (detail::kind_of(node.op) != detail::OpKind::linear) return false;
  const auto is_part = [&](Part part) { return node.component.part == part; };
  const bool feed_forward =
      targets == AdapterTargets::all && std::ranges::any_of(kFeedForwardTargets, is_part);
  return feed_forward || std::ranges::any_of(kAttentionTargets, is_part);
}

bool makes_values(const Weight& matrix) { return matrix.path.ends_with(".value.weight"); }

bool is_target(const Weight& matrix, AdapterTargets targets) {
  return targets != AdapterTargets::query_value || matrix.path.ends_with(".query.weight") ||
         makes_values(matrix);
}

/// Replaces W·x by W·x + B·(A·x), with A [rank, in] and B [out, rank], for every target matrix.
/// Routed experts have no adapters.
class AdapterPass {
 public:
  AdapterPass(const Graph& graph, const Adapter& adapter) : adapter_(adapter), graph_(graph) {}

  Graph run() && {
    for (Weight& weight : graph_.weights) weight.training = Training::frozen;
    for (Block& block : graph_.blocks) {
      const std::vector<Node> nodes = std::exchange(block.nodes, {});
      for (const Node& node : nodes) {
        const Node placed = with_current_inputs(node);
        block.nodes.push_back(placed);
        const bool adapted = block.is_layers() && is_target(placed, adapter_.targets);
        if (!adapted) continue;
        for (const Weight& matrix : matrices_of(placed)) {
          if (!is_target(matrix, adapter_.targets)) continue;
          adapts_values_ = adapts_values_ || makes_values(matrix);
          adapt_matrix(block, placed, matrix);
        }
      }
      if (const auto found = current_.find(block.carried_out); found != current_.end()) {
        block.carried_out = found->second;
      }
    }
    // Latent attention makes keys and values by one matrix.
    const bool lacks_values = adapter_.targets == AdapterTargets::query_value && !adapts_values_;
    if (current_.empty() || lacks_values) refuse();
    return std::move(graph_);
  }

 private:
  [[noreturn]] void refuse() const {
    const TargetInfo& info = info_of(adapter_.targets);
    throw_invalid_input(
        fmt::format("adapters change matrices of {}, which this model lacks", info.matrices),
        std::string(info.remedy));
  }

  [[nodiscard]] Node with_current_inputs(Node node) const {
    for (TensorId& input : node.inputs) {
      if (const auto found = current_.find(input); found != current_.end()) input = found->second;
    }
    return node;
  }

  /// The matrices that a fused linear operator stacks: [out_features, in_features] each.
  [[nodiscard]] std::vector<Weight> matrices_of(const Node& node) const {
    std::vector<Weight> matrices;
    for (const WeightId id : node.weights) {
      if (graph_.weights[id].shape.size() == 2) matrices.push_back(graph_.weights[id]);
    }
    return matrices;
  }

  WeightId add_weight(const Weight& adapted, const char* name, std::vector<Expr> shape) {
    Weight weight = adapted;
    weight.path += name;
    weight.shape = std::move(shape);
    weight.training = Training::trained;
    weight.stored_bytes.reset();
    weight.stored_bytes_of_copy.clear();
    graph_.weights.push_back(std::move(weight));
    return graph_.weights.size() - 1;
  }

  TensorId add(Block& block, const Node& adapted, const char* name, Op op,
               std::vector<TensorId> inputs, std::vector<WeightId> weights, std::vector<Expr> shape,
               Placement placement) {
    graph_.tensors.push_back({adapted.path + name, std::move(shape), ElementType::activation});
    const TensorId output = graph_.tensors.size() - 1;
    block.nodes.push_back({adapted.path + name, adapted.component, std::move(op), std::move(inputs),
                           output, std::move(weights), placement, adapted.layer});
    return output;
  }

  void adapt_matrix(Block& block, const Node& node, const Weight& matrix) {
    const Expr rows = std::get<Linear>(node.op).rows;
    const Expr rank = Integer{adapter_.rank};
    const Expr& out_features = matrix.shape[0];
    const Expr& in_features = matrix.shape[1];
    const auto with_width = [&](const Expr& width) {
      std::vector<Expr> shape = graph_.tensors[node.output].shape;
      shape.back() = width;
      return shape;
    };
    const WeightId down = add_weight(matrix, ".lora_a", {rank, in_features});
    const WeightId up = add_weight(matrix, ".lora_b", {out_features, rank});
    const TensorId low_rank =
        add(block, node, ".lora_a", Linear{rows, in_features, rank, false}, {node.inputs.front()},
            {down}, with_width(rank), Placement::new_buffer);
    const TensorId change = add(block, node, ".lora_b", Linear{rows, rank, out_features, false},
                                {low_rank}, {up}, with_width(out_features), Placement::new_buffer);
    // Each matrix changes its own columns of the layer's output.
    TensorId& sum = current_.try_emplace(node.output, node.output).first->second;
    sum = add(block, node, ".lora_sum", ResidualAdd{rows * out_features}, {sum, change}, {},
              graph_.tensors[node.output].shape, Placement::in_place);
  }

  Adapter adapter_;
  Graph graph_;
  std::map<TensorId, TensorId> current_;
  bool adapts_values_ = false;
};

}  // namespace

Graph with_adapter(const Graph& graph, const Adapter& adapter) {
  if (adapter.kind == AdapterKind::none) return graph;
  return AdapterPass(graph, adapter).run();
}

Graph with_served_adapters(const Graph& graph, const Adapter& adapter, DType dtype) {
  Graph served = with_adapter(graph, adapter);
  for (WeightId id = graph.weights.size(); id < served.weights.size(); ++id) {
    Weight& weight = served.weights[id];
    const Integer elements = (weight.repeat * weight.elements()).evaluate(served.sizes);
    weight.held_adapters = adapter.held;
    weight.stored_bytes =
        checked_multiply(adapter.held, checked_multiply(elements, bytes_of(dtype)));
  }
  return served;
}

std::string_view name_of(AdapterTargets targets) noexcept { return info_of(targets).name; }

}  // namespace headroom
