// Horizontal bars of parts, to both sides of zero.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

/// Ends of the axis, which has zero.
struct Extent {
  double low = 0;
  double high = 0;
};

Extent extent_of(const Bars& content) {
  Extent extent;
  for (const Bar& bar : content.bars) {
    double left = 0;
    double right = 0;
    for (const BarPart& part : bar.parts) (part.size < 0 ? left : right) += part.size;
    extent = {std::min(extent.low, left), std::max(extent.high, right)};
  }
  if (content.limit) extent.high = std::max(extent.high, content.limit->x);
  return extent;
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

class BarsDrawing {
 public:
  BarsDrawing(const Bars& content, const Extent& extent)
      : content_(content), extent_(extent), names_(names_of(content.bars)) {
    double text = 0;
    for (const Bar& bar : content.bars) {
      left_ = std::max(left_, width_of(bar.name) + 14);
      text = std::max(text, width_of(bar.text) + 10);
    }
    // Texts stand behind the ends, at both sides of zero.
    right_ = kPictureWidth - 8 - text;
    if (extent.low < 0) left_ += text;
  }

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
  [[nodiscard]] double pixel(double value) const {
    return left_ + (value - extent_.low) / (extent_.high - extent_.low) * (right_ - left_);
  }
  [[nodiscard]] std::string_view colour_of(const std::string& name) const {
    const auto found = std::ranges::find(names_, name);
    return picture_colour(static_cast<std::size_t>(found - names_.begin()));
  }

  void draw_axis() {
    elements_ += "<g stroke=\"#8a929e\" stroke-opacity=\"0.4\">";
    std::string labels;
    for (const double tick : linear_ticks(extent_.low, extent_.high)) {
      elements_ += fmt::format("<path d=\"M{:.1f} {}V{:.1f}\"/>", pixel(tick), top(), bottom());
      labels += picture_text(pixel(tick), bottom() + 18, "middle", tick_text(tick));
    }
    elements_ += "</g>\n<g fill=\"currentColor\">" + labels;
    elements_ += picture_text(right_, bottom() + 35, "end", content_.axis.title) + "</g>\n";
    if (extent_.low < 0) {
      elements_ += fmt::format("<path d=\"M{:.1f} {}V{:.1f}\" stroke=\"#8a929e\"/>", pixel(0),
                               top(), bottom());
    }
  }

  void draw_bar(const Bar& bar, double y) {
    double left = 0;
    double right = 0;
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
    const bool is_left = left < 0;
    elements_ += "<g fill=\"currentColor\">" + picture_text(4, baseline, "start", bar.name) +
                 picture_text(is_left ? pixel(left) - 5 : pixel(right) + 5, baseline,
                              is_left ? "end" : "start", bar.text) +
                 "</g>\n";
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
  Extent extent_;
  std::vector<std::string> names_;
  double left_ = 20;
  double right_ = kPictureWidth;
  std::string elements_;
};

}  // namespace

std::string bars(const Bars& content) {
  const Extent extent = extent_of(content);
  if (!(extent.low < extent.high) || !std::isfinite(extent.high - extent.low)) return {};
  BarsDrawing drawing(content, extent);
  const double height = drawing.height();
  return picture_frame(content.title, content.description, height, std::move(drawing).draw());
}

}  // namespace headroom::detail
