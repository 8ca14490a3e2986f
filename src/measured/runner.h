// Runner: what is run again and again, and one run's times. Internal to src/measured.
#pragma once

#include <memory>
#include <vector>

#include "measure.h"

namespace headroom::measured {

/// One run's times, and what its operators did.
struct Sample {
  double total_s = 0;
  double ttft_s = 0;  ///< generate only
  std::vector<OperatorMeasurement> operators;
};

/// The programs, the KV-cache and the inputs of a run.
class Runner {
 public:
  /// Prepares `inputs` to be run as `options` say; the session must outlive the runner.
  Runner(const Session& session, const MeasureOptions& options, const Workload& workload,
         ModelInputs inputs);

  [[nodiscard]] Sample run();

  [[nodiscard]] std::int64_t kv_cache_bytes() const { return cache_->bytes(); }
  [[nodiscard]] std::int64_t arena_peak_bytes() const;

 private:
  void generate(Sample& sample);
  void choose(const float* logits, std::int64_t tokens);

  MeasureOptions options_;
  ModelInputs inputs_;
  ModelInputs next_;  ///< of the steps of a generation: a token a sequence
  Lengths lengths_;
  std::int64_t vocab_size_ = 0;
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<Program> first_;
  std::unique_ptr<Program> decode_;
};

}  // namespace headroom::measured
