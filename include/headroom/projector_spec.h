// Steps from the rows of an image or audio tower to the tokens of a text model.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "headroom/attention_spec.h"
#include "headroom/layer_spec.h"
#include "headroom/weight_spec.h"

namespace headroom {

/// How consecutive rows of an audio tower become one: side by side, their mean, or the first of
/// them, also of fewer at the end of a clip.
enum class RowGroup { side_by_side, mean, first };

/// One feature vector of side × side neighbouring patches: their features side by side, patch by
/// patch in raster order (pixel shuffle, arXiv 2404.16821) or channel by channel (torch.nn.Unfold),
/// or their mean.
enum class PatchMerge { patch_major, channel_major, mean };

/// Merges `side` × `side` patches.
struct MergeStep {
  PatchMerge order = PatchMerge::patch_major;
  std::int64_t side = 1;
};

/// Groups `rows` consecutive rows of an audio tower into one.
struct GroupStep {
  RowGroup kind = RowGroup::side_by_side;
  std::int64_t rows = 1;
};

/// A linear layer; `name` is the end of its weights' paths.
struct LinearStep {
  std::string name;
  std::int64_t out_features = 0;
  bool bias = false;
  ModelPart part = ModelPart::projector;  ///< vision: of an adapter inside the vision model
};

struct NormStep {
  std::string name;
  NormSpec norm;
};

struct ActivationStep {
  ActivationKind kind = ActivationKind::gelu;
};

/// activation(gate(x)) · up(x), with two linear layers of `width` features.
struct GatedStep {
  std::int64_t width = 0;
  ActivationKind kind = ActivationKind::silu;
  bool bias = false;
};

/// Multiplies by a constant.
struct FactorStep {
  double factor = 1;
};

/// Divides every row by its Euclidean length.
struct UnitLengthStep {};

/// (x - mean) · factor with stored statistics of each channel (Gemma 4).
struct StandardiseStep {};

/// Arranges the patches of an image's tiles as one image, drops its padding and ends each row with
/// a trained vector (ImageTiling). `whole_first`: behind the patches of the whole image
/// (LLaVA-NeXT). `blocks_then_whole`, `means_then_whole`: 2 × 2 patches become one row, side by
/// side (Phi-3 Vision) or their mean (Phi-4 multimodal); another trained vector and the rows of the
/// whole, with their ends, follow those of the tiles.
struct PackStep {
  enum class Order { whole_first, blocks_then_whole, means_then_whole };
  Order order = Order::whole_first;

  /// Patches along each side of a row's block.
  [[nodiscard]] std::int64_t side() const noexcept { return order == Order::whole_first ? 1 : 2; }
};

/// Drops the rows of silence that completes a clip's last segment (ClipRule::masked).
struct SilenceStep {};

/// Trained queries of every image, which attend to its rows, all of the same number; their results
/// replace the rows (Aria, arXiv 2410.05993). Q, K and V are projected twice, the context too.
struct QueryAttentionStep {
  std::int64_t queries = 0;
  std::int64_t stored_queries = 0;  ///< of which an image takes the first
  AttentionSpec attention;
  NormSpec norm;  ///< of the queries, and of the rows
};

/// Q-Former (arXiv 2301.12597, section 3.1): layers over trained queries of every image, each a
/// self-attention, an attention to the image's rows in every `cross_frequency`-th layer, and a
/// network, with a norm behind each.
struct QueryFormerStep {
  std::int64_t queries = 0;
  std::int64_t width = 0;
  std::int64_t layers = 0;
  std::int64_t cross_frequency = 1;
  AttentionSpec attention;
  FfnSpec ffn;
  NormSpec norm;
};

using ProjectorStep = std::variant<MergeStep, GroupStep, LinearStep, NormStep, ActivationStep,
                                   GatedStep, FactorStep, UnitLengthStep, StandardiseStep, PackStep,
                                   SilenceStep, QueryAttentionStep, QueryFormerStep>;

/// Rows of the tower that a projector reads: those of patches, or the prefix tokens too.
enum class FeatureRows { patches, all };

struct ProjectorSpec {
  /// Numbers of layers after which the tower's hidden states are read, side by side; empty: after
  /// the last one and its final norm.
  std::vector<std::int64_t> feature_layers{};
  FeatureRows rows = FeatureRows::patches;
  std::vector<ProjectorStep> steps{};

  /// True if the tiles of an image are packed (PackStep).
  [[nodiscard]] bool packs_tiles() const { return pack() != nullptr; }

  [[nodiscard]] const PackStep* pack() const {
    for (const ProjectorStep& step : steps) {
      if (const auto* const pack = std::get_if<PackStep>(&step)) return pack;
    }
    return nullptr;
  }

  /// Trained queries that an image's rows become; 0: patches do.
  [[nodiscard]] std::int64_t queries() const {
    for (const ProjectorStep& step : steps) {
      if (const auto* const own = std::get_if<QueryAttentionStep>(&step)) return own->queries;
      if (const auto* const own = std::get_if<QueryFormerStep>(&step)) return own->queries;
    }
    return 0;
  }

  /// Patches along each side of an image that become one visual token.
  [[nodiscard]] std::int64_t merged_side() const {
    std::int64_t side = 1;
    for (const ProjectorStep& step : steps) {
      if (const auto* const merge = std::get_if<MergeStep>(&step)) side *= merge->side;
    }
    return side;
  }
};

}  // namespace headroom
