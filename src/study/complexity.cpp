#include "headroom/complexity.h"

#include <algorithm>
#include <utility>

#include "exponent_fit.h"
#include "leading_share.h"

namespace headroom {
namespace {

/// The whole layer, or only its position mixing.
enum class Extent { layer, core };

const LengthFunction* flops_of(const LayerComplexity& layer, Extent extent) {
  if (extent == Extent::layer) return &layer.flops.by_length;
  return layer.core ? &layer.core->by_length : nullptr;
}

double share_of(const LayerComplexity& layer, Extent extent, Integer length) {
  return extent == Extent::layer ? leading_share(layer, length)
                                 : leading_share_of_core(layer, length);
}

double time_of(const LengthRun& run, Extent extent) {
  return extent == Extent::layer ? run.time_s : run.core_time_s;
}

double time_of(const PredictedRun& run, Extent extent) {
  return extent == Extent::layer ? run.time_s : run.core_time_s;
}

template <class Run>
std::vector<LengthValue> curve(const std::vector<Run>& runs, Extent extent) {
  std::vector<LengthValue> values;
  values.reserve(runs.size());
  for (const Run& run : runs) {
    values.push_back({static_cast<double>(run.seq_len), time_of(run, extent)});
  }
  return values;
}

/// Values at lengths of at least `least`.
std::vector<LengthValue> at_least(std::vector<LengthValue> values, std::int64_t least) {
  std::erase_if(values,
                [&](const LengthValue& one) { return one.length < static_cast<double>(least); });
  return values;
}

Integer bytes_of(const LayerComplexity& layer, Extent extent, Integer length) {
  return extent == Extent::layer ? moved_bytes(layer, length) : moved_bytes_of_core(layer, length);
}

/// Returns whether the working set exceeds the cache: half of the bytes moved, since most operands
/// are read once and written once.
bool exceeds_cache(const LayerStudy& study, Extent extent, std::int64_t length, Integer cache) {
  return cache > 0 && bytes_of(study.layer, extent, length) > 2 * cache;
}

/// The first measured length from which the leading powers dominate.
std::optional<std::int64_t> dominated_from(const LayerStudy& study, Extent extent) {
  std::optional<std::int64_t> first;
  for (const LengthRun& run : study.times.runs) {
    if (share_of(study.layer, extent, run.seq_len) < kAsymptoticShare)
      first.reset();
    else if (!first)
      first = run.seq_len;
  }
  return first;
}

/// First length of the asymptotic range: beyond the cache, if enough lengths remain.
std::optional<std::int64_t> asymptotic_from(const LayerStudy& study, Extent extent, Integer cache) {
  const auto dominated = dominated_from(study, extent);
  if (!dominated) return std::nullopt;
  std::vector<std::int64_t> beyond;
  for (const LengthRun& run : study.times.runs) {
    if (run.seq_len < *dominated) continue;
    if (exceeds_cache(study, extent, run.seq_len, cache)) beyond.push_back(run.seq_len);
  }
  // The slope over a narrow range, such as one doubling, is mostly noise.
  const bool wide = beyond.size() >= kFewestFitPoints && beyond.back() >= 4 * beyond.front();
  return wide ? beyond.front() : *dominated;
}

std::optional<ExponentRow> exponent_of(const LayerStudy& study, Extent extent, Integer cache) {
  const LengthFunction* flops = flops_of(study.layer, extent);
  if (flops == nullptr) return std::nullopt;
  const auto least = asymptotic_from(study, extent, cache);
  if (!least) return std::nullopt;
  const std::vector<LengthValue> measured = at_least(curve(study.times.runs, extent), *least);
  if (measured.size() < kFewestFitPoints) return std::nullopt;
  std::vector<LengthValue> theory = measured;
  for (LengthValue& one : theory) {
    one.value = static_cast<double>(flops->at(static_cast<Integer>(one.length)));
  }
  ExponentRow row;
  row.measured = *fit_exponent(measured);
  row.predicted = fit_exponent(theory)->exponent;
  row.from = *least;
  row.to = study.times.runs.back().seq_len;
  row.beyond_cache = exceeds_cache(study, extent, *least, cache);
  const auto predicted = fit_exponent(at_least(curve(study.times.predicted, extent), *least));
  if (predicted) row.predicted_time = predicted->exponent;
  return row;
}

CrossoverRow crossover_of(const ComplexityReport& report, Extent extent, std::size_t a,
                          std::size_t b) {
  const LengthFunction& cost_a = *flops_of(report.layers[a].layer, extent);
  const LengthFunction& cost_b = *flops_of(report.layers[b].layer, extent);
  CrossoverRow row{a, b, overtakes_at(cost_a, cost_b), {}, {}};
  if (row.flops) return row;
  std::swap(row.above, row.below);
  row.flops = overtakes_at(cost_b, cost_a);
  return row;
}

std::vector<CrossoverRow> all_crossovers(const ComplexityReport& report, Extent extent) {
  std::vector<CrossoverRow> rows;
  for (std::size_t a = 0; a < report.layers.size(); ++a) {
    if (flops_of(report.layers[a].layer, extent) == nullptr) continue;
    for (std::size_t b = a + 1; b < report.layers.size(); ++b) {
      if (flops_of(report.layers[b].layer, extent) == nullptr) continue;
      rows.push_back(crossover_of(report, extent, a, b));
    }
  }
  return rows;
}

/// The runs at lengths that both layers have.
template <class Run>
std::pair<std::vector<Run>, std::vector<Run>> common(std::vector<Run> a, std::vector<Run> b) {
  const auto keep = [](std::vector<Run>& runs, const std::vector<Run>& others) {
    std::erase_if(runs, [&](const Run& run) {
      return std::ranges::find(others, run.seq_len, &Run::seq_len) == others.end();
    });
  };
  keep(a, b);
  keep(b, a);
  return {std::move(a), std::move(b)};
}

template <class Run>
std::optional<double> crossing(const std::vector<Run>& above, const std::vector<Run>& below,
                               Extent extent) {
  const auto [a, b] = common(above, below);
  return interpolated_crossing(curve(a, extent), curve(b, extent));
}

void add_times(ComplexityReport& report, Extent extent, std::vector<CrossoverRow>& rows) {
  for (CrossoverRow& row : rows) {
    const LayerRuns& above = report.layers[row.above].times;
    const LayerRuns& below = report.layers[row.below].times;
    row.measured_time = crossing(above.runs, below.runs, extent);
    row.predicted_time = crossing(above.predicted, below.predicted, extent);
  }
}

}  // namespace

ComplexityReport make_complexity_report(std::vector<LayerComplexity> layers,
                                        std::vector<std::int64_t> lengths) {
  ComplexityReport report;
  report.lengths = std::move(lengths);
  report.layers.reserve(layers.size());
  for (LayerComplexity& layer : layers) report.layers.push_back({std::move(layer), {}, {}, {}});
  report.crossovers = all_crossovers(report, Extent::layer);
  report.core_crossovers = all_crossovers(report, Extent::core);
  return report;
}

Workload workload_at(const LayerComplexity& layer, std::int64_t length) {
  WorkloadRequest request;
  request.seq_len = length;
  request.attention = layer.attention;
  const ModelSpec& spec = layer.model.spec;
  if (spec.reads_two_sequences()) request.enc_seq_len = length;
  return resolve(request, spec);
}

std::vector<PredictedRun> predict_runs(const LayerComplexity& layer,
                                       std::span<const std::int64_t> lengths,
                                       const MachineProfile& machine, const TimeRequest& request) {
  std::vector<PredictedRun> runs;
  runs.reserve(lengths.size());
  for (const std::int64_t length : lengths) {
    const TimePrediction time =
        predict_time(layer.model.spec, workload_at(layer, length), machine, request);
    PredictedRun run{length, time.total_s, 0};
    for (const OperatorTime& one : time.operators) {
      const bool mixes = std::ranges::find(layer.core_paths, one.path) != layer.core_paths.end();
      if (mixes) run.core_time_s += one.time_s;
    }
    runs.push_back(run);
  }
  return runs;
}

void add_predictions(ComplexityReport& report, std::vector<LayerRuns> predicted) {
  for (std::size_t i = 0; i < report.layers.size(); ++i) {
    report.layers[i].times = std::move(predicted.at(i));
  }
  add_times(report, Extent::layer, report.crossovers);
  add_times(report, Extent::core, report.core_crossovers);
}

void add_measurements(ComplexityReport& report, std::vector<LayerRuns> runs) {
  add_predictions(report, std::move(runs));
  for (LayerStudy& study : report.layers) {
    study.exponent = exponent_of(study, Extent::layer, report.uncached_bytes);
    study.core_exponent = exponent_of(study, Extent::core, report.uncached_bytes);
  }
}

}  // namespace headroom
