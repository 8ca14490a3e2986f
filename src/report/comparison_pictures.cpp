// Measured against predicted values: each row a point, its allowed range a band around the
// prediction.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "html.h"
#include "picture_frame.h"
#include "pictures.h"
#include "units.h"

namespace headroom::detail {
namespace {

constexpr double kNameWidth = 230;
/// Width of each row's deviation in words, on the right.
constexpr double kTextWidth = 84;
constexpr double kDeviationRow = 26;
constexpr double kDeviationTop = 12;
constexpr double kAxisHeight = 34;
/// The axis shows at least ±5 %.
constexpr double kLeastDeviation = 0.05;

/// A row farther away would hide the others.
constexpr double kMostDeviation = 0.5;

/// Maps deviations to pixels, the prediction in the middle. Three times the widest band fits.
class DeviationAxis {
 public:
  explicit DeviationAxis(const std::vector<ComparisonRow>& rows) {
    for (const ComparisonRow& row : rows) {
      const double deviation = std::min(std::abs(row.difference.value_or(0)), kMostDeviation);
      const double band = std::min(row.tolerance.value_or(0), kMostDeviation);
      largest_ = std::max({largest_, 3 * band, 1.1 * deviation});
    }
  }
  [[nodiscard]] bool shows(double deviation) const { return std::abs(deviation) <= largest_; }
  [[nodiscard]] double pixel(double deviation) const {
    constexpr double kHalf = (kPictureWidth - kNameWidth - kTextWidth - 20) / 2;
    return kNameWidth + 10 + kHalf + std::clamp(deviation / largest_, -1.0, 1.0) * kHalf;
  }
  /// Round deviations of both signs, at most three of each.
  [[nodiscard]] std::vector<double> ticks() const {
    double step = 0.01;
    for (const double factor : {2.0, 2.5, 2.0, 2.0, 2.5, 2.0}) {  // 2 %, 5 %, 10 %, …
      if (largest_ / step > 3) step *= factor;
    }
    std::vector<double> deviations;
    const auto count = static_cast<int>(largest_ / step + 1e-9);
    for (int i = -count; i <= count; ++i) deviations.push_back(i * step);
    return deviations;
  }

 private:
  double largest_ = kLeastDeviation;
};

std::string_view point_colour(RowResult result) noexcept {
  switch (result) {
    case RowResult::pass:
      return "#2e9e5b";
    case RowResult::fail:
      return "#c62828";
    case RowResult::skip:
      break;
  }
  return "#8a929e";
}

/// A point, or an arrow at the end of the axis that it lies beyond.
std::string mark_of(const ComparisonRow& row, const DeviationAxis& axis, double y) {
  const double deviation = *row.difference;
  const double x = axis.pixel(deviation);
  const std::string title =
      fmt::format("<title>{}: {}, {}</title>", html_escaped(row.title),
                  html_escaped(deviation_text(deviation)), name_of(row.result));
  const std::string_view colour = point_colour(row.result);
  if (axis.shows(deviation)) {
    return fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\" stroke=\"#ffffff\">{}</circle>\n",
        x, y, colour, title);
  }
  const int tip = deviation < 0 ? -9 : 9;
  return fmt::format(
      "<path d=\"M{:.1f} {:.1f}v12l{} -6z\" fill=\"{}\" stroke=\"#ffffff\">{}</path>\n",
      x - tip / 2.0, y - 6, tip, colour, title);
}

std::string deviation_row(const ComparisonRow& row, const DeviationAxis& axis, double y) {
  std::string text = fmt::format(
      "<text x=\"4\" y=\"{0:.1f}\" fill=\"currentColor\">{1}</text>"
      "<text x=\"{2}\" y=\"{0:.1f}\" fill=\"currentColor\" "
      "text-anchor=\"end\">{3}</text>",
      y + 4, html_escaped(row.title), kPictureWidth - 4,
      html_escaped(deviation_text(*row.difference)));
  if (row.tolerance) {
    const double left = axis.pixel(-*row.tolerance);
    text += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"16\" fill=\"#8ecae6\" "
        "fill-opacity=\"0.55\"/>",
        left - 1, y - 8, axis.pixel(*row.tolerance) - left + 2);
  }
  return text + mark_of(row, axis, y);
}

std::string deviation_axis(const DeviationAxis& axis, double bottom) {
  std::string lines;
  std::string labels;
  for (const double deviation : axis.ticks()) {
    const double x = axis.pixel(deviation);
    lines += fmt::format("<path d=\"M{:.1f} {}V{:.1f}\" stroke-opacity=\"{}\"/>", x, kDeviationTop,
                         bottom, deviation == 0 ? 1 : 0.3);
    labels += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x, bottom + 20,
                          deviation == 0 ? "predicted"
                                         : fmt::format("{}{:g} %", deviation < 0 ? "−" : "+",
                                                       std::round(100 * std::abs(deviation))));
  }
  return fmt::format(
      "<g stroke=\"#8a929e\">{}</g><g fill=\"currentColor\" text-anchor=\"middle\">{}</g>\n", lines,
      labels);
}

}  // namespace

std::vector<std::string> pictures_of(const Comparison& comparison) {
  std::vector<ComparisonRow> rows;
  for (const ComparisonRow& row : comparison.rows) {
    if (row.difference && std::isfinite(*row.difference)) rows.push_back(row);
  }
  if (rows.empty()) return {};
  const DeviationAxis axis(rows);
  const double bottom = kDeviationTop + kDeviationRow * static_cast<double>(rows.size());
  std::string elements = deviation_axis(axis, bottom);
  double y = kDeviationTop + kDeviationRow / 2;
  for (const ComparisonRow& row : rows) {
    elements += deviation_row(row, axis, y);
    y += kDeviationRow;
  }
  return {
      picture_frame("Measured (points) against predicted, with the allowed deviation (bands)",
                    "Green passes, red fails, grey is not judged, an arrow is beyond the axis. " +
                        comparison.verdict,
                    bottom + kAxisHeight, elements)};
}

}  // namespace headroom::detail
