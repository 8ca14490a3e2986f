// The parts of a graph that a pipeline stage runs: layers of each kind, and sections outside the
// layers. Internal to src/plan.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/graph.h"
#include "headroom/parallel_plan.h"

namespace headroom::detail {

/// Layers of one kind: every `stride`-th from `first_layer` on. A run of a block has one layer of
/// each of its kinds. Layers are counted through both stacks, an encoder's first.
struct LayerKind {
  std::int64_t first_layer = 0;
  std::int64_t count = 0;
  std::int64_t stride = 1;
  bool operator==(const LayerKind&) const = default;
};

/// The kinds of all blocks in order, within a block by Node::layer.
[[nodiscard]] std::vector<LayerKind> layer_kinds(const Graph& graph);

/// Number of layers of each of the graph's stacks.
[[nodiscard]] StackLayers layers_of(const Graph& graph);

/// Layers of `kind` in `range`, by their index within the kind.
[[nodiscard]] LayerRange layers_within(const LayerKind& kind, const LayerRange& range);

/// Part of a graph: layers of one kind, or operators outside the layers. The latter run on the
/// first stage of their stack (embeddings), on the last (final norm, head), or on every stage (a
/// table of relative positions, which each stage computes itself).
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
  std::size_t layer_kind = 0;  ///< index into layer_kinds()
  bool operator==(const Section&) const = default;
};
inline constexpr std::size_t kOutsideSections = 6;

/// Sections outside the layers, one bit each.
using SectionSet = unsigned;
[[nodiscard]] constexpr SectionSet bit_of(Section::Kind kind) noexcept {
  return 1U << static_cast<unsigned>(kind);
}
inline constexpr SectionSet kAllSections = (1U << kOutsideSections) - 1;

/// The sections outside the layers that a pipeline stage runs.
[[nodiscard]] SectionSet sections_of_stage(const StackLayers& layers, const ParallelPlan& plan,
                                           std::int64_t stage);

/// Maps the nodes of a graph to sections.
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
  /// The section of a block; for a block of layers, its first kind.
  [[nodiscard]] Section of_block(std::size_t block) const { return blocks_[block]; }

 private:
  std::vector<Section> blocks_;
};

/// True for layers that a pipeline divides; the first stage runs a tower whole.
[[nodiscard]] bool is_stage_layers(const Block& block);

/// True if `block` belongs to an encoder-decoder's encoder.
[[nodiscard]] bool in_encoder(const Block& block);

}  // namespace headroom::detail
