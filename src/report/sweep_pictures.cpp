// A sweep's figures over its axes: heat maps of two, curves of one, bars of words.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "picture.h"
#include "sweep_axes.h"
#include "units.h"

namespace headroom::detail {
namespace {

/// Combinations of further axes that have maps of their own.
constexpr std::size_t kMostCombinations = 4;

constexpr std::size_t kDrawnAxes = 2;

/// Rows with the same values on all axes behind the first two, in order of appearance.
struct Combination {
  std::string name;  ///< "weights float8, dtype bfloat16"
  std::vector<std::size_t> rows;
};

std::vector<Combination> combinations_of(const SweepReport& report,
                                         const std::vector<SweepAxis>& axes) {
  const std::size_t drawn = std::min(kDrawnAxes, axes.size());
  const std::vector<SweepAxis> others(axes.begin() + static_cast<std::ptrdiff_t>(drawn),
                                      axes.end());
  std::vector<Combination> combinations;
  for (std::size_t row = 0; row < report.rows.size(); ++row) {
    const std::string name = place_of(others, row);
    auto found = std::ranges::find(combinations, name, &Combination::name);
    if (found == combinations.end()) found = combinations.insert(found, Combination{name, {}});
    found->rows.push_back(row);
  }
  return combinations;
}

/// "from 1.2 ms at seq 1 to 3.4 ms at seq 8"
std::string extremes(const SweepFigure& figure, const std::vector<SweepAxis>& axes,
                     const std::vector<std::size_t>& rows) {
  const auto value = [&](std::size_t row) { return figure.values[row]; };
  const std::size_t least = *std::ranges::min_element(rows, {}, value);
  const std::size_t most = *std::ranges::max_element(rows, {}, value);
  return fmt::format("From {} at {} to {} at {}.", figure.texts[least], place_of(axes, least),
                     figure.texts[most], place_of(axes, most));
}

std::string title_of(const SweepFigure& figure, const std::string& over,
                     const Combination& combination) {
  return fmt::format("{} [{}] by {}{}{}", figure.title, figure.unit, over,
                     combination.name.empty() ? "" : " · ", combination.name);
}

std::string map_of(const SweepFigure& figure, const std::vector<SweepAxis>& axes,
                   const Combination& combination) {
  const SweepAxis& x = axes[0];
  const SweepAxis& y = axes[1];
  const std::vector<SweepAxis> drawn{x, y};
  HeatMap map{title_of(figure, x.title + " and " + y.title, combination),
              extremes(figure, drawn, combination.rows),
              figure.unit,
              x.title,
              y.title,
              x.values,
              y.values,
              std::vector<std::optional<HeatCell>>(x.values.size() * y.values.size())};
  for (const std::size_t row : combination.rows) {
    map.cells[y.places[row] * x.values.size() + x.places[row]] =
        HeatCell{figure.values[row], short_text(figure.values[row]),
                 place_of(drawn, row) + ": " + figure.texts[row]};
  }
  return heat_map(map);
}

/// Logarithmic if all values are positive and span more than a decade.
AxisScale scale_of(const std::vector<double>& values) {
  const auto [low, high] = std::ranges::minmax(values);
  return low > 0 && high > 10 * low ? AxisScale::logarithmic : AxisScale::linear;
}

std::string curve_of(const SweepFigure& figure, const SweepAxis& axis,
                     const Combination& combination) {
  PlotSeries series{figure.title, Drawn::line};
  for (const std::size_t row : combination.rows) {
    series.points.push_back({axis.numbers[axis.places[row]], figure.values[row],
                             place_of({axis}, row) + ": " + figure.texts[row]});
  }
  std::ranges::stable_sort(series.points, {}, &PlotPoint::x);
  return plot({title_of(figure, axis.title, combination),
               extremes(figure, {axis}, combination.rows),
               {axis.title, scale_of(axis.numbers)},
               {figure.unit, scale_of(figure.values)},
               {std::move(series)},
               {}});
}

std::string bars_of(const SweepFigure& figure, const SweepAxis& axis,
                    const Combination& combination) {
  Bars content{title_of(figure, axis.title, combination),
               extremes(figure, {axis}, combination.rows),
               {figure.unit},
               {},
               {}};
  for (const std::size_t row : combination.rows) {
    const std::string& name = axis.values[axis.places[row]];
    content.bars.push_back({name,
                            {{figure.title, figure.values[row], name + ": " + figure.texts[row]}},
                            short_text(figure.values[row])});
  }
  return bars(content);
}

std::string picture_of(const SweepFigure& figure, const std::vector<SweepAxis>& axes,
                       const Combination& combination) {
  if (axes.size() >= kDrawnAxes) return map_of(figure, axes, combination);
  const SweepAxis& axis = axes.front();
  return axis.numbers.empty() ? bars_of(figure, axis, combination)
                              : curve_of(figure, axis, combination);
}

}  // namespace

std::vector<std::string> pictures_of(const SweepReport& report, const std::vector<SweepAxis>& axes,
                                     const std::vector<SweepFigure>& figures) {
  if (axes.empty()) return {};
  std::vector<Combination> combinations = combinations_of(report, axes);
  if (combinations.size() > kMostCombinations) combinations.resize(kMostCombinations);
  std::vector<std::string> pictures;
  for (const Combination& combination : combinations) {
    for (const SweepFigure& figure : figures) {
      if (!figure.is_constant()) {
        pictures.insert(pictures.end(), picture_of(figure, axes, combination));
      }
    }
  }
  return pictures;
}

std::string picture_scope(const SweepReport& report, const std::vector<SweepAxis>& axes) {
  if (axes.size() <= kDrawnAxes) return {};
  std::string others;
  for (std::size_t i = kDrawnAxes; i < axes.size(); ++i) {
    others += (others.empty() ? "" : ", ") + axes[i].title;
  }
  const std::size_t all = combinations_of(report, axes).size();
  const std::string drawn = fmt::format("{} by {}, the longest axes", axes[0].title, axes[1].title);
  if (all <= kMostCombinations) return fmt::format("{}; one for each {}", drawn, others);
  return fmt::format("{}; for the first {} of {} combinations of {}: the table has all", drawn,
                     kMostCombinations, all, others);
}

}  // namespace headroom::detail
