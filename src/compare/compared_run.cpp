// Both sides of a comparison from reports in memory.
#include <algorithm>

#include "headroom/compare.h"
#include "headroom/error.h"
#include "headroom/storage.h"

namespace headroom {
namespace {

RunIdentity identity_of(const Model& model, const Workload& workload, MeasuredPhase phase,
                        std::int64_t new_tokens) {
  RunIdentity identity;
  identity.model = model.spec.name;
  identity.phase = phase;
  identity.batch_size = workload.batch_size;
  identity.seq_len = workload.seq_len;
  if (model.spec.reads_two_sequences()) identity.enc_seq_len = workload.enc_seq_len;
  identity.past_len = workload.past_len;
  identity.visual_tokens = workload.images.totals.tokens / workload.batch_size;
  identity.audio_tokens = workload.audio.totals.tokens / workload.batch_size;
  if (model.spec.head.similarity) identity.compared_images = workload.images.totals.images;
  identity.global_tokens = workload.global_tokens;
  if (phase == MeasuredPhase::generate) identity.new_tokens = new_tokens;
  identity.weights = name_of(workload.weights);
  identity.dtype = name_of(workload.dtype);
  identity.attention = name_of(workload.attention);
  if (can_generate(model.spec)) identity.logits = name_of(workload.logits);
  return identity;
}

/// Counts of all ranks together.
MeasuredCounts counts_of(const Measurement& measurement) {
  if (!measurement.ranks) return measurement.counted;
  MeasuredCounts sum;
  for (const RankMeasurement& rank : measurement.ranks->ranks) {
    sum.parameters += rank.counted.parameters;
    sum.matrix_flops += rank.counted.matrix_flops;
    sum.weight_bytes += rank.counted.weight_bytes;
    sum.kv_cache_bytes += rank.counted.kv_cache_bytes;
  }
  return sum;
}

std::int64_t arena_peak_of(const Measurement& measurement) {
  if (!measurement.ranks) return measurement.memory.arena_peak_bytes;
  std::int64_t most = 0;
  for (const RankMeasurement& rank : measurement.ranks->ranks) {
    most = std::max(most, rank.memory.arena_peak_bytes);
  }
  return most;
}

}  // namespace

const ComparedRank& ComparedRanks::slowest_predicted() const {
  return *std::ranges::max_element(ranks, {}, [](const ComparedRank& rank) {
    return rank.predicted_s - rank.predicted_communication_s;
  });
}

const ComparedRank& ComparedRanks::slowest_measured() const {
  return *std::ranges::max_element(ranks, {}, [](const ComparedRank& rank) {
    return rank.measured_s - rank.measured_communication_s;
  });
}

ComparedRun predicted_run(const AnalyzeReport& report) {
  if (!report.run) throw Error(ErrorCode::internal, "the report has no prediction");
  ComparedRun side;
  const RunFigures& run = *report.run;
  side.identity = identity_of(report.model, report.workload, run.phase, run.new_tokens);
  auto& amounts = side.amounts;
  amounts[Quantity::parameters] = run.parameters;
  amounts[Quantity::matrix_flops] = run.matrix_flops;
  amounts[Quantity::weight_bytes] = run.weight_bytes;
  amounts[Quantity::peak_activation_bytes] = run.peak_activation_bytes;
  if (run.kv_cache_bytes) amounts[Quantity::kv_cache_bytes] = *run.kv_cache_bytes;
  side.rss_growth_bytes = run.rss_growth_bytes;
  if (!report.time) return side;
  const TimePrediction& time = *report.time;
  amounts[Quantity::time_s] = time.total_s;
  if (time.ttft_s) amounts[Quantity::ttft_s] = *time.ttft_s;
  if (time.tpot_s) amounts[Quantity::tpot_s] = *time.tpot_s;
  side.time_low_s = time.low_s;
  side.time_high_s = time.high_s;
  side.time_is_assumed = time.basis == TimeBasis::assumed;
  if (time.threads > 0) side.identity.threads = time.threads;
  for (const OperatorTime& one : time.operators) {
    side.operator_times.emplace_back(one.path, one.time_s);
  }
  return side;
}

ComparedRun measured_run(const Measurement& measurement) {
  ComparedRun side;
  side.identity = identity_of(measurement.model, measurement.workload, measurement.phase,
                              measurement.new_tokens);
  side.identity.threads = measurement.context.threads;
  side.engine = measurement.engine;
  side.disturbance = disturbance_of(measurement.context);
  auto& amounts = side.amounts;
  const MeasuredCounts counted = counts_of(measurement);
  amounts[Quantity::parameters] = Integer{counted.parameters};
  amounts[Quantity::matrix_flops] = Integer{counted.matrix_flops};
  amounts[Quantity::weight_bytes] = Integer{counted.weight_bytes};
  amounts[Quantity::peak_activation_bytes] = Integer{arena_peak_of(measurement)};
  const auto rss_peak = measurement.memory.rss_peak_bytes;
  if (rss_peak && !measurement.ranks) amounts[Quantity::rss_peak_bytes] = Integer{*rss_peak};
  if (counted.kv_cache_bytes > 0) {
    amounts[Quantity::kv_cache_bytes] = Integer{counted.kv_cache_bytes};
  }
  amounts[Quantity::time_s] = measurement.time.median_s;
  if (measurement.ttft_s) amounts[Quantity::ttft_s] = *measurement.ttft_s;
  if (measurement.tpot_s) amounts[Quantity::tpot_s] = *measurement.tpot_s;
  side.time_spread = measurement.time.mad_s / measurement.time.median_s;
  side.rss_before_bytes = measurement.memory.rss_before_bytes;
  if (!measurement.ranks) side.allocated = measurement.memory.allocated;
  for (const OperatorMeasurement& one : measurement.operators) {
    side.operator_times.emplace_back(one.path, one.time_s);
  }
  return side;
}

}  // namespace headroom
