#include <algorithm>
#include <map>

#include "headroom/error.h"
#include "json_writer.h"
#include "schema_version.h"
#include "trace.h"
#include "trace_events.h"

namespace headroom::detail {
namespace {

/// Lays events end to end, on the one track of one process.
class Trace {
 public:
  Trace(const std::string& process, const std::string& track) {
    events_.name_process(kPlace.process, process);
    events_.name_track(kPlace, track);
  }

  void add_operator(const std::string& name, const std::string& category, double time_s,
                    Json arguments) {
    events_.add(kPlace, name, category, {now_s_, time_s}, std::move(arguments));
    now_s_ += time_s;
  }

  /// Bytes in use from now on.
  void add_memory(Integer bytes) {
    events_.add_bytes(kPlace.process, "live activations", now_s_, bytes);
  }

  [[nodiscard]] std::string finish(Json about) && {
    return std::move(events_).finish(std::move(about));
  }

 private:
  static constexpr TracePlace kPlace{1, 1};

  TraceEvents events_;
  double now_s_ = 0;
};

/// The predicted pass, block by block and layer by layer.
class PredictedTrace {
 public:
  explicit PredictedTrace(const AnalyzeReport& report)
      : report_(report),
        values_(bindings_of(report.workload, report.graph)),
        trace_("headroom, predicted on " + report.time->machine, "operators") {
    for (const OperatorTime& time : report.time->operators) times_[time.path] = &time;
  }

  std::string write() && {
    std::size_t first = 0;
    for (const headroom::Block& block : report_.graph.blocks) {
      const Integer runs = block.repeat.evaluate(values_);
      for (Integer run = 0; run < runs; ++run) add_run(block, first, run, runs);
      first += block.nodes.size();
    }
    trace_.add_memory(0);
    return std::move(trace_).finish({{"schema_version", kSchemaVersion},
                                     {"model", report_.model.spec.name},
                                     {"machine", report_.time->machine},
                                     {"total_s", report_.time->total_s}});
  }

 private:
  /// Nodes of the analysis are those of the graph's blocks, in order; `first` is that of `block`.
  void add_run(const headroom::Block& block, std::size_t first, Integer run, Integer runs) {
    for (std::size_t i = 0; i < block.nodes.size(); ++i) {
      const NodeAnalysis& node = report_.analysis.nodes.at(first + i);
      trace_.add_memory(report_.analysis.live.at(first + i).bytes.evaluate(values_));
      const auto found = times_.find(node.path);
      if (found == times_.end()) continue;
      Json arguments;
      arguments["layer"] =
          block.is_layers() ? Json(block.layer_of(block.nodes[i], static_cast<std::int64_t>(run)))
                            : Json(nullptr);
      arguments["matrix_flops"] =
          json_integer(node.cost.forward.matrix_flops.evaluate(values_) / runs);
      arguments["bound"] = name_of(found->second->bound);
      trace_.add_operator(node.path, std::string(name_of(node.component)),
                          found->second->time_s / static_cast<double>(runs), std::move(arguments));
    }
  }

  const AnalyzeReport& report_;
  Bindings values_;
  Trace trace_;
  std::map<std::string, const OperatorTime*> times_;
};

}  // namespace

std::string to_trace(const AnalyzeReport& report) {
  if (!report.time) {
    throw_invalid_input("a trace needs the times of operators",
                        "name a machine that predicts them");
  }
  if (report.time->decode_bound) {
    throw_invalid_input("a generation has no trace: its operators are sums over all passes",
                        "trace a prefill or a decode step");
  }
  return PredictedTrace(report).write();
}

}  // namespace headroom::detail
