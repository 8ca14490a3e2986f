// The simulated training step against the closed form of the bubble, the report's sums, and the
// numbers of micro-batches in flight.
#include <algorithm>
#include <map>
#include <tuple>

#include "gpt_models.h"
#include "headroom/error.h"
#include "headroom/timeline.h"

namespace headroom::test {
namespace {

constexpr double kForward = 0.25;
constexpr double kBackward = 0.5;

struct Shape {
  std::int64_t stages;
  std::int64_t micro_batches;
  std::int64_t chunks = 1;
};

/// Stages that take kForward and kBackward each, in chunks of equal length.
StepTimes equal_stages(const Shape& shape) {
  StepTimes times;
  const auto chunks = static_cast<double>(shape.chunks);
  const MicroBatchTime chunk{kForward / chunks, kBackward / chunks};
  times.stages.assign(static_cast<std::size_t>(shape.stages),
                      std::vector(static_cast<std::size_t>(shape.chunks), chunk));
  times.micro_batches = shape.micro_batches;
  return times;
}

constexpr Shape kShapes[] = {{1, 1},    {1, 7},    {2, 1},    {2, 5},     {4, 3},
                             {4, 4},    {4, 32},   {8, 17},   {16, 64},   {2, 4, 2},
                             {4, 8, 2}, {4, 4, 3}, {8, 8, 4}, {8, 64, 4}, {16, 32, 5}};

bool is_pass(const TimelineEvent& event) { return track_of(event.work) == TimelineTrack::compute; }

double end_of(const TimelineEvent& event) { return event.start_s + event.duration_s; }

/// The most passes of a stage whose activations are stored at once.
std::int64_t most_in_flight(const StageTimeline& stage) {
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const TimelineEvent& event : stage.events) {
    if (event.work == StepWork::forward) most = std::max(most, ++now);
    if (event.work == StepWork::backward) --now;
  }
  return most;
}

/// An A100 with as much memory as any plan needs.
DeviceRates roomy_a100() {
  DeviceRates rates = device_rates(find_machine("a100-80gb"), Purpose::train, DType::bfloat16);
  rates.memory_bytes *= 1000;
  return rates;
}

/// A machine on which only GEMMs take time.
DeviceRates arithmetic_alone() {
  DeviceRates rates = roomy_a100();
  constexpr double kUnlimited = 1e40;
  rates.memory_bytes_per_s = kUnlimited;
  rates.link.intra_node_bytes_per_s = kUnlimited;
  rates.link.inter_node_bytes_per_s = kUnlimited;
  rates.kernel_s = 0;
  rates.collective_latency_s = 0;
  rates.collective_step_s = 0;
  return rates;
}

PlanQuestion training_question(const ModelSpec& spec, const DeviceRates& rates, const Load& load) {
  PlanQuestion question;
  question.model.spec = spec;
  question.query.purpose = Purpose::train;
  question.query.attention = AttentionImplementation::fused;
  question.rates = rates;
  question.load = load;
  return question;
}

/// One plan of a model with stages of unequal times.
struct UnevenPlan {
  const char* model;
  std::int64_t tensor, pipeline, interleave, data, expert, batch;
  Zero zero;
  Recompute recompute;
};
constexpr UnevenPlan kUnevenPlans[] = {
    {"llama-3-8b", 2, 4, 1, 1, 1, 16, Zero::none, Recompute::none},
    {"llama-3-8b", 2, 4, 2, 2, 1, 16, Zero::optimizer, Recompute::full},
    {"llama-3-8b", 1, 5, 1, 4, 1, 20, Zero::gradients, Recompute::none},
    {"llama-3-8b", 1, 1, 1, 4, 1, 20, Zero::weights, Recompute::selective},
    {"gemma-2-2b", 1, 4, 7, 2, 1, 16, Zero::weights, Recompute::none},
    {"t5-small", 1, 3, 1, 2, 1, 16, Zero::optimizer, Recompute::none},
    {"deepseek-v2-lite", 1, 4, 3, 4, 4, 32, Zero::optimizer, Recompute::none},
    {"gpt-oss-20b", 2, 3, 1, 4, 2, 28, Zero::none, Recompute::full}};

PlanChoice choice_of(const UnevenPlan& plan) {
  PlanChoice choice;
  choice.parallel.tensor = plan.tensor;
  choice.parallel.pipeline = plan.pipeline;
  choice.parallel.interleave = plan.interleave;
  choice.parallel.data = plan.data;
  choice.parallel.expert = plan.expert;
  choice.zero = plan.zero;
  choice.recompute.kind = plan.recompute;
  return choice;
}

TimelineReport report_of(const UnevenPlan& plan) {
  return make_timeline_report(
      training_question(load_model(plan.model).spec, roomy_a100(), {plan.batch, 512}),
      {choice_of(plan), 1});
}

}  // namespace

// The ideal time is m·(F + B), the bubble (p − 1)·(F + B), 1/v of it interleaved: arXiv 2104.04473,
// section 2.2.
TEST_CASE("simulated stages of equal length take the closed form of 1F1B") {
  for (const Shape& shape : kShapes) {
    CAPTURE(shape.stages);
    CAPTURE(shape.micro_batches);
    CAPTURE(shape.chunks);
    const double both = kForward + kBackward;
    const double bubble =
        static_cast<double>(shape.stages - 1) * both / static_cast<double>(shape.chunks);
    CHECK(timeline_of(equal_stages(shape)).makespan_s ==
          doctest::Approx(static_cast<double>(shape.micro_batches) * both + bubble).epsilon(1e-12));
  }
}

// A transfer delays the first and the last micro-batch between all stages, but for those that the
// last one and the first one count among their own 2·m.
TEST_CASE("transfers between equal stages add two for each micro-batch and each inner stage") {
  for (const Shape& shape : {Shape{2, 5}, Shape{4, 32}, Shape{8, 17}, Shape{8, 3}}) {
    CAPTURE(shape.stages);
    StepTimes times = equal_stages(shape);
    const double without = timeline_of(times).makespan_s;
    times.send_s = 0.01;
    const auto transfers = static_cast<double>(2 * (shape.micro_batches + shape.stages - 2));
    CHECK(timeline_of(times).makespan_s ==
          doctest::Approx(without + transfers * times.send_s).epsilon(1e-12));
  }
}

TEST_CASE("the makespan of a plan with equal stages is the report's time of an iteration") {
  // Head and embedding of a vocabulary of one token take no time beside the layers.
  const ModelSpec spec = gpt(4096, 32, 48, 2048, 1);
  for (const std::int64_t stages : {1, 2, 4, 8, 16}) {
    for (const std::int64_t interleave : {1, 3}) {
      for (const Recompute recompute : {Recompute::none, Recompute::full}) {
        if (stages == 1 && interleave > 1) continue;
        CAPTURE(stages);
        CAPTURE(interleave);
        PlanChoice choice;
        choice.parallel.tensor = 2;
        choice.parallel.pipeline = stages;
        choice.parallel.interleave = interleave;
        choice.recompute.kind = recompute;
        const TimelineReport report = make_timeline_report(
            training_question(spec, arithmetic_alone(), {64, 2048}), {choice, 1});
        const PlanTime& time = report.figures.time;
        CHECK(report.timeline.makespan_s == doctest::Approx(time.iteration_s).epsilon(1e-7));
        if (stages > 1) CHECK(time.bubble_s > 0.001 * time.iteration_s);
      }
    }
  }
}

TEST_CASE("durations on the slowest stage sum to the report") {
  for (const UnevenPlan& plan : kUnevenPlans) {
    CAPTURE(std::string(plan.model));
    CAPTURE(plan.pipeline);
    CAPTURE(plan.interleave);
    const TimelineReport report = report_of(plan);
    const StageTimeline& slowest = report.timeline.stages.at(report.timeline.slowest);
    const PlanTime& time = report.figures.time;
    const auto equals = [&](TimelineTrack track, double seconds) {
      CHECK(slowest.seconds_on(track) == doctest::Approx(seconds).epsilon(1e-12));
    };
    equals(TimelineTrack::compute, time.compute_s);
    equals(TimelineTrack::communication, time.communication_s);
    equals(TimelineTrack::optimizer, time.optimizer_s);
    for (const StageTimeline& stage : report.timeline.stages) {
      CHECK(stage.seconds_on(TimelineTrack::compute) <= time.compute_s * (1 + 1e-12));
    }
    // The rest of the makespan is the bubble, whose closed form knows no stage but the slowest.
    CHECK(report.timeline.makespan_s == doctest::Approx(time.iteration_s).epsilon(0.05));
  }
}

TEST_CASE("every micro-batch passes each chunk forward and backward, one after the other") {
  for (const UnevenPlan& plan : kUnevenPlans) {
    CAPTURE(std::string(plan.model));
    const TimelineReport report = report_of(plan);
    const StepTimeline& timeline = report.timeline;
    const std::int64_t micro_batches = plan.batch / plan.data;
    const std::int64_t chunks = plan.pipeline * plan.interleave;
    // By micro-batch and number of the pass: forward through all chunks, then back.
    std::map<std::pair<std::int64_t, std::int64_t>, TimelineEvent> passes;
    double last = 0;
    for (std::size_t stage = 0; stage < timeline.stages.size(); ++stage) {
      double end = 0;
      for (const TimelineEvent& event : timeline.stages[stage].events) {
        CHECK(event.start_s >= end * (1 - 1e-12));
        end = end_of(event);
        if (!is_pass(event)) continue;
        const std::int64_t position =
            event.chunk * plan.pipeline + static_cast<std::int64_t>(stage);
        const bool forward = event.work == StepWork::forward;
        const std::int64_t number = forward ? position : 2 * chunks - 1 - position;
        CHECK(passes.emplace(std::pair(event.micro_batch.value(), number), event).second);
      }
      last = std::max(last, end);
    }
    CHECK(timeline.makespan_s == last);
    CHECK(passes.size() == static_cast<std::size_t>(2 * chunks * micro_batches));
    for (const auto& [key, event] : passes) {
      if (key.second == 0) continue;
      CHECK(event.start_s >= end_of(passes.at({key.first, key.second - 1})) * (1 - 1e-12));
    }
  }
}

// arXiv 2104.04473, section 2.2: as many micro-batches as stages from this one on. Interleaved, the
// first stage holds chunks worth (1 + (p − 1)/(p·v)) of a model: 2205.05198, section 4.2.3.
TEST_CASE("a simulated stage has the activations in flight that its memory counts") {
  for (const Shape& shape : kShapes) {
    CAPTURE(shape.stages);
    CAPTURE(shape.chunks);
    const StepTimeline timeline = timeline_of(equal_stages(shape));
    const std::int64_t all = shape.micro_batches * shape.chunks;
    for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
      const std::int64_t in_flight =
          most_in_flight(timeline.stages[static_cast<std::size_t>(stage)]);
      if (shape.chunks == 1) CHECK(in_flight == std::min(shape.stages - stage, all));
    }
    if (shape.chunks == 1) continue;
    const std::int64_t chunks = shape.stages * shape.chunks + shape.stages - 1;
    CHECK(most_in_flight(timeline.stages[0]) == std::min(chunks, all));
  }
}

TEST_CASE("the optimizer starts when the last stage has its gradients") {
  StepTimes times = equal_stages({4, 8});
  times.stages[2][0].backward_s = 1;
  times.optimizer_s = 0.125;
  times.data_parallel.last_reduce_s = 0.0625;
  times.data_parallel.updated_gather_s = 0.03125;
  const StepTimeline timeline = timeline_of(times);
  CHECK(timeline.slowest == 2);
  double gradients_s = 0;
  for (const StageTimeline& stage : timeline.stages) {
    const auto reduce =
        std::ranges::find(stage.events, StepWork::reduce_gradients, &TimelineEvent::work);
    REQUIRE(reduce != stage.events.end());
    gradients_s = std::max(gradients_s, end_of(*reduce));
  }
  for (const StageTimeline& stage : timeline.stages) {
    const auto optimizer =
        std::ranges::find(stage.events, StepWork::optimizer, &TimelineEvent::work);
    REQUIRE(optimizer != stage.events.end());
    CHECK(optimizer->start_s == gradients_s);
  }
  CHECK(timeline.makespan_s == doctest::Approx(gradients_s + 0.125 + 0.03125));
}

TEST_CASE("steps that are not simulated are refused") {
  const ModelSpec spec = gpt(768, 12, 12);
  const DeviceRates rates = arithmetic_alone();
  PlanQuestion question = training_question(spec, rates, {64, 512});
  PlanRequest request;
  request.choice.parallel.pipeline = 4;
  for (const auto schedule : {PipelineSchedule::zero_bubble, PipelineSchedule::dual_pipe}) {
    request.choice.step.schedule = schedule;
    CHECK_THROWS_WITH_AS((void)make_timeline_report(question, request),
                         doctest::Contains("simulates 1F1B, not"), Error);
  }
  request.choice.step.schedule = PipelineSchedule::one_forward_one_backward;
  question.query.purpose = Purpose::serve;
  CHECK_THROWS_WITH_AS((void)make_timeline_report(question, request),
                       doctest::Contains("only a training step"), Error);
  question.query.purpose = Purpose::train;
  question.rates.memory_bytes = 1;
  CHECK_THROWS_WITH_AS((void)make_timeline_report(question, request),
                       doctest::Contains("does not fit"), Error);
  question = training_question(spec, rates_without_speed("box", 1), {64, 512});
  CHECK_THROWS_WITH_AS((void)make_timeline_report(question, request),
                       doctest::Contains("speed of box is unknown"), Error);
  CHECK_THROWS_WITH_AS((void)timeline_of(equal_stages({4, 20'000})),
                       doctest::Contains("160,000 passes is too long"), Error);
  CHECK_THROWS_AS((void)timeline_of(StepTimes{}), Error);
  CHECK_THROWS_AS((void)timeline_of(equal_stages({2, 0})), Error);
  CHECK_THROWS_WITH_AS((void)timeline_of(equal_stages({4, 6, 2})),
                       doctest::Contains("cannot run 6 micro-batches"), Error);
}

}  // namespace headroom::test
