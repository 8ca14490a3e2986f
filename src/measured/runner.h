// Runner: repeats a run and times it. Internal to src/measured.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "measure.h"

namespace headroom::measured {

/// Times of one run, and the work of its operators.
struct Sample {
  double total_s = 0;
  double ttft_s = 0;  ///< generate only
  // Of this rank in a sharded run, whose total ends with the last rank.
  double rank_s = 0;
  double communication_s = 0;
  std::vector<WireTraffic> traffic;
  std::vector<OperatorMeasurement> operators;
};

/// Programs, KV-cache and inputs of a run.
class Runner {
 public:
  /// Prepares a run of `inputs` as `options` specify. `session` must outlive the runner.
  Runner(const Session& session, const MeasureOptions& options, const Workload& workload,
         ModelInputs inputs);

  [[nodiscard]] Sample run();

  /// Runs once more, from the state before the first run, and returns the outputs.
  [[nodiscard]] RunOutputs outputs(const ModelSpec& spec);

  [[nodiscard]] std::int64_t kv_cache_bytes() const { return cache_->bytes(); }
  [[nodiscard]] std::int64_t arena_peak_bytes() const;
  /// Memory allocated by all programs, with the scratchpad that GEMMs share.
  [[nodiscard]] AllocatedMemory allocated() const;

 private:
  /// Called with the logits of a program that chose the next tokens.
  using LogitObserver = std::function<void(const Program& program)>;

  void reset_cache();
  void run_phase(Sample& sample);
  void generate(Sample& sample, const BlockObserver& layers, const LogitObserver& logits);
  void choose_next_tokens(const Program& program);
  /// Logits of the last token of sequence `sequence`; null on a rank without logits.
  [[nodiscard]] const float* last_logits(const Program& program, std::size_t sequence) const;

  const RankContext* rank_;
  MeasureOptions options_;
  ModelInputs inputs_;
  ModelInputs step_inputs_;  ///< inputs of a decode step: one token per sequence
  Lengths lengths_;
  std::int64_t vocab_size_ = 0;
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<Program> prefill_;
  std::unique_ptr<Program> decode_;
};

}  // namespace headroom::measured
