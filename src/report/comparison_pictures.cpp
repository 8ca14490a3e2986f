// Measured against predicted values: each row a point, its allowed range a band around the
// prediction.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "html.h"
#include "picture_frame.h"
#include "pictures.h"

namespace headroom::detail {
namespace {

constexpr double kNameWidth = 230;
constexpr double kDeviationRow = 26;
constexpr double kDeviationTop = 12;
constexpr double kAxisHeight = 34;
/// The axis shows at least ±5 %.
constexpr double kLeastDeviation = 0.05;

/// Maps deviations to pixels, the prediction in the middle.
class DeviationAxis {
 public:
  explicit DeviationAxis(const std::vector<ComparisonRow>& rows) {
    for (const ComparisonRow& row : rows) {
      largest_ =
          std::max({largest_, std::abs(row.difference.value_or(0)), row.tolerance.value_or(0)});
    }
    largest_ *= 1.1;
  }
  [[nodiscard]] double pixel(double deviation) const {
    constexpr double kHalf = (kPictureWidth - kNameWidth - 30) / 2;
    return kNameWidth + kHalf + deviation / largest_ * kHalf;
  }
  [[nodiscard]] double largest() const { return largest_; }

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

/// "+2.2 %", with the minus sign of tables.
std::string percent_text(double deviation) {
  return fmt::format("{}{:.1f} %", deviation < 0 ? "−" : "+", 100 * std::abs(deviation));
}

std::string deviation_row(const ComparisonRow& row, const DeviationAxis& axis, double y) {
  std::string text = fmt::format("<text x=\"4\" y=\"{:.1f}\" fill=\"currentColor\">{}</text>",
                                 y + 4, html_escaped(row.title));
  if (row.tolerance) {
    const double left = axis.pixel(-*row.tolerance);
    text += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"16\" fill=\"#8ecae6\" "
        "fill-opacity=\"0.55\"/>",
        left - 1, y - 8, axis.pixel(*row.tolerance) - left + 2);
  }
  return text + fmt::format(
                    "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\" stroke=\"#ffffff\">"
                    "<title>{}: {}, {}</title></circle>\n",
                    axis.pixel(*row.difference), y, point_colour(row.result),
                    html_escaped(row.title), percent_text(*row.difference), name_of(row.result));
}

std::string deviation_axis(const DeviationAxis& axis, double bottom) {
  std::string text =
      fmt::format("<path d=\"M{0:.1f} {1}V{2:.1f}\" stroke=\"#8a929e\"/><g fill=\"currentColor\">",
                  axis.pixel(0), kDeviationTop, bottom);
  for (const double part : {-0.8, -0.4, 0.0, 0.4, 0.8}) {
    const double deviation = part * axis.largest();
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>",
                        axis.pixel(deviation), bottom + 20,
                        part == 0 ? "predicted" : percent_text(deviation));
  }
  return text + "</g>\n";
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
  return {picture_frame("Measured (points) against predicted, with the allowed deviation (bands)",
                        "Green passes, red fails, grey is not judged. " + comparison.verdict,
                        bottom + kAxisHeight, elements)};
}

}  // namespace headroom::detail
