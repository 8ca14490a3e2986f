#include "runner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "clock.h"
#include "images.h"
#include "output_collector.h"

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

/// Adds the operators and the communication of the program's last run.
void add_pass(const Program& program, Sample& sample) {
  add_operators(program, sample.operators);
  sample.communication_s += std::chrono::duration<double>(program.communication_time()).count();
}

/// The calls and bytes after `before`.
std::vector<WireTraffic> traffic_since(const std::vector<WireTraffic>& before,
                                       std::vector<WireTraffic> after) {
  for (WireTraffic& row : after) {
    for (const WireTraffic& earlier : before) {
      if (earlier.group != row.group || earlier.kind != row.kind) continue;
      row.calls -= earlier.calls;
      row.bytes -= earlier.bytes;
    }
  }
  std::erase_if(after, [](const WireTraffic& row) { return row.calls == 0; });
  return after;
}

/// Inputs of a decode step after `prompt`: one token per sequence, chosen later.
ModelInputs decode_inputs(const ModelSpec& spec, const ModelInputs& prompt) {
  ModelInputs next;
  next.main.batch = prompt.main.batch;
  next.main.seq_len = 1;
  next.main.ids.resize(static_cast<std::size_t>(prompt.main.batch));
  next.main.position_shifts = shifts_after(spec, prompt);
  next.encoder = prompt.encoder;
  return next;
}

}  // namespace

Runner::Runner(const Session& session, const MeasureOptions& options, const Workload& workload,
               ModelInputs inputs)
    : rank_(session.rank()),
      options_(options),
      inputs_(std::move(inputs)),
      lengths_(lengths_of(session.spec(), inputs_)),
      vocab_size_(session.spec().embedding.vocab_size) {
  const bool is_generation = options.phase == MeasuredPhase::generate;
  lengths_.past = workload.past_len;
  lengths_.capacity =
      workload.past_len + lengths_.seq_len + (is_generation ? options.new_tokens - 1 : 0);
  cache_ = std::make_unique<KvCache>(session.make_cache(lengths_));
  reset_cache();
  switch (options.phase) {
    case MeasuredPhase::prefill:
      prefill_ = session.program(Phase::prefill, inputs_, lengths_, *cache_);
      break;
    case MeasuredPhase::decode:
      decode_ = session.program(Phase::decode, inputs_, lengths_, *cache_);
      break;
    case MeasuredPhase::generate: {
      prefill_ = session.program(Phase::prefill, inputs_, lengths_, *cache_);
      step_inputs_ = decode_inputs(session.spec(), inputs_);
      Lengths step = lengths_;
      step.seq_len = 1;
      step.images = {};
      step.audio = {};
      decode_ = session.program(Phase::decode, step_inputs_, step, *cache_);
      break;
    }
  }
}

/// A run that starts with the first token reads no state; another reads that of earlier tokens.
void Runner::reset_cache() {
  if (lengths_.past > 0) {
    cache_->fill(options_.seed);
  } else {
    cache_->clear();
  }
}

RunOutputs Runner::outputs(const ModelSpec& spec) {
  reset_cache();
  OutputCollector collector(spec, lengths_);
  // With sequence parallelism the states between layers are shards of the tokens.
  const bool whole_states = !shards_tokens(rank_, Phase::prefill);
  const auto layers = [&](const ProgramBlock& block, std::int64_t layer, const float* data) {
    if (whole_states) collector.observe(block, layer, data);
  };
  RunOutputs result;
  Program& first = prefill_ != nullptr ? *prefill_ : *decode_;
  if (options_.phase != MeasuredPhase::generate) {
    first.run(layers);
    result.tensors = std::move(collector).finish(first);
    return result;
  }
  const std::size_t sequences = step_inputs_.main.ids.size();
  std::vector<std::vector<float>> logits(sequences);
  result.generated_ids.resize(sequences);
  Sample untimed;
  generate(untimed, layers, [&](const Program& program) {
    if (&program == &first) result.tensors = std::move(collector).finish(program);
    for (std::size_t b = 0; b < sequences; ++b) {
      const float* const last = last_logits(program, b);
      if (last != nullptr) logits[b].insert(logits[b].end(), last, last + vocab_size_);
      result.generated_ids[b].push_back(step_inputs_.main.ids[b]);
    }
  });
  if (logits.front().empty()) return result;
  NamedTensor all{"generated_logits", {std::ssize(logits), options_.new_tokens, vocab_size_}, {}};
  for (const std::vector<float>& of_one : logits) {
    all.values.insert(all.values.end(), of_one.begin(), of_one.end());
  }
  result.tensors.push_back(std::move(all));
  return result;
}

Sample Runner::run() {
  Sample sample;
  if (rank_ == nullptr) {
    const auto start = Clock::now();
    run_phase(sample);
    sample.total_s = seconds_since(start);
  } else {
    const std::vector<WireTraffic> before = rank_->traffic();
    rank_->world->barrier();
    const auto start = Clock::now();
    run_phase(sample);
    sample.rank_s = seconds_since(start);
    rank_->world->barrier();
    sample.total_s = seconds_since(start);
    sample.traffic = traffic_since(before, rank_->traffic());
  }
  // Outside the time of the run.
  if (options_.phase == MeasuredPhase::decode) add_pass(*decode_, sample);
  if (options_.phase == MeasuredPhase::prefill) add_pass(*prefill_, sample);
  return sample;
}

void Runner::run_phase(Sample& sample) {
  switch (options_.phase) {
    case MeasuredPhase::prefill:
      prefill_->run();
      break;
    case MeasuredPhase::decode:
      decode_->run();
      break;
    case MeasuredPhase::generate:
      generate(sample, {}, {});
      break;
  }
}

std::int64_t Runner::arena_peak_bytes() const {
  std::int64_t peak = 0;
  for (const auto* program : {prefill_.get(), decode_.get()}) {
    if (program != nullptr) peak = std::max(peak, program->arena_peak_bytes());
  }
  return peak;
}

AllocatedMemory Runner::allocated() const {
  AllocatedMemory sum;
  for (const auto* program : {prefill_.get(), decode_.get()}) {
    if (program == nullptr) continue;
    const AllocatedMemory own = program->allocated();
    sum.arena_bytes += own.arena_bytes;
    sum.strided_copy_bytes += own.strided_copy_bytes;
    sum.kernel_scratch_bytes += own.kernel_scratch_bytes;
  }
  sum.gemm_scratchpad_bytes = gemm_scratchpad_bytes();
  return sum;
}

void Runner::generate(Sample& sample, const BlockObserver& layers, const LogitObserver& logits) {
  const auto start = Clock::now();
  prefill_->run(layers);
  choose_next_tokens(*prefill_);
  if (logits) logits(*prefill_);
  sample.ttft_s = seconds_since(start);
  add_pass(*prefill_, sample);
  for (std::int64_t step = 1; step < options_.new_tokens; ++step) {
    decode_->set_past(lengths_.past + lengths_.seq_len + step - 1);
    decode_->run();
    choose_next_tokens(*decode_);
    if (logits) logits(*decode_);
    add_pass(*decode_, sample);
  }
}

const float* Runner::last_logits(const Program& program, std::size_t sequence) const {
  const std::int64_t tokens = program.logit_tokens();
  const float* const logits = program.output("logits");
  if (logits == nullptr) return nullptr;
  return logits + (static_cast<std::int64_t>(sequence) * tokens + tokens - 1) * vocab_size_;
}

/// Greedy decoding: the next token of every sequence is the argmax of its last logits.
void Runner::choose_next_tokens(const Program& program) {
  for (std::size_t b = 0; b < step_inputs_.main.ids.size(); ++b) {
    const float* const logits = last_logits(program, b);
    if (logits != nullptr) step_inputs_.main.ids[b] = argmax(logits, vocab_size_);
  }
  share_tokens(step_inputs_.main.ids, rank_);
}

}  // namespace headroom::measured
