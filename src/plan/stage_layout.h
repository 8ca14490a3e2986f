// What a stage of a pipeline has of a graph: layers of each kind, and what stands around them.
// Internal to src/plan.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/graph.h"
#include "headroom/parallel_plan.h"

namespace headroom::detail {

/// Layers of one kind: every `stride`-th from `first_layer` on. A run of a block has one of each of
/// its kinds. Layers are counted through both stacks, an encoder's first.
struct LayerKind {
  std::int64_t first_layer = 0;
  std::int64_t count = 0;
  std::int64_t stride = 1;
  bool operator==(const LayerKind&) const = default;
};

/// The kinds of all blocks of layers, in order; of a block, in the order of Node::layer.
[[nodiscard]] std::vector<LayerKind> layer_kinds(const Graph& graph);

/// How many layers each of the graph's stacks has.
[[nodiscard]] StackLayers layers_of(const Graph& graph);

/// How many layers of `kind` lie in `range`.
[[nodiscard]] std::int64_t layers_within(const LayerKind& kind, const LayerRange& range);

/// Which part of a graph a node belongs to. What stands outside the layers runs on the first stage
/// of its stack (embeddings), on the last one (final norm, head) or on each (a table of relative
/// positions, which every stage computes for itself).
struct Section {
  enum class Kind {
    encoder_first,
    encoder_every,
    encoder_last,
    main_first,
    main_every,
    main_last,
    layers
  };
  Kind kind = Kind::main_first;
  std::size_t layer_kind = 0;  ///< place among layer_kinds()
  bool operator==(const Section&) const = default;
};
inline constexpr std::size_t kOutsideSections = 6;

/// Sections outside the layers, one bit each.
using SectionSet = unsigned;
[[nodiscard]] constexpr SectionSet bit_of(Section::Kind kind) noexcept {
  return 1U << static_cast<unsigned>(kind);
}
inline constexpr SectionSet kAllSections = (1U << kOutsideSections) - 1;

/// The sections that the stage at `place` runs beside its layers.
[[nodiscard]] SectionSet sections_of_stage(const StackLayers& layers, const ParallelPlan& plan,
                                           std::int64_t place);

/// Finds the section of a graph's nodes.
class SectionMap {
 public:
  explicit SectionMap(const Graph& graph);
  [[nodiscard]] Section of(std::size_t block, const Node& node) const {
    Section section = blocks_[block];
    if (section.kind == Section::Kind::layers) {
      section.layer_kind += static_cast<std::size_t>(node.layer);
    }
    return section;
  }
  /// Of a block of layers: its first kind.
  [[nodiscard]] Section of_block(std::size_t block) const { return blocks_[block]; }

 private:
  std::vector<Section> blocks_;
};

/// Whether `block` is part of an encoder-decoder's encoder.
[[nodiscard]] bool in_encoder(const Block& block);

}  // namespace headroom::detail
