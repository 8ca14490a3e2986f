// Checks of stored values.
#pragma once

#include <span>
#include <string>

namespace headroom::checkpoint {

/// Throws Error{invalid_input} at `where` if a value is not finite: published weights are finite,
/// and one such value would spread to every result.
void require_finite(std::span<const float> values, const std::string& where);

}  // namespace headroom::checkpoint
