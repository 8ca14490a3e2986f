// How operators read weights, and the bytes in which they are held. Internal to src/measured.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "headroom/graph.h"
#include "kernels/gemm.h"
#include "rank_context.h"

namespace headroom::measured {

inline constexpr Integer kFloat32Bytes = sizeof(float);

/// The packed linear layer of an operator; for a patch embedding, of its projection: the number of
/// the node's weights in it, and the size of its input. A grouped convolution has one per group, as
/// experts are.
struct Projection {
  std::size_t weights = 0;
  Expr in_features;
  Expr experts = Integer{1};
  Expr taps = Integer{1};  ///< taps of a convolution's kernel; each is one linear layer
  bool few_rows = false;   ///< independent of the pass: steps of a recurrent layer
};

/// The projection of `node`; empty if it reads its weights as they are.
[[nodiscard]] std::optional<Projection> projection_of(const Node& node, const Bindings& sizes);

/// Paths of weights that one operator multiplies with packed and another reads unpacked: MLA's
/// expansion in decode, and DeBERTa's projections of relative positions.
[[nodiscard]] std::set<std::string> also_unpacked(const ModelSpec& spec, const Graph& prefill);

/// Layouts of a run's weights.
struct HeldLayout {
  HeldType storage = HeldType::float32;
  RowRange rows = RowRange::both;
  RowRange head_rows = RowRange::both;  ///< of the head's layers
  Backend backend = Backend::eigen;
  ActivationPath activations = ActivationPath::float32;
};

/// Returns whether a GEMM so packed returns the rows of W, so that a table tied to it is not held
/// beside it: oneDNN's layout for many rows alone is opaque. bfloat16 weights are in one of
/// oneDNN's only with bfloat16 activations.
[[nodiscard]] bool returns_rows(const LinearOptions& packing) noexcept;

/// Bytes of the weights of `spec` that ModelWeights holds, all or those of `rank`, before layouts
/// pad them: in the layout of a GEMM, and beside it where another operator reads them too.
/// HeldType::stored counts as float32.
[[nodiscard]] Integer held_weight_bytes(const ModelSpec& spec, const HeldLayout& layout,
                                        const RankContext* rank = nullptr);

/// Most bytes of those weights at once while they are loaded, operator by operator, the largest
/// first. The float32 values of an operator return to the system as it is packed, so that they are
/// no more than its weights as held unless these are narrower.
[[nodiscard]] Integer loading_weight_bytes(const ModelSpec& spec, const HeldLayout& layout,
                                           const RankContext* rank = nullptr);

}  // namespace headroom::measured
