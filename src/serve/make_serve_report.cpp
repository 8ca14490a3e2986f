#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <tuple>
#include <utility>

#include "arrivals.h"
#include "headroom/error.h"
#include "headroom/no_plan_fits.h"
#include "headroom/serve.h"
#include "question_notes.h"
#include "simulation.h"
#include "size_search.h"
#include "with_noun.h"
#include "worker_threads.h"

namespace headroom {
namespace {

/// Runner-up plans in a report.
constexpr std::size_t kKept = 5;

/// Few requests may all run at once, and meet targets that a longer run misses.
void note_few_requests(ServeReport& report) {
  const auto* const poisson = std::get_if<PoissonArrivals>(&report.question.traffic.arrivals);
  const ServedPlan& plan = report.plans.front();
  if (poisson == nullptr || !plan.verdict.met() || !report.largest_rate) return;
  if (*report.largest_rate >= poisson->requests_per_s) return;
  report.notes.push_back(
      fmt::format("{} {} too few to fill the KV-caches: more of them, at this rate, "
                  "would wait and miss the targets",
                  detail::with_noun(plan.figures.requests, "request"),
                  plan.figures.requests == 1 ? "is" : "are"));
}

/// Shared prefixes are cached in whole blocks.
void note_small_prefix(ServeReport& report) {
  const SchedulerLimits& limits = report.question.limits;
  if (limits.prefix_hit == 0) return;
  const std::vector<ServeRequest> requests = detail::requests_of(report.question.traffic);
  const auto shortest = std::ranges::min(requests, {}, &ServeRequest::input_tokens).input_tokens;
  if (limits.prefix_hit * static_cast<double>(shortest) >= static_cast<double>(limits.block_tokens))
    return;
  report.notes.push_back(fmt::format("nothing is shared: the prefix is shorter than a block of {}",
                                     detail::with_noun_grouped(limits.block_tokens, "token")));
}

/// A draft model proposes tokens of the model.
void note_other_vocabulary(ServeReport& report) {
  const ServeQuestion& question = report.question;
  if (!question.speculation) return;
  const auto* const draft = std::get_if<DraftModel>(&question.speculation->drafter);
  const ModelSpec& spec = question.plan.model.spec;
  if (draft == nullptr || draft->spec.embedding.vocab_size == spec.embedding.vocab_size) return;
  report.notes.push_back(
      fmt::format("the drafter {} has {} tokens in its vocabulary and {} has {}: engines need the "
                  "same tokens in both",
                  draft->spec.name, with_separators(draft->spec.embedding.vocab_size), spec.name,
                  with_separators(spec.embedding.vocab_size)));
}

void add_notes(ServeReport& report) {
  const std::vector<std::string> asked = detail::notes_of(report.question.plan);
  report.notes.insert(report.notes.begin(), asked.begin(), asked.end());
  const auto* const trace = std::get_if<TraceArrivals>(&report.question.traffic.arrivals);
  if (trace != nullptr && trace->names_prefixes) {
    report.notes.emplace_back(
        "the trace's hash_ids are not used: prompts share as much of the cache as the prefix hit "
        "says");
  }
  if (report.plans.empty()) return;
  const ServeFigures& figures = report.plans.front().figures;
  const bool open = !std::holds_alternative<UserArrivals>(report.question.traffic.arrivals);
  if (open && queue_grows(figures)) {
    report.notes.push_back(
        fmt::format("{:.3g} requests/s arrive but only {:.3g} are answered: the queue and "
                    "latencies keep growing",
                    figures.arrivals_per_s, figures.answers_per_s));
  }
  note_few_requests(report);
  note_small_prefix(report);
  note_other_vocabulary(report);
  if (figures.warm_up_requests > 0) {
    report.notes.emplace_back(
        "latencies leave out the first request of each user: they all arrive at once");
  }
  if (figures.preemptions > 0) {
    report.notes.push_back(
        fmt::format("the KV-cache ran out {}; each time the most recently admitted sequence "
                    "was preempted and prefilled again",
                    detail::with_noun_grouped(figures.preemptions, "time")));
  }
}

/// True if the plan meets the targets with steps as long as predicted, but not with the slowest.
bool is_met_by_some(const ServedPlan& plan, const LatencyTargets& targets) {
  return plan.verdict.met() && runs_that_meet(plan, targets) == RunsThatMeet::some;
}

constexpr const char* kMetBySome =
    "the predicted steps meet the targets, but the slowest of nine of ten runs miss them: "
    "--targets-for slowest sizes for the slowest";

/// Simulates the first plan with all steps as fast, and as slow, as in nine of ten runs.
void add_range(Planner& planner, const ServeQuestion& question, ServeReport& report) {
  ServedPlan& plan = report.plans.front();
  detail::Simulation simulation(planner, question, plan.choice);
  const double factor = 1 + plan.time_range;
  const double percentile = question.targets.percentile;
  plan.fastest = simulation.run(question.traffic, percentile, 1 / factor);
  plan.slowest = simulation.run(question.traffic, percentile, factor);
  if (is_met_by_some(plan, question.targets)) report.notes.emplace_back(kMetBySome);
}

Planner planner_of(const ServeQuestion& question) {
  Planner planner(question.plan.model.spec, detail::query_of(question), question.plan.rates);
  detail::require_decoder(planner);
  return planner;
}

/// Throws Error{invalid_input} for a target that no request has a latency for.
void require_targets_apply(const ServeQuestion& question) {
  if (!question.targets.tpot_s) return;
  const std::vector<ServeRequest> requests = detail::requests_of(question.traffic);
  const auto longest = std::ranges::max(requests, {}, &ServeRequest::output_tokens);
  if (longest.output_tokens > 1) return;
  throw_invalid_input("no request has a TPOT: every answer has one token",
                      "ask for longer answers, or leave out the target for TPOT");
}

[[noreturn]] void throw_no_room(const ServeQuestion& question, const DeviceRange& range) {
  const bool exact = range.least == range.most;
  const std::string devices =
      fmt::format("{}{}", exact ? "" : "up to ", detail::with_noun(range.most, "device"));
  throw NoPlanFits(fmt::format("no plan on {} fits {} with these requests", devices,
                               question.plan.model.spec.name),
                   "allow more devices, smaller weights or shorter requests");
}

}  // namespace

ServeReport make_serve_report(ServeQuestion question, const PlanRequest& request) {
  require_targets_apply(question);
  question.plan.query = detail::query_of(question);
  ServeReport report;
  report.plans = {simulate(question, request.choice)};
  report.simulated = 1;
  Planner planner = planner_of(question);
  report.largest_rate = detail::largest_rate(planner, question, request.choice);
  add_range(planner, question, report);
  report.question = std::move(question);
  add_notes(report);
  return report;
}

namespace {

/// Moves `question` into its report; empty, and the question stays, if no plan has room for the
/// requests.
std::optional<ServeReport> searched_report(ServeQuestion& question, const FixedDegrees& fixed,
                                           const DeviceRange& range,
                                           const std::function<void(double)>& progress) {
  Planner planner = planner_of(question);
  detail::SizeSearch search = detail::search_sizes(planner, question, fixed, range, progress);
  if (search.plans.empty()) return std::nullopt;
  if (search.plans.size() > kKept) search.plans.resize(kKept);
  ServeReport report;
  report.searched = true;
  report.simulated = search.simulated;
  report.plans = std::move(search.plans);
  report.closest_below = search.closest_below;
  report.largest_rate = detail::largest_rate(planner, question, report.plans.front().choice);
  add_range(planner, question, report);
  question.plan.devices = report.plans.front().choice.parallel.devices();
  auto note = note_on_tensor(planner.limits(1), fixed, range.most);
  if (note) report.notes.push_back(std::move(*note));
  report.question = std::move(question);
  add_notes(report);
  return report;
}

/// The report of a machine, empty if no plan has room, or the exception in its place.
struct MachineSearch {
  std::optional<ServeReport> report;
  std::exception_ptr failure;
};

/// Searches several machines at once, in any order. Calls `progress` on the calling thread.
std::vector<MachineSearch> search_machines(std::vector<ServeQuestion>& questions,
                                           const FixedDegrees& fixed, const DeviceRange& range,
                                           const std::function<void(double)>& progress) {
  std::vector<MachineSearch> searches(questions.size());
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> done{0};
  const auto show = [&](double fraction) {
    progress((static_cast<double>(done) + fraction) / static_cast<double>(searches.size()));
  };
  const auto work = [&](std::size_t thread) {
    const bool shows = thread == 0 && progress;
    for (std::size_t i = next++; i < searches.size(); i = next++, ++done) {
      try {
        questions[i].plan.query = detail::query_of(questions[i]);
        searches[i].report = searched_report(questions[i], fixed, range,
                                             shows ? show : std::function<void(double)>());
      } catch (...) {
        searches[i].failure = std::current_exception();
      }
    }
  };
  detail::run_on_threads(std::min(detail::processor_count(), searches.size()), work);
  return searches;
}

/// Machines are in the order of this.
auto rank_of(const ServeReport& report) {
  const ServedPlan& plan = report.plans.front();
  const auto price = price_of(report);
  const LatencyTargets& targets = report.question.targets;
  const auto tightest = tightest_target(plan.judged(targets), targets);
  return std::tuple(!plan.verdict.met(), !price, price ? price->per_hour : 0,
                    plan.choice.parallel.devices(), tightest ? tightest->ratio : 0);
}

}  // namespace

ServeReport make_serve_report(ServeQuestion question, const FixedDegrees& fixed,
                              const DeviceRange& range,
                              const std::function<void(double)>& progress) {
  require_targets_apply(question);
  question.plan.query = detail::query_of(question);
  if (auto report = searched_report(question, fixed, range, progress)) return std::move(*report);
  throw_no_room(question, range);
}

ServeMachinesReport make_serve_machines_report(std::vector<ServeQuestion> questions,
                                               const FixedDegrees& fixed, const DeviceRange& range,
                                               const std::function<void(double)>& progress) {
  if (questions.empty()) throw_invalid_input("no machines to compare", "name at least one");
  if (questions.front().targets.empty()) {
    throw_invalid_input("machines are compared by the devices that meet targets",
                        "state a target for TTFT, TPOT or whole requests");
  }
  require_targets_apply(questions.front());
  ServeMachinesReport report;
  report.question = questions.front();
  report.question.plan.rates = DeviceRates{};
  report.question.price_per_hour.reset();
  report.most_devices = range.most;
  report.question.plan.devices = 1;  // notes on links are those of a machine
  report.notes = detail::notes_of(report.question.plan);
  auto note = note_on_tensor(planner_of(questions.front()).limits(1), fixed, range.most);
  if (note) report.notes.push_back(std::move(*note));
  std::vector<MachineSearch> searches = search_machines(questions, fixed, range, progress);
  for (std::size_t i = 0; i < searches.size(); ++i) {
    if (searches[i].failure) std::rethrow_exception(searches[i].failure);
    if (searches[i].report) {
      report.machines.push_back(std::move(*searches[i].report));
    } else {
      report.too_small.push_back(questions[i].plan.rates.name);
    }
  }
  std::ranges::stable_sort(report.machines, {}, rank_of);
  if (std::ranges::any_of(report.machines, [&](const ServeReport& one) {
        return is_met_by_some(one.plans.front(), report.question.targets);
      })) {
    report.notes.emplace_back(kMetBySome);
  }
  return report;
}

std::optional<ServePrice> price_of(const ServeReport& report) {
  constexpr double kSecondsPerHour = 3600;
  if (!report.question.price_per_hour) return std::nullopt;
  const ServedPlan& plan = report.plans.front();
  const double per_hour =
      *report.question.price_per_hour * static_cast<double>(plan.choice.parallel.devices());
  return ServePrice{per_hour, per_hour / kSecondsPerHour / plan.figures.output_tokens_per_s * 1e6};
}

}  // namespace headroom
