// Lengths that positions give: of a sequence at most, and of an encoder's by default. Internal to
// src/graph.
#pragma once

#include <cstdint>
#include <optional>

#include "headroom/model_spec.h"

namespace headroom::detail {

inline constexpr std::int64_t kDefaultLength = 128;

/// Positions in a learned table or the trained context; empty if unlimited.
[[nodiscard]] std::optional<std::int64_t> positions_of(const PositionSpec& position);

/// Default number of encoder tokens.
[[nodiscard]] std::int64_t default_enc_length(const ModelSpec& spec);

}  // namespace headroom::detail
