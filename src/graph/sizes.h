// The values of a model's own symbols, and how they are related. Internal to src/graph.
#pragma once

#include <vector>

#include "headroom/expr.h"
#include "headroom/graph.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// Values of d, h, g, k, v, f, V, P, … of `spec`; a symbol that the model has no use for is 0.
[[nodiscard]] Bindings sizes_of(const ModelSpec& spec);

/// The window, and the experts, of the main stack's layers. Throws Error{invalid_input} where its
/// layers have windows of several sizes.
[[nodiscard]] LayerTraits traits_of(const ModelSpec& spec);

/// The relations that these sizes happen to have, so that formulas read as on paper: m → l, g → h,
/// v → k, f → 4·d, h·k → d. A multiple of d is only taken for f up to 8·d; beyond, f says more.
[[nodiscard]] std::vector<Relation> relations_between(const Bindings& sizes);

}  // namespace headroom::detail
