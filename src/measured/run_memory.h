// Memory of a run, counted before it allocates anything. Internal to src/measured and the program.
#pragma once

#include <cstdint>

#include "headroom/expr.h"
#include "headroom/model_spec.h"
#include "headroom/workload.h"
#include "kernels/gemm.h"
#include "memory_limit.h"
#include "rank_context.h"

namespace headroom::measured {

/// Outputs that a run keeps until its end: none, or every hidden state (`--save-output`).
enum class KeptOutputs { none, all };

/// A run to be counted. `new_tokens` is 0 unless the run generates.
struct PlannedRun {
  Workload workload;  ///< of one pass, which is that of a micro-batch
  std::int64_t new_tokens = 0;
  HeldType storage = HeldType::float32;
  KeptOutputs outputs = KeptOutputs::none;
  Backend backend = Backend::eigen;
  std::int64_t micro_batches = 1;
  ActivationPath activations = ActivationPath::float32;
};

/// Numbers of rows that the run's linear layers are packed for. A generation has many in its
/// prefill, then few.
[[nodiscard]] RowRange row_range_of(const PlannedRun& run);
/// Those of the head: with the last token's logits, one row per sequence in every pass.
[[nodiscard]] RowRange head_row_range_of(const PlannedRun& run);

/// Bytes that a run needs at least. Scratch memory of kernels is not counted.
struct RunMemory {
  Integer loading = 0;  ///< most at once while the weights are loaded, before all others
  Integer weights = 0;
  Integer activations = 0;  ///< the arena
  Integer kv_cache = 0;
  Integer inputs = 0;
  Integer outputs = 0;

  [[nodiscard]] Integer total() const;
};

/// Counts `run`, or the part of it that `rank` runs. Throws Error{overflow} if a size is above
/// 2^127 - 1.
[[nodiscard]] RunMemory memory_of(const ModelSpec& spec, const PlannedRun& run,
                                  const RankContext* rank = nullptr);

/// Throws Error{invalid_input} if a run has more positions than a learned table has rows.
void require_positions(const ModelSpec& spec, Integer tokens, Integer encoder_tokens);

/// Throws Error{missing_resource} with the memory that `run` needs, the limit and its source, if it
/// does not fit. Also refuses, as `require_positions`, too many positions.
void require_run_fits(const ModelSpec& spec, const PlannedRun& run, const MemoryLimit& limit,
                      const RankContext* rank = nullptr);

}  // namespace headroom::measured
