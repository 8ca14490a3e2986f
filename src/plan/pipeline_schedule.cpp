#include "pipeline_schedule.h"

#include <algorithm>

namespace headroom::detail {
namespace {

/// Pass number `k` of a stage in one direction: groups of as many micro-batches as there are stages
/// run through one chunk after the other.
Pass pass_of(Direction direction, std::int64_t k, const PipelineShape& shape) {
  const std::int64_t group = k / shape.all_chunks();
  const std::int64_t within = k % shape.all_chunks();
  const std::int64_t chunk = within / shape.stages;
  return {direction, group * shape.stages + within % shape.stages,
          direction == Direction::forward ? chunk : shape.chunks - 1 - chunk};
}

}  // namespace

std::vector<Pass> passes_of_stage(std::int64_t stage, const PipelineShape& shape) {
  const std::int64_t total = shape.chunks * shape.micro_batches;
  const std::int64_t later = shape.stages - 1 - stage;
  const std::int64_t fill =
      std::min(shape.chunks == 1 ? later : 2 * later + (shape.chunks - 1) * shape.stages, total);
  std::vector<Pass> passes;
  passes.reserve(static_cast<std::size_t>(2 * total));
  for (std::int64_t k = 0; k < total + fill; ++k) {
    if (k < total) passes.push_back(pass_of(Direction::forward, k, shape));
    if (k >= fill) passes.push_back(pass_of(Direction::backward, k - fill, shape));
  }
  return passes;
}

}  // namespace headroom::detail
