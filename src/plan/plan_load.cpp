// Plans and loads together: what is legal, what is chosen where nothing was said, and the largest
// load that fits.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "headroom/error.h"
#include "headroom/plan.h"

namespace headroom {
namespace {

/// Far beyond any machine's memory, and far from the range of 64 bits.
constexpr std::int64_t kMostSequences = std::int64_t{1} << 32U;
constexpr std::int64_t kMostTokens = std::int64_t{1} << 34U;

void require_at_least_one(const char* option, std::int64_t value) {
  if (value >= 1) return;
  throw Error(ErrorCode::invalid_input, fmt::format("{} must be at least 1, not {}", option, value),
              {}, fmt::format("give {} a value of 1 or more", option));
}

bool interleaves_evenly(const PlanChoice& choice, const Load& load) noexcept {
  return choice.parallel.interleave == 1 ||
         micro_batches(choice, load) % choice.parallel.pipeline == 0;
}

/// Lengths that a plan can share out are multiples of this.
std::int64_t length_unit(const ParallelPlan& plan) {
  const std::int64_t context = plan.context > 1 ? 2 * plan.context : 1;
  const bool sequence = plan.sequence == SequenceParallel::on;
  return sequence ? std::lcm(context, plan.tensor * plan.context) : context;
}

}  // namespace

std::int64_t micro_batches(const PlanChoice& choice, const Load& load) noexcept {
  return ceil_div(load.batch_size, choice.parallel.data * choice.micro_batch);
}

bool is_legal(const PlanChoice& choice, const Load& load, const ShardingLimits& limits) noexcept {
  if (choice.micro_batch < 1 || choice.recompute.every < 1) return false;
  return violation_of(choice.parallel, limits) == Violation::none &&
         interleaves_evenly(choice, load);
}

void require_legal(const PlanChoice& choice, const Load& load, const Planner& planner) {
  require_at_least_one("--batch", load.batch_size);
  require_at_least_one("--seq", load.seq_len);
  require_at_least_one("--micro-batch", choice.micro_batch);
  require_at_least_one("--recompute every", choice.recompute.every);
  require_legal(choice.parallel, planner.limits(load.seq_len));
  if (interleaves_evenly(choice, load)) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("an interleaved pipeline of {} stages cannot take {} micro-batches",
                          choice.parallel.pipeline, micro_batches(choice, load)),
              {}, "choose --batch and --micro-batch for a multiple of --pp, or --interleave 1");
}

PlanChoice resolve(const PlanRequest& request, const Load& load) {
  PlanChoice choice = request.choice;
  const bool pipelined = choice.parallel.pipeline > 1;
  choice.micro_batch = request.micro_batch.value_or(
      pipelined ? 1 : ceil_div(load.batch_size, std::max<std::int64_t>(1, choice.parallel.data)));
  return choice;
}

std::int64_t largest_that_holds(const std::function<bool(std::int64_t)>& holds,
                                std::int64_t limit) {
  std::int64_t fits = 0;
  std::int64_t fails = 1;
  while (fails <= limit && holds(fails)) {
    fits = fails;
    fails *= 2;
  }
  fails = std::min(fails, limit + 1);
  while (fails - fits > 1) {
    const std::int64_t middle = fits + (fails - fits) / 2;
    (holds(middle) ? fits : fails) = middle;
  }
  return fits;
}

std::optional<std::int64_t> largest_batch(Planner& planner, const PlanRequest& request, Load load) {
  const auto holds = [&](std::int64_t batch) {
    load.batch_size = batch;
    return planner.fits(planner.evaluate(resolve(request, load), load));
  };
  const std::int64_t largest = largest_that_holds(holds, kMostSequences);
  return largest == kMostSequences ? std::nullopt : std::optional(largest);
}

std::optional<std::int64_t> largest_context(Planner& planner, const PlanRequest& request,
                                            Load load) {
  if (planner.spec().embedding.image) return std::nullopt;  // the image decides it
  const std::int64_t unit = length_unit(request.choice.parallel);
  const PlanChoice choice = resolve(request, load);
  const auto holds = [&](std::int64_t units) {
    load.seq_len = units * unit;
    return planner.fits(planner.evaluate(choice, load));
  };
  const std::int64_t largest = largest_that_holds(holds, kMostTokens / unit) * unit;
  return largest >= kMostTokens - unit ? std::nullopt : std::optional(largest);
}

std::string_view name_of(WeightFormat format) noexcept {
  switch (format) {
    case WeightFormat::float32:
      return "float32";
    case WeightFormat::bfloat16:
      return "bfloat16";
    case WeightFormat::float8:
      return "float8";
    case WeightFormat::int8:
      return "int8";
    case WeightFormat::int4:
      break;
  }
  return "int4";
}

std::string_view name_of(Purpose purpose) noexcept {
  switch (purpose) {
    case Purpose::serve:
      return "serve";
    case Purpose::train:
      break;
  }
  return "train";
}

std::string name_of(const Recomputation& recompute) {
  const bool several = recompute.kind == Recompute::full && recompute.every > 1;
  if (several) return fmt::format("every={}", recompute.every);
  return std::string(name_of(recompute.kind));
}

}  // namespace headroom
