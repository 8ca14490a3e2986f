// Pictures as static SVG: treemaps and plots in the colours of the page, readable without a script.
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

/// Steps hold each value until the next point. Ranges are pairs of points, each a bar from one to
/// the other.
enum class Drawn { points, line, steps, ranges };

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

}  // namespace headroom::detail
