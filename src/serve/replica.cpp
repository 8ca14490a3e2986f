#include "replica.h"

#include <algorithm>
#include <utility>

namespace headroom::detail {
namespace {

/// Of each stage, between its steps: the host takes in tokens, schedules and prepares the next
/// batch. Loops of pipelines wait for it (github.com/NVIDIA/TensorRT-LLM, pull request 10349);
/// without stages, an overlapping scheduler hides it. By its issue 13957, 64 sequences get 13,806
/// tokens a second, a step each 4.64 ms, which the host's work fills: the device idles for 0.58.
constexpr double kHostSeconds = 4.64e-3;

}  // namespace

void TimeWeighted::add(double value, double seconds) {
  integral_ += value * seconds;
  peak_ = std::max(peak_, value);
}

Replica::Replica(const ReplicaSettings& settings, CachePool pool, StepTimes& times,
                 std::vector<Progress>& progress)
    : settings_(settings),
      pool_(pool),
      times_(&times),
      progress_(&progress),
      batches_(settings.stage_shares.size()),
      stage_free_s_(settings.stage_shares.size(), 0) {}

void Replica::advance(double now_s) {
  const double seconds = now_s - std::exchange(now_s_, now_s);
  occupation_.running.add(static_cast<double>(running_), seconds);
  occupation_.waiting.add(static_cast<double>(waiting_.size()), seconds);
  const double uncounted_s = now_s - std::max(now_s - seconds, cache_counted_s_);
  if (uncounted_s >= 0) occupation_.cache.add(pool_.occupied(0), uncounted_s);
}

void Replica::add(std::size_t request, double now_s) {
  advance(now_s);
  waiting_.push_back(request);
  ++outstanding_;
}

void Replica::add_prefilled(std::size_t request, double now_s) {
  (*progress_)[request].cache_came = true;
  add(request, now_s);
}

double Replica::next_end_s() const {
  return std::ranges::min_element(batches_, {}, &Batch::end_s)->end_s;
}

bool Replica::leaves(const Progress& progress) const {
  return progress.generated >= progress.request.output_tokens ||
         settings_.role == ReplicaRole::prefill;
}

Replica::Leaving Replica::end_step() {
  Batch& batch = *std::ranges::min_element(batches_, {}, &Batch::end_s);
  const double now_s = std::exchange(batch.end_s, std::numeric_limits<double>::infinity());
  advance(now_s);
  const std::int64_t further = std::exchange(batch.steps, 1) - 1;
  Leaving leaving;
  for (Sequence& sequence : batch.sequences) {
    if (sequence.scheduled == 0) continue;
    sequence.computed += std::exchange(sequence.scheduled, 0);
    if (further > 0) add_further(sequence, further);
    if (sequence.computed < sequence.tokens) continue;
    Progress& progress = (*progress_)[sequence.request];
    add_tokens(sequence, progress, now_s);
    if (!leaves(progress)) continue;
    const bool is_answered = progress.generated >= progress.request.output_tokens;
    if (is_answered) progress.end_s = now_s;
    (is_answered ? leaving.answered : leaving.prefilled).push_back(sequence.request);
    pool_.release(sequence.held_bytes);
    sequence.left = true;
  }
  const auto count = static_cast<std::int64_t>(
      std::erase_if(batch.sequences, [](const Sequence& sequence) { return sequence.left; }));
  running_ -= count;
  outstanding_ -= count;
  return leaving;
}

void Replica::add_further(Sequence& sequence, std::int64_t steps) {
  sequence.computed += steps;
  sequence.tokens += steps;
  (*progress_)[sequence.request].generated += steps;
  occupation_.decode_steps += steps;
  occupation_.decoded_tokens += steps;
}

void Replica::add_tokens(Sequence& sequence, Progress& progress, double now_s) {
  const std::int64_t drafts = std::exchange(sequence.drafts, 0);
  const std::int64_t accepted = drafts == 0 ? 0 : settings_.drafting.acceptance->of(drafts);
  if (progress.generated == 0) {
    progress.first_token_s = now_s;
  } else {
    ++occupation_.decode_steps;
    occupation_.decoded_tokens += accepted + 1;
  }
  sequence.computed += accepted;
  sequence.tokens += accepted + 1;
  progress.generated += accepted + 1;
}

std::int64_t Replica::drafts_of(const Sequence& sequence) const {
  if (settings_.drafting.costs == nullptr) return 0;
  const Progress& progress = (*progress_)[sequence.request];
  const bool decodes = progress.generated > 0 && sequence.computed + 1 == sequence.tokens;
  if (!decodes) return 0;
  const std::int64_t last = progress.request.output_tokens - progress.generated - 1;
  return std::min(settings_.drafting.costs->tokens(), last);
}

std::int64_t Replica::sharing() const {
  return std::max<std::int64_t>(1, ceil_div(running_, std::ssize(batches_)));
}

void Replica::propose(Sequence& sequence, std::int64_t drafts, Step& step) {
  DraftCosts& costs = *settings_.drafting.costs;
  // In place of the pass over its last token alone.
  step.of_sequences += costs.check(sequence.computed);
  step.of_sequences -= times_->decode(sequence.computed, sharing());
  step.of_drafts += costs.propose_cache(sequence.computed);
  step.tokens += drafts;
  step.sampled += drafts;
  ++step.drafting;
  sequence.drafts = drafts;
}

void Replica::schedule(Sequence& sequence, std::int64_t tokens, Step& step) {
  const bool decodes = tokens == 1 && sequence.computed + 1 == sequence.tokens;
  step.of_sequences += decodes ? times_->decode(sequence.computed, sharing())
                               : times_->chunk(tokens, sequence.computed);
  sequence.scheduled = tokens;
  step.tokens += tokens;
  ++step.sequences;
  if (sequence.computed + tokens == sequence.tokens) ++step.sampled;
}

void Replica::preempt_last(Batch& batch) {
  Sequence& last = batch.sequences.back();
  pool_.release(last.held_bytes);
  (*progress_)[last.request].cache_came = false;
  waiting_.push_front(last.request);
  batch.sequences.pop_back();
  --running_;
  ++occupation_.preemptions;
}

bool Replica::make_room(Batch& batch, std::size_t index, std::int64_t tokens, Step& step) {
  while (!pool_.reserve(tokens, batch.sequences[index].held_bytes)) {
    step.preempted = true;
    // Other batches of a pipeline may hold the rest, and give it back when they end.
    preempt_last(batch);
    if (index == batch.sequences.size()) return false;
  }
  return true;
}

void Replica::continue_running(Batch& batch, Step& step) {
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const Sequence& sequence = batch.sequences[i];
    const std::int64_t left = settings_.limits.batched_tokens - step.tokens;
    const std::int64_t tokens = std::min(sequence.tokens - sequence.computed, left);
    if (tokens == 0) return;
    const std::int64_t drafts = std::min(drafts_of(sequence), left - tokens);
    if (!make_room(batch, i, sequence.computed + tokens + drafts, step)) return;
    schedule(batch.sequences[i], tokens, step);
    if (drafts > 0) propose(batch.sequences[i], drafts, step);
  }
}

bool Replica::is_smallest(const Batch& batch) const {
  return std::ranges::all_of(batches_, [&](const Batch& other) {
    return batch.sequences.size() <= other.sequences.size();
  });
}

std::int64_t Replica::reserved_tokens(const Progress& progress) const {
  switch (settings_.limits.admission) {
    case Admission::prompt:
      break;
    case Admission::request:
      return progress.request.input_tokens + progress.request.output_tokens - 1;
  }
  return progress.request.input_tokens + progress.generated;
}

std::int64_t Replica::cached_tokens(const Progress& progress) const {
  const std::int64_t known = progress.request.input_tokens + progress.generated;
  // The last token of a prompt is computed even if its cache exists: it gives the first answer.
  return progress.cache_came ? known - 1 : std::min(pool_.shared_tokens(), known - 1);
}

void Replica::admit_waiting(Batch& batch, Step& step) {
  const std::int64_t most = ceil_div(settings_.limits.max_sequences, std::ssize(batches_));
  while (!waiting_.empty() && !step.preempted && is_smallest(batch) &&
         static_cast<std::int64_t>(batch.sequences.size()) < most) {
    const Progress& progress = (*progress_)[waiting_.front()];
    const std::int64_t known = progress.request.input_tokens + progress.generated;
    const std::int64_t cached = cached_tokens(progress);
    Sequence sequence{waiting_.front(), known, cached, 0, 0, 0, false};
    const std::int64_t tokens =
        std::min(known - cached, settings_.limits.batched_tokens - step.tokens);
    if (tokens == 0 || !pool_.reserve(reserved_tokens(progress), sequence.held_bytes)) return;
    waiting_.pop_front();
    schedule(sequence, tokens, step);
    batch.sequences.push_back(sequence);
    ++running_;
  }
}

BoundSeconds Replica::drafting(const Step& step) const {
  if (step.drafting == 0) return {};
  DraftCosts& costs = *settings_.drafting.costs;
  return static_cast<double>(costs.tokens()) * (costs.propose(step.drafting) + step.of_drafts);
}

double Replica::run(const Step& step, double now_s) {
  BoundSeconds layers = times_->weights(step.tokens, step.sequences) + step.of_sequences;
  BoundSeconds head = times_->head(step.sampled);
  BoundSeconds drafts = drafting(step);  // a pipeline drafts before its first stage
  const double factor = (layers + head + drafts).possible(settings_.time_factor);
  layers = factor * layers;
  head = factor * head;
  drafts = factor * drafts;
  const double host_s = stage_free_s_.size() > 1 ? kHostSeconds : 0;
  // Hosts of later stages work while the first ones compute, but their devices wait as long.
  double end_s = now_s + host_s + drafts.all;
  BoundSeconds slowest;
  for (std::size_t i = 0; i < stage_free_s_.size(); ++i) {
    BoundSeconds stage = settings_.stage_shares[i] * layers;
    if (i + 1 == stage_free_s_.size()) stage += head;
    if (stage.all > slowest.all) slowest = stage;
    end_s = std::max(end_s, stage_free_s_[i]) + stage.all;
    stage_free_s_[i] = end_s + host_s;
  }
  occupation_.busy_s += host_s + drafts.all + slowest.all;
  occupation_.compute_bound_s += drafts.compute_bound + slowest.compute_bound;
  ++occupation_.steps;
  return end_s;
}

void Replica::start_steps(double now_s, double horizon_s) {
  advance(now_s);
  for (Batch& batch : batches_) {
    if (!batch.idle()) continue;
    Step step;
    continue_running(batch, step);
    admit_waiting(batch, step);
    if (step.tokens == 0) continue;
    batch.end_s = run(step, now_s);
    if (is_steady(batch, step)) run_further(batch, step, now_s, horizon_s);
  }
}

}  // namespace headroom::detail
