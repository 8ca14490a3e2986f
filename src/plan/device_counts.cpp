#include "device_counts.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace headroom::detail {
namespace {

/// Eight nodes of the usual eight devices: for more, whole nodes are bought.
constexpr std::int64_t kMostSingle = 64;
constexpr std::int64_t kUsualNode = 8;

/// Devices that are bought together where there are many.
std::int64_t block_of(std::int64_t devices_per_node) {
  if (devices_per_node > kMostSingle) return kUsualNode;
  return ceil_div(kUsualNode, devices_per_node) * devices_per_node;
}

/// Product of the given degrees; `most` + 1 for any that exceeds `most`.
std::int64_t product_of(const FixedDegrees& fixed, std::int64_t most) {
  std::int64_t product = 1;
  for (const auto& degree : {fixed.tensor, fixed.pipeline, fixed.data, fixed.context}) {
    const std::int64_t factor = std::max<std::int64_t>(1, degree.value_or(1));
    if (factor > most / product) return most + 1;
    product *= factor;
  }
  return product;
}

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return ceil_div(value, step) * step;
}

}  // namespace

DeviceCounts::DeviceCounts(std::int64_t least, std::int64_t most, std::int64_t devices_per_node,
                           const FixedDegrees& fixed)
    : least_(least), most_(most), degrees_(product_of(fixed, most)), step_(degrees_) {
  const std::int64_t block = block_of(devices_per_node);
  if (least < most && degrees_ < block) step_ = std::lcm(degrees_, block);
}

std::int64_t DeviceCounts::from(std::int64_t devices) const {
  const std::int64_t first = round_up(std::max(devices, least_), degrees_);
  if (first <= kMostSingle || least_ == most_) return first;
  return round_up(first, step_);
}

std::vector<std::int64_t> DeviceCounts::doubling() const {
  std::vector<std::int64_t> counts;
  for (std::int64_t next = from(1); next <= most_; next = from(2 * next)) counts.push_back(next);
  const std::int64_t step = most_ > kMostSingle && least_ < most_ ? step_ : degrees_;
  const std::int64_t last = most_ / step * step;
  if (last >= least_ && (counts.empty() || counts.back() < last)) counts.push_back(last);
  return counts;
}

std::vector<std::int64_t> DeviceCounts::single() const {
  std::vector<std::int64_t> counts;
  const std::int64_t last = std::min(kMostSingle, most_);
  for (std::int64_t next = from(1); next <= last; next = from(next + 1)) counts.push_back(next);
  return counts;
}

std::vector<std::int64_t> DeviceCounts::below(std::int64_t found) const {
  std::vector<std::int64_t> counts = single();
  std::erase_if(counts, [&](std::int64_t count) { return count >= found; });
  const std::int64_t first = std::max(kMostSingle, found / 2) + 1;
  for (std::int64_t next = from(first); next < found; next = from(next + 1)) {
    counts.push_back(next);
  }
  return counts;
}

std::optional<std::int64_t> fewest_that_works(const DeviceCounts& counts,
                                              const std::function<bool(std::int64_t)>& works) {
  std::set<std::int64_t> tried;
  const auto first_of =
      [&](const std::vector<std::int64_t>& numbers) -> std::optional<std::int64_t> {
    for (const std::int64_t count : numbers) {
      if (tried.insert(count).second && works(count)) return count;
    }
    return std::nullopt;
  };
  std::optional<std::int64_t> found = first_of(counts.doubling());
  if (!found) {
    std::vector<std::int64_t> others = counts.single();
    std::ranges::reverse(others);
    found = first_of(others);
  }
  if (!found) return std::nullopt;
  const auto fewer = first_of(counts.below(*found));
  return fewer ? fewer : found;
}

}  // namespace headroom::detail
