#include "stage_layout.h"

#include <algorithm>

#include "graph_passes.h"
#include "op_kind.h"

namespace headroom::detail {
namespace {

/// The layers of one of a stack's `stages` stages. Surplus layers go one each to the stages just
/// before `last`.
LayerRange even_range(std::int64_t layers, std::int64_t stages, std::int64_t stage,
                      std::int64_t last) {
  const std::int64_t each = layers / stages;
  const std::int64_t first_larger = last - layers % stages;
  const std::int64_t larger_before =
      std::clamp<std::int64_t>(stage - first_larger, 0, last - first_larger);
  const bool larger = stage >= first_larger && stage < last;
  const std::int64_t begin = stage * each + larger_before;
  return {begin, begin + each + (larger ? 1 : 0)};
}

/// The first layer of chunk `index` of `count`. Chunks are equally long but for those at the ends,
/// which also hold the embedding and the head: missing layers are taken one each from the last, the
/// first, the last but one, and so on.
std::int64_t chunk_begin(std::int64_t layers, std::int64_t count, std::int64_t index) {
  const std::int64_t length = ceil_div(layers, count);
  const std::int64_t missing = count * length - layers;
  const std::int64_t shorter_in_front = missing / 2;
  const std::int64_t first_shorter_behind = count - ceil_div(missing, 2);
  return index * length - std::min(index, shorter_in_front) -
         std::max<std::int64_t>(0, index - first_shorter_behind);
}

bool is_position_table(const Block& block) {
  return std::ranges::any_of(block.nodes, [](const Node& node) {
    return kind_of(node.op) == OpKind::relative_position_bias;
  });
}

/// Index of the last block of layers of the encoder or of the main stack; 0 if it has none.
std::size_t last_layers(const Graph& graph, bool encoder) {
  std::size_t last = 0;
  for (std::size_t i = 0; i < graph.blocks.size(); ++i) {
    const Block& block = graph.blocks[i];
    if (is_stage_layers(block) && in_encoder(block) == encoder) last = i;
  }
  return last;
}

Section::Kind outside_section(const Block& block, bool before_layers) {
  using Kind = Section::Kind;
  const bool encoder = in_encoder(block);
  if (is_position_table(block)) return encoder ? Kind::encoder_every : Kind::main_every;
  if (before_layers) return encoder ? Kind::encoder_first : Kind::main_first;
  return encoder ? Kind::encoder_last : Kind::main_last;
}

}  // namespace

bool is_stage_layers(const Block& block) {
  return block.is_layers() && std::ranges::none_of(block.nodes, in_tower);
}

bool in_encoder(const Block& block) {
  return !block.nodes.empty() && block.nodes.front().component.stack == StackRole::encoder;
}

std::vector<LayerKind> layer_kinds(const Graph& graph) {
  const std::int64_t encoder_layers = layers_of(graph).encoder;
  std::vector<LayerKind> kinds;
  for (const Block& block : graph.blocks) {
    if (!is_stage_layers(block)) continue;
    const auto runs = block.repeat.evaluate_int64(graph.sizes);
    const std::int64_t first = block.first_layer + (in_encoder(block) ? 0 : encoder_layers);
    for (std::int64_t i = 0; i < block.layers_per_run; ++i) {
      kinds.push_back({first + i, runs, block.layers_per_run});
    }
  }
  return kinds;
}

StackLayers layers_of(const Graph& graph) {
  StackLayers layers{0, 0};
  for (const Block& block : graph.blocks) {
    if (!is_stage_layers(block)) continue;
    const auto runs = block.repeat.evaluate_int64(graph.sizes);
    // Layers without operators (Nemotron-NAS) have no block, but a place.
    const std::int64_t end = block.first_layer + runs * block.layers_per_run;
    std::int64_t& all = in_encoder(block) ? layers.encoder : layers.main;
    all = std::max(all, end);
  }
  return layers;
}

LayerRange layers_within(const LayerKind& kind, const LayerRange& range) {
  const auto before = [&](std::int64_t layer) {
    const std::int64_t runs = ceil_div(layer - kind.first_layer, kind.stride);
    return std::clamp<std::int64_t>(runs, 0, kind.count);
  };
  return {before(range.begin), before(range.end)};
}

SectionSet sections_of_stage(const StackLayers& layers, const ParallelPlan& plan,
                             std::int64_t stage) {
  using Kind = Section::Kind;
  if (plan.pipeline == 1) return kAllSections;
  const std::int64_t split = encoder_stages(layers, plan.pipeline);
  const bool encoder = stage < split;
  SectionSet sections = bit_of(encoder ? Kind::encoder_every : Kind::main_every);
  if (stage == 0 && encoder) sections |= bit_of(Kind::encoder_first);
  if (stage == split - 1) sections |= bit_of(Kind::encoder_last);
  if (stage == split) sections |= bit_of(Kind::main_first);
  if (stage == plan.pipeline - 1) sections |= bit_of(Kind::main_last);
  return sections;
}

SectionMap::SectionMap(const Graph& graph) {
  const std::size_t encoder_end = last_layers(graph, true);
  const std::size_t main_end = last_layers(graph, false);
  std::size_t next_kind = 0;
  for (std::size_t i = 0; i < graph.blocks.size(); ++i) {
    const Block& block = graph.blocks[i];
    if (is_stage_layers(block)) {
      blocks_.push_back({Section::Kind::layers, next_kind});
      next_kind += static_cast<std::size_t>(block.layers_per_run);
    } else {
      const std::size_t end = in_encoder(block) ? encoder_end : main_end;
      blocks_.push_back({outside_section(block, i < end), 0});
    }
  }
}

}  // namespace headroom::detail

namespace headroom {

std::int64_t encoder_stages(const StackLayers& layers, std::int64_t stages) {
  if (layers.encoder == 0) return 0;
  std::int64_t best = 0;
  std::int64_t least = 0;
  for (std::int64_t encoder = 1; encoder < stages; ++encoder) {
    if (encoder > layers.encoder || stages - encoder > layers.main) continue;
    const std::int64_t most =
        std::max(ceil_div(layers.encoder, encoder), ceil_div(layers.main, stages - encoder));
    if (best != 0 && most >= least) continue;
    best = encoder;
    least = most;
  }
  return best;
}

std::vector<LayerRange> layers_of_stage(const StackLayers& layers, const ParallelPlan& plan,
                                        std::int64_t stage) {
  if (plan.pipeline <= 1) return {{0, layers.total()}};
  if (plan.interleave > 1) {
    std::vector<LayerRange> chunks;
    chunks.reserve(static_cast<std::size_t>(plan.interleave));
    const std::int64_t count = plan.pipeline * plan.interleave;
    for (std::int64_t chunk = 0; chunk < plan.interleave; ++chunk) {
      const std::int64_t index = chunk * plan.pipeline + stage;
      chunks.push_back({detail::chunk_begin(layers.total(), count, index),
                        detail::chunk_begin(layers.total(), count, index + 1)});
    }
    return chunks;
  }
  const std::int64_t split = encoder_stages(layers, plan.pipeline);
  if (split > 0 && stage < split) return {detail::even_range(layers.encoder, split, stage, split)};
  const std::int64_t stages = plan.pipeline - split;
  LayerRange range = detail::even_range(layers.main, stages, stage - split, stages - 1);
  range.begin += layers.encoder;
  range.end += layers.encoder;
  return {range};
}

std::optional<std::int64_t> first_divided_layer(const ParallelPlan& plan,
                                                const ShardingLimits& limits) {
  if (limits.joined_layers.empty()) return std::nullopt;
  for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) {
    for (const LayerRange& range : layers_of_stage(limits.layers, plan, stage)) {
      if (std::ranges::binary_search(limits.joined_layers, range.begin)) return range.begin;
    }
  }
  return std::nullopt;
}

}  // namespace headroom
