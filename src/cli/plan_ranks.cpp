// A search for plans over several processes. Each searches a share of the space; all merge the
// results of all, so that the report is that of one process.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collective_calibration.h"
#include "joined_processes.h"
#include "plan_command.h"

namespace headroom::cli {
namespace {

using nlohmann::json;

/// A size in bytes has up to 127 bits, a number in JSON 63.
constexpr Integer kDigit = Integer{1} << 62U;

json to_json(const RankedPlan& plan) {
  const PlanChoice& choice = plan.choice;
  const ParallelPlan& degrees = choice.parallel;
  const StepOptions& step = choice.step;
  return {{degrees.tensor, static_cast<int>(degrees.sequence), degrees.pipeline, degrees.interleave,
           degrees.data, degrees.context, degrees.expert, static_cast<int>(degrees.expert_tensor),
           static_cast<int>(degrees.expert_exchange), static_cast<int>(degrees.batch_overlap)},
          {choice.micro_batch, static_cast<int>(choice.recompute.kind), choice.recompute.every,
           static_cast<int>(choice.zero), static_cast<int>(step.schedule), step.zero_ranks,
           static_cast<int>(step.offload), static_cast<int>(step.overlap),
           name_of(choice.recompute.modules), static_cast<int>(step.tensor_overlap),
           step.offload_layers, step.loss_chunks},
          {static_cast<std::int64_t>(plan.memory_bytes / kDigit),
           static_cast<std::int64_t>(plan.memory_bytes % kDigit)},
          plan.iteration_s};
}

template <class Enum>
Enum enum_of(const json& number) {
  return static_cast<Enum>(number.get<int>());
}

RankedPlan plan_of(const json& text) {
  RankedPlan plan;
  ParallelPlan& degrees = plan.choice.parallel;
  const json& of_degrees = text.at(0);
  degrees.tensor = of_degrees.at(0);
  degrees.sequence = enum_of<SequenceParallel>(of_degrees.at(1));
  degrees.pipeline = of_degrees.at(2);
  degrees.interleave = of_degrees.at(3);
  degrees.data = of_degrees.at(4);
  degrees.context = of_degrees.at(5);
  degrees.expert = of_degrees.at(6);
  degrees.expert_tensor = enum_of<ExpertTensor>(of_degrees.at(7));
  degrees.expert_exchange = enum_of<ExpertExchange>(of_degrees.at(8));
  degrees.batch_overlap = enum_of<BatchOverlap>(of_degrees.at(9));
  const json& others = text.at(1);
  plan.choice.micro_batch = others.at(0);
  plan.choice.recompute = {enum_of<Recompute>(others.at(1)), others.at(2),
                           recompute_modules(others.at(8).get<std::string>()).value()};
  plan.choice.zero = enum_of<Zero>(others.at(3));
  StepOptions& step = plan.choice.step;
  step.schedule = enum_of<PipelineSchedule>(others.at(4));
  step.zero_ranks = others.at(5);
  step.offload = enum_of<Offload>(others.at(6));
  step.overlap = enum_of<DataOverlap>(others.at(7));
  step.tensor_overlap = enum_of<TensorOverlap>(others.at(9));
  step.offload_layers = others.at(10);
  step.loss_chunks = others.at(11);
  const json& digits = text.at(2);
  plan.memory_bytes = digits.at(0).get<std::int64_t>() * kDigit + digits.at(1).get<std::int64_t>();
  plan.iteration_s = text.at(3);
  return plan;
}

json to_json(const std::vector<RankedPlan>& plans) {
  json all = json::array();
  for (const RankedPlan& plan : plans) all.push_back(to_json(plan));
  return all;
}

std::vector<RankedPlan> plans_of(const json& text) {
  std::vector<RankedPlan> plans;
  plans.reserve(text.size());
  for (const json& plan : text) plans.push_back(plan_of(plan));
  return plans;
}

json to_json(const PlanSearch& search) {
  return {{"evaluated", search.evaluated},
          {"fitting", search.fitting},
          {"best", to_json(search.best)},
          {"pareto", to_json(search.pareto)},
          {"least", search.least ? to_json(std::vector{*search.least}) : json::array()}};
}

PlanSearch search_of(const json& text) {
  PlanSearch search;
  search.evaluated = text.at("evaluated");
  search.fitting = text.at("fitting");
  search.best = plans_of(text.at("best"));
  search.pareto = plans_of(text.at("pareto"));
  for (RankedPlan& plan : plans_of(text.at("least"))) search.least = plan;
  return search;
}

/// The search of all processes, each of which has searched its share.
PlanSearch search_together(JoinedProcesses& all, const Planner& planner, SearchSpace space) {
  measured::Coordinator& world = all.processes().world();
  space.share = {world.rank(), world.size()};
  PlanSearch own;
  all.together([&] { own = search_plans(planner, space); });
  std::vector<PlanSearch> shares;
  for (const std::string& text : world.exchange(to_json(own).dump())) {
    shares.push_back(search_of(json::parse(text)));
  }
  return merged(shares, space.keep);
}

/// Processors of this host for each of its processes.
int threads_per_process(JoinedProcesses& all) {
  const auto processors = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  const std::int64_t here = distributed::hosts_of(all.processes()).processes_here;
  return static_cast<int>(std::max<std::int64_t>(1, processors / here));
}

}  // namespace

void plan_on_ranks(PlanCommand& command, int& status) {
  JoinedProcesses all;
  all.run([&] {
    std::optional<ReportOutput> output;
    PlanQuestion question;
    SearchSpace space;
    all.together([&] {
      if (all.reports()) output.emplace(command.options.output);
      space = prepare(command);
      question = question_of(command.options);
    });
    if (space.threads == 0) space.threads = threads_per_process(all);
    PlanReport report;
    all.together([&] {
      report =
          make_plan_report(question, space, [&](const Planner& planner, const SearchSpace& whole) {
            return search_together(all, planner, whole);
          });
    });
    if (output) write_report(command, std::move(report), *output, status);
  });
}

}  // namespace headroom::cli
