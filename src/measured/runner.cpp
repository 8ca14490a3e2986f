#include "runner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "clock.h"

namespace headroom::measured {
namespace {

void add_operators(const Program& program, std::vector<OperatorMeasurement>& operators) {
  for (const ProgramBlock& block : program.blocks()) {
    for (std::size_t i = 0; i < block.steps.size(); ++i) {
      const std::string path = block.path + "." + block.steps[i].node->path;
      auto found = std::ranges::find(operators, path, &OperatorMeasurement::path);
      if (found == operators.end()) found = operators.insert(found, {path, 0, 0, 0});
      found->time_s += std::chrono::duration<double>(block.times[i]).count();
      found->matrix_flops += block.counts[i].matrix_flops;
      found->bytes += block.counts[i].bytes;
    }
  }
}

/// Inputs of a step behind `prompt`: a token of each sequence, to be chosen.
ModelInputs step_inputs(const ModelInputs& prompt) {
  ModelInputs next;
  next.main.batch = prompt.main.batch;
  next.main.seq_len = 1;
  next.main.ids.resize(static_cast<std::size_t>(prompt.main.batch));
  next.encoder = prompt.encoder;
  return next;
}

}  // namespace

Runner::Runner(const Session& session, const MeasureOptions& options, const Workload& workload,
               ModelInputs inputs)
    : options_(options),
      inputs_(std::move(inputs)),
      lengths_(lengths_of(inputs_)),
      vocab_size_(session.spec().embedding.vocab_size) {
  const bool generates = options.phase == MeasuredPhase::generate;
  lengths_.past = workload.past_len;
  lengths_.capacity =
      workload.past_len + lengths_.seq_len + (generates ? options.new_tokens - 1 : 0);
  cache_ = std::make_unique<KvCache>(session.make_cache(lengths_));
  cache_->fill(options.seed);
  switch (options.phase) {
    case MeasuredPhase::prefill:
      first_ = session.program(Phase::prefill, inputs_, lengths_, *cache_);
      break;
    case MeasuredPhase::decode:
      decode_ = session.program(Phase::decode, inputs_, lengths_, *cache_);
      break;
    case MeasuredPhase::generate: {
      first_ = session.program(Phase::prefill, inputs_, lengths_, *cache_);
      next_ = step_inputs(inputs_);
      Lengths step = lengths_;
      step.seq_len = 1;
      decode_ = session.program(Phase::decode, next_, step, *cache_);
      break;
    }
  }
}

Sample Runner::run() {
  Sample sample;
  const auto start = Clock::now();
  switch (options_.phase) {
    case MeasuredPhase::prefill:
      first_->run();
      break;
    case MeasuredPhase::decode:
      decode_->run();
      break;
    case MeasuredPhase::generate:
      generate(sample);
      break;
  }
  sample.total_s = seconds_since(start);
  if (options_.phase == MeasuredPhase::decode) add_operators(*decode_, sample.operators);
  if (options_.phase == MeasuredPhase::prefill) add_operators(*first_, sample.operators);
  return sample;
}

std::int64_t Runner::arena_peak_bytes() const {
  std::int64_t peak = 0;
  for (const auto* program : {first_.get(), decode_.get()}) {
    if (program != nullptr) peak = std::max(peak, program->arena_peak_bytes());
  }
  return peak;
}

void Runner::generate(Sample& sample) {
  const auto start = Clock::now();
  first_->run();
  choose(first_->output("logits"), lengths_.seq_len);
  sample.ttft_s = seconds_since(start);
  add_operators(*first_, sample.operators);
  for (std::int64_t step = 1; step < options_.new_tokens; ++step) {
    decode_->set_past(lengths_.past + lengths_.seq_len + step - 1);
    decode_->run();
    choose(decode_->output("logits"), 1);
    add_operators(*decode_, sample.operators);
  }
}

/// The likeliest token of every sequence becomes the next one.
void Runner::choose(const float* logits, std::int64_t tokens) {
  for (std::size_t b = 0; b < next_.main.ids.size(); ++b) {
    const float* const last =
        logits + (static_cast<std::int64_t>(b) * tokens + tokens - 1) * vocab_size_;
    next_.main.ids[b] = std::max_element(last, last + vocab_size_) - last;
  }
}

}  // namespace headroom::measured
