// Events of Chrome's Trace Event Format, which Perfetto reads. Internal to src/report.
#pragma once

#include <string>

#include "headroom/expr.h"
#include "json_writer.h"

namespace headroom::detail {

/// A process of a trace and one of its tracks.
struct TracePlace {
  int process = 1;
  int track = 1;
};

/// Seconds from the start of the trace.
struct TraceSpan {
  double start_s = 0;
  double duration_s = 0;
};

class TraceEvents {
 public:
  void name_process(int process, const std::string& name);
  void name_track(TracePlace place, const std::string& name);
  /// Viewers sort processes and tracks by these numbers.
  void sort_by_number(TracePlace place);
  void add(TracePlace place, const std::string& name, const std::string& category, TraceSpan span,
           Json arguments);
  /// Bytes in use from `start_s` on.
  void add_bytes(int process, const std::string& counter, double start_s, Integer bytes);
  /// The whole file; `about` has the keys of "otherData".
  [[nodiscard]] std::string finish(Json about) &&;

 private:
  void add_metadata(const char* kind, TracePlace place, Json arguments);

  Json events_ = Json::array();
};

}  // namespace headroom::detail
