// The simulated training step of a plan as a trace.
#include <fmt/format.h>

#include "plan_words.h"
#include "schema_version.h"
#include "trace.h"
#include "trace_events.h"

namespace headroom::detail {
namespace {

constexpr TimelineTrack kTimelineTracks[] = {TimelineTrack::compute, TimelineTrack::communication,
                                             TimelineTrack::optimizer};

/// Processes and tracks count from 1: viewers give 0 a meaning of its own.
int number_of(std::size_t index) { return static_cast<int>(index) + 1; }

TracePlace place_of(std::size_t stage, TimelineTrack track) {
  return {number_of(stage), number_of(static_cast<std::size_t>(track))};
}

/// "layers 0–3, 8–11"; empty for a stage without a layer.
std::string layers_text(const std::vector<LayerRange>& ranges) {
  std::string text;
  for (const LayerRange& range : ranges) {
    if (range.size() == 0) continue;
    text += text.empty() ? "layers " : ", ";
    text += range.size() == 1 ? fmt::format("{}", range.begin)
                              : fmt::format("{}–{}", range.begin, range.end - 1);
  }
  return text;
}

void name_stage(std::size_t stage, const std::vector<LayerRange>& layers, TraceEvents& events) {
  const std::string text = layers_text(layers);
  events.name_process(number_of(stage),
                      fmt::format("stage {}{}{}", stage, text.empty() ? "" : " · ", text));
  for (const TimelineTrack track : kTimelineTracks) {
    events.name_track(place_of(stage, track), std::string(name_of(track)));
    events.sort_by_number(place_of(stage, track));
  }
}

void add_timeline_event(std::size_t stage, const TimelineEvent& event, TraceEvents& events) {
  const std::string name(name_of(event.work));
  const TimelineTrack track = track_of(event.work);
  Json arguments = Json::object();
  if (event.micro_batch) {
    arguments["micro_batch"] = *event.micro_batch;
    arguments["chunk"] = event.chunk;
  }
  events.add(place_of(stage, track),
             event.micro_batch ? fmt::format("{} {}", name, *event.micro_batch) : name,
             std::string(name_of(track)), {event.start_s, event.duration_s}, std::move(arguments));
}

Json about_step(const TimelineReport& report) {
  const PlanTime& time = report.figures.time;
  Json json{{"schema_version", kSchemaVersion},
            {"model", report.question.model.spec.name},
            {"machine", report.question.rates.name},
            {"plan", describe(report.choice, report.question.query.purpose)},
            {"schedule", name_of(report.choice.step.schedule)},
            {"slowest_stage", report.timeline.slowest},
            {"iteration_s", time.iteration_s},
            {"compute_s", time.compute_s},
            {"communication_s", time.communication_s},
            {"bubble_s", time.bubble_s},
            {"optimizer_s", time.optimizer_s},
            {"makespan_s", report.timeline.makespan_s}};
  if (time.host_copies_s > 0) json["host_copies_s"] = time.host_copies_s;
  return json;
}

}  // namespace

std::string to_trace(const TimelineReport& report) {
  TraceEvents events;
  for (std::size_t stage = 0; stage < report.timeline.stages.size(); ++stage) {
    name_stage(stage, report.layers.at(stage), events);
    for (const TimelineEvent& event : report.timeline.stages[stage].events) {
      add_timeline_event(stage, event, events);
    }
  }
  return std::move(events).finish(about_step(report));
}

}  // namespace headroom::detail
