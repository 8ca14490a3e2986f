// Checks of values that were read.
#pragma once

#include <span>
#include <string>

namespace headroom::checkpoint {

/// Throws Error{invalid_input} at `where` when a value is not finite: no published weight is, and
/// it would spread to every result.
void require_finite(std::span<const float> values, const std::string& where);

}  // namespace headroom::checkpoint
