// Gauss–Newton with Gaussian priors on the logarithms of the efficiencies.
#include "headroom/rate_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "headroom/error.h"

namespace headroom {
namespace {

/// In the order of their members.
constexpr std::array kParts{&Efficiency::matrix, &Efficiency::memory, &Efficiency::network,
                            &Efficiency::cache, &Efficiency::fixed};
constexpr std::size_t kRates = kParts.size();
using Vector = std::array<double, kRates>;
using Matrix = std::array<Vector, kRates>;

/// Deviation of a measured time from its prediction with the right efficiencies. Training: the
/// median over the eight published steps on B200 is 2 %. Serving: nine of ten of TensorRT-LLM's
/// throughputs are within 7 %, and one is a third off (reports/published.md).
double time_deviation(Purpose purpose) {
  switch (purpose) {
    case Purpose::train:
      return 0.025;
    case Purpose::serve:
      break;
  }
  return 0.06;
}

/// Likewise with efficiencies fitted to other runs.
double published_deviation(Purpose purpose) {
  switch (purpose) {
    case Purpose::train:
      return 0.035;
    case Purpose::serve:
      break;
  }
  return 0.06;
}

/// Deviation of what keeps its value.
constexpr double kNotFitted = 1e-9;
/// Deviations of efficiencies from those of their architecture. Published ones of GEMMs are 0.5 to
/// 0.75, of memory in training 0.3 to 0.8; networks vary as much as that.
constexpr Vector kTrainingDeviations{0.15, 0.45, 0.35, kNotFitted, kNotFitted};
/// Weights are streams of memory, which kernels of few rows read at 0.8 to 0.9 of the bandwidth
/// (tests/data/kernels). Caches differ with the attention of an engine, and fixed times with its
/// layers: from 0.5 of them to twice as many (docs/device-time.md).
constexpr Vector kServingDeviations{0.15, 0.15, 0.35, 0.45, 0.45};
/// Times as many where another architecture lends them.
constexpr double kLentDeviation = 1.7;

Vector known_deviations(Purpose purpose, EfficiencyOrigin origin) {
  Vector deviations = purpose == Purpose::train ? kTrainingDeviations : kServingDeviations;
  if (origin != EfficiencyOrigin::assumed) return deviations;
  for (double& deviation : deviations) deviation *= kLentDeviation;
  return deviations;
}

/// Rates that runs of this purpose are fitted by.
double fitted_rates(Purpose purpose) {
  switch (purpose) {
    case Purpose::train:
      return 3;
    case Purpose::serve:
      break;
  }
  return kRates;
}

constexpr int kSteps = 12;
constexpr double kConverged = 1e-7;   ///< change of a logarithm
constexpr double kDifference = 0.01;  ///< of a logarithm, for derivatives
/// 90 % of a normal distribution lie within this many deviations.
constexpr double kNinetyPercent = 1.645;

/// Machine files hold fractions from 0.001 to 1. Caches may be read faster than weights, up to the
/// bandwidth, and fixed times may be longer than the architecture's.
constexpr Vector kMost{1, 1, 1, 1.2, 10};
constexpr double kLeast = 0.001;

Vector logarithms(const Efficiency& efficiency) {
  Vector x{};
  for (std::size_t i = 0; i < kRates; ++i) x[i] = std::log(efficiency.*kParts[i]);
  return x;
}

Efficiency efficiency_at(const Vector& x) {
  Efficiency efficiency;
  for (std::size_t i = 0; i < kRates; ++i) {
    efficiency.*kParts[i] = std::clamp(std::exp(x[i]), kLeast, kMost[i]);
  }
  return efficiency;
}

/// Solves m·x = v by Gauss–Jordan elimination; m is symmetric and positive.
Vector solved(Matrix m, Vector v) {
  for (std::size_t i = 0; i < kRates; ++i) {
    const double pivot = m[i][i];
    for (double& value : m[i]) value /= pivot;
    v[i] /= pivot;
    for (std::size_t row = 0; row < kRates; ++row) {
      if (row == i) continue;
      const double factor = m[row][i];
      for (std::size_t column = 0; column < kRates; ++column) {
        m[row][column] -= factor * m[i][column];
      }
      v[row] -= factor * v[i];
    }
  }
  return v;
}

/// A run with its planner, at any efficiencies.
class Predictor {
 public:
  explicit Predictor(const MeasuredRun& run)
      : run_(run),
        choice_(resolve(run.request, run.question.load)),
        planner_(run.question.model.spec, run.question.query, run.question.rates) {
    require_legal(choice_, run.question.load, planner_.limits(run.question.load.seq_len));
  }

  [[nodiscard]] double seconds(const Efficiency& efficiency) {
    const DeviceRates rates = rates_at(efficiency);
    return run_.seconds ? run_.seconds(rates) : figures(rates).time.iteration_s;
  }

  [[nodiscard]] Integer allocated(const Efficiency& efficiency) {
    return figures(rates_at(efficiency)).memory.allocated();
  }

  [[nodiscard]] double log_seconds(const Vector& x) { return std::log(seconds(efficiency_at(x))); }

  [[nodiscard]] const MeasuredRun& run() const noexcept { return run_; }

  /// The run as the machine's file names it.
  [[nodiscard]] FittingRun named() const {
    return {run_.question.model.spec.name, describe(choice_.parallel), run_.time_s};
  }

 private:
  [[nodiscard]] DeviceRates rates_at(const Efficiency& efficiency) const {
    return with_efficiency(run_.question.rates, efficiency);
  }

  [[nodiscard]] PlanFigures figures(const DeviceRates& rates) {
    planner_.set_rates(rates);
    return planner_.evaluate(choice_, run_.question.load);
  }

  const MeasuredRun& run_;
  PlanChoice choice_;
  Planner planner_;
};

/// The quadratic form whose minimum a step of Gauss–Newton takes.
struct NormalEquations {
  Matrix curvature{};
  Vector gradient{};
};

NormalEquations equations_at(std::vector<Predictor>& predictors, const Vector& x,
                             const Vector& known, const Vector& deviations) {
  NormalEquations equations;
  for (std::size_t i = 0; i < kRates; ++i) {
    const double precision = 1 / (deviations[i] * deviations[i]);
    equations.curvature[i][i] = precision;
    equations.gradient[i] = precision * (known[i] - x[i]);
  }
  const double deviation = time_deviation(predictors.front().run().question.query.purpose);
  for (Predictor& predictor : predictors) {
    const double besides = predictor.run().unmodelled_s / predictor.run().time_s;
    const double time_precision = 1 / (deviation * deviation + besides * besides);
    const double log_seconds = predictor.log_seconds(x);
    const double residual = std::log(predictor.run().time_s) - log_seconds;
    Vector slope{};
    for (std::size_t i = 0; i < kRates; ++i) {
      Vector moved = x;
      moved[i] -= kDifference;  // away from the bound at 1
      slope[i] = (log_seconds - predictor.log_seconds(moved)) / kDifference;
    }
    for (std::size_t i = 0; i < kRates; ++i) {
      equations.gradient[i] += time_precision * slope[i] * residual;
      for (std::size_t j = 0; j < kRates; ++j) {
        equations.curvature[i][j] += time_precision * slope[i] * slope[j];
      }
    }
  }
  return equations;
}

Vector deviations_of(const Matrix& curvature) {
  Vector deviations{};
  for (std::size_t i = 0; i < kRates; ++i) {
    Vector unit{};
    unit[i] = 1;
    deviations[i] = std::sqrt(solved(curvature, unit)[i]);
  }
  return deviations;
}

/// Mean square of the deviations of published runs of the runs' kinds.
double published_variance(std::span<const MeasuredRun> runs) {
  double sum = 0;
  for (const MeasuredRun& run : runs) {
    const double deviation =
        run.published_deviation.value_or(published_deviation(run.question.query.purpose));
    sum += deviation * deviation;
  }
  return sum / static_cast<double>(runs.size());
}

/// Range of nine of ten predictions of other plans: what is left of the fitted runs, with the
/// published scatter counted as four runs more, widened as a fit of that few runs needs.
double range_of(std::span<const MeasuredRun> measured, const std::vector<FittedRun>& runs) {
  constexpr double kPublishedRuns = 4;
  double squares = kPublishedRuns * published_variance(measured);
  for (const FittedRun& run : runs) {
    const double residual = std::log(run.measured_s / run.predicted_s);
    squares += residual * residual;
  }
  const auto count = static_cast<double>(runs.size());
  const double deviation = std::sqrt(squares / (kPublishedRuns + count));
  const double rates = fitted_rates(measured.front().question.query.purpose);
  return std::expm1(kNinetyPercent * deviation * std::sqrt(1 + rates / count));
}

void require_runs(std::span<const MeasuredRun> runs) {
  if (runs.empty()) throw_invalid_input("there is no run to fit to", "give at least one run");
  for (const MeasuredRun& run : runs) {
    if (!(run.time_s > 0) || !std::isfinite(run.time_s)) {
      throw_invalid_input(fmt::format("{}: time_s is not above 0", run.name),
                          "give the seconds of one iteration");
    }
    const Purpose first_purpose = runs.front().question.query.purpose;
    if (run.question.query.purpose != first_purpose) {
      const bool serving_first = first_purpose == Purpose::serve;
      throw_invalid_input(fmt::format("{} is a serving run and {} a training run",
                                      serving_first ? runs.front().name : run.name,
                                      serving_first ? run.name : runs.front().name),
                          "fit them separately");
    }
    if (run.question.query.dtype != runs.front().question.query.dtype) {
      throw_invalid_input(
          fmt::format("{} and {} have activations of different types", runs.front().name, run.name),
          "fit each type to runs of its own");
    }
  }
}

/// Throws if only a hundredth of a rate explains the runs, or no rate up to the whole does: most
/// likely a time in another unit, or of another command.
void require_credible(const RateFit& fit) {
  constexpr double kLeastFraction = 0.01;
  constexpr double kMostFactor = 3;
  const auto refuse = [](const FittedRun& run, std::string_view reason) {
    throw_invalid_input(fmt::format("{}: measured {:.3g} s, predicted {:.3g} s before the fit: {}",
                                    run.name, run.measured_s, run.before_s, reason),
                        "check that times are in seconds, and of this command");
  };
  const Efficiency& fractions = fit.efficiency.fractions;
  const auto slowest = std::ranges::max_element(
      fit.runs, {}, [](const FittedRun& run) { return run.measured_s / run.before_s; });
  if (std::min({fractions.matrix, fractions.memory, fractions.network}) < kLeastFraction) {
    refuse(*slowest, "less than 1 % of a rate of this machine would explain it");
  }
  for (const FittedRun& run : fit.runs) {
    const double factor = run.predicted_s / run.measured_s;
    if (std::max(factor, 1 / factor) > kMostFactor) {
      refuse(run, "no rates of this machine explain it");
    }
  }
}

}  // namespace

DeviceRates with_efficiency(DeviceRates rates, const Efficiency& efficiency) {
  // The layers' GEMM rate holds the ratio of two types' efficiencies, which stays.
  const double change = efficiency.network / rates.efficiency.network;
  rates.port_fraction = std::min(1.0, change * rates.port_fraction);
  const double slower = efficiency.fixed / rates.efficiency.fixed;
  rates.kernel_s *= slower;
  rates.layer_gemm_kernel_s *= slower;
  rates.efficiency = efficiency;
  return rates;
}

RateFit fit_rates(std::span<const MeasuredRun> runs) {
  require_runs(runs);
  std::vector<Predictor> predictors(runs.begin(), runs.end());
  const DeviceRates& rates = runs.front().question.rates;
  const Vector known = logarithms(rates.efficiency);
  const Vector deviations =
      known_deviations(runs.front().question.query.purpose, rates.efficiency_origin);
  Vector x = known;
  NormalEquations equations;
  for (int step = 0; step < kSteps; ++step) {
    equations = equations_at(predictors, x, known, deviations);
    const Vector change = solved(equations.curvature, equations.gradient);
    double moved = 0;
    for (std::size_t i = 0; i < kRates; ++i) {
      const double before = x[i];
      x[i] = std::min(std::log(kMost[i]), x[i] + std::clamp(change[i], -0.5, 0.5));
      moved = std::max(moved, std::abs(x[i] - before));
    }
    if (moved < kConverged) break;
  }
  RateFit fit;
  fit.before = rates.efficiency;
  fit.efficiency.purpose = runs.front().question.query.purpose;
  fit.efficiency.dtype = runs.front().question.query.dtype;
  fit.efficiency.fractions = efficiency_at(x);
  const Vector spread = deviations_of(equations.curvature);
  for (std::size_t i = 0; i < kRates; ++i) {
    fit.efficiency.deviations.*kParts[i] = deviations[i] > kNotFitted * 2 ? spread[i] : 0;
  }
  fit.efficiency.runs = static_cast<std::int64_t>(runs.size());
  for (Predictor& predictor : predictors) {
    const Efficiency& after = fit.efficiency.fractions;
    fit.efficiency.fitted_to.push_back(predictor.named());
    fit.runs.push_back({predictor.run().name, predictor.run().time_s, predictor.seconds(fit.before),
                        predictor.seconds(after), predictor.run().memory_bytes,
                        predictor.allocated(after)});
  }
  require_credible(fit);
  fit.efficiency.range = range_of(runs, fit.runs);
  return fit;
}

}  // namespace headroom
