// Names of the figures that `headroom explain` derives. Internal to src/report.
#pragma once

#include <string>

#include "headroom/report.h"

namespace headroom::detail {

/// "matrix FLOPs", "saved for backward", …
[[nodiscard]] std::string figure_name(Subject subject);

}  // namespace headroom::detail
