// Steps of a batch in which every sequence decodes one token: as long as none leaves and none
// comes, a step differs from the one before by the lengths of the caches alone, so that many are
// computed in one go.
#include <algorithm>
#include <array>
#include <limits>

#include "replica.h"

namespace headroom::detail {
namespace {

/// Steps in one go: the caches of a sequence then cross one multiple of kPastStep at most.
constexpr std::int64_t kSteps = kPastStep;

}  // namespace

/// Seconds of the sequences' caches in step j of a few, and the bytes that they take besides.
struct Replica::SteadySteps {
  std::int64_t count = 0;
  BoundSeconds first;
  BoundSeconds growth;                                 ///< from the first step to the next
  std::array<BoundSeconds, kSteps + 1> more_growth{};  ///< from step j on
  std::array<std::int64_t, kSteps> more_bytes{};       ///< at the start of step j
};

bool Replica::is_steady(const Batch& batch, const Step& step) const {
  const auto count = static_cast<std::int64_t>(batch.sequences.size());
  const bool has_drafts = settings_.drafting.costs != nullptr;
  const bool each_takes_one = step.tokens == count && step.sequences == count;
  if (settings_.stepping == Stepping::one_by_one || batches_.size() > 1 || has_drafts ||
      settings_.role == ReplicaRole::prefill || step.preempted || !each_takes_one) {
    return false;
  }
  return std::ranges::all_of(batch.sequences, [&](const Sequence& sequence) {
    return sequence.computed + 1 == sequence.tokens && (*progress_)[sequence.request].generated > 0;
  });
}

std::int64_t Replica::steps_until_answer(const Batch& batch) const {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const Sequence& sequence : batch.sequences) {
    const Progress& progress = (*progress_)[sequence.request];
    least = std::min(least, progress.request.output_tokens - progress.generated);
  }
  return least;
}

Replica::SteadySteps Replica::steady_steps(Batch& batch, std::int64_t count) {
  SteadySteps steps;
  steps.count = count;
  for (const Sequence& sequence : batch.sequences) {
    const std::int64_t past_len = sequence.computed + batch.steps;
    const FunctionPiece piece = times_->decode_piece(past_len, count, sharing());
    steps.first += piece.first;
    steps.growth += piece.growth;
    if (piece.steps < count) {
      steps.more_growth[static_cast<std::size_t>(piece.steps)] += piece.next_growth - piece.growth;
    }
    std::int64_t held = sequence.held_bytes;
    for (std::int64_t tokens = pool_.next_block(past_len + 1); tokens <= past_len + count;
         tokens = pool_.next_block(tokens + 1)) {
      const std::int64_t more = pool_.more_bytes(tokens, held);
      steps.more_bytes[static_cast<std::size_t>(tokens - past_len - 1)] += more;
      held += more;
    }
  }
  return steps;
}

std::int64_t Replica::run_steady(const SteadySteps& steps, const BoundSeconds& weights,
                                 double horizon_s, Batch& batch) {
  BoundSeconds caches = steps.first;
  BoundSeconds growth = steps.growth;
  BoundSeconds all;
  double occupied = pool_.occupied(0);
  std::int64_t bytes = 0;
  std::int64_t done = 0;
  for (; done < steps.count && batch.end_s < horizon_s; ++done) {
    const auto j = static_cast<std::size_t>(done);
    if (const std::int64_t more = steps.more_bytes[j]; more > 0) {
      // A step without room preempts: it is put together by itself.
      if (!pool_.has_room(bytes + more)) break;
      bytes += more;
      occupied = pool_.occupied(bytes);
    }
    const BoundSeconds predicted = weights + caches;
    const BoundSeconds time = predicted.possible(settings_.time_factor) * predicted;
    occupation_.cache.add(occupied, time.all);
    all += time;
    batch.end_s += time.all;
    growth += steps.more_growth[j];
    caches += growth;
  }
  occupation_.busy_s += all.all;
  occupation_.compute_bound_s += all.compute_bound;
  occupation_.steps += done;
  return done;
}

void Replica::run_further(Batch& batch, const Step& step, double now_s, double horizon_s) {
  const BoundSeconds weights =
      times_->weights(step.tokens, step.sequences) + times_->head(step.sampled);
  // The step that has been started, before later ones take their bytes.
  occupation_.cache.add(pool_.occupied(0), batch.end_s - now_s);
  // A waiting request that found no room finds none until one is answered.
  const double stop_s = waiting_.empty() ? horizon_s : std::numeric_limits<double>::infinity();
  std::int64_t left = steps_until_answer(batch) - 1;
  while (left > 0) {
    const std::int64_t count = std::min(kSteps, left);
    const std::int64_t done = run_steady(steady_steps(batch, count), weights, stop_s, batch);
    batch.steps += done;
    left -= done;
    for (Sequence& sequence : batch.sequences) {
      (void)pool_.reserve(sequence.computed + batch.steps, sequence.held_bytes);
    }
    if (done < count) break;
  }
  stage_free_s_.front() = batch.end_s;
  cache_counted_s_ = batch.end_s;
}

}  // namespace headroom::detail
