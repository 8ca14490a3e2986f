// Values of a model's symbols and the relations between them. Internal to src/graph.
#pragma once

#include <vector>

#include "headroom/expr.h"
#include "headroom/graph.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// Values of d, h, g, k, v, f, V, P, … of `spec`; a symbol that does not apply is 0.
[[nodiscard]] Bindings sizes_of(const ModelSpec& spec);

/// Window and experts of the main stack's layers. Throws Error{invalid_input} if the layers have
/// windows of several sizes.
[[nodiscard]] LayerTraits traits_of(const ModelSpec& spec);

/// Relations that these sizes satisfy, so that formulas read as on paper: m → l, g → h, v → k,
/// f → 4·d, h·k → d. Replaces f up to 8·d only; beyond that, f is clearer.
[[nodiscard]] std::vector<Relation> relations_between(const Bindings& sizes);

}  // namespace headroom::detail
