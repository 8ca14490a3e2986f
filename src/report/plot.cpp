// Plots with linear or logarithmic axes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "axis_map.h"
#include "html.h"
#include "picture.h"
#include "picture_frame.h"

namespace headroom::detail {

std::string_view picture_colour(std::size_t number) noexcept {
  return kPictureColours[number % kPictureColours.size()];
}

std::string picture_frame(const std::string& title, const std::string& description, double height,
                          const std::string& elements) {
  return fmt::format(
      "<figure class=\"picture\"><figcaption>{}</figcaption>\n"
      "<div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"{}\">"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"{}\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n{}</svg></div>"
      "</figure>\n",
      html_escaped(title), html_escaped(title), kPictureWidth, height,
      html_escaped(title + ". " + description), elements);
}

std::string picture_text(double x, double y, std::string_view anchor, std::string_view words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>", x, y, anchor,
                     html_escaped(words));
}

namespace {

constexpr double kPlotHeight = 320;
constexpr double kLeft = 78;
constexpr double kRight = 20;
constexpr double kTop = 30;
constexpr double kBottom = 48;
/// Average width of a bold character of 12 px.
constexpr double kBoldWidth = 7.4;

struct Bounds {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  [[nodiscard]] bool fits(AxisScale scale) const {
    return low <= high && std::isfinite(low) && std::isfinite(high) &&
           (scale == AxisScale::linear || low > 0);
  }
};

class PlotDrawing {
 public:
  PlotDrawing(const Plot& content, const Bounds& x, const Bounds& y)
      : plot_(content),
        x_(content.x.scale, x.low, x.high, kLeft, kPictureWidth - kRight),
        y_(content.y.scale, y.low, y.high, kPlotHeight - kBottom, kTop) {}

  std::string draw() && {
    draw_axes();
    for (std::size_t i = 0; i < plot_.series.size(); ++i) draw_series(plot_.series[i], i);
    if (plot_.series.size() > 1) draw_names();
    if (plot_.mark) draw_mark(*plot_.mark);
    return std::move(elements_);
  }

 private:
  void draw_axes() {
    elements_ += "<g stroke=\"#8a929e\" stroke-opacity=\"0.4\">";
    for (const double tick : x_.ticks()) line(x_.pixel(tick), kTop, x_.pixel(tick), bottom());
    for (const double tick : y_.ticks()) line(kLeft, y_.pixel(tick), right(), y_.pixel(tick));
    elements_ += "</g>\n<g fill=\"currentColor\">";
    for (const double tick : x_.ticks()) {
      text(x_.pixel(tick), bottom() + 18, "middle", tick_text(tick));
    }
    for (const double tick : y_.ticks()) {
      text(kLeft - 6, y_.pixel(tick) + 4, "end", tick_text(tick));
    }
    text(right(), kPlotHeight - 8, "end", plot_.x.title);
    text(4, 14, "start", plot_.y.title);
    elements_ += "</g>\n";
  }

  void draw_series(const PlotSeries& series, std::size_t number) {
    const std::string_view colour = picture_colour(number);
    switch (series.drawn) {
      case Drawn::points:
        return draw_points(series, colour);
      case Drawn::ranges:
        return draw_ranges(series, colour);
      case Drawn::line:
      case Drawn::steps:
      case Drawn::area:
        break;
    }
    draw_path(series, colour);
  }

  void draw_points(const PlotSeries& series, std::string_view colour) {
    for (const PlotPoint& point : series.points) {
      elements_ += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\" stroke=\"#5b6470\"><title>{}"
          "</title></circle>\n",
          x_.pixel(point.x), y_.pixel(point.y), colour, html_escaped(point.name));
    }
  }

  void draw_ranges(const PlotSeries& series, std::string_view colour) {
    for (std::size_t i = 0; i + 1 < series.points.size(); i += 2) {
      const PlotPoint& from = series.points[i];
      const PlotPoint& to = series.points[i + 1];
      elements_ += fmt::format(
          "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
          "stroke-width=\"3\"><title>{}</title></line>\n",
          x_.pixel(from.x), y_.pixel(from.y), x_.pixel(to.x), y_.pixel(to.y), colour,
          html_escaped(from.name));
    }
  }

  void draw_path(const PlotSeries& series, std::string_view colour) {
    std::string path;
    for (const PlotPoint& point : series.points) {
      const double x = x_.pixel(point.x);
      const double y = y_.pixel(point.y);
      if (path.empty()) {
        path = fmt::format("M{:.1f} {:.1f}", x, y);
      } else if (series.drawn != Drawn::line) {
        path += fmt::format("H{:.1f}V{:.1f}", x, y);
      } else {
        path += fmt::format("L{:.1f} {:.1f}", x, y);
      }
    }
    const bool is_filled = series.drawn == Drawn::area;
    if (is_filled) path += fmt::format("V{:.1f}H{:.1f}z", bottom(), x_.pixel(series.points[0].x));
    elements_ += fmt::format(
        "<path d=\"{}\" fill=\"{}\" stroke=\"{}\" stroke-width=\"{}\"><title>{}</title></path>\n",
        path, is_filled ? colour : "none", is_filled ? "none" : colour, is_filled ? 0 : 2.5,
        html_escaped(series.name));
    if (series.drawn == Drawn::line) draw_dots(series, colour);
  }

  void draw_dots(const PlotSeries& series, std::string_view colour) {
    for (const PlotPoint& point : series.points) {
      if (point.name.empty()) continue;
      elements_ += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\" stroke=\"#5b6470\"><title>{}"
          "</title></circle>\n",
          x_.pixel(point.x), y_.pixel(point.y), colour, html_escaped(point.name));
    }
  }

  /// Points or ends of lines in the corner of the names.
  [[nodiscard]] bool has_points_in(double from, double to) const {
    const double names_end = kTop + 18 * static_cast<double>(plot_.series.size()) + 6;
    const auto is_there = [&](const PlotPoint& point) {
      const double x = x_.pixel(point.x);
      return x >= from && x <= to && y_.pixel(point.y) <= names_end;
    };
    const auto has_some = [&](const PlotSeries& series) {
      return std::ranges::any_of(series.points, is_there);
    };
    return (plot_.mark && is_there(*plot_.mark)) || std::ranges::any_of(plot_.series, has_some);
  }

  /// At the left, or at the right if only the left has points.
  [[nodiscard]] double names_left() const {
    double width = 0;
    for (const PlotSeries& series : plot_.series) {
      width = std::max(width, kCharacterWidth * static_cast<double>(display_width(series.name)));
    }
    const double left = kLeft + 10;
    const double at_right = right() - width - 24;
    const bool goes_right = has_points_in(left, left + width + 24) && at_right > left &&
                            !has_points_in(at_right, right());
    return goes_right ? at_right : left;
  }

  void draw_names() {
    const double left = names_left();
    double y = kTop + 14;
    for (std::size_t i = 0; i < plot_.series.size(); ++i, y += 18) {
      elements_ += fmt::format(
          "<rect x=\"{:.0f}\" y=\"{:.1f}\" width=\"11\" height=\"11\" fill=\"{}\" "
          "stroke=\"#5b6470\"/>",
          left, y - 10, picture_colour(i));
      elements_ += "<g fill=\"currentColor\">";
      text(left + 17, y, "start", plot_.series[i].name);
      elements_ += "</g>\n";
    }
  }

  void draw_mark(const PlotPoint& mark) {
    const double x = x_.pixel(mark.x);
    const double y = y_.pixel(mark.y);
    // Beside the names of the series, if there is room.
    const double width = kBoldWidth * static_cast<double>(display_width(mark.name));
    const bool is_right = x + 10 + width > right() && x - 10 - width > 0;
    elements_ += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"6\" fill=\"#c62828\" stroke=\"#ffffff\"/>"
        "<g fill=\"currentColor\" font-weight=\"600\">",
        x, y);
    const double start = std::clamp(x + 10, 0.0, std::max(0.0, kPictureWidth - width));
    text(is_right ? x - 10 : start, y - 6, is_right ? "end" : "start", mark.name);
    elements_ += "</g>\n";
  }

  void line(double x1, double y1, double x2, double y2) {
    elements_ += fmt::format("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>", x1, y1, x2, y2);
  }

  void text(double x, double y, std::string_view anchor, const std::string& words) {
    elements_ += picture_text(x, y, anchor, words);
  }

  static double bottom() { return kPlotHeight - kBottom; }
  static double right() { return kPictureWidth - kRight; }

  const Plot& plot_;
  AxisMap x_;
  AxisMap y_;
  std::string elements_;
};

}  // namespace

std::string plot(const Plot& content) {
  Bounds x;
  Bounds y;
  for (const PlotSeries& series : content.series) {
    for (const PlotPoint& point : series.points) {
      x.include(point.x);
      y.include(point.y);
    }
  }
  if (content.mark) {
    x.include(content.mark->x);
    y.include(content.mark->y);
  }
  if (!x.fits(content.x.scale) || !y.fits(content.y.scale)) return {};
  return picture_frame(content.title, content.description, kPlotHeight,
                       PlotDrawing(content, x, y).draw());
}

}  // namespace headroom::detail
