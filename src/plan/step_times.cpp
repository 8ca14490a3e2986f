// The durations of a plan's training step, by stage and model chunk, and the report of its
// timeline.
#include <fmt/format.h>

#include "headroom/error.h"
#include "headroom/no_plan_fits.h"
#include "planner.h"
#include "question_notes.h"
#include "setting_format.h"
#include "step_time.h"

namespace headroom {
namespace {

using detail::DataParallelCollective;
using detail::PipelineStage;
using detail::Section;
using detail::SectionSet;
using detail::SectionStates;

constexpr SectionSet kLastSections =
    detail::bit_of(Section::Kind::encoder_last) | detail::bit_of(Section::Kind::main_last);

/// One chunk of a stage: sections before the layers run in the first one, those after them in the
/// last.
PipelineStage chunk_of(const PipelineStage& stage, std::size_t chunk, std::size_t chunks) {
  if (chunks == 1) return stage;
  PipelineStage part = stage;
  for (std::size_t i = 0; i < stage.ranges_of_kind.size(); ++i) {
    part.ranges_of_kind[i] = {stage.ranges_of_kind[i].at(chunk)};
    part.layers_of_kind[i] = part.ranges_of_kind[i].front().size();
  }
  if (chunk > 0) part.sections &= kLastSections;
  if (chunk + 1 < chunks) part.sections &= ~kLastSections;
  return part;
}

/// Adds the seconds of all calls of `call` in a step of `micro_batches`.
void add_exposed(const DataParallelCollective& call, double seconds, Zero zero,
                 double micro_batches, ExposedDataParallel& exposed) {
  if (call.kind == CollectiveKind::all_gather) {
    if (zero != Zero::weights) {
      exposed.updated_gather_s += seconds;
    } else if (call.backward) {
      exposed.backward_gather_s += seconds / micro_batches;
    } else {
      exposed.forward_gather_s += seconds / micro_batches;
    }
    return;
  }
  const bool every_pass = zero == Zero::gradients || zero == Zero::weights;
  if (every_pass && call.kind == CollectiveKind::reduce_scatter) {
    exposed.reduce_s += seconds / micro_batches;
  } else {
    exposed.last_reduce_s += seconds;
  }
}

/// The slowest stage, and the states of the one with the most weights.
struct Extremes {
  MicroBatchTime slowest;
  std::int64_t layers = 1;
  SectionStates states;

  void add(const PipelineStage& stage, const MicroBatchTime& time,
           const SectionStates& stage_states) {
    if (stage_states.dense.weights + stage_states.experts.weights >
        states.dense.weights + states.experts.weights) {
      states = stage_states;
    }
    if (time.total() <= slowest.total()) return;
    slowest = time;
    layers = stage.layers;
  }
};

void require_timeline(const PlanQuestion& question, const PlanChoice& choice) {
  if (question.query.purpose != Purpose::train) {
    throw_invalid_input("only a training step has a timeline",
                        fmt::format("choose {} train", Setting::phase));
  }
  if (!question.rates.have_speed()) {
    throw_invalid_input(
        "a timeline needs times, and the speed of " + question.rates.name + " is unknown",
        "name a machine that predicts them");
  }
  switch (choice.step.schedule) {
    case PipelineSchedule::one_forward_one_backward:
      return;
    case PipelineSchedule::zero_bubble:
    case PipelineSchedule::dual_pipe:
      break;
  }
  throw_invalid_input(
      fmt::format("a timeline simulates 1F1B, not {}", name_of(choice.step.schedule)),
      fmt::format("choose the schedule {}", name_of(PipelineSchedule::one_forward_one_backward)));
}

}  // namespace

StepTimes Planner::Implementation::step_times(const PlanChoice& choice, const Load& load) {
  const ParallelPlan& plan = choice.parallel;
  StepTimes times;
  times.micro_batches = micro_batches(choice, load);
  const detail::RankCosts& rank =
      costs(Pass::train, plan,
            with_tower_inputs(workload_of(Pass::train, choice.micro_batch, load.seq_len, 0)));
  const detail::RankStates& rank_states = states(plan);
  const detail::StepPasses passes = detail::passes_of(choice, query.states, rates);
  const auto chunks = static_cast<std::size_t>(plan.interleave);
  Extremes extremes;
  for (const PipelineStage& stage : all_stages(plan)) {
    const detail::StageCosts whole = stage_costs(rank, rank_states, kinds, stage);
    extremes.add(stage, stage_time(rank, whole, choice, passes, stage),
                 detail::all_states(whole, rank_states, stage));
    std::vector<MicroBatchTime>& of_stage = times.stages.emplace_back();
    for (std::size_t i = 0; i < chunks; ++i) {
      const PipelineStage chunk = chunk_of(stage, i, chunks);
      of_stage.push_back(
          stage_time(rank, stage_costs(rank, rank_states, kinds, chunk), choice, passes, chunk));
    }
  }
  if (plan.pipeline > 1) times.send_s = send_seconds(choice, rank.hidden);
  if (plan.pipeline > 1 && !choosing_layers.empty()) {
    const double seconds = send_seconds(choice, rank.key_choice);
    for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) {
      std::vector<double>& of_stage = times.key_choice_s.emplace_back();
      for (const bool sends : chunks_with_choice(plan, stage))
        of_stage.push_back(sends ? seconds : 0);
    }
  }
  const auto repeats = static_cast<double>(times.micro_batches);
  for (const auto& call : detail::data_parallel_collectives(extremes.states, choice, repeats)) {
    const double seconds = detail::exposed_seconds(call, data_parallel_seconds(call), choice,
                                                   extremes.slowest, extremes.layers);
    add_exposed(call, seconds, choice.zero, repeats, times.data_parallel);
  }
  times.optimizer_s = detail::optimizer_seconds(extremes.states, choice, rates);
  return times;
}

StepTimes Planner::step_times(const PlanChoice& choice, const Load& load) {
  return implementation_->step_times(choice, load);
}

TimelineReport make_timeline_report(PlanQuestion question, const PlanRequest& request) {
  const PlanChoice choice = resolve(request, question.load);
  require_timeline(question, choice);
  Planner planner(question.model.spec, question.query, question.rates);
  const ShardingLimits limits = planner.limits(question.load.seq_len);
  require_legal(choice, question.load, limits);
  TimelineReport report;
  report.choice = choice;
  report.figures = planner.evaluate(choice, question.load);
  if (!planner.fits(report.figures)) {
    const Integer missing = report.figures.memory.total() - question.rates.memory_bytes;
    throw NoPlanFits(
        fmt::format("a plan that does not fit has no timeline: it needs {} B more memory",
                    with_separators(missing)),
        "choose another plan; its report without a timeline lists changes that would fit");
  }
  report.timeline = timeline_of(planner.step_times(choice, question.load));
  for (std::int64_t stage = 0; stage < choice.parallel.pipeline; ++stage) {
    report.layers.push_back(layers_of_stage(limits.layers, choice.parallel, stage));
  }
  report.notes = detail::notes_of(question);
  report.question = std::move(question);
  return report;
}

}  // namespace headroom
