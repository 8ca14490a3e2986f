// Model and workload of the compared runs. Internal to src/compare.
#pragma once

#include <string>

#include "headroom/compare.h"

namespace headroom::detail {

/// Throws Error{invalid_input} if a field that both state differs.
void require_same(const RunIdentity& predicted, const RunIdentity& measured);

/// "prefill · batch 1 · seq 128 · float32 · eager attention"; unknown fields are left out.
[[nodiscard]] std::string workload_text(const RunIdentity& identity);

}  // namespace headroom::detail
