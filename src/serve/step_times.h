// Time of a step of continuous batching, from the planner's passes. Internal to src/serve.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "divisor.h"
#include "headroom/plan.h"

namespace headroom::detail {

/// GEMMs change with every token, caches with every block of the common size of 16.
inline constexpr std::int64_t kTokenStep = 1;
inline constexpr std::int64_t kPastStep = 16;

/// Values of a function of counts, one more in each, no more of them than its step.
struct FunctionPiece {
  BoundSeconds first;
  BoundSeconds growth;  ///< from one to the next, for `steps` of them
  std::int64_t steps = 0;
  BoundSeconds next_growth;  ///< behind those; 0 unless a value lies there
};

/// A function of a count, computed at multiples of `step` when first needed and linear in between:
/// exact for costs that grow linearly from one multiple to the next.
class SampledFunction {
 public:
  SampledFunction(std::int64_t step, std::function<BoundSeconds(std::int64_t)> function);
  BoundSeconds operator()(std::int64_t count);
  /// From `first` on, `count` values.
  FunctionPiece piece(std::int64_t first, std::int64_t count);

 private:
  BoundSeconds at(std::size_t index) {
    const bool known = index < values_.size() && !std::isnan(values_[index].all);
    return known ? values_[index] : computed(index);
  }
  BoundSeconds computed(std::size_t index);

  Divisor step_;
  std::function<BoundSeconds(std::int64_t)> function_;
  std::vector<BoundSeconds> values_;  ///< NaN: not computed yet
};

/// Seconds that parts of a step take on one replica, over all pipeline stages. A step takes
/// weights(tokens, sequences) + head(sampled) + the sum of decode() and chunk() over its sequences:
/// operators with weights run once over all tokens, attention over each sequence's own cache.
class StepTimes {
 public:
  /// `planner` must outlive it.
  StepTimes(Planner& planner, const PlanChoice& choice);
  StepTimes(const StepTimes&) = delete;
  StepTimes& operator=(const StepTimes&) = delete;

  /// Operators that read weights, and communication, over all tokens of a step. Each of its
  /// `sequences` may use an adapter of its own.
  BoundSeconds weights(std::int64_t tokens, std::int64_t sequences);
  /// Final norm and head over the sequences that sample a token.
  BoundSeconds head(std::int64_t sampled) { return sampled == 0 ? BoundSeconds{} : head_(sampled); }
  /// The other operators of one sequence that decodes a token after `past_len` cached ones, in a
  /// step with as many `sequences`.
  BoundSeconds decode(std::int64_t past_len, std::int64_t sequences) {
    return beside(sequences, decode_(past_len));
  }
  /// decode() of `past_len` cached tokens and of `count` − 1 steps behind it.
  FunctionPiece decode_piece(std::int64_t past_len, std::int64_t count, std::int64_t sequences) {
    const FunctionPiece alone = decode_.piece(past_len, count);
    return {beside(sequences, alone.first), beside(sequences, alone.growth), alone.steps,
            beside(sequences, alone.next_growth)};
  }
  /// The other operators of one sequence that prefills `tokens` tokens after `past_len` cached
  /// ones.
  BoundSeconds chunk(std::int64_t tokens, std::int64_t past_len);

 private:
  /// Seconds of a sequence in a step with as many, of those that it takes alone.
  BoundSeconds beside(std::int64_t sequences, BoundSeconds alone) {
    if (planner_->query().decode_attention == DecodeAttention::whole)
      alone.all *= share_beside(sequences);
    return alone;
  }
  /// Multiprocessors that one sequence leaves idle serve the others: the time of each is less by
  /// this factor. It does not depend on the length of the caches, with which all times grow.
  double share_beside(std::int64_t sequences);
  BoundSeconds chunk_at(std::int64_t tokens, std::int64_t past_len);

  Planner* planner_;
  PlanChoice choice_;
  std::map<std::int64_t, SampledFunction> weights_;  ///< by adapters in use
  SampledFunction head_;
  SampledFunction decode_;
  std::unordered_map<std::int64_t, double> shares_;  ///< by sequences
  std::unordered_map<std::uint64_t, BoundSeconds> chunks_;
};

}  // namespace headroom::detail
