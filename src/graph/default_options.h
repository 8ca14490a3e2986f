// Choices that the class makes where a workload has no say. Internal.
#pragma once

#include <cstdint>

#include "headroom/graph.h"

namespace headroom::detail {

/// Tokens that the class gives global attention, where their number does not depend on the text:
/// one for DefaultGlobalTokens::first_token, else none.
[[nodiscard]] std::int64_t default_global_tokens(const ModelSpec& spec) noexcept;

/// The options of a pass with those tokens.
[[nodiscard]] GraphOptions default_options(const ModelSpec& spec, Phase phase,
                                           AttentionImplementation attention) noexcept;

}  // namespace headroom::detail
