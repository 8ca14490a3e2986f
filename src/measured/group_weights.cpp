// ModelWeights in the groups of codes of quantised safetensors.
#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "headroom/error.h"
#include "stored_nodes.h"
#include "weights.h"

namespace headroom::measured {
namespace {

using checkpoint::GroupedWeights;

/// Removes the first `rows` rows from `parts`, which together are one matrix, and returns them.
/// `taken` counts the rows of the first part that are already removed.
StoredGroups take_rows(std::span<GroupedWeights>& parts, std::int64_t& taken, std::int64_t rows) {
  StoredGroups own;
  while (rows > 0) {
    GroupedWeights& first = parts.front();
    const std::int64_t all = first.rows;
    const std::int64_t count = std::min(rows, all - taken);
    if (count == all) {
      own.push_back(std::move(first));
    } else {
      std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
      std::iota(indices.begin(), indices.end(), taken);
      own.push_back(checkpoint::select_rows(first, indices));
    }
    rows -= count;
    taken += count;
    if (taken < all) continue;
    parts = parts.subspan(1);
    taken = 0;
  }
  return own;
}

std::int64_t rows_of(const StoredGroups& groups) {
  return std::accumulate(
      groups.begin(), groups.end(), std::int64_t{0},
      [](std::int64_t sum, const GroupedWeights& part) { return sum + part.rows; });
}

/// The parts of one expert: its matrices and their biases.
struct ExpertParts {
  std::vector<StoredGroups> matrices;
  std::vector<std::span<const float>> biases;  ///< of each matrix; empty: none

  [[nodiscard]] std::vector<GroupPart> list() const {
    std::vector<GroupPart> parts;
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      std::span<const float> bias = biases[i];
      for (const GroupedWeights& part : matrices[i]) {
        const std::size_t rows = bias.empty() ? 0 : static_cast<std::size_t>(part.rows);
        parts.push_back({&part, bias.first(rows), SourceMemory::released});
        bias = bias.subspan(rows);
      }
    }
    return parts;
  }
};

}  // namespace

StoredGroups WeightSource::load_groups(const Weight& weight,
                                       const std::vector<std::int64_t>& /*shape*/,
                                       std::int64_t /*layer*/) {
  throw Error(ErrorCode::internal, "the source has no groups of " + weight.path);
}

void ModelWeights::load_groups(const Weight& weight, std::int64_t layer, WeightSource& source) {
  if (!loaded_.insert({weight.path, layer}).second) return;  // tied, already loaded
  const std::vector<std::int64_t> shape = shape_of(weight);
  const std::int64_t elements =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>{});
  const std::string name = source.type_of(weight, shape, layer).name;
  groups_[{weight.path, layer}] = source.load_groups(weight, shape, layer);
  group_types_[{weight.path, layer}] = name;
  const std::int64_t bytes = source.count_file_bytes(weight, layer).value_or(0);
  count(weight, {name, name, elements, bytes}, bytes);
}

void ModelWeights::pack_groups(const Node& node, std::int64_t layer) {
  auto& packed = linears_[{graph_.weights[node.weights.front()].path, layer}];
  const std::int64_t experts = stored_experts_of(node, graph_.sizes);
  std::vector<ExpertParts> parts(static_cast<std::size_t>(experts));
  for (const WeightId id : node.weights) {
    const Weight& weight = graph_.weights[id];
    const Key key{weight.path, layer};
    if (weight.path.ends_with(".bias")) {
      const std::span<const float> bias(values_.at(key));
      const std::size_t size = bias.size() / parts.size();
      for (std::size_t i = 0; i < parts.size(); ++i) {
        parts[i].biases.back() = bias.subspan(i * size, size);
      }
      continue;
    }
    StoredGroups& groups = groups_.at(key);
    count_products(groups, group_types_.at(key));
    const std::int64_t rows = rows_of(groups) / experts;
    std::span<GroupedWeights> rest(groups);
    std::int64_t taken = 0;
    for (ExpertParts& expert : parts) {
      expert.matrices.push_back(take_rows(rest, taken, rows));
      expert.biases.emplace_back();
    }
    groups_.erase(key);
  }
  packed.reserve(parts.size());
  for (ExpertParts& expert : parts) {
    packed.push_back(std::make_unique<PackedLinear>(
        expert.list(), stored_inputs_of(node, graph_.sizes), options_.activations));
    expert.matrices.clear();
  }
}

void ModelWeights::count_products(const StoredGroups& groups, const std::string& type) {
  for (const GroupedWeights& part : groups) {
    if (has_integer_products(part)) {
      group_products_.integers += part.rows * part.columns;
    } else if (options_.activations == ActivationPath::int8) {
      group_products_.decoded.insert(type);
    }
  }
}

void ModelWeights::keep_stored_tables() {
  for (auto& [key, blocks] : std::exchange(blocks_, {})) {
    const auto weight = std::ranges::find(graph_.weights, key.first, &Weight::path);
    const BlockPart table{blocks.type, blocks.bytes, {}, SourceMemory::released};
    stored_tables_[key.first] = std::make_unique<PackedLinear>(
        std::span(&table, 1), shape_of(*weight).back(), options_.activations);
  }
  for (auto& [key, groups] : std::exchange(groups_, {})) {
    const auto weight = std::ranges::find(graph_.weights, key.first, &Weight::path);
    const ExpertParts parts{{std::move(groups)}, {{}}};
    stored_tables_[key.first] = std::make_unique<PackedLinear>(
        parts.list(), shape_of(*weight).back(), options_.activations);
  }
}

}  // namespace headroom::measured
