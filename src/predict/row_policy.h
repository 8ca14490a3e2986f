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

/// Layouts for passes of `rows` rows each.
inline RowPolicy policy_of_rows(Integer rows) { return {rows <= kFewRows, rows > kFewRows}; }

/// Generation uses both: many rows in prefill, few in decode.
inline RowPolicy row_policy(const Workload& workload, const TimeRequest& request) {
  if (request.phase == MeasuredPhase::generate) return {true, true};
  return policy_of_rows(checked_multiply(workload.batch_size, workload.seq_len));
}

/// Layouts of the head's weights. With the last token's logits it has one row per sequence in every
/// pass.
inline RowPolicy head_row_policy(const Workload& workload, const TimeRequest& request) {
  if (workload.logits == Logits::last) return policy_of_rows(workload.batch_size);
  return row_policy(workload, request);
}

}  // namespace headroom::detail
