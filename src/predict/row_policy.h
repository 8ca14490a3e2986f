// Numbers of rows that the measured module packs GEMM weights for. Internal to src/predict.
#pragma once

#include "headroom/predict.h"

namespace headroom::detail {

/// Most rows of a GEMM that streams its weights.
inline constexpr std::int64_t kFewRows = 8;

/// Layouts of weights in use.
struct RowPolicy {
  bool few = false;
  bool many = false;
};

/// Returns whether a pass has few rows.
inline bool has_few_rows(const Workload& workload) {
  return checked_multiply(workload.batch_size, workload.seq_len) <= kFewRows;
}

/// Generation uses both: many rows in prefill, few in decode.
inline RowPolicy row_policy(const Workload& workload, const TimeRequest& request) {
  if (request.phase == MeasuredPhase::generate) return {true, true};
  const bool few = has_few_rows(workload);
  return {few, !few};
}

}  // namespace headroom::detail
