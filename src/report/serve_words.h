// Words and JSON that reports on served requests share. Internal to src/report.
#pragma once

#include <string>
#include <string_view>

#include "headroom/serve.h"
#include "writers.h"

namespace headroom::detail {

/// "10 requests/s at random times · 1,024 tokens in · 256 out · 1,000 requests"
[[nodiscard]] std::string traffic_text(const ServeTraffic& traffic);
/// Why a plan has its place: "TPOT 19 % below target"; empty without targets.
[[nodiscard]] std::string why_text(const ServedPlan& plan, const LatencyTargets& targets);
/// "TTFT ≤ 500.000 ms · TPOT ≤ 30.000 ms for 99 % of the requests"
[[nodiscard]] std::string targets_text(const LatencyTargets& targets);

/// Seconds, shown as milliseconds with one decimal: a simulation tells no more.
[[nodiscard]] Column latency_column(std::string key, std::string title);
/// Output tokens per second.
[[nodiscard]] Column throughput_column(std::string key, std::string title);

/// ", with the slowest steps"; empty for steps as long as predicted.
[[nodiscard]] std::string steps_text(TargetSteps steps);

/// The question with its requests, scheduler and targets; keys of the answer are missing.
[[nodiscard]] Json served_question_json(const ServeQuestion& question, std::string_view schema);
[[nodiscard]] Json served_json(const ServedPlan& plan, const LatencyTargets& targets);

}  // namespace headroom::detail
