#include "alibi.h"

#include <bit>
#include <cmath>

namespace headroom::measured {
namespace {

/// The slopes of numbers `first`, `first + step`, … of so many heads.
struct SlopeNumbers {
  std::int64_t heads;
  std::int64_t first;
  std::int64_t step;
  std::int64_t count;
};

/// 2^(-steepest·i/heads) for each number i.
void append(std::vector<float>& slopes, double steepest, const SlopeNumbers& numbers) {
  for (std::int64_t i = 0; i < numbers.count; ++i) {
    const auto number = static_cast<double>(numbers.first + i * numbers.step);
    slopes.push_back(
        static_cast<float>(std::exp2(-steepest * number / static_cast<double>(numbers.heads))));
  }
}

}  // namespace

std::vector<float> alibi_slopes(const AlibiSpec& alibi, std::int64_t heads) {
  const auto below = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  std::vector<float> slopes;
  switch (alibi.kind) {
    case AlibiKind::none:
      break;
    case AlibiKind::power_below:
      append(slopes, alibi.steepest, {below, 1, 1, below});
      append(slopes, alibi.steepest, {2 * below, 1, 2, heads - below});
      break;
    case AlibiKind::power_above:
      if (below == heads) {
        append(slopes, alibi.steepest, {heads, 1, 1, heads});
      } else {
        append(slopes, alibi.steepest, {2 * below, 2, 2, below});
        append(slopes, alibi.steepest, {2 * below, 1, 2, heads - below});
      }
      break;
  }
  if (alibi.order == AlibiOrder::rounded_before_scale) {
    for (float& slope : slopes) slope = rounded_to_bfloat16(slope);
  }
  return slopes;
}

}  // namespace headroom::measured
