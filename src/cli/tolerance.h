// --tolerance of the command compare.
#pragma once

#include <string>

#include "headroom/compare.h"

namespace headroom::cli {

/// Takes "time=10%" or "time_s=0.1", a quantity or a group of them and a share, into `options`.
/// Throws CLI::ValidationError.
void add_tolerance(const std::string& text, CompareOptions& options);

}  // namespace headroom::cli
