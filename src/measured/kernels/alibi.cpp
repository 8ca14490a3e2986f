#include "alibi.h"

#include <bit>
#include <cmath>

namespace headroom::measured {
namespace {

/// 2^(-8·i/heads) for i = first, first + step, …
void append(std::vector<float>& slopes, std::int64_t heads, std::int64_t first, std::int64_t step,
            std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double exponent =
        -8.0 * static_cast<double>(first + i * step) / static_cast<double>(heads);
    slopes.push_back(static_cast<float>(std::exp2(exponent)));
  }
}

}  // namespace

std::vector<float> alibi_slopes(AlibiKind kind, std::int64_t heads, double scale) {
  const auto below = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  std::vector<float> slopes;
  switch (kind) {
    case AlibiKind::none:
      break;
    case AlibiKind::power_below:
      append(slopes, below, 1, 1, below);
      append(slopes, 2 * below, 1, 2, heads - below);
      break;
    case AlibiKind::power_above:
      if (below == heads) {
        append(slopes, heads, 1, 1, heads);
      } else {
        append(slopes, 2 * below, 2, 2, below);
        append(slopes, 2 * below, 1, 2, heads - below);
      }
      break;
  }
  for (float& slope : slopes) slope *= static_cast<float>(scale);
  return slopes;
}

}  // namespace headroom::measured
