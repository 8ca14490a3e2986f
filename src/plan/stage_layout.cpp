#include "stage_layout.h"

#include <algorithm>

namespace headroom::detail {
namespace {

/// Layers [begin, end) of `stages` stages of one stack. Of layers that cannot be shared out evenly,
/// the stages before `last` have one more each, counted from behind.
LayerRange even_range(std::int64_t layers, std::int64_t stages, std::int64_t place,
                      std::int64_t last) {
  const std::int64_t each = layers / stages;
  const std::int64_t first_larger = last - layers % stages;
  const std::int64_t larger_before =
      std::clamp<std::int64_t>(place - first_larger, 0, last - first_larger);
  const bool larger = place >= first_larger && place < last;
  const std::int64_t begin = place * each + larger_before;
  return {begin, begin + each + (larger ? 1 : 0)};
}

bool is_position_table(const Block& block) {
  return std::ranges::all_of(block.nodes, [](const Node& node) {
    return std::holds_alternative<RelativePositionBias>(node.op);
  });
}

/// The last block of layers of the encoder, or of the main stack; none: 0.
std::size_t last_layers(const Graph& graph, bool encoder) {
  std::size_t last = 0;
  for (std::size_t i = 0; i < graph.blocks.size(); ++i) {
    const Block& block = graph.blocks[i];
    if (block.is_layers() && in_encoder(block) == encoder) last = i;
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

bool in_encoder(const Block& block) {
  return !block.nodes.empty() && block.nodes.front().component.stack == StackRole::encoder;
}

std::vector<LayerKind> layer_kinds(const Graph& graph) {
  const std::int64_t encoder_layers = layers_of(graph).encoder;
  std::vector<LayerKind> kinds;
  for (const Block& block : graph.blocks) {
    if (!block.is_layers()) continue;
    const auto runs = static_cast<std::int64_t>(block.repeat.evaluate(graph.sizes));
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
    if (!block.is_layers()) continue;
    const auto runs = static_cast<std::int64_t>(block.repeat.evaluate(graph.sizes));
    (in_encoder(block) ? layers.encoder : layers.main) += runs * block.layers_per_run;
  }
  return layers;
}

std::int64_t layers_within(const LayerKind& kind, const LayerRange& range) {
  const auto before = [&](std::int64_t layer) {
    const std::int64_t runs = ceil_div(layer - kind.first_layer, kind.stride);
    return std::clamp<std::int64_t>(runs, 0, kind.count);
  };
  return before(range.end) - before(range.begin);
}

SectionSet sections_of_stage(const StackLayers& layers, const ParallelPlan& plan,
                             std::int64_t place) {
  using Kind = Section::Kind;
  if (plan.pipeline == 1) return kAllSections;
  const std::int64_t split = encoder_stages(layers, plan.pipeline);
  const bool encoder = place < split;
  SectionSet sections = bit_of(encoder ? Kind::encoder_every : Kind::main_every);
  if (place == 0 && encoder) sections |= bit_of(Kind::encoder_first);
  if (place == split - 1) sections |= bit_of(Kind::encoder_last);
  if (place == split) sections |= bit_of(Kind::main_first);
  if (place == plan.pipeline - 1) sections |= bit_of(Kind::main_last);
  return sections;
}

SectionMap::SectionMap(const Graph& graph) {
  const std::size_t encoder_end = last_layers(graph, true);
  const std::size_t main_end = last_layers(graph, false);
  std::size_t next_kind = 0;
  for (std::size_t i = 0; i < graph.blocks.size(); ++i) {
    const Block& block = graph.blocks[i];
    if (block.is_layers()) {
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
                                        std::int64_t place) {
  if (plan.pipeline <= 1) return {{0, layers.total()}};
  if (plan.interleave > 1) {
    const std::int64_t length = layers.total() / (plan.pipeline * plan.interleave);
    std::vector<LayerRange> pieces;
    pieces.reserve(static_cast<std::size_t>(plan.interleave));
    for (std::int64_t chunk = 0; chunk < plan.interleave; ++chunk) {
      const std::int64_t begin = (chunk * plan.pipeline + place) * length;
      pieces.push_back({begin, begin + length});
    }
    return pieces;
  }
  const std::int64_t split = encoder_stages(layers, plan.pipeline);
  if (split > 0 && place < split) return {detail::even_range(layers.encoder, split, place, split)};
  const std::int64_t stages = plan.pipeline - split;
  LayerRange range = detail::even_range(layers.main, stages, place - split, stages - 1);
  range.begin += layers.encoder;
  range.end += layers.encoder;
  return {range};
}

}  // namespace headroom
