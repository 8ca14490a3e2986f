// For which numbers of rows the measured module lays out a model's products. Internal to
// src/predict.
#pragma once

#include "headroom/predict.h"

namespace headroom::detail {

/// Rows up to which a product streams its weights.
inline constexpr std::int64_t kFewRows = 8;

struct RowPolicy {
  bool few = false;
  bool many = false;
};

/// Whether a pass has few rows.
inline bool has_few_rows(const Workload& workload) {
  return checked_multiply(workload.batch_size, workload.seq_len) <= kFewRows;
}

/// Generation has both: a prompt of many rows and steps of few.
inline RowPolicy row_policy(const Workload& workload, const TimeRequest& request) {
  if (request.phase == MeasuredPhase::generate) return {true, true};
  const bool few = has_few_rows(workload);
  return {few, !few};
}

}  // namespace headroom::detail
