// Simulates the pipeline of a training step, pass by pass.
#include "headroom/timeline.h"

#include <fmt/format.h>

#include <algorithm>

#include "enum_table.h"
#include "headroom/error.h"
#include "pipeline_schedule.h"

namespace headroom {
namespace {

using detail::Direction;
using detail::Pass;
using detail::PipelineShape;

/// Passes beyond which a timeline is of no use to a viewer: its JSON would exceed 100 MB.
constexpr Integer kMostPasses = 100'000;

struct StepWorkInfo {
  StepWork work;
  TimelineTrack track;
  std::string_view name;
};
constexpr StepWorkInfo kStepWork[] = {
    {StepWork::forward, TimelineTrack::compute, "forward"},
    {StepWork::backward, TimelineTrack::compute, "backward"},
    {StepWork::forward_collectives, TimelineTrack::communication, "forward collectives"},
    {StepWork::backward_collectives, TimelineTrack::communication, "backward collectives"},
    {StepWork::copy_to_host, TimelineTrack::communication, "copy activations to host"},
    {StepWork::copy_from_host, TimelineTrack::communication, "copy activations from host"},
    {StepWork::send_activations, TimelineTrack::communication, "send activations"},
    {StepWork::receive_activations, TimelineTrack::communication, "receive activations"},
    {StepWork::send_gradients, TimelineTrack::communication, "send gradients"},
    {StepWork::receive_gradients, TimelineTrack::communication, "receive gradients"},
    {StepWork::gather_weights, TimelineTrack::communication, "gather weights"},
    {StepWork::reduce_gradients, TimelineTrack::communication, "reduce gradients"},
    {StepWork::optimizer, TimelineTrack::optimizer, "optimizer"},
};
static_assert(detail::lists_every<kStepWork>(&StepWorkInfo::work));

PipelineShape shape_of(const StepTimes& times) {
  const std::size_t chunks = times.stages.empty() ? 0 : times.stages.front().size();
  const bool alike =
      std::ranges::all_of(times.stages, [&](const auto& stage) { return stage.size() == chunks; });
  if (chunks == 0 || !alike || times.micro_batches < 1) {
    throw_invalid_input("a timeline needs stages with equal numbers of chunks, and micro-batches",
                        "give every stage at least one chunk");
  }
  PipelineShape shape{static_cast<std::int64_t>(times.stages.size()),
                      static_cast<std::int64_t>(chunks), times.micro_batches};
  if (shape.chunks > 1 && shape.micro_batches % shape.stages != 0) {
    throw_invalid_input(
        fmt::format("an interleaved pipeline of {} stages cannot run {} micro-batches",
                    shape.stages, shape.micro_batches),
        "choose a multiple of the number of stages");
  }
  const Integer passes =
      checked_multiply(2, checked_multiply(shape.all_chunks(), shape.micro_batches));
  if (passes > kMostPasses) {
    throw_invalid_input(fmt::format("a timeline of {} passes is too long: the limit is {}",
                                    with_separators(passes), with_separators(kMostPasses)),
                        "take a smaller batch, or larger micro-batches");
  }
  return shape;
}

class Simulation {
 public:
  explicit Simulation(const StepTimes& times)
      : times_(times),
        shape_(shape_of(times)),
        stages_(times.stages.size()),
        forward_(static_cast<std::size_t>(shape_.all_chunks() * shape_.micro_batches)),
        backward_(forward_.size()) {
    for (std::int64_t stage = 0; stage < shape_.stages; ++stage) {
      stages_[static_cast<std::size_t>(stage)].passes = detail::passes_of_stage(stage, shape_);
    }
  }

  StepTimeline run() && {
    bool runs = true;
    while (runs) {
      runs = false;
      for (std::int64_t stage = 0; stage < shape_.stages; ++stage) runs |= advance(stage);
    }
    require_all_passes();
    update_weights();
    return finish();
  }

 private:
  /// When a pass has its result, and when the next chunk has it.
  struct Result {
    double computed_s = 0;
    double arrived_s = 0;
  };
  /// Positions from which a pass gets its input and to which its result goes.
  struct Neighbours {
    std::optional<std::int64_t> source;
    std::optional<std::int64_t> target;
  };
  struct RunningStage {
    std::vector<Pass> passes;
    std::size_t next = 0;
    double now_s = 0;
    StageTimeline timeline;
  };

  std::optional<Result>& result_of(Direction direction, std::int64_t position,
                                   std::int64_t micro_batch) {
    auto& results = direction == Direction::forward ? forward_ : backward_;
    return results[static_cast<std::size_t>(micro_batch * shape_.all_chunks() + position)];
  }

  /// Runs the passes of `stage` whose inputs exist. Returns whether there was one.
  bool advance(std::int64_t stage) {
    RunningStage& running = stages_[static_cast<std::size_t>(stage)];
    const std::size_t first = running.next;
    for (; running.next < running.passes.size(); ++running.next) {
      const Pass& pass = running.passes[running.next];
      const Neighbours neighbours = neighbours_of(pass, shape_.position(stage, pass.chunk));
      std::optional<Result> input = Result{0, 0};
      if (neighbours.source) {
        input = result_of(pass.direction, *neighbours.source, pass.micro_batch);
      }
      if (!input) break;
      run(running, stage, pass, neighbours, *input);
    }
    return running.next > first;
  }

  [[nodiscard]] Neighbours neighbours_of(const Pass& pass, std::int64_t position) const {
    const auto chunk_at = [&](std::int64_t other) {
      const bool exists = other >= 0 && other < shape_.all_chunks();
      return exists ? std::optional(other) : std::nullopt;
    };
    const std::int64_t step = pass.direction == Direction::forward ? 1 : -1;
    return {chunk_at(position - step), chunk_at(position + step)};
  }

  /// A chunk receives by itself if it sends nothing with which the reception overlaps.
  void run(RunningStage& running, std::int64_t stage, const Pass& pass,
           const Neighbours& neighbours, const Result& input) {
    const bool forward = pass.direction == Direction::forward;
    if (neighbours.source && !neighbours.target) {
      running.now_s = std::max(running.now_s, input.computed_s);
      add(running, forward ? StepWork::receive_activations : StepWork::receive_gradients,
          send_s(pass.direction, *neighbours.source), pass);
    } else {
      running.now_s = std::max(running.now_s, input.arrived_s);
    }
    compute(running, stage, pass);
    const double computed_s = running.now_s;
    if (neighbours.target) {
      add(running, forward ? StepWork::send_activations : StepWork::send_gradients,
          send_s(pass.direction, shape_.position(stage, pass.chunk)), pass);
    }
    result_of(pass.direction, shape_.position(stage, pass.chunk), pass.micro_batch) =
        Result{computed_s, running.now_s};
    if (forward) return;
    add(running, StepWork::reduce_gradients, of_chunk(times_.data_parallel.reduce_s), pass);
  }

  void compute(RunningStage& running, std::int64_t stage, const Pass& pass) {
    const MicroBatchTime& time =
        times_.stages[static_cast<std::size_t>(stage)][static_cast<std::size_t>(pass.chunk)];
    const ExposedDataParallel& data = times_.data_parallel;
    if (pass.direction == Direction::forward) {
      add(running, StepWork::gather_weights, of_chunk(data.forward_gather_s), pass);
      add(running, StepWork::forward, time.forward_s, pass);
      add(running, StepWork::forward_collectives, time.forward_communication_s, pass);
      add(running, StepWork::copy_to_host, time.forward_copies_s, pass);
      return;
    }
    add(running, StepWork::gather_weights, of_chunk(data.backward_gather_s), pass);
    add(running, StepWork::backward, time.backward_s, pass);
    add(running, StepWork::backward_collectives, time.backward_communication_s, pass);
    add(running, StepWork::copy_from_host, time.backward_copies_s, pass);
  }

  /// Seconds to send on the result of the chunk at `position`. Chosen keys have no gradients.
  [[nodiscard]] double send_s(Direction direction, std::int64_t position) const {
    if (direction == Direction::backward || times_.key_choice_s.empty()) return times_.send_s;
    const auto stage = static_cast<std::size_t>(position % shape_.stages);
    const auto chunk = static_cast<std::size_t>(position / shape_.stages);
    return times_.send_s + times_.key_choice_s.at(stage).at(chunk);
  }

  /// One chunk's part of the time of a whole stage.
  [[nodiscard]] double of_chunk(double seconds) const {
    return seconds / static_cast<double>(shape_.chunks);
  }

  static void add(RunningStage& running, StepWork work, double seconds, const Pass& pass) {
    add(running, {work, running.now_s, seconds, pass.micro_batch, pass.chunk});
  }
  static void add(RunningStage& running, const TimelineEvent& event) {
    if (event.duration_s == 0) return;
    running.timeline.events.push_back(event);
    running.now_s += event.duration_s;
  }

  void require_all_passes() const {
    for (const RunningStage& running : stages_) {
      if (running.next == running.passes.size()) continue;
      throw Error(ErrorCode::internal, "the simulated pipeline has a deadlock");
    }
  }

  void update_weights() {
    const ExposedDataParallel& data = times_.data_parallel;
    double ready_s = 0;
    for (RunningStage& running : stages_) {
      add(running, {StepWork::reduce_gradients, running.now_s, data.last_reduce_s});
      ready_s = std::max(ready_s, running.now_s);
    }
    for (RunningStage& running : stages_) {
      running.now_s = ready_s;
      add(running, {StepWork::optimizer, running.now_s, times_.optimizer_s});
      add(running, {StepWork::gather_weights, running.now_s, data.updated_gather_s});
    }
  }

  StepTimeline finish() {
    StepTimeline timeline;
    timeline.stages.reserve(stages_.size());
    for (RunningStage& running : stages_) {
      timeline.makespan_s = std::max(timeline.makespan_s, running.now_s);
      timeline.stages.push_back(std::move(running.timeline));
    }
    double longest_s = 0;
    for (std::size_t i = 0; i < times_.stages.size(); ++i) {
      double seconds = 0;
      for (const MicroBatchTime& chunk : times_.stages[i]) seconds += chunk.total();
      if (seconds <= longest_s) continue;
      longest_s = seconds;
      timeline.slowest = i;
    }
    return timeline;
  }

  const StepTimes& times_;
  PipelineShape shape_;
  std::vector<RunningStage> stages_;
  std::vector<std::optional<Result>> forward_;  ///< by micro-batch and position
  std::vector<std::optional<Result>> backward_;
};

}  // namespace

TimelineTrack track_of(StepWork work) noexcept {
  return kStepWork[static_cast<std::size_t>(work)].track;
}

std::string_view name_of(StepWork work) noexcept {
  return kStepWork[static_cast<std::size_t>(work)].name;
}

std::string_view name_of(TimelineTrack track) noexcept {
  switch (track) {
    case TimelineTrack::compute:
      return "compute";
    case TimelineTrack::communication:
      return "communication";
    case TimelineTrack::optimizer:
      break;
  }
  return "optimizer";
}

double StageTimeline::seconds_on(TimelineTrack track) const {
  double seconds = 0;
  for (const TimelineEvent& event : events) {
    if (track_of(event.work) == track) seconds += event.duration_s;
  }
  return seconds;
}

StepTimeline timeline_of(const StepTimes& times) { return Simulation(times).run(); }

}  // namespace headroom
