// Runner: repeats a run and times it. Internal to src/measured.
#pragma once

#include <deque>
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

/// Programs, KV-caches and inputs of a run. The micro-batches of a pipeline pass through it one
/// after the other: while a stage runs one, the stage before runs the next.
class Runner {
 public:
  /// Prepares a run of `inputs`, the sequences of one replica, as `options` specify. `session` must
  /// outlive the runner.
  Runner(const Session& session, const MeasureOptions& options, const Workload& workload,
         ModelInputs inputs);

  [[nodiscard]] Sample run();

  /// Runs once more, from the state before the first run, and returns the outputs.
  [[nodiscard]] RunOutputs outputs(const ModelSpec& spec);

  /// Values of the last pass's outputs that are NaN or infinite.
  [[nodiscard]] std::int64_t non_finite_outputs() const;
  [[nodiscard]] std::int64_t kv_cache_bytes() const;
  [[nodiscard]] std::int64_t arena_peak_bytes() const;
  /// Memory allocated by all programs, with the scratchpad that GEMMs share.
  [[nodiscard]] AllocatedMemory allocated() const;

 private:
  /// Sequences that pass together.
  struct MicroBatch {
    ModelInputs inputs;
    ModelInputs step_inputs;  ///< of a decode step: one token per sequence
    Lengths lengths;
    std::unique_ptr<KvCache> cache;
    std::unique_ptr<Program> prefill;
    std::unique_ptr<Program> decode;
  };
  using PassProgram = std::unique_ptr<Program> MicroBatch::*;

  /// Told of the passes of a run: the layers of each micro-batch, its end while its outputs last,
  /// and the end of all, when new tokens are chosen.
  class Observer;

  void prepare(const Session& session, MicroBatch& part, std::int64_t past);
  void reset_caches();
  void run_phase(Sample& sample, Observer* observer);
  void run_pass(PassProgram pass, Observer* observer);
  void generate(Sample& sample, Observer* observer);
  /// Runs a pass, and chooses the next token of every sequence.
  void run_step(PassProgram pass, Observer* observer);
  void choose_next_tokens(MicroBatch& part, const Program& program);
  /// Adds the operators and the communication of the last pass.
  void add_pass(PassProgram pass, Sample& sample) const;
  /// Logits of the last token of sequence `sequence`; null on a rank without logits.
  [[nodiscard]] const float* last_logits(const Program& program, std::size_t sequence) const;

  const RankContext* rank_;
  MeasureOptions options_;
  std::int64_t vocab_size_ = 0;
  std::deque<MicroBatch> parts_;  ///< whose inputs stay where their programs read them
};

}  // namespace headroom::measured
