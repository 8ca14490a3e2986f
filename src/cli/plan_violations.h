// Errors about plans in the words of the command line: options instead of fields.
#pragma once

#include "headroom/error.h"

namespace headroom::cli {

/// `error` with options in its message and hint if it is IllegalPlan, NoLegalPlan or
/// SweepTimesNoTraining; any other error unchanged.
[[nodiscard]] Error with_plan_options(const Error& error);

}  // namespace headroom::cli
