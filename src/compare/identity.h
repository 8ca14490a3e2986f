// What both sides of a comparison were asked. Internal to src/compare.
#pragma once

#include <string>

#include "headroom/compare.h"

namespace headroom::detail {

/// Throws Error{invalid_input} where both know something and it differs.
void require_same(const RunIdentity& predicted, const RunIdentity& measured);

/// "prefill · batch 1 · seq 128 · float32 · eager attention", as far as it is known.
[[nodiscard]] std::string workload_text(const RunIdentity& identity);

}  // namespace headroom::detail
