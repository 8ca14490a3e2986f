// Violations of plans in the words of the command line: options instead of fields.
#pragma once

#include "headroom/plan.h"

namespace headroom::cli {

/// The error with the options in its message and hint.
[[nodiscard]] Error with_options(const IllegalPlan& error);

}  // namespace headroom::cli
