#include "alibi.h"

#include <bit>
#include <cmath>

#include "bfloat16.h"

namespace headroom::measured {
namespace {

/// Exponents `first`, `first + step`, … of slopes for `heads` heads.
struct SlopeRange {
  std::int64_t heads;
  std::int64_t first;
  std::int64_t step;
  std::int64_t count;
};

/// Appends 2^(-steepest·i/heads) for each exponent i.
void append_slopes(std::vector<float>& slopes, double steepest, const SlopeRange& range) {
  for (std::int64_t i = 0; i < range.count; ++i) {
    const auto exponent = static_cast<double>(range.first + i * range.step);
    slopes.push_back(
        static_cast<float>(std::exp2(-steepest * exponent / static_cast<double>(range.heads))));
  }
}

}  // namespace

std::vector<float> alibi_slopes(const AlibiSpec& alibi, std::int64_t heads) {
  const auto power_below =
      static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(heads)));
  std::vector<float> slopes;
  switch (alibi.kind) {
    case AlibiKind::none:
      break;
    case AlibiKind::power_below:
      append_slopes(slopes, alibi.steepest, {power_below, 1, 1, power_below});
      append_slopes(slopes, alibi.steepest, {2 * power_below, 1, 2, heads - power_below});
      break;
    case AlibiKind::power_above:
      if (power_below == heads) {
        append_slopes(slopes, alibi.steepest, {heads, 1, 1, heads});
      } else {
        append_slopes(slopes, alibi.steepest, {2 * power_below, 2, 2, power_below});
        append_slopes(slopes, alibi.steepest, {2 * power_below, 1, 2, heads - power_below});
      }
      break;
  }
  if (alibi.order == AlibiOrder::rounded_before_scale) {
    for (float& slope : slopes) slope = round_to_bfloat16(slope);
  }
  return slopes;
}

}  // namespace headroom::measured
