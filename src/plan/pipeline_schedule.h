// The order in which a pipeline stage runs its passes: 1F1B, and its interleaved form. Internal to
// src/plan.
#pragma once

#include <cstdint>
#include <vector>

namespace headroom::detail {

enum class Direction { forward, backward };

/// A pass of one micro-batch through one chunk of a stage.
struct Pass {
  Direction direction = Direction::forward;
  std::int64_t micro_batch = 0;
  std::int64_t chunk = 0;
};

/// Sizes of a pipeline.
struct PipelineShape {
  std::int64_t stages = 1;
  std::int64_t chunks = 1;  ///< of each stage
  std::int64_t micro_batches = 1;

  [[nodiscard]] std::int64_t all_chunks() const { return stages * chunks; }
  /// Position in the model of a stage's chunk.
  [[nodiscard]] std::int64_t position(std::int64_t stage, std::int64_t chunk) const {
    return chunk * stages + stage;
  }
};

/// The passes of a stage in order: forward passes that fill the pipeline, then a forward and a
/// backward pass in turn, then the remaining backward passes (arXiv 2104.04473, section 2.2).
/// Interleaved, as Megatron-LM's schedules.py (get_pp_rank_microbatches); `micro_batches` must then
/// be a multiple of `stages`.
[[nodiscard]] std::vector<Pass> passes_of_stage(std::int64_t stage, const PipelineShape& shape);

}  // namespace headroom::detail
