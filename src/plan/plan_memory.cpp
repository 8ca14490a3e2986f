#include "plan_memory.h"

#include <cmath>
#include <initializer_list>

namespace headroom {
namespace {

Integer sum_of(std::initializer_list<Integer> parts) {
  Integer sum = 0;
  for (const Integer part : parts) sum = checked_add(sum, part);
  return sum;
}

}  // namespace

namespace detail {

std::int64_t groups_of_rank(const ParallelPlan& plan) noexcept {
  std::int64_t groups = 0;
  for (const std::int64_t ranks :
       {plan.tensor, plan.pipeline, plan.data, plan.context, plan.expert}) {
    groups += ranks > 1 ? 1 : 0;
  }
  return groups;
}

RuntimeBytes runtime_bytes(const PlanMemory& memory, const ParallelPlan& plan,
                           const PlanQuery& query, const DeviceRates& rates) {
  RuntimeBytes bytes;
  bytes.driver = rates.driver_bytes;
  if (query.overhead_bytes) {
    bytes.given = *query.overhead_bytes;
    return bytes;
  }
  const RuntimeMemory& runtime = rates.runtime;
  bytes.context = runtime.context_bytes;
  bytes.communication = checked_multiply(runtime.group_bytes, groups_of_rank(plan));
  // The allocator takes states and the KV-cache as a whole, so only the rest leaves gaps.
  const Integer moving =
      sum_of({memory.activations, memory.embedding_and_loss, memory.buffers.total()});
  bytes.fragmentation =
      static_cast<Integer>(std::ceil(runtime.fragmentation * static_cast<double>(moving)));
  return bytes;
}

}  // namespace detail

Integer TrainingBuffers::total() const {
  return sum_of({backward, weight_gradients, gathered_sequence, gathered_weights});
}

Integer RuntimeBytes::total() const {
  return sum_of({driver, context, communication, fragmentation, given});
}

Integer PlanMemory::allocated() const {
  return sum_of({weights, gradients, optimizer, embedding_states, activations, embedding_and_loss,
                 kv_cache, buffers.total()});
}

Integer PlanMemory::total() const { return checked_add(allocated(), runtime.total()); }

}  // namespace headroom
