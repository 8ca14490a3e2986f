#include "trace_events.h"

#include <utility>

namespace headroom::detail {
namespace {

constexpr double kMicroseconds = 1e6;

}  // namespace

void TraceEvents::name_process(int process, const std::string& name) {
  add_metadata("process_name", {process, 1}, {{"name", name}});
}

void TraceEvents::name_track(TracePlace place, const std::string& name) {
  add_metadata("thread_name", place, {{"name", name}});
}

void TraceEvents::sort_by_number(TracePlace place) {
  if (place.track == 1) {
    add_metadata("process_sort_index", place, {{"sort_index", place.process}});
  }
  add_metadata("thread_sort_index", place, {{"sort_index", place.track}});
}

void TraceEvents::add(TracePlace place, const std::string& name, const std::string& category,
                      TraceSpan span, Json arguments) {
  events_.push_back({{"ph", "X"},
                     {"name", name},
                     {"cat", category},
                     {"pid", place.process},
                     {"tid", place.track},
                     {"ts", span.start_s * kMicroseconds},
                     {"dur", span.duration_s * kMicroseconds},
                     {"args", std::move(arguments)}});
}

void TraceEvents::add_bytes(int process, const std::string& counter, double start_s,
                            Integer bytes) {
  events_.push_back({{"ph", "C"},
                     {"name", counter},
                     {"pid", process},
                     {"ts", start_s * kMicroseconds},
                     {"args", {{"bytes", json_integer(bytes)}}}});
}

std::string TraceEvents::finish(Json about) && {
  Json json;
  json["displayTimeUnit"] = "ms";
  json["otherData"] = std::move(about);
  json["traceEvents"] = std::move(events_);
  return to_json_text(json);
}

void TraceEvents::add_metadata(const char* kind, TracePlace place, Json arguments) {
  events_.push_back({{"ph", "M"},
                     {"name", kind},
                     {"pid", place.process},
                     {"tid", place.track},
                     {"args", std::move(arguments)}});
}

}  // namespace headroom::detail
