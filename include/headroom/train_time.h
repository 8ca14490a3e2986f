// Time, energy and price of a whole training run, from the fastest plan's step.
#pragma once

#include <functional>
#include <optional>

#include "headroom/plan_report.h"

namespace headroom {

/// A training run, and prices.
struct TrainingBudget {
  double tokens = 0;
  double availability = 1;               ///< fraction of the time in which steps run
  std::optional<double> power_w;         ///< of one device; its board's limit
  std::optional<double> price_per_hour;  ///< of one device
};

/// `headroom train-time`.
struct TrainTimeReport {
  PlanQuestion question;
  TrainingBudget budget;
  PlanResult plan;  ///< the fastest that fits
  double steps = 0;
  double seconds = 0;
  double low_s = 0;  ///< nine of ten runs take from low_s to high_s
  double high_s = 0;
  double device_hours = 0;
  std::optional<double> energy_j;  ///< of the devices alone
  std::optional<double> price;
  Integer active_parameters = 0;  ///< N: those that one token uses
  /// Rules of thumb in FLOPs: 6·N·D without recomputation, 8·N·D with all of it (arXiv 2001.08361,
  /// section 2.1; 2205.05198, appendix A). Shares are of the devices' peak during the run.
  double six_nd = 0;
  double eight_nd = 0;
  double six_nd_share = 0;
  double eight_nd_share = 0;
  /// Of the rule that holds for this run: FLOPs per active parameter and token without
  /// recomputation, which takes 2 more. Forward 2, gradients of activations 2, and gradients of
  /// weights 2, unless an adapter freezes them.
  int flops_per_parameter = 6;
};

/// The fastest plan with these degrees, and the run made of its steps; `progress` as in
/// SearchSpace. Throws Error{invalid_input} if no plan is legal or fits.
[[nodiscard]] TrainTimeReport make_train_time_report(
    PlanQuestion question, const FixedDegrees& fixed, const TrainingBudget& budget,
    const std::function<void(double fraction)>& progress = {});

}  // namespace headroom
