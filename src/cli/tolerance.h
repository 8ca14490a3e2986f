// --tolerance of `headroom compare`.
#pragma once

#include <string>

#include "headroom/compare.h"

namespace headroom::cli {

/// Adds a tolerance such as "time=10%" or "time_s=0.1": a quantity or a group of them, and a
/// fraction. Throws a usage error.
void add_tolerance(const std::string& text, CompareOptions& options);

}  // namespace headroom::cli
