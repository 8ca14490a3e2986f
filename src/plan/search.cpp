#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

#include "degree_choices.h"
#include "headroom/plan.h"
#include "worker_threads.h"

namespace headroom {

std::vector<std::int64_t> detail::divisors(std::int64_t number) {
  std::vector<std::int64_t> result;
  for (std::int64_t n = 1; n <= number / n; ++n) {
    if (number % n != 0) continue;
    result.push_back(n);
    if (n != number / n) result.push_back(number / n);
  }
  std::ranges::sort(result);
  return result;
}

std::vector<std::int64_t> detail::micro_batch_sizes(std::int64_t batch, std::int64_t devices) {
  std::vector<std::int64_t> sizes{batch};
  for (std::int64_t size = 1; size <= batch; size *= 2) sizes.push_back(size);
  for (const std::int64_t replicas : divisors(devices)) {
    if (batch % replicas == 0) sizes.push_back(batch / replicas);
  }
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

namespace {

using detail::choices;
using detail::divisors;

/// Decisions that set the cost of one pass; plans of one cell share it.
struct Cell {
  std::int64_t tensor;
  std::int64_t context;
  std::int64_t expert;
  SequenceParallel sequence;
  std::int64_t micro_batch;
};

std::vector<Cell> cells_of(const SearchSpace& space, Purpose purpose,
                           const ShardingLimits& limits) {
  const FixedDegrees& fixed = space.fixed;
  const bool serving = purpose == Purpose::serve;
  const std::vector<std::int64_t> sizes =
      serving ? std::vector<std::int64_t>{1}
              : detail::micro_batch_sizes(space.load.batch_size, space.devices);
  std::vector<Cell> cells;
  for (const std::int64_t tensor : choices(fixed.tensor, divisors(space.devices))) {
    if (tensor < 1 || space.devices % tensor != 0) continue;
    for (const std::int64_t context : choices(fixed.context, divisors(space.devices / tensor))) {
      const std::vector<std::int64_t> degrees =
          limits.experts > 0 ? divisors(limits.experts) : std::vector<std::int64_t>{1};
      for (const std::int64_t expert : choices(fixed.expert, degrees)) {
        const auto both = {SequenceParallel::off, SequenceParallel::on};
        for (const SequenceParallel sequence : choices<SequenceParallel>(fixed.sequence, both)) {
          for (const std::int64_t size : choices(fixed.micro_batch, sizes)) {
            cells.push_back({tensor, context, expert, sequence, size});
          }
        }
      }
    }
  }
  return cells;
}

/// The cells of a share. Neighbouring cells cost alike, so shares take turns; the first of a round
/// changes, since the order of cells repeats the same sizes.
std::vector<Cell> own_cells(std::vector<Cell> cells, SearchShare share) {
  std::int64_t next = 0;
  std::erase_if(cells, [&](const Cell&) {
    const std::int64_t cell = next++;
    return (cell + cell / share.parts) % share.parts != share.part;
  });
  return cells;
}

bool better(const RankedPlan& a, const RankedPlan& b) {
  if (a.iteration_s != b.iteration_s) return a.iteration_s < b.iteration_s;
  if (a.memory_bytes != b.memory_bytes) return a.memory_bytes < b.memory_bytes;
  const auto key = [](const PlanChoice& choice) {
    const ParallelPlan& plan = choice.parallel;
    return std::tuple(plan.tensor, plan.pipeline, plan.context, plan.data, plan.expert,
                      plan.interleave, plan.sequence, choice.micro_batch, choice.zero,
                      choice.recompute.kind, choice.recompute.every);
  };
  return key(a.choice) < key(b.choice);
}

/// Collects the best plans and the Pareto front of memory and time.
class Collector {
 public:
  explicit Collector(std::size_t keep) : keep_(keep) {}

  void add(const RankedPlan& plan, bool fits) {
    ++result_.evaluated;
    if (!fits) {
      add_least(plan);
      return;
    }
    ++result_.fitting;
    add_best(plan);
    add_pareto(plan);
  }

  /// Adds the plans of another part of the space.
  void merge(const PlanSearch& other) {
    result_.evaluated += other.evaluated;
    result_.fitting += other.fitting;
    for (const RankedPlan& plan : other.best) add_best(plan);
    for (const RankedPlan& plan : other.pareto) add_pareto(plan);
    if (other.least) add_least(*other.least);
  }

  [[nodiscard]] PlanSearch finish() && {
    for (const auto& [bytes, plan] : front_) result_.pareto.push_back(plan);
    std::ranges::sort(result_.pareto, better);
    if (result_.fitting > 0) result_.least.reset();
    return std::move(result_);
  }

 private:
  void add_least(const RankedPlan& plan) {
    const auto& least = result_.least;
    const bool less = !least || plan.memory_bytes < least->memory_bytes ||
                      (plan.memory_bytes == least->memory_bytes && better(plan, *least));
    if (less) result_.least = plan;
  }

  void add_best(const RankedPlan& plan) {
    std::vector<RankedPlan>& best = result_.best;
    if (best.size() == keep_ && !better(plan, best.back())) return;
    best.insert(std::ranges::upper_bound(best, plan, better), plan);
    if (best.size() > keep_) best.pop_back();
  }

  /// front_ is ordered by memory; each further plan is faster than all before it.
  void add_pareto(const RankedPlan& plan) {
    auto next = front_.upper_bound(plan.memory_bytes);
    if (next != front_.begin()) {
      const RankedPlan& smaller = std::prev(next)->second;
      if (!better(plan, smaller) || smaller.iteration_s == plan.iteration_s) {
        const bool ties = smaller.iteration_s == plan.iteration_s &&
                          smaller.memory_bytes == plan.memory_bytes && better(plan, smaller);
        if (!ties) return;
      }
    }
    while (next != front_.end() && next->second.iteration_s >= plan.iteration_s) {
      next = front_.erase(next);
    }
    front_[plan.memory_bytes] = plan;
  }

  std::size_t keep_;
  PlanSearch result_;
  std::map<Integer, RankedPlan> front_;
};

/// Evaluates all plans of a cell.
class CellSearch {
 public:
  CellSearch(Planner& planner, const SearchSpace& space, Collector& collector)
      : planner_(planner),
        space_(space),
        limits_(planner.limits(space.load.seq_len)),
        trains_(planner.query().purpose == Purpose::train),
        eager_(planner.query().attention == AttentionImplementation::eager),
        collector_(collector) {}

  void run(const Cell& cell) {
    PlanChoice choice;
    choice.parallel.tensor = cell.tensor;
    choice.parallel.context = cell.context;
    choice.parallel.sequence = cell.sequence;
    choice.micro_batch = cell.micro_batch;
    const FixedDegrees& fixed = space_.fixed;
    choice.parallel.expert_tensor = fixed.expert_tensor;
    choice.parallel.expert_exchange = fixed.expert_exchange;
    choice.step = fixed.step;
    if (cell.sequence == SequenceParallel::off) choice.step.tensor_overlap = TensorOverlap::off;
    if (broken_rule(choice.parallel, limits_)) return;
    choice.parallel.expert = cell.expert;
    choice.parallel.batch_overlap = fixed.batch_overlap;
    const std::int64_t rest = space_.devices / cell.tensor / cell.context;
    for (const std::int64_t pipeline : choices(space_.fixed.pipeline, divisors(rest))) {
      if (pipeline < 1 || rest % pipeline != 0) continue;
      choice.parallel.pipeline = pipeline;
      choice.parallel.data = rest / pipeline;
      if (space_.fixed.data && *space_.fixed.data != choice.parallel.data) continue;
      choice.parallel.interleave = 1;
      if (!broken_rule(choice.parallel, limits_)) run_stages(choice);
    }
  }

 private:
  void run_stages(PlanChoice choice) {
    const ParallelPlan& plan = choice.parallel;
    // Skips plans with an idle replica, or a micro-batch larger than its replica's batch.
    if (trains_ && plan.data * choice.micro_batch > space_.load.batch_size) return;
    if (!trains_ && plan.data > space_.load.batch_size) return;
    const std::int64_t layers = limits_.layers.main;
    std::vector<std::int64_t> chunks{1};
    if (trains_ && plan.pipeline > 1 && limits_.one_stack) {
      chunks = divisors(ceil_div(layers, plan.pipeline));
    }
    for (const std::int64_t interleave : choices(space_.fixed.interleave, chunks)) {
      choice.parallel.interleave = interleave;
      if (!broken_rule(choice, space_.load, limits_)) run_states(choice);
    }
  }

  void run_states(PlanChoice choice) {
    std::vector<Zero> stages{Zero::none};
    if (trains_ && choice.parallel.replicas() > 1) {
      stages = {Zero::none, Zero::optimizer, Zero::gradients, Zero::weights};
    }
    const std::int64_t pipeline = choice.parallel.pipeline;
    const std::int64_t layers = ceil_div(limits_.layers.total(), pipeline);
    std::vector<Recomputation> recomputations{{Recompute::none, 1}};
    // Megatron-LM offloads no layers that are computed again.
    if (trains_ && choice.step.offload_layers == 0) {
      if (eager_) recomputations.push_back({Recompute::selective, 1});
      for (const std::int64_t every :
           divisors(std::max<std::int64_t>(1, layers / choice.parallel.interleave))) {
        recomputations.push_back({Recompute::full, every});
      }
    }
    for (const Recomputation& recompute : choices(space_.fixed.recompute, recomputations)) {
      choice.recompute = recompute;
      for (const Zero zero : choices(space_.fixed.zero, stages)) {
        choice.zero = zero;
        evaluate(choice);
      }
    }
  }

  void evaluate(const PlanChoice& choice) {
    const PlanFigures figures = planner_.evaluate(choice, space_.load);
    collector_.add({choice, figures.memory.total(), figures.time.iteration_s},
                   planner_.fits(figures));
  }

  Planner& planner_;
  const SearchSpace& space_;
  ShardingLimits limits_;
  bool trains_;
  bool eager_;
  Collector& collector_;
};

std::size_t thread_count(const SearchSpace& space, std::size_t cells) {
  const std::size_t wanted =
      space.threads > 0 ? static_cast<std::size_t>(space.threads) : detail::processor_count();
  return std::clamp<std::size_t>(cells, 1, wanted);
}

}  // namespace

PlanSearch search_plans_alone(Planner& planner, const SearchSpace& space) {
  Collector collector(space.keep);
  CellSearch search(planner, space, collector);
  const ShardingLimits limits = planner.limits(space.load.seq_len);
  for (const Cell& cell :
       own_cells(cells_of(space, planner.query().purpose, limits), space.share)) {
    search.run(cell);
  }
  return std::move(collector).finish();
}

PlanSearch search_plans(const Planner& planner, const SearchSpace& space) {
  const std::vector<Cell> cells = own_cells(
      cells_of(space, planner.query().purpose, planner.limits(space.load.seq_len)), space.share);
  std::atomic<std::size_t> next{0};
  const auto work = [&](const std::function<void(double)>& progress) {
    Planner own = planner.fresh_copy();
    Collector collector(space.keep);
    CellSearch search(own, space, collector);
    for (std::size_t cell = next++; cell < cells.size(); cell = next++) {
      if (progress) progress(static_cast<double>(cell) / static_cast<double>(cells.size()));
      search.run(cells[cell]);
    }
    return std::move(collector).finish();
  };
  std::vector<PlanSearch> parts(thread_count(space, cells.size()));
  detail::run_on_threads(parts.size(), [&](std::size_t thread) {
    parts[thread] = work(thread == 0 ? space.progress : nullptr);
  });
  return merged(parts, space.keep);
}

PlanSearch merged(const std::vector<PlanSearch>& shares, std::size_t keep) {
  Collector all(keep);
  for (const PlanSearch& share : shares) all.merge(share);
  return std::move(all).finish();
}

}  // namespace headroom
