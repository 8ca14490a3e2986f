// Horizontal bars of parts, to both sides of zero.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "axis_map.h"
#include "document.h"
#include "html.h"
#include "picture.h"
#include "picture_frame.h"

namespace headroom::detail {
namespace {

constexpr double kLimitRow = 20;
constexpr double kBarRow = 26;
constexpr double kBarHeight = 18;
constexpr double kAxisRow = 44;
constexpr double kLegendRow = 20;

/// Ends of the axis.
struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

Extent extent_of(const Bars& content) {
  Extent extent;
  for (const Bar& bar : content.bars) {
    double left = bar.start;
    double right = bar.start;
    for (const BarPart& part : bar.parts) (part.size < 0 ? left : right) += part.size;
    extent.include(left);
    extent.include(right);
    if (bar.mark) extent.include(bar.mark->x);
  }
  if (content.limit) extent.include(content.limit->x);
  return extent;
}

bool is_drawable(const Bars& content, const Extent& extent) {
  const auto has_size = [](const Bar& bar) {
    return std::ranges::any_of(bar.parts, [](const BarPart& part) { return part.size != 0; });
  };
  return std::ranges::any_of(content.bars, has_size) && std::isfinite(extent.high - extent.low) &&
         (content.axis.scale == AxisScale::linear || extent.low > 0);
}

double width_of(std::string_view text) {
  return kCharacterWidth * static_cast<double>(display_width(text));
}

/// Names of parts in order of appearance.
std::vector<std::string> names_of(const std::vector<Bar>& bars) {
  std::vector<std::string> names;
  for (const Bar& bar : bars) {
    for (const BarPart& part : bar.parts) {
      const bool is_known = std::ranges::find(names, part.name) != names.end();
      if (!is_known) names.insert(names.end(), part.name);
    }
  }
  return names;
}

/// Pixels between the names and the texts behind the ends, at both sides of zero.
struct BarsLayout {
  double left = 20;
  double right = kPictureWidth;
};

BarsLayout layout_of(const Bars& content, const Extent& extent) {
  BarsLayout layout;
  double text = 0;
  for (const Bar& bar : content.bars) {
    layout.left = std::max(layout.left, width_of(bar.name) + 14);
    text = std::max(text, width_of(bar.text) + 10);
  }
  layout.right = kPictureWidth - 8 - text;
  if (extent.low < 0) layout.left += text;
  return layout;
}

class BarsDrawing {
 public:
  BarsDrawing(const Bars& content, const Extent& extent)
      : content_(content),
        names_(names_of(content.bars)),
        layout_(layout_of(content, extent)),
        axis_(content.axis.scale, extent.low, extent.high, layout_.left, layout_.right),
        has_both_sides_(extent.low < 0) {}

  [[nodiscard]] double height() const {
    return bottom() + kAxisRow + kLegendRow * static_cast<double>(legend_rows());
  }

  std::string draw() && {
    draw_axis();
    double y = top() + (kBarRow - kBarHeight) / 2;
    for (const Bar& bar : content_.bars) {
      draw_bar(bar, y);
      y += kBarRow;
    }
    if (content_.limit) draw_limit(*content_.limit);
    draw_legend();
    return std::move(elements_);
  }

 private:
  static constexpr std::size_t kLegendColumns = 3;

  [[nodiscard]] std::size_t legend_rows() const {
    return names_.size() < 2 ? 0 : (names_.size() + kLegendColumns - 1) / kLegendColumns;
  }
  [[nodiscard]] double top() const { return 6 + (content_.limit ? kLimitRow : 0); }
  [[nodiscard]] double bottom() const {
    return top() + kBarRow * static_cast<double>(content_.bars.size());
  }
  [[nodiscard]] double pixel(double value) const { return axis_.pixel(value); }
  [[nodiscard]] std::string_view colour_of(const std::string& name) const {
    const auto found = std::ranges::find(names_, name);
    return picture_colour(static_cast<std::size_t>(found - names_.begin()));
  }

  void draw_axis() {
    elements_ += "<g stroke=\"#8a929e\" stroke-opacity=\"0.4\">";
    std::string labels;
    for (const double tick : axis_.ticks()) {
      elements_ += fmt::format("<path d=\"M{:.1f} {}V{:.1f}\"/>", pixel(tick), top(), bottom());
      labels += picture_text(pixel(tick), bottom() + 18, "middle", tick_text(tick));
    }
    elements_ += "</g>\n<g fill=\"currentColor\">" + labels;
    elements_ += picture_text(layout_.right, bottom() + 35, "end", content_.axis.title) + "</g>\n";
    if (has_both_sides_) {
      elements_ += fmt::format("<path d=\"M{:.1f} {}V{:.1f}\" stroke=\"#8a929e\"/>", pixel(0),
                               top(), bottom());
    }
  }

  void draw_bar(const Bar& bar, double y) {
    double left = bar.start;
    double right = bar.start;
    for (const BarPart& part : bar.parts) {
      double& end = part.size < 0 ? left : right;
      const double begin = std::exchange(end, end + part.size);
      const double from = pixel(std::min(begin, end));
      const double width = pixel(std::max(begin, end)) - from;
      elements_ += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\" "
          "stroke=\"#5b6470\" stroke-width=\"0.5\"><title>{}</title></rect>\n",
          from, y, width, kBarHeight, colour_of(part.name), html_escaped(part.tooltip));
    }
    const double baseline = y + kBarHeight / 2 + 4;
    const bool is_left = left < bar.start;
    if (bar.mark) draw_mark(*bar.mark, y);
    elements_ += "<g fill=\"currentColor\">" + picture_text(4, baseline, "start", bar.name) +
                 picture_text(is_left ? pixel(left) - 5 : right_of(bar, right) + 5, baseline,
                              is_left ? "end" : "start", bar.text) +
                 "</g>\n";
  }

  /// The end of a bar or its mark, whichever is farther.
  [[nodiscard]] double right_of(const Bar& bar, double end) const {
    return pixel(bar.mark ? std::max(bar.mark->x, end) : end);
  }

  void draw_mark(const PlotPoint& mark, double y) {
    elements_ += fmt::format(
        "<path d=\"M{:.1f} {:.1f}v{}\" stroke=\"#c62828\" stroke-width=\"3\"><title>{}</title>"
        "</path>\n",
        pixel(mark.x), y - 3, kBarHeight + 6, html_escaped(mark.name));
  }

  void draw_limit(const PlotPoint& limit) {
    const double x = pixel(limit.x);
    const bool is_right = x > kPictureWidth / 2;
    elements_ += fmt::format(
        "<path d=\"M{:.1f} {:.1f}V{:.1f}\" stroke=\"#c62828\" stroke-width=\"2.5\"/>"
        "<g fill=\"currentColor\" font-weight=\"600\">{}</g>\n",
        x, top() - 6, bottom() + 4, picture_text(x, 14, is_right ? "end" : "start", limit.name));
  }

  /// Columns of colours and names.
  void draw_legend() {
    if (legend_rows() == 0) return;
    constexpr double kColumn = kPictureWidth / kLegendColumns;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      const double x = 4 + kColumn * static_cast<double>(i % kLegendColumns);
      const std::size_t row = i / kLegendColumns;
      const double y = bottom() + kAxisRow + 14 + kLegendRow * static_cast<double>(row);
      elements_ += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"11\" height=\"11\" fill=\"{}\" "
          "stroke=\"#5b6470\"/><g fill=\"currentColor\">{}</g>\n",
          x, y - 10, picture_colour(i), picture_text(x + 17, y, "start", names_[i]));
    }
  }

  const Bars& content_;
  std::vector<std::string> names_;
  BarsLayout layout_;
  AxisMap axis_;
  bool has_both_sides_;
  std::string elements_;
};

}  // namespace

std::string bars(const Bars& content) {
  const Extent extent = extent_of(content);
  if (!is_drawable(content, extent)) return {};
  BarsDrawing drawing(content, extent);
  const double height = drawing.height();
  return picture_frame(content.title, content.description, height, std::move(drawing).draw());
}

}  // namespace headroom::detail
