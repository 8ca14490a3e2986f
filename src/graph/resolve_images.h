// Images of a workload. Internal to src/graph.
#pragma once

#include <cstdint>

#include "headroom/error.h"
#include "headroom/workload.h"

namespace headroom::detail {

/// Throws Error{invalid_input} if `value` is below `least`.
void require_at_least(Setting setting, std::int64_t value, std::int64_t least);

/// The images of `request` as the model's tower reads them. Throws Error{invalid_input} if it reads
/// none.
[[nodiscard]] WorkloadImages resolve_images(const WorkloadRequest& request, const ModelSpec& spec);

/// Sequence length with images and sound: the requested one, or `text` tokens and those of
/// `workload`'s images and clips. Throws Error{invalid_input} if the requested one is too short:
/// every image and clip follows a token of text.
[[nodiscard]] std::int64_t tokens_with_towers(const WorkloadRequest& request,
                                              const Workload& workload, std::int64_t text);

}  // namespace headroom::detail
