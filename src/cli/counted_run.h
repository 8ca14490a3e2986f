// A run of a model for its counts.
#pragma once

#include "headroom/measurement.h"
#include "headroom/model_spec.h"
#include "headroom/workload.h"

namespace headroom::cli {

/// Runs `model` once. Throws Error{invalid_input} for a model that is counted but not run,
/// Error{missing_resource} if it does not fit in memory, or if this build runs no models.
[[nodiscard]] Measurement run_once(const Model& model, const Workload& workload);

}  // namespace headroom::cli
