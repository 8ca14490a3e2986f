// --tolerance of `headroom compare`.
#pragma once

#include <string>
#include <vector>

#include "headroom/compare.h"

namespace headroom::cli {

/// Adds tolerances such as "time=10%" or "time_s=0.1": a quantity or a group of them, and a
/// fraction. A quantity's own precedes that of its group. Throws a usage error.
void add_tolerances(std::vector<std::string> texts, CompareOptions& options);

}  // namespace headroom::cli
