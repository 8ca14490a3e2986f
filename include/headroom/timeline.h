// The timeline of one training step: every pass of every pipeline stage, placed by simulating the
// schedule. It shares no formula of the pipeline with PlanTime::bubble_s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/parallel_plan.h"
#include "headroom/plan_report.h"

namespace headroom {

/// Seconds of one micro-batch on one rank of a stage, or of one of its model chunks.
struct MicroBatchTime {
  double forward_s = 0;
  double backward_s = 0;                ///< recomputation included
  double forward_communication_s = 0;   ///< collectives of the tensor, context and expert groups
  double backward_communication_s = 0;  ///< recomputation included
  /// Copies of offloaded activations to the host and back, beyond the two above.
  double forward_copies_s = 0;
  double backward_copies_s = 0;
  [[nodiscard]] double compute() const { return forward_s + backward_s; }
  [[nodiscard]] double communication() const {
    return forward_communication_s + backward_communication_s;
  }
  [[nodiscard]] double copies() const { return forward_copies_s + backward_copies_s; }
  [[nodiscard]] double total() const { return compute() + communication() + copies(); }
};

/// Seconds of data-parallel communication on every stage that no pass hides.
struct ExposedDataParallel {
  double forward_gather_s = 0;   ///< ZeRO-3: of weights, before a micro-batch's forward pass
  double backward_gather_s = 0;  ///< ZeRO-3: again, before its backward pass
  double reduce_s = 0;           ///< ZeRO-2 and 3: of gradients, after its backward pass
  double last_reduce_s = 0;      ///< of gradients, after the last pass
  double updated_gather_s = 0;   ///< ZeRO-1 and 2: of weights, after the optimizer
};

/// The durations from which a step is simulated.
struct StepTimes {
  std::vector<std::vector<MicroBatchTime>> stages;  ///< by stage and model chunk
  std::int64_t micro_batches = 1;
  double send_s = 0;  ///< of a micro-batch's hidden states, or their gradients, to another stage
  /// Of the keys that an indexer chose, with the hidden states, by the stage and the chunk that
  /// sends them on; empty if none does.
  std::vector<std::vector<double>> key_choice_s;
  ExposedDataParallel data_parallel;
  double optimizer_s = 0;
};

enum class TimelineTrack { compute, communication, optimizer };

/// The kinds of events.
enum class StepWork {
  forward,
  backward,
  forward_collectives,
  backward_collectives,
  copy_to_host,
  copy_from_host,
  send_activations,
  receive_activations,
  send_gradients,
  receive_gradients,
  gather_weights,
  reduce_gradients,
  optimizer,
};
[[nodiscard]] TimelineTrack track_of(StepWork work) noexcept;
/// "forward", "send activations", …
[[nodiscard]] std::string_view name_of(StepWork work) noexcept;
[[nodiscard]] std::string_view name_of(TimelineTrack track) noexcept;

struct TimelineEvent {
  StepWork work = StepWork::forward;
  double start_s = 0;
  double duration_s = 0;
  std::optional<std::int64_t> micro_batch{};  ///< empty after the last pass
  std::int64_t chunk = 0;                     ///< of the stage, when interleaved
};

/// The events of one rank of a stage, in order; none overlap.
struct StageTimeline {
  std::vector<TimelineEvent> events;
  /// Sum of the durations on one track.
  [[nodiscard]] double seconds_on(TimelineTrack track) const;
};

struct StepTimeline {
  std::vector<StageTimeline> stages;
  std::size_t slowest = 0;  ///< stage with the longest micro-batch, the first of equal ones
  double makespan_s = 0;
};

/// Simulates 1F1B, interleaved with several chunks per stage (arXiv 2104.04473, section 2.2). A
/// pass starts once its stage is free and its input has arrived. Every chunk takes part in two
/// transfers per micro-batch: it sends on activations and gradients; the last chunk, which sends no
/// activations, receives them instead, and the first one gradients. All other receptions overlap
/// with the stage's own sends. The optimizer starts when every stage has its gradients, for their
/// norm. Throws Error{invalid_input} without stages or micro-batches, for more than 100,000 passes,
/// and for interleaved micro-batches that are no multiple of the stages.
[[nodiscard]] StepTimeline timeline_of(const StepTimes& times);

/// `headroom fit --format trace`: a plan's training step.
struct TimelineReport {
  PlanQuestion question;
  PlanChoice choice;
  PlanFigures figures;
  std::vector<std::vector<LayerRange>> layers;  ///< by stage and chunk
  StepTimeline timeline;
  std::vector<std::string> notes;
};

/// Throws IllegalPlan; Error{invalid_input} for serving, for a machine without speed, for schedules
/// other than 1F1B, for a plan that does not fit, and as timeline_of() does.
[[nodiscard]] TimelineReport make_timeline_report(PlanQuestion question,
                                                  const PlanRequest& request);

}  // namespace headroom
