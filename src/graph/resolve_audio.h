// Clips of sound of a workload. Internal to src/graph.
#pragma once

#include "headroom/workload.h"

namespace headroom::detail {

/// The clips of `request` as the model's audio tower reads them. Throws Error{invalid_input} if it
/// reads none.
[[nodiscard]] WorkloadAudio resolve_audio(const WorkloadRequest& request, const ModelSpec& spec);

}  // namespace headroom::detail
