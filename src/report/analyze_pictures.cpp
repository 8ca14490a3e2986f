// Pictures of a model's costs.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "describe.h"
#include "headroom/analysis.h"
#include "picture.h"
#include "pictures.h"
#include "units.h"

namespace headroom::detail {
namespace {

/// Components and their operators, by a cost.
template <class CostOf>
std::vector<Tile> tiles_of(const AnalyzeReport& report, const CostOf& cost_of) {
  const Bindings values = bindings_of(report.workload, report.graph);
  std::vector<Tile> tiles;
  for (const ComponentAnalysis& component : report.analysis.components) {
    Tile tile{std::string(name_of(component.component)), 0};
    for (const NodeAnalysis& node : report.analysis.nodes) {
      if (name_of(node.component) != tile.name) continue;
      const auto size = static_cast<double>(cost_of(node).evaluate(values));
      tile.parts.push_back({node.path, size});
      tile.size += size;
    }
    tiles.push_back(std::move(tile));
  }
  return tiles;
}

/// Returns whether all weights have as many bytes per parameter, as those of one type.
bool has_one_weight_size(const AnalyzeReport& report) {
  const Figures& figures = report.figures;
  const Bindings values = bindings_of(report.workload, report.graph);
  return std::ranges::all_of(report.analysis.nodes, [&](const NodeAnalysis& node) {
    const auto bytes = static_cast<double>(node.weight_bytes.evaluate(values));
    const auto parameters = static_cast<double>(node.parameters.evaluate(values));
    return bytes * static_cast<double>(figures.parameters) ==
           parameters * static_cast<double>(figures.weight_bytes);
  });
}

/// States so if the bytes of weights would have the same picture.
std::string parameters_treemap(const AnalyzeReport& report) {
  const Figures& figures = report.figures;
  std::string title = "Parameters by component";
  if (figures.parameters > 0 && has_one_weight_size(report)) {
    title += fmt::format(
        " (bytes in the same proportion: {:.4g} B each)",
        static_cast<double>(figures.weight_bytes) / static_cast<double>(figures.parameters));
  }
  return treemap(title, with_separators(figures.parameters),
                 tiles_of(report, [](const NodeAnalysis& node) { return node.parameters; }));
}

/// Weights of one type have the picture of the parameters.
std::string weights_treemap(const AnalyzeReport& report) {
  if (has_one_weight_size(report)) return {};
  return treemap("Weights by component", describe_bytes(report.figures.weight_bytes),
                 tiles_of(report, [](const NodeAnalysis& node) { return node.weight_bytes; }));
}

std::string amount_in(Integer count, const Unit& unit, int decimals) {
  return fmt::format("{} {}", cell_text(count, in_unit(unit, decimals)), unit.name);
}

OperationUnit counted_unit(const AnalyzeReport& report) {
  return report.analysis.convention == Convention::fvcore ? OperationUnit::multiply_add
                                                          : OperationUnit::flop;
}

/// Live bytes while each operator of the graph runs; one layer stands for all of its block.
std::string memory_plot(const AnalyzeReport& report) {
  const std::vector<LiveBytes>& live = report.analysis.live;
  if (live.empty() || report.workload.phase == Phase::train) return {};
  const Bindings values = bindings_of(report.workload, report.graph);
  const Integer peak = report.figures.peak_activation_bytes;
  const Unit unit = byte_unit(peak);
  const auto scaled = [&](Integer bytes) {
    return static_cast<double>(bytes) / static_cast<double>(unit.size);
  };
  PlotSeries series{"activations", Drawn::steps};
  for (std::size_t i = 0; i < live.size(); ++i) {
    series.points.push_back({static_cast<double>(i), scaled(live[i].bytes.evaluate(values))});
  }
  // Each operator's memory is held until the next one runs.
  series.points.push_back({static_cast<double>(live.size()), series.points.back().y});
  const std::string at = live[report.figures.peak_index].path;
  const std::string words = fmt::format("peak {} at {}", describe_bytes(peak), at);
  return plot({"Activation memory in the order of execution",
               words,
               {"operator (one layer of each kind)"},
               {fmt::format("live activations [{}]", unit.name)},
               {std::move(series)},
               PlotPoint{static_cast<double>(report.figures.peak_index), scaled(peak), words}});
}

/// Points of a curve are at most this many, each the maximum of its operators: a page has few
/// bytes, and a picture few pixels.
constexpr std::size_t kMostMoments = 600;

/// A curve over a training step, in `unit`.
template <class BytesOf>
PlotSeries moment_series(const char* name, const std::vector<TrainingMoment>& moments,
                         const Unit& unit, const BytesOf& bytes_of) {
  PlotSeries series{name, Drawn::area};
  const std::size_t each = (moments.size() + kMostMoments - 1) / kMostMoments;
  for (std::size_t first = 0; first < moments.size(); first += each) {
    const std::size_t end = std::min(first + each, moments.size());
    Integer most = 0;
    for (std::size_t i = first; i < end; ++i) most = std::max(most, bytes_of(moments[i]));
    series.points.push_back(
        {static_cast<double>(first), static_cast<double>(most) / static_cast<double>(unit.size)});
  }
  series.points.push_back({static_cast<double>(moments.size()), series.points.back().y});
  return series;
}

/// Saved tensors grow forward and shrink backward, below what is computed again and the gradients.
std::string training_memory_plot(const AnalyzeReport& report) {
  const std::vector<TrainingMoment> moments =
      training_moments(report.graph, report.analysis, report.workload);
  if (moments.empty()) return {};
  const auto peak = std::ranges::max_element(moments, {}, &TrainingMoment::total);
  const Unit unit = byte_unit(peak->total());
  const double most = static_cast<double>(peak->total()) / static_cast<double>(unit.size);
  const auto turn = static_cast<double>(moments.size()) / 2;
  std::vector<PlotSeries> series{
      moment_series("gradients of activations", moments, unit,
                    [](const TrainingMoment& moment) { return moment.total(); })};
  if (report.workload.recompute != Recompute::none) {
    series.push_back(moment_series(
        "computed again", moments, unit,
        [](const TrainingMoment& moment) { return moment.saved + moment.recomputed; }));
  }
  series.push_back(moment_series("saved for the backward pass", moments, unit,
                                 [](const TrainingMoment& moment) { return moment.saved; }));
  series.push_back({"end of the forward pass",
                    Drawn::ranges,
                    {{turn, 0, "end of the forward pass"}, {turn, most}}});
  const std::string words =
      fmt::format("peak {} at {}, {}", describe_bytes(peak->total()), peak->path,
                  peak->direction == PassDirection::forward ? "forward" : "backward");
  return plot({"Activation memory over a training step, forward then backward",
               fmt::format("Saved at the end of the forward pass: {}; {}.",
                           describe_bytes(report.figures.saved_activation_bytes), words),
               {"operator of every layer · without weights, their gradients and temporaries"},
               {fmt::format("activations [{}]", unit.name)},
               std::move(series),
               PlotPoint{static_cast<double>(peak - moments.begin()), most, words}});
}

/// Rates and intensities of the operators; the bars end at the machine's roofline (Williams,
/// Waterman, Patterson 2009).
std::string roofline_plot(const AnalyzeReport& report) {
  if (!report.time || report.time->decode_bound) return {};
  const Bindings values = bindings_of(report.workload, report.graph);
  std::map<std::string, const OperatorTime*> times;
  for (const OperatorTime& time : report.time->operators) times[time.path] = &time;
  PlotSeries room{"room up to the roofline", Drawn::ranges};
  PlotSeries compute{"compute-bound", Drawn::points};
  PlotSeries memory{"bound by cache, memory or overhead", Drawn::points};
  for (const NodeAnalysis& node : report.analysis.nodes) {
    const auto found = times.find(node.path);
    const Cost& cost = node.cost.forward;
    const auto flops = static_cast<double>(cost.matrix_flops.evaluate(values));
    const auto bytes = static_cast<double>((cost.bytes_read + cost.bytes_written).evaluate(values));
    if (found == times.end() || !(flops > 0) || !(bytes > 0)) continue;
    const OperatorTime& time = *found->second;
    if (!(time.time_s > 0) || !(time.roofline_share > 0)) continue;
    const double rate = flops / time.time_s / 1e9;
    const PlotPoint point{flops / bytes, rate,
                          fmt::format("{}: {:.4g} GFLOP/s, {:.0f} % of the roofline", node.path,
                                      rate, 100 * time.roofline_share)};
    (time.bound == Bound::compute ? compute : memory).points.push_back(point);
    room.points.push_back(point);
    room.points.push_back({point.x, rate / time.roofline_share});
  }
  std::vector<PlotSeries> series{std::move(compute), std::move(memory), std::move(room)};
  std::erase_if(series, [](const PlotSeries& one) { return one.points.empty(); });
  return plot({fmt::format("Operators against the roofline of {}", report.time->machine),
               "Predicted rate of each operator with matrix products over its intensity; a bar "
               "ends at the roofline.",
               {"intensity [FLOP/B]", AxisScale::logarithmic},
               {"predicted rate [GFLOP/s]", AxisScale::logarithmic},
               std::move(series),
               {}});
}

}  // namespace

std::vector<std::string> pictures_of(const AnalyzeReport& report) {
  const Figures& figures = report.figures;
  const Unit operations = operation_unit(figures.forward.matrix_flops, counted_unit(report));
  return {
      parameters_treemap(report),
      weights_treemap(report),
      treemap("Matrix FLOPs by component, forward",
              amount_in(figures.forward.matrix_flops, operations, 3),
              tiles_of(report,
                       [](const NodeAnalysis& node) { return node.cost.forward.matrix_flops; })),
      layer_map(report),
      memory_plot(report),
      training_memory_plot(report),
      roofline_plot(report)};
}

}  // namespace headroom::detail
