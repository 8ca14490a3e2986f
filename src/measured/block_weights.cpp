// ModelWeights in the blocks or groups of their source: loading, packing and counting by type.
#include <algorithm>
#include <span>
#include <utility>

#include "headroom/error.h"
#include "headroom/expr.h"
#include "stored_nodes.h"
#include "weights.h"

namespace headroom::measured {
namespace {

bool is_bias(const Weight& weight) { return weight.path.ends_with(".bias"); }

}  // namespace

std::int64_t stored_experts_of(const Node& node, const Bindings& sizes) {
  const auto* const op = std::get_if<ExpertLinear>(&node.op);
  return op == nullptr ? 1 : op->num_experts.evaluate_int64(sizes);
}

std::int64_t stored_inputs_of(const Node& node, const Bindings& sizes) {
  if (const auto* const op = std::get_if<ExpertLinear>(&node.op)) {
    return op->in_features.evaluate_int64(sizes);
  }
  return std::get<Linear>(node.op).in_features.evaluate_int64(sizes);
}

StoredBlocks WeightSource::load_blocks(const Weight& weight,
                                       const std::vector<std::int64_t>& /*shape*/,
                                       std::int64_t /*layer*/) {
  throw Error(ErrorCode::internal, "the source has no blocks of " + weight.path);
}

bool ModelWeights::can_stay_stored(const Node& node, std::int64_t layer,
                                   const WeightSource& source) const {
  if (options_.storage != HeldType::stored) return false;
  const auto stays = [&](WeightId id) {
    const Weight& weight = graph_.weights[id];
    if (is_bias(weight)) return true;
    return !read_as_floats_.contains(id) && !also_unpacked_.contains(weight.path) &&
           source.type_of(weight, shape_of(weight), layer).form != StoredForm::values_only;
  };
  // A table alone stays; positions and types are added to its rows as float32.
  if (std::holds_alternative<TokenEmbedding>(node.op)) return stays(node.weights.front());
  return !node.weights.empty() && std::ranges::all_of(node.weights, stays);
}

void ModelWeights::load_weights(const Node& node, std::int64_t layer, WeightSource& source) {
  const bool stored = can_stay_stored(node, layer, source);
  for (const WeightId id : node.weights) {
    const Weight& weight = graph_.weights[id];
    if (!stored || is_bias(weight) || read_as_floats_.contains(id)) {
      load(weight, layer, source);
    } else if (source.type_of(weight, shape_of(weight), layer).form == StoredForm::groups) {
      load_groups(weight, layer, source);
    } else {
      load_blocks(weight, layer, source);
    }
  }
}

void ModelWeights::load_blocks(const Weight& weight, std::int64_t layer, WeightSource& source) {
  if (!loaded_.insert({weight.path, layer}).second) return;  // tied, already loaded
  const std::vector<std::int64_t> shape = shape_of(weight);
  StoredBlocks blocks = source.load_blocks(weight, shape, layer);
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  const std::string name(checkpoint::info(blocks.type).name);
  count(weight, {name, name, elements, std::ssize(blocks.bytes)}, std::ssize(blocks.bytes));
  blocks_[{weight.path, layer}] = std::move(blocks);
}

void ModelWeights::count(const Weight& weight, WeightFormat format, std::int64_t stored_bytes) {
  if (weight.kind != WeightKind::parameter) return;
  parameters_ += format.parameters;
  bytes_ += stored_bytes;
  WeightFormat& all = formats_[format.stored + " " + format.held];
  format.parameters += all.parameters;
  format.bytes += all.bytes;
  all = std::move(format);
}

void ModelWeights::pack_blocks(const Node& node, std::int64_t layer) {
  auto& packed = linears_[{graph_.weights[node.weights.front()].path, layer}];
  const auto experts = static_cast<std::size_t>(stored_experts_of(node, graph_.sizes));
  for (std::size_t expert = 0; expert < experts; ++expert) {
    const auto own = [&](auto all) {
      const std::size_t size = all.size() / experts;
      return all.subspan(expert * size, size);
    };
    std::vector<BlockPart> parts;
    for (const WeightId id : node.weights) {
      const Key key{graph_.weights[id].path, layer};
      if (is_bias(graph_.weights[id])) {
        parts.back().bias = own(std::span<const float>(values_.at(key)));
      } else {
        const StoredBlocks& blocks = blocks_.at(key);
        parts.push_back({blocks.type,
                         own(std::span<const std::byte>(blocks.bytes)),
                         {},
                         SourceMemory::released});
      }
    }
    packed.push_back(std::make_unique<PackedLinear>(parts, stored_inputs_of(node, graph_.sizes),
                                                    options_.activations));
  }
  for (const WeightId id : node.weights) blocks_.erase({graph_.weights[id].path, layer});
}

std::vector<WeightFormat> ModelWeights::formats() const {
  std::vector<WeightFormat> formats;
  if (options_.storage != HeldType::stored) return formats;
  for (const auto& [name, format] : formats_) formats.push_back(format);
  std::ranges::stable_sort(formats, std::ranges::greater{}, &WeightFormat::bytes);
  return formats;
}

}  // namespace headroom::measured
