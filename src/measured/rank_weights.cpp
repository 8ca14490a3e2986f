#include "rank_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "headroom/error.h"
#include "headroom/expr.h"
#include "op_exprs.h"

namespace headroom::measured {
namespace {

std::vector<std::int64_t> sizes_of(const Weight& weight, const Bindings& sizes) {
  std::vector<std::int64_t> result;
  for (const Expr& size : weight.shape) result.push_back(size.evaluate_int64(sizes));
  return result;
}

std::size_t elements_of(std::span<const std::int64_t> sizes) {
  return static_cast<std::size_t>(
      std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>{}));
}

/// The node of `graph` that writes `tensor`; null for a received one.
const Node* writer_of(const Graph& graph, TensorId tensor) {
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      if (node.output == tensor) return &node;
    }
  }
  return nullptr;
}

bool sums_over_ranks(const Node& node) {
  const auto* const op = std::get_if<Collective>(&node.op);
  return op != nullptr && op->group == RankGroup::tensor &&
         (op->forward == CollectiveKind::all_reduce ||
          op->forward == CollectiveKind::reduce_scatter);
}

/// Adds the weights without a divided size of the operators whose outputs `tensor` sums up.
void add_weights_summed_once(const Graph& graph, TensorId tensor, std::set<std::string>& paths) {
  const Node* const node = writer_of(graph, tensor);
  if (node == nullptr) return;
  if (node->weights.empty()) {  // the sum of a token's experts, or their way back
    if (!node->inputs.empty()) add_weights_summed_once(graph, node->inputs.front(), paths);
    return;
  }
  for (const WeightId id : node->weights) {
    const Weight& weight = graph.weights[id];
    if (!headroom::detail::mentions_divided(weight.elements())) paths.insert(weight.path);
  }
}

std::set<std::string> weights_summed_once(const Graph& graph) {
  std::set<std::string> paths;
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      if (sums_over_ranks(node)) add_weights_summed_once(graph, node.inputs.front(), paths);
    }
  }
  return paths;
}

class RankWeights final : public WeightSource {
 public:
  RankWeights(const Graph& model, const RankContext& rank, WeightSource& whole)
      : model_(model), rank_(rank), whole_(whole) {
    const Graph own = rank.shard(model);
    summed_once_ = weights_summed_once(own);
    rank_sizes_ = own.sizes;
  }

  AlignedVector<float> load(const Weight& weight, const std::vector<std::int64_t>& shape,
                            std::int64_t layer) override {
    const bool elsewhere = !rank_.tensor.is_first() && summed_once_.contains(weight.path);
    if (elsewhere) return AlignedVector<float>(elements_of(shape));
    const Weight& full = model_weight(weight);
    const std::vector<std::int64_t> sizes = sizes_of(full, model_.sizes);
    if (sizes == shape) return whole_.load(full, sizes, layer);
    if (!full.parts.empty()) return load_parts(full, sizes, layer);
    return whole_.load_part(full, sizes, layer, slices_of(full, sizes, shape));
  }

  /// Other ranks load the tensors that this one does not.
  void finish() override {}

 private:
  /// This rank's slice of each part of the first dimension, one after the other.
  [[nodiscard]] AlignedVector<float> load_parts(const Weight& weight,
                                                const std::vector<std::int64_t>& whole,
                                                std::int64_t layer) const {
    std::vector<WeightSlice> slices;
    slices.reserve(whole.size());
    for (const std::int64_t size : whole) slices.push_back({0, size, size});
    AlignedVector<float> values;
    std::int64_t begin = 0;
    for (const Expr& part : weight.parts) {
      const std::int64_t size = part.evaluate_int64(model_.sizes);
      const std::int64_t count = part.evaluate_int64(rank_sizes_);
      slices.front() = {begin + slice_index(size, count) * count, count, whole.front()};
      const AlignedVector<float> slice = whole_.load_part(weight, whole, layer, slices);
      values.insert(values.end(), slice.begin(), slice.end());
      begin += size;
    }
    return values;
  }

  /// Position of this rank's slice among those of `count` out of `size`: neighbouring ranks have
  /// the same one where there are more ranks than slices.
  [[nodiscard]] std::int64_t slice_index(std::int64_t size, std::int64_t count) const {
    const std::int64_t slices = std::max<std::int64_t>(1, size / std::max<std::int64_t>(1, count));
    return rank_.tensor.rank * std::min(slices, rank_.tensor.ranks) / rank_.tensor.ranks;
  }

  /// The weight of the whole model that `own` is a part of. Layers of several kinds have weights of
  /// one path, with shapes of their own.
  [[nodiscard]] const Weight& model_weight(const Weight& own) const {
    return *std::ranges::find_if(model_.weights, [&](const Weight& weight) {
      return weight.path == own.path &&
             std::ranges::equal(weight.shape, own.shape, [&](const Expr& whole, const Expr& part) {
               return part == whole || part == of_experts(whole);
             });
    });
  }

  /// The size that a plan writes in place of `whole`, of routed experts: those of one rank, each
  /// with all features. It changes no other formula of a shape.
  [[nodiscard]] Expr of_experts(const Expr& whole) const {
    Expr size = whole;
    if (const auto experts = model_.sizes.get(Symbol::num_experts)) {
      size = size.substitute(Symbol::num_experts, *experts / rank_.expert.ranks);
    }
    if (const auto features = model_.sizes.get(Symbol::moe_intermediate_size)) {
      size = size.substitute(Symbol::moe_intermediate_size, *features);
    }
    return size;
  }

  /// Slices of `weight`, the whole model's, along every dimension. Heads of keys and values are
  /// repeated on neighbouring ranks where there are more ranks than heads.
  [[nodiscard]] std::vector<WeightSlice> slices_of(const Weight& weight,
                                                   const std::vector<std::int64_t>& whole,
                                                   const std::vector<std::int64_t>& own) const {
    std::vector<WeightSlice> slices;
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (own[i] == whole[i]) {
        slices.push_back({0, own[i], whole[i]});
        continue;
      }
      const Expr& size = weight.shape[i];
      if (size == Expr(Symbol::num_experts)) {
        slices.push_back({rank_.expert.rank * own[i], own[i], whole[i]});
        continue;
      }
      const bool heads = size.degree(Symbol::num_attention_heads) > 0;
      const bool kv_heads = size.degree(Symbol::num_key_value_heads) > 0;
      if (heads && kv_heads) {
        throw Error(ErrorCode::invalid_input,
                    "one weight holds queries, keys and values, which no slice of it separates",
                    weight.path, "leave out tensor parallelism");
      }
      const std::int64_t index = kv_heads ? slice_index(whole[i], own[i]) : rank_.tensor.rank;
      slices.push_back({index * own[i], own[i], whole[i]});
    }
    return slices;
  }

  const Graph& model_;
  const RankContext& rank_;
  WeightSource& whole_;
  std::set<std::string> summed_once_;
  Bindings rank_sizes_;
};

}  // namespace

std::unique_ptr<WeightSource> rank_weights(const Graph& model, const RankContext& rank,
                                           WeightSource& whole) {
  return std::make_unique<RankWeights>(model, rank, whole);
}

}  // namespace headroom::measured
