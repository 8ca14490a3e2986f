// Violations of plans in the words of the command line: options instead of fields.
#pragma once

#include "headroom/plan.h"

namespace headroom::cli {

/// The error with the options in its message and hint.
[[nodiscard]] Error with_options(const IllegalPlan& error);
/// Likewise, with the hint of its rule, if it names one alone.
[[nodiscard]] Error with_options(const NoLegalPlan& error);

}  // namespace headroom::cli
