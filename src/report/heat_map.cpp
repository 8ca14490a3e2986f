// Heat maps: values of two axes as colours, with a number in each cell that has room for it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "document.h"
#include "html.h"
#include "picture.h"
#include "picture_frame.h"
#include "units.h"

namespace headroom::detail {
namespace {

constexpr double kMapTop = 28;
constexpr double kMostCellWidth = 90;
constexpr double kMostCellHeight = 26;
constexpr double kMostMapHeight = 520;
/// Least height of a cell with text of 12 px.
constexpr double kTextHeight = 15;
/// Below the cells: names of the columns, the title of x, and the colour scale.
constexpr double kMapBottom = 86;

struct Colour3 {
  double red;
  double green;
  double blue;
};

/// Matplotlib's viridis (van der Walt and Smith 2015, CC0) at sixths, the lightest first: uniform
/// to the eye, also to colour-blind ones, and monotonic in grey.
constexpr std::array<Colour3, 7> kScale{{{253, 231, 37},
                                         {143, 215, 68},
                                         {53, 183, 121},
                                         {33, 144, 140},
                                         {49, 104, 142},
                                         {68, 58, 131},
                                         {68, 1, 84}}};

/// Relative luminance of a component of sRGB (WCAG 2.2).
double linear_light(double component) {
  const double value = component / 255;
  return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

double luminance_of(std::string_view colour) {
  const auto component = [&](std::size_t at) {
    return linear_light(std::stoi(std::string(colour.substr(at, 2)), nullptr, 16));
  };
  return 0.2126 * component(1) + 0.7152 * component(3) + 0.0722 * component(5);
}

/// Maps values to fractions of the colour scale.
class HeatScale {
 public:
  explicit HeatScale(const std::vector<std::optional<HeatCell>>& cells) {
    for (const auto& cell : cells) {
      if (!cell) continue;
      low_ = std::min(low_, cell->value);
      high_ = std::max(high_, cell->value);
    }
  }
  [[nodiscard]] bool has_values() const { return std::isfinite(low_) && std::isfinite(high_); }
  [[nodiscard]] bool is_logarithmic() const { return low_ > 0 && high_ > 10 * low_; }
  [[nodiscard]] double fraction(double value) const {
    if (high_ == low_) return 0;
    return is_logarithmic() ? std::log(value / low_) / std::log(high_ / low_)
                            : (value - low_) / (high_ - low_);
  }
  /// The value at a fraction.
  [[nodiscard]] double value(double fraction) const {
    return is_logarithmic() ? low_ * std::pow(high_ / low_, fraction)
                            : low_ + fraction * (high_ - low_);
  }

 private:
  double low_ = std::numeric_limits<double>::infinity();
  double high_ = -std::numeric_limits<double>::infinity();
};

double text_width(std::string_view text) {
  return kCharacterWidth * static_cast<double>(display_width(text));
}

double widest(const std::vector<std::string>& texts) {
  double width = 0;
  for (const std::string& text : texts) width = std::max(width, text_width(text));
  return width;
}

class HeatDrawing {
 public:
  HeatDrawing(const HeatMap& map, const HeatScale& scale)
      : map_(map),
        scale_(scale),
        left_(std::max(widest(map.rows) + 14, 40.0)),
        width_(std::min(kMostCellWidth, (kPictureWidth - left_ - 4) / size_of(map.columns))),
        height_(std::min(kMostCellHeight, kMostMapHeight / size_of(map.rows))) {}

  [[nodiscard]] double height() const { return bottom() + kMapBottom; }

  std::string draw() && {
    draw_axes();
    draw_cells();
    draw_scale();
    return std::move(elements_);
  }

 private:
  static double size_of(const std::vector<std::string>& names) {
    return static_cast<double>(std::max<std::size_t>(names.size(), 1));
  }
  [[nodiscard]] double bottom() const { return kMapTop + height_ * size_of(map_.rows); }
  [[nodiscard]] double right() const { return left_ + width_ * size_of(map_.columns); }
  [[nodiscard]] double column(std::size_t at) const {
    return left_ + width_ * static_cast<double>(at);
  }
  [[nodiscard]] double row(std::size_t at) const {
    return kMapTop + height_ * static_cast<double>(at);
  }

  void draw_axes() {
    elements_ += "<g fill=\"currentColor\">";
    elements_ += picture_text(4, 16, "start", map_.y_title);
    elements_ += picture_text(std::max(right(), text_width(map_.x_title) + 4), bottom() + 36, "end",
                              map_.x_title);
    // Names that would overlap are left out.
    const auto every = [](double needed, double room) {
      return static_cast<std::size_t>(std::ceil(needed / room));
    };
    const std::size_t columns = every(widest(map_.columns) + 6, width_);
    for (std::size_t i = 0; i < map_.columns.size(); i += columns) {
      elements_ += picture_text(column(i) + width_ / 2, bottom() + 18, "middle", map_.columns[i]);
    }
    const std::size_t rows = every(kTextHeight, height_);
    for (std::size_t i = 0; i < map_.rows.size(); i += rows) {
      elements_ += picture_text(left_ - 6, row(i) + height_ / 2 + 4, "end", map_.rows[i]);
    }
    elements_ += "</g>\n";
  }

  void draw_cells() {
    std::string texts;
    elements_ += "<g shape-rendering=\"crispEdges\">\n";
    const bool has_room = height_ >= kTextHeight && width_ >= widest_text() + 6;
    for (std::size_t i = 0; i < map_.cells.size(); ++i) {
      const std::optional<HeatCell>& cell = map_.cells[i];
      if (!cell) continue;
      const double x = column(i % map_.columns.size());
      const double y = row(i / map_.columns.size());
      const std::string colour = heat_colour(scale_.fraction(cell->value));
      elements_ += fmt::format(
          "<path d=\"M{:.1f} {:.1f}h{:.1f}v{:.1f}h-{:.1f}z\" fill=\"{}\">"
          "<title>{}</title></path>\n",
          x, y, width_, height_, width_, colour, html_escaped(cell->name));
      if (!has_room) continue;
      texts += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\">{}</text>", x + width_ / 2,
                           y + height_ / 2 + 4, text_colour_on(colour), html_escaped(cell->text));
    }
    // Tooltips stay reachable below the texts.
    elements_ += "</g>\n<g text-anchor=\"middle\" pointer-events=\"none\">" + texts + "</g>\n";
  }

  [[nodiscard]] double widest_text() const {
    double width = 0;
    for (const auto& cell : map_.cells) {
      if (cell) width = std::max(width, text_width(cell->text));
    }
    return width;
  }

  void draw_scale() {
    constexpr int kSteps = 24;
    constexpr double kWidth = 300;
    const double top = bottom() + 48;
    elements_ += "<g shape-rendering=\"crispEdges\">";
    for (int i = 0; i < kSteps; ++i) {
      elements_ += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"12\" fill=\"{}\"/>",
          left_ + kWidth * i / kSteps, top, kWidth / kSteps, heat_colour((i + 0.5) / kSteps));
    }
    elements_ += "</g>\n<g fill=\"currentColor\">";
    for (const double fraction : {0.0, 0.5, 1.0}) {
      const double value = scale_.value(fraction);
      elements_ += picture_text(left_ + kWidth * fraction, top + 28,
                                fraction == 0   ? "start"
                                : fraction == 1 ? "end"
                                                : "middle",
                                short_text(value));
    }
    elements_ += picture_text(left_ + kWidth + 10, top + 11, "start",
                              map_.unit + (scale_.is_logarithmic() ? ", logarithmic" : ""));
    elements_ += "</g>\n";
  }

  const HeatMap& map_;
  const HeatScale& scale_;
  double left_;
  double width_;
  double height_;
  std::string elements_;
};

}  // namespace

std::string heat_colour(double fraction) {
  const double place = std::clamp(fraction, 0.0, 1.0) * (kScale.size() - 1);
  const auto index = std::min(static_cast<std::size_t>(place), kScale.size() - 2);
  const double part = place - static_cast<double>(index);
  const auto mixed = [&](double Colour3::*component) {
    const double from = kScale[index].*component;
    return static_cast<int>(std::lround(from + part * (kScale[index + 1].*component - from)));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", mixed(&Colour3::red), mixed(&Colour3::green),
                     mixed(&Colour3::blue));
}

std::string_view text_colour_on(std::string_view colour) {
  // Contrast is (lighter + 0.05) / (darker + 0.05) (WCAG 2.2); both are equal at √(1.05 · 0.05).
  const double ground = luminance_of(colour) + 0.05;
  return ground * ground > 1.05 * 0.05 ? "#000000" : "#ffffff";
}

std::string heat_map(const HeatMap& content) {
  const HeatScale scale(content.cells);
  if (!scale.has_values()) return {};
  HeatDrawing drawing(content, scale);
  const double height = drawing.height();
  return picture_frame(content.title, content.description, height, std::move(drawing).draw());
}

}  // namespace headroom::detail
