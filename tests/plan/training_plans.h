// Plans of a training step and what the planner says of them.
#pragma once

#include "gpt_models.h"
#include "headroom/plan.h"
#include "headroom/timeline.h"

namespace headroom::test {

constexpr double kForever = 1e12;

inline PlanChoice tensor_parallel(std::int64_t ranks, TensorOverlap overlap) {
  PlanChoice choice;
  choice.parallel.tensor = ranks;
  choice.parallel.sequence = SequenceParallel::on;
  choice.step.tensor_overlap = overlap;
  return choice;
}

inline MicroBatchTime micro_batch_of(Planner& planner, const PlanChoice& choice, const Load& load) {
  require_legal(choice, load, planner.limits(load.seq_len));
  return planner.step_times(choice, load).stages.front().front();
}

inline PlanMemory memory_of(Planner& planner, const PlanChoice& choice, const Load& load) {
  require_legal(choice, load, planner.limits(load.seq_len));
  return planner.evaluate(choice, load).memory;
}

}  // namespace headroom::test
