// Pictures as static SVG: treemaps, plots, heat maps and bars in the colours of the page, readable
// without a script.
// Each is a <figure> whose caption and description say what it shows. Internal to src/report.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace headroom::detail {

/// A part of a whole; its own parts, if any, sum to `size`.
struct Tile {
  std::string name;
  double size = 0;
  std::vector<Tile> parts{};
};

/// Areas in proportion to sizes, largest first (squarified: Bruls, Huizing, van Wijk 2000). `total`
/// is the size of all in words. Empty without a positive size.
[[nodiscard]] std::string treemap(const std::string& title, const std::string& total,
                                  std::vector<Tile> tiles);

enum class AxisScale { linear, logarithmic };

struct PlotAxis {
  std::string title;  ///< with the unit
  AxisScale scale = AxisScale::linear;
};

struct PlotPoint {
  double x = 0;
  double y = 0;
  std::string name{};  ///< in its tooltip
};

/// Steps hold each value until the next point; an area is filled below its steps. Ranges are pairs
/// of points, each a bar from one to the other. Named points of a line are dots with tooltips.
enum class Drawn { points, line, steps, area, ranges };

struct PlotSeries {
  std::string name;
  Drawn drawn = Drawn::points;
  std::vector<PlotPoint> points{};
};

struct Plot {
  std::string title;
  std::string description;  ///< in words, for readers who do not see it
  PlotAxis x;
  PlotAxis y;
  std::vector<PlotSeries> series;
  std::optional<PlotPoint> mark;  ///< labelled with its name
};

/// Empty without points, or with a value that a logarithmic axis cannot show.
[[nodiscard]] std::string plot(const Plot& content);

/// One value of a heat map, in the map's unit.
struct HeatCell {
  double value = 0;
  std::string text;  ///< in the cell, if it has room
  std::string name;  ///< in its tooltip
};

struct HeatMap {
  std::string title;
  std::string description;
  std::string unit;  ///< of the values, beside the colour scale
  std::string x_title;
  std::string y_title;
  std::vector<std::string> columns;  ///< names of the values of x
  std::vector<std::string> rows;     ///< names of the values of y, the first on top
  /// [rows, columns]; empty where nothing is known.
  std::vector<std::optional<HeatCell>> cells;
};

/// The colour scale is logarithmic for positive values over more than a decade. Its lightness falls
/// with the value, so that it reads in grey. Empty without values.
[[nodiscard]] std::string heat_map(const HeatMap& content);

/// Colour of a fraction in [0, 1] of the scale, "#rrggbb".
[[nodiscard]] std::string heat_colour(double fraction);
/// Black or white: the text with the higher contrast on a colour, at least 4.5 on any.
[[nodiscard]] std::string_view text_colour_on(std::string_view colour);

/// A part of a bar, which begins where the one before ends. Parts with one name have one colour.
struct BarPart {
  std::string name;  ///< in the legend
  double size = 0;   ///< negative: to the left of zero
  std::string tooltip;
};

struct Bar {
  std::string name;
  std::vector<BarPart> parts;
  std::string text;                 ///< behind the end
  double start = 0;                 ///< of the first part; above 0 on a logarithmic axis
  std::optional<PlotPoint> mark{};  ///< across the bar at x, its name in a tooltip
};

/// Several bars with one axis.
struct Bars {
  std::string title;
  std::string description;
  PlotAxis axis;
  std::vector<Bar> bars;
  std::optional<PlotPoint> limit;  ///< a vertical line at x, labelled with its name
};

/// Horizontal bars. Empty without a part of any size, or with a value that a logarithmic axis
/// cannot show.
[[nodiscard]] std::string bars(const Bars& content);

}  // namespace headroom::detail
