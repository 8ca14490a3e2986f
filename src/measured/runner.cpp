#include "runner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "clock.h"
#include "images.h"
#include "output_collector.h"
#include "replicas.h"

namespace headroom::measured {
namespace {

void add_operators(const Program& program, std::vector<OperatorMeasurement>& operators) {
  for (const ProgramBlock& block : program.blocks()) {
    for (std::size_t i = 0; i < block.steps.size(); ++i) {
      const std::string path = block.path + "." + block.steps[i].node->path;
      auto found = std::ranges::find(operators, path, &OperatorMeasurement::path);
      if (found == operators.end()) {
        const bool communicates = std::holds_alternative<Collective>(block.steps[i].node->op);
        found = operators.insert(
            found, {path, 0, 0, 0,
                    communicates ? OperatorRole::communication : OperatorRole::computation});
      }
      found->time_s += std::chrono::duration<double>(block.times[i]).count();
      found->matrix_flops += block.counts[i].matrix_flops;
      found->bytes += block.counts[i].bytes;
    }
  }
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

/// Keeps the outputs of a run.
class Runner::Observer {
 public:
  Observer(const Runner& runner, const ModelSpec& spec)
      : runner_(runner),
        // With sequence parallelism the states between layers are shards of the tokens.
        whole_states_(!shards_tokens(runner.rank_, Phase::prefill)) {
    kept_.reserve(runner.parts_.size());
    for (const MicroBatch& part : runner.parts_) {
      kept_.push_back({OutputCollector(spec, part.lengths), {}, {}, {}});
    }
  }

  [[nodiscard]] BlockObserver layers_of(std::size_t part) {
    const bool observes = whole_states_ && !kept_[part].first_pass_ended;
    if (!observes) return {};
    return [this, part](const ProgramBlock& block, std::int64_t layer, const float* data) {
      kept_[part].collector.observe(block, layer, data);
    };
  }

  void end_of(std::size_t part, const Program& program) {
    Kept& kept = kept_[part];
    if (!kept.first_pass_ended) kept.tensors = std::move(kept.collector).finish(program);
    kept.first_pass_ended = true;
    if (runner_.options_.phase != MeasuredPhase::generate) return;
    const auto sequences = static_cast<std::size_t>(runner_.parts_[part].lengths.batch);
    kept.logits.resize(sequences);
    for (std::size_t b = 0; b < sequences; ++b) {
      const float* const last = runner_.last_logits(program, b);
      if (last == nullptr) continue;
      kept.logits[b].insert(kept.logits[b].end(), last, last + runner_.vocab_size_);
    }
  }

  void tokens_chosen() {
    std::size_t sequence = 0;
    for (const MicroBatch& part : runner_.parts_) {
      for (const std::int64_t id : part.step_inputs.main.ids) {
        if (sequence == ids_.size()) ids_.emplace_back();
        ids_[sequence++].push_back(id);
      }
    }
  }

  [[nodiscard]] RunOutputs finish() && {
    RunOutputs result;
    result.generated_ids = std::move(ids_);
    for (Kept& kept : kept_) {
      for (NamedTensor& tensor : kept.tensors) append_replica(std::move(tensor), result.tensors);
      const bool has_logits = !kept.logits.empty() && !kept.logits.front().empty();
      if (has_logits) append_replica(generated_logits(kept.logits), result.tensors);
    }
    return result;
  }

 private:
  /// Outputs of one micro-batch.
  struct Kept {
    OutputCollector collector;
    std::vector<NamedTensor> tensors;
    std::vector<std::vector<float>> logits;  ///< by sequence, those that chose its tokens
    bool first_pass_ended = false;
  };

  [[nodiscard]] NamedTensor generated_logits(const std::vector<std::vector<float>>& logits) const {
    NamedTensor all{"generated_logits",
                    {std::ssize(logits), runner_.options_.new_tokens, runner_.vocab_size_},
                    {}};
    for (const std::vector<float>& of_one : logits) {
      all.values.insert(all.values.end(), of_one.begin(), of_one.end());
    }
    return all;
  }

  const Runner& runner_;
  bool whole_states_;
  std::vector<Kept> kept_;
  std::vector<std::vector<std::int64_t>> ids_;  ///< by sequence of all micro-batches
};

namespace {

/// The inputs of each micro-batch.
std::vector<ModelInputs> split(ModelInputs whole, std::int64_t count) {
  std::vector<ModelInputs> parts(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count && count > 1; ++i) {
    parts[static_cast<std::size_t>(i)] = inputs_of_replica(whole, {count, i});
  }
  if (count == 1) parts.front() = std::move(whole);
  return parts;
}

}  // namespace

Runner::Runner(const Session& session, const MeasureOptions& options, const Workload& workload,
               ModelInputs inputs)
    : rank_(session.rank()), options_(options), vocab_size_(session.spec().embedding.vocab_size) {
  for (ModelInputs& own : split(std::move(inputs), micro_batches_of(workload, options))) {
    MicroBatch& part = parts_.emplace_back();
    part.inputs = std::move(own);
    prepare(session, part, workload.past_len);
  }
  reset_caches();
}

void Runner::prepare(const Session& session, MicroBatch& part, std::int64_t past) {
  const bool is_generation = options_.phase == MeasuredPhase::generate;
  Lengths& lengths = part.lengths = lengths_of(session.spec(), part.inputs);
  lengths.past = past;
  lengths.capacity = past + lengths.seq_len + (is_generation ? options_.new_tokens - 1 : 0);
  part.cache = std::make_unique<KvCache>(session.make_cache(lengths));
  // Outputs of a pass are used before the next micro-batch's.
  const MicroBatch& first = parts_.front();
  if (options_.phase != MeasuredPhase::decode) {
    part.prefill =
        session.program(Phase::prefill, part.inputs, lengths, *part.cache, first.prefill.get());
  }
  if (options_.phase == MeasuredPhase::decode) {
    part.decode =
        session.program(Phase::decode, part.inputs, lengths, *part.cache, first.decode.get());
  }
  if (!is_generation) return;
  part.step_inputs = decode_inputs(session.spec(), part.inputs);
  Lengths step = lengths;
  step.seq_len = 1;
  step.images = {};
  step.audio = {};
  part.decode =
      session.program(Phase::decode, part.step_inputs, step, *part.cache, first.decode.get());
}

/// A run that starts with the first token reads no state; another reads that of earlier tokens.
void Runner::reset_caches() {
  std::uint64_t seed = options_.seed;
  for (const MicroBatch& part : parts_) {
    if (part.lengths.past > 0) {
      part.cache->fill(seed++);
    } else {
      part.cache->clear();
    }
  }
}

RunOutputs Runner::outputs(const ModelSpec& spec) {
  reset_caches();
  Observer observer(*this, spec);
  Sample untimed;
  run_phase(untimed, &observer);
  return std::move(observer).finish();
}

Sample Runner::run() {
  Sample sample;
  if (rank_ == nullptr) {
    const auto start = Clock::now();
    run_phase(sample, nullptr);
    sample.total_s = seconds_since(start);
  } else {
    const std::vector<WireTraffic> before = rank_->traffic();
    rank_->world->barrier();
    const auto start = Clock::now();
    run_phase(sample, nullptr);
    sample.rank_s = seconds_since(start);
    rank_->world->barrier();
    sample.total_s = seconds_since(start);
    sample.traffic = traffic_since(before, rank_->traffic());
  }
  // Outside the time of the run.
  if (options_.phase == MeasuredPhase::decode) add_pass(&MicroBatch::decode, sample);
  if (options_.phase == MeasuredPhase::prefill) add_pass(&MicroBatch::prefill, sample);
  return sample;
}

void Runner::run_phase(Sample& sample, Observer* observer) {
  switch (options_.phase) {
    case MeasuredPhase::prefill:
      run_pass(&MicroBatch::prefill, observer);
      break;
    case MeasuredPhase::decode:
      run_pass(&MicroBatch::decode, observer);
      break;
    case MeasuredPhase::generate:
      generate(sample, observer);
      break;
  }
}

void Runner::run_pass(PassProgram pass, Observer* observer) {
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    Program& program = *(parts_[i].*pass);
    program.run(observer == nullptr ? BlockObserver() : observer->layers_of(i));
    if (options_.phase == MeasuredPhase::generate) choose_next_tokens(parts_[i], program);
    if (observer != nullptr) observer->end_of(i, program);
  }
}

std::int64_t Runner::non_finite_outputs() const {
  // Micro-batches may share an arena, which has the outputs of the last.
  const MicroBatch& part = parts_.back();
  return (part.decode ? part.decode : part.prefill)->non_finite_outputs();
}

std::int64_t Runner::kv_cache_bytes() const {
  std::int64_t sum = 0;
  for (const MicroBatch& part : parts_) sum += part.cache->bytes();
  return sum;
}

std::int64_t Runner::arena_peak_bytes() const {
  std::int64_t peak = 0;
  for (const MicroBatch& part : parts_) {
    for (const auto* program : {part.prefill.get(), part.decode.get()}) {
      if (program != nullptr) peak = std::max(peak, program->arena_peak_bytes());
    }
  }
  return peak;
}

AllocatedMemory Runner::allocated() const {
  AllocatedMemory sum;
  for (const MicroBatch& part : parts_) {
    for (const auto* program : {part.prefill.get(), part.decode.get()}) {
      if (program == nullptr) continue;
      const AllocatedMemory own = program->allocated();
      sum.arena_bytes += own.arena_bytes;
      sum.strided_copy_bytes += own.strided_copy_bytes;
      sum.kernel_scratch_bytes += own.kernel_scratch_bytes;
    }
  }
  sum.gemm_scratchpad_bytes = gemm_scratchpad_bytes();
  return sum;
}

void Runner::add_pass(PassProgram pass, Sample& sample) const {
  for (const MicroBatch& part : parts_) {
    const Program& program = *(part.*pass);
    add_operators(program, sample.operators);
    sample.communication_s += std::chrono::duration<double>(program.communication_time()).count();
  }
}

void Runner::generate(Sample& sample, Observer* observer) {
  const auto start = Clock::now();
  run_step(&MicroBatch::prefill, observer);
  sample.ttft_s = seconds_since(start);
  add_pass(&MicroBatch::prefill, sample);
  for (std::int64_t step = 1; step < options_.new_tokens; ++step) {
    for (MicroBatch& part : parts_) {
      part.decode->set_past(part.lengths.past + part.lengths.seq_len + step - 1);
    }
    run_step(&MicroBatch::decode, observer);
    add_pass(&MicroBatch::decode, sample);
  }
}

void Runner::run_step(PassProgram pass, Observer* observer) {
  run_pass(pass, observer);
  // Shared once all have passed: a last stage that waited to share the tokens of one micro-batch
  // could not receive the next one, which the stage before waits to send.
  for (MicroBatch& part : parts_) share_tokens(part.step_inputs.main.ids, rank_);
  if (observer != nullptr) observer->tokens_chosen();
}

const float* Runner::last_logits(const Program& program, std::size_t sequence) const {
  const std::int64_t tokens = program.logit_tokens();
  const float* const logits = program.output("logits");
  if (logits == nullptr) return nullptr;
  return logits + (static_cast<std::int64_t>(sequence) * tokens + tokens - 1) * vocab_size_;
}

/// Greedy decoding: the next token of every sequence is the argmax of its last logits.
void Runner::choose_next_tokens(MicroBatch& part, const Program& program) {
  std::vector<std::int64_t>& ids = part.step_inputs.main.ids;
  for (std::size_t b = 0; b < ids.size(); ++b) {
    const float* const logits = last_logits(program, b);
    if (logits != nullptr) ids[b] = argmax(logits, vocab_size_);
  }
}

}  // namespace headroom::measured
