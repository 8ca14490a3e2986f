// Fits a machine's efficiencies to measured runs: as many as the runs determine, the others stay
// near the known ones.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headroom/plan_report.h"

namespace headroom {

/// A plan whose iteration was measured: a training step, a decode step, or a pass of an encoder; or
/// a run of many, with its own prediction.
struct MeasuredRun {
  std::string name;
  PlanQuestion question;
  PlanRequest request;
  double time_s = 0;
  std::optional<Integer> memory_bytes;  ///< allocated tensors of the worst rank
  double unmodelled_s = 0;              ///< deviation of what is measured besides the steps
  /// Relative deviation of published runs of this kind from predictions by rates that were fitted
  /// to others; empty: that of steps and rates.
  std::optional<double> published_deviation{};
  /// Predicts `time_s` by other rates of the question's device; empty: the time of an iteration.
  std::function<double(const DeviceRates&)> seconds{};
};

/// A run beside its predictions.
struct FittedRun {
  std::string name;
  double measured_s = 0;
  double before_s = 0;     ///< predicted with the rates of the question
  double predicted_s = 0;  ///< predicted with the fitted rates
  std::optional<Integer> measured_bytes;
  Integer predicted_bytes = 0;
};

struct RateFit {
  FittedEfficiency efficiency;
  Efficiency before;
  std::vector<FittedRun> runs;
};

/// The efficiencies under which the runs are most probable, given the known ones: least squares of
/// the logarithms of times, where a time deviates by a few percent from its prediction and an
/// efficiency by some tens of percent from the known one. So one run suffices, and directions that
/// no run determines keep the known value and its deviation. Throws Error{invalid_input} without
/// runs, for runs of several purposes, and for a time that is not above 0; IllegalPlan.
[[nodiscard]] RateFit fit_rates(std::span<const MeasuredRun> runs);

/// `rates` at another efficiency, with the fixed times and ports between nodes that go with it.
[[nodiscard]] DeviceRates with_efficiency(DeviceRates rates, const Efficiency& efficiency);

}  // namespace headroom
