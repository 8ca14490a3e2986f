#include "axis_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace headroom::detail {

std::string tick_text(double value) {
  if (value < 0) return "−" + tick_text(-value);
  constexpr double kMostPlain = 1e5;
  if (value < kMostPlain) return fmt::format("{:.6g}", value);
  const double power = std::floor(std::log10(value) + 1e-9);
  const double digit = value / std::pow(10, power);
  std::string text = std::abs(digit - 1) < 1e-6 ? "10" : fmt::format("{:.4g}·10", digit);
  constexpr std::array<std::string_view, 10> kSuperscripts{"⁰", "¹", "²", "³", "⁴",
                                                           "⁵", "⁶", "⁷", "⁸", "⁹"};
  for (const char c : fmt::format("{:.0f}", power)) {
    text += kSuperscripts[static_cast<std::size_t>(c - '0')];
  }
  return text;
}

AxisMap::AxisMap(AxisScale scale, double low, double high, double from, double to)
    : scale_(scale), from_(from), to_(to) {
  if (scale == AxisScale::linear) {
    low_ = std::min(1.05 * low, 0.0);
    high_ = high > low_ ? std::max(high * 1.05, 0.0) : low_ + 1;
    return;
  }
  constexpr double kMargin = 0.1;  // decades
  low_ = std::log10(low) - kMargin;
  high_ = std::log10(high) + kMargin;
  if (high_ - low_ < 1) {  // enough for two ticks
    low_ = std::floor(low_);
    high_ = std::ceil(high_);
  }
}

double AxisMap::pixel(double value) const {
  const double at = scale_ == AxisScale::linear ? value : std::log10(value);
  return from_ + (at - low_) / (high_ - low_) * (to_ - from_);
}

std::vector<double> AxisMap::ticks() const {
  return scale_ == AxisScale::linear ? linear_ticks() : logarithmic_ticks();
}

std::vector<double> AxisMap::linear_ticks() const {
  const double power = std::pow(10, std::floor(std::log10((high_ - low_) / 4)));
  double step = power;
  for (const double factor : {2.0, 5.0, 10.0}) {
    if ((high_ - low_) / step > 6) step = power * factor;
  }
  std::vector<double> result;
  const auto last = static_cast<std::int64_t>(std::floor(high_ / step));
  for (auto at = static_cast<std::int64_t>(std::ceil(low_ / step)); at <= last; ++at) {
    result.push_back(static_cast<double>(at) * step);
  }
  return result;
}

/// 1, 2 and 5 of each decade, or the decades of a long axis.
std::vector<double> AxisMap::logarithmic_ticks() const {
  constexpr double kLongAxis = 3;
  const auto step = std::max(1, static_cast<int>(std::ceil((high_ - low_) / 8)));
  std::vector<double> result;
  for (int power = static_cast<int>(std::floor(low_)); power <= high_; power += step) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double at = power + std::log10(digit);
      const bool is_shown = digit == 1.0 || high_ - low_ < kLongAxis;
      if (is_shown && at >= low_ && at <= high_) result.push_back(digit * std::pow(10, power));
    }
  }
  return result;
}

}  // namespace headroom::detail
