// The latent of a diffusion transformer's workload. Internal to src/graph.
#pragma once

#include <cstdint>
#include <optional>

#include "headroom/workload.h"

namespace headroom::detail {

/// Pixels and frames of `request` for a diffusion transformer, by default those of its pipeline;
/// empty if the request states the number of latent tokens, or for other models. Throws
/// Error{invalid_input} for sizes that are no whole patches.
[[nodiscard]] std::optional<SampleSize> resolve_sample(const WorkloadRequest& request,
                                                       const ModelSpec& spec);

/// Latent tokens of a sample: one per patch.
[[nodiscard]] std::int64_t latent_tokens(const LatentSpec& latent, const SampleSize& sample);

}  // namespace headroom::detail
