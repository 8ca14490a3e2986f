// A predicted or measured run in the Trace Event Format of Chrome, which Perfetto reads. Internal
// to src/report.
//
//   {"displayTimeUnit": "ms", "otherData": {…}, "traceEvents": [
//     {"ph": "X", "name": "attention.qkv", "ts": 12.5, "dur": 3.1, "args": {"layer": 0, …}}, …]}
//
// Times are microseconds. Durations of events sum to the times in the report.
#pragma once

#include <string>

#include "headroom/measurement.h"
#include "headroom/report.h"
#include "headroom/timeline.h"

namespace headroom::detail {

/// Operators of a predicted pass in the order of execution, one event a layer, and live activation
/// bytes as a counter. Throws Error{invalid_input} without a predicted time, or for a generation,
/// whose operators are sums over all passes.
[[nodiscard]] std::string to_trace(const AnalyzeReport& report);

/// Operators of a measured run, each once, with the time of all layers. Over several processes, a
/// process for each rank, with tracks of operators and of communication.
[[nodiscard]] std::string to_trace(const Measurement& measurement);

/// The passes of a simulated training step: a process for each pipeline stage, which stands for one
/// of its ranks, with tracks of computation, communication and the optimizer.
[[nodiscard]] std::string to_trace(const TimelineReport& report);

}  // namespace headroom::detail
