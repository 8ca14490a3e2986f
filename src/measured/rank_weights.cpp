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
    if (is_elsewhere(weight)) return AlignedVector<float>(elements_of(shape));
    const Weight& full = model_weight(weight);
    const std::vector<std::int64_t> sizes = sizes_of(full, model_.sizes);
    if (sizes == shape) return whole_.load(full, sizes, layer);
    AlignedVector<float> values;
    for (const auto& slices : parts_of(full, sizes, shape)) {
      AlignedVector<float> part = whole_.load_part(full, sizes, layer, slices);
      if (values.empty()) {
        values = std::move(part);
      } else {
        values.insert(values.end(), part.begin(), part.end());
      }
    }
    return values;
  }

  /// The whole weight's type where this rank's part keeps its blocks or groups.
  [[nodiscard]] SourceType type_of(const Weight& weight, const std::vector<std::int64_t>& shape,
                                   std::int64_t layer) const override {
    if (is_elsewhere(weight)) return {};
    const Weight& full = model_weight(weight);
    const std::vector<std::int64_t> sizes = sizes_of(full, model_.sizes);
    SourceType type = whole_.type_of(full, sizes, layer);
    if (sizes == shape || type.form == StoredForm::values_only) return type;
    const bool is_bias = weight.path.ends_with(".bias");  // loaded as values
    const bool keeps =
        !is_bias && std::ranges::all_of(parts_of(full, sizes, shape), [&](const auto& slices) {
          return keeps_form(full, sizes, layer, type, slices);
        });
    if (!keeps) type = {std::move(type.name), std::nullopt, StoredForm::values_only};
    return type;
  }

  StoredBlocks load_blocks(const Weight& weight, const std::vector<std::int64_t>& shape,
                           std::int64_t layer) override {
    const Weight& full = model_weight(weight);
    const std::vector<std::int64_t> sizes = sizes_of(full, model_.sizes);
    StoredBlocks whole = whole_.load_blocks(full, sizes, layer);
    if (sizes == shape) return whole;
    const std::int64_t per_block = checkpoint::info(whole.type).block_size;
    const std::int64_t block_bytes = checkpoint::info(whole.type).block_bytes;
    StoredBlocks own{whole.type, {}};
    for (const auto& slices : parts_of(full, sizes, shape)) {
      for_each_block(slices, [&](const WeightBlock& block) {
        for (std::int64_t i = 0; i < block.rows; ++i) {
          const auto first = whole.bytes.begin() + static_cast<std::int64_t>(block.source_of(i)) /
                                                       per_block * block_bytes;
          own.bytes.insert(own.bytes.end(), first, first + block.columns / per_block * block_bytes);
        }
      });
    }
    return own;
  }

  StoredGroups load_groups(const Weight& weight, const std::vector<std::int64_t>& shape,
                           std::int64_t layer) override {
    const Weight& full = model_weight(weight);
    const std::vector<std::int64_t> sizes = sizes_of(full, model_.sizes);
    (void)groups_of(full, sizes, layer);
    StoredGroups whole = std::move(groups_.begin()->second);
    groups_.clear();
    if (sizes == shape) return whole;
    StoredGroups own;
    for (const auto& slices : parts_of(full, sizes, shape)) {
      for_each_block(slices, [&](const WeightBlock& block) {
        for (checkpoint::GroupedWeights& part : rows_of(whole, block.row, block.rows)) {
          const bool all = block.columns == part.columns;
          own.push_back(all ? std::move(part)
                            : checkpoint::select_columns(part, block.column, block.columns));
        }
      });
    }
    return own;
  }

  /// This rank's share of the bytes of the weight's tensors.
  std::optional<std::int64_t> count_file_bytes(const Weight& weight, std::int64_t layer) override {
    if (is_elsewhere(weight)) return 0;
    const Weight& full = model_weight(weight);
    const auto bytes = whole_.count_file_bytes(full, layer);
    if (!bytes) return std::nullopt;
    const auto all = static_cast<Integer>(elements_of(sizes_of(full, model_.sizes)));
    const auto own = static_cast<Integer>(elements_of(sizes_of(weight, rank_sizes_)));
    return checked_int64(checked_multiply(Integer{*bytes}, own) / all);
  }

  /// Other ranks load the tensors that this one does not.
  void finish() override {}

 private:
  using Slices = std::vector<WeightSlice>;

  /// Returns whether another rank has the values, of which this one has zeros.
  [[nodiscard]] bool is_elsewhere(const Weight& weight) const {
    return !rank_.tensor.is_first() && summed_once_.contains(weight.path);
  }

  /// Slices of the rectangles whose rows one after the other are this rank's part.
  [[nodiscard]] std::vector<Slices> parts_of(const Weight& weight,
                                             const std::vector<std::int64_t>& whole,
                                             const std::vector<std::int64_t>& own) const {
    if (weight.parts.empty()) return {slices_of(weight, whole, own)};
    return parts_of_rows(weight, whole);
  }

  /// This rank's slice of each part of the first dimension.
  [[nodiscard]] std::vector<Slices> parts_of_rows(const Weight& weight,
                                                  const std::vector<std::int64_t>& whole) const {
    Slices slices;
    slices.reserve(whole.size());
    for (const std::int64_t size : whole) slices.push_back({0, size, size});
    std::vector<Slices> parts;
    std::int64_t begin = 0;
    for (const Expr& part : weight.parts) {
      const std::int64_t size = part.evaluate_int64(model_.sizes);
      const std::int64_t count = part.evaluate_int64(rank_sizes_);
      slices.front() = {begin + slice_index(size, count) * count, count, whole.front()};
      parts.push_back(slices);
      begin += size;
    }
    return parts;
  }

  /// Returns whether the slices cut no block or group, and have no padding.
  [[nodiscard]] bool keeps_form(const Weight& full, const std::vector<std::int64_t>& sizes,
                                std::int64_t layer, const SourceType& type,
                                const Slices& slices) const {
    const auto is_present = [](const WeightSlice& one) { return one.present() == one.count; };
    if (slices.size() < 2 || !std::ranges::all_of(slices, is_present)) return false;
    const WeightSlice& columns = slices.back();
    if (columns.count == columns.whole) return true;
    if (type.blocks) {
      const std::int64_t block = checkpoint::info(*type.blocks).block_size;
      return columns.begin % block == 0 && columns.count % block == 0;
    }
    return std::ranges::all_of(groups_of(full, sizes, layer), [&](const auto& part) {
      return checkpoint::has_columns(part, columns.begin, columns.count);
    });
  }

  /// The whole weight in groups, read once: its type is asked for before it is loaded.
  [[nodiscard]] const StoredGroups& groups_of(const Weight& full,
                                              const std::vector<std::int64_t>& sizes,
                                              std::int64_t layer) const {
    const auto key = std::make_pair(full.path, layer);
    const auto found = groups_.find(key);
    if (found != groups_.end()) return found->second;
    groups_.clear();
    return groups_.emplace(key, whole_.load_groups(full, sizes, layer)).first->second;
  }

  /// Rows [first, first + count) of matrices whose rows follow each other.
  static StoredGroups rows_of(const StoredGroups& matrices, std::int64_t first,
                              std::int64_t count) {
    StoredGroups rows;
    std::int64_t begin = 0;  // of the matrix
    for (const checkpoint::GroupedWeights& matrix : matrices) {
      const std::int64_t from = std::max(first, begin);
      const std::int64_t to = std::min(first + count, begin + matrix.rows);
      if (from < to) {
        std::vector<std::int64_t> indices(static_cast<std::size_t>(to - from));
        std::iota(indices.begin(), indices.end(), from - begin);
        rows.push_back(checkpoint::select_rows(matrix, indices));
      }
      begin += matrix.rows;
    }
    return rows;
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
  /// The last whole weight in groups.
  mutable std::map<std::pair<std::string, std::int64_t>, StoredGroups> groups_;
};

}  // namespace

std::unique_ptr<WeightSource> rank_weights(const Graph& model, const RankContext& rank,
                                           WeightSource& whole) {
  return std::make_unique<RankWeights>(model, rank, whole);
}

}  // namespace headroom::measured
