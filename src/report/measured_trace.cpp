// A measured run as a trace: operators end to end, of one process or of every rank.
#include <fmt/format.h>

#include <utility>

#include "schema_version.h"
#include "trace.h"
#include "trace_events.h"

namespace headroom::detail {
namespace {

constexpr int kOperators = 1;
constexpr int kCommunication = 2;

Json about_run(const Measurement& measurement) {
  return {{"schema_version", kSchemaVersion},
          {"model", measurement.model.spec.name},
          {"machine", measurement.context.cpu},
          {"median_s", measurement.time.median_s}};
}

int track_of(OperatorRole role) {
  switch (role) {
    case OperatorRole::computation:
      return kOperators;
    case OperatorRole::communication:
      break;
  }
  return kCommunication;
}

const char* category_of(OperatorRole role) {
  switch (role) {
    case OperatorRole::computation:
      return "operator";
    case OperatorRole::communication:
      break;
  }
  return "communication";
}

/// One after another, on the tracks of their roles.
void add_operators(int process, const std::vector<OperatorMeasurement>& operators,
                   TraceEvents& events) {
  double now_s = 0;
  for (const OperatorMeasurement& one : operators) {
    events.add({process, track_of(one.role)}, one.path, category_of(one.role), {now_s, one.time_s},
               {{"matrix_flops", one.matrix_flops}, {"bytes", one.bytes}});
    now_s += one.time_s;
  }
}

void add_rank(const RankMeasurement& rank, TraceEvents& events) {
  const int process = static_cast<int>(rank.rank) + 1;
  events.name_process(process,
                      fmt::format("rank {} · stage {} · dp {} · tp {} · {}", rank.rank, rank.stage,
                                  rank.data_rank, rank.tensor_rank, rank.host));
  events.name_track({process, kOperators}, "operators, all layers");
  events.name_track({process, kCommunication}, "communication, all layers");
  events.sort_by_number({process, kOperators});
  events.sort_by_number({process, kCommunication});
  add_operators(process, rank.operators, events);
}

std::string trace_of_ranks(const Measurement& measurement, const RanksMeasurement& ranks) {
  TraceEvents events;
  for (const RankMeasurement& rank : ranks.ranks) add_rank(rank, events);
  Json about = about_run(measurement);
  about["plan"] = ranks.plan;
  about["ranks"] = Json::array();
  for (const RankMeasurement& rank : ranks.ranks) {
    about["ranks"].push_back(
        {{"rank", rank.rank}, {"time_s", rank.time_s}, {"communication_s", rank.communication_s}});
  }
  return std::move(events).finish(std::move(about));
}

}  // namespace

std::string to_trace(const Measurement& measurement) {
  if (measurement.ranks) return trace_of_ranks(measurement, *measurement.ranks);
  TraceEvents events;
  events.name_process(1, "headroom, measured on " + measurement.context.cpu);
  events.name_track({1, kOperators}, "operators, all layers");
  add_operators(1, measurement.operators, events);
  return std::move(events).finish(about_run(measurement));
}

}  // namespace headroom::detail
