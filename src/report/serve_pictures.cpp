// Latencies of requests as ranges of percentiles against their targets, and the plans of a search
// by latency and throughput.
#include <fmt/format.h>

#include "headroom/serve.h"
#include "picture.h"
#include "pictures.h"
#include "plan_words.h"
#include "units.h"

namespace headroom::detail {
namespace {

constexpr double kMilliseconds = 1e3;

Bar latency_bar(const char* name, const LatencySummary& latency,
                const std::optional<double>& target) {
  const auto part = [&](const char* range, double from, double to) {
    return BarPart{range, kMilliseconds * (to - from),
                   fmt::format("{}, {}: {} to {}", name, range, duration(from), duration(to))};
  };
  Bar bar{
      name,
      {part("p50 to p90", latency.p50, latency.p90), part("p90 to p99", latency.p90, latency.p99)},
      fmt::format("{} to {}", duration(latency.p50), duration(latency.p99)),
      kMilliseconds * latency.p50};
  if (target) {
    bar.mark = PlotPoint{kMilliseconds * *target, 0,
                         fmt::format("target of {}: {}", name, duration(*target))};
    bar.text += fmt::format(", target {}", duration(*target));
  }
  return bar;
}

std::string latency_bars(const ServeReport& report) {
  const ServeFigures& figures = report.plans.front().figures;
  const LatencyTargets& targets = report.question.targets;
  Bars content{"Latency of the requests, from the median to the 99th percentile",
               targets.empty() ? ""
                               : fmt::format("Red lines are targets, which {:.4g} % of the "
                                             "requests must keep.",
                                             targets.percentile),
               {"ms", AxisScale::logarithmic},
               {latency_bar("TTFT", figures.ttft, targets.ttft_s)},
               {}};
  if (figures.tpot) {
    content.bars.push_back(latency_bar("TPOT", *figures.tpot, targets.tpot_s));
  }
  content.bars.push_back(latency_bar("end to end", figures.end_to_end, targets.end_to_end_s));
  return bars(content);
}

/// A latency that plans are judged by.
struct JudgedLatency {
  const char* name;
  std::optional<double> target;
  std::optional<LatencySummary> (*of)(const ServeFigures& figures);
};

/// The first latency with a target, else that of the whole request.
JudgedLatency judged_latency(const LatencyTargets& targets) {
  using Summary = std::optional<LatencySummary>;
  if (targets.ttft_s) {
    return {"TTFT", targets.ttft_s,
            [](const ServeFigures& figures) { return Summary(figures.ttft); }};
  }
  if (targets.tpot_s) {
    return {"TPOT", targets.tpot_s, [](const ServeFigures& figures) { return figures.tpot; }};
  }
  return {"End-to-end latency", targets.end_to_end_s,
          [](const ServeFigures& figures) { return Summary(figures.end_to_end); }};
}

/// One latency of every plan of a search, with its throughput.
std::string plan_bars(const ServeReport& report) {
  if (report.plans.size() < 2) return {};
  const JudgedLatency latency = judged_latency(report.question.targets);
  Bars content{fmt::format("{} and throughput of the best plans, from the median to the 99th "
                           "percentile",
                           latency.name),
               "The first plan is the answer. A red line is the target.",
               {"ms", AxisScale::logarithmic},
               {},
               {}};
  for (const ServedPlan& plan : report.plans) {
    const auto summary = latency.of(plan.judged(report.question.targets));
    if (!summary) continue;
    const std::string name = describe(plan.choice, Purpose::serve);
    Bar bar = latency_bar(name.c_str(), *summary, latency.target);
    bar.text = fmt::format("{} tokens/s, {}", grouped(plan.figures.output_tokens_per_s, 1),
                           plan.verdict.met() ? "meets all" : "misses");
    content.bars.push_back(std::move(bar));
  }
  return bars(content);
}

}  // namespace

std::vector<std::string> pictures_of(const ServeReport& report) {
  return {latency_bars(report), plan_bars(report)};
}

}  // namespace headroom::detail
