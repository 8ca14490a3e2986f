// Grid of a kernel table, and interpolation in it.
#include <algorithm>
#include <cmath>
#include <utility>

#include "headroom/machine_profile.h"

namespace headroom {
namespace {

/// Position of a size between two grid points of an axis: fraction `share` of the way, in
/// logarithms.
struct Place {
  std::size_t below = 0;
  std::size_t above = 0;
  double share = 0;
};

Place place_of(const std::vector<double>& axis, double size) {
  if (size <= axis.front()) return {};
  if (size >= axis.back()) return {axis.size() - 1, axis.size() - 1, 0};
  const auto above = std::ranges::upper_bound(axis, size);
  const auto below = above - 1;
  const auto index = static_cast<std::size_t>(below - axis.begin());
  return {index, index + 1, std::log(size / *below) / std::log(*above / *below)};
}

/// One corner of the grid cell around a size.
class Corner {
 public:
  Corner(const KernelTable& table, const std::vector<Place>& places, std::size_t number)
      : table_(table), at_(places.size()) {
    for (std::size_t axis = 0; axis < places.size(); ++axis) {
      const bool upper = (number >> axis & 1U) != 0;
      at_[axis] = upper ? places[axis].above : places[axis].below;
      weight_ *= upper ? places[axis].share : 1 - places[axis].share;
    }
  }

  [[nodiscard]] double weight() const { return weight_; }
  [[nodiscard]] double work() const { return work(at_); }

  /// Time at this grid point. An unmeasured point is extrapolated from the nearest one with fewer
  /// rows, by the growth of the largest call that was measured with both numbers of rows.
  [[nodiscard]] KernelTime time() const {
    At known = at_;
    while (!seconds(known) && known.front() > 0) --known.front();
    if (!seconds(known)) return time_in_proportion();
    double growth = work(at_) / work(known);
    At more = at_;
    At fewer = known;
    while (step_down(more) && step_down(fewer)) {
      if (!seconds(more) || !seconds(fewer)) continue;
      growth = *seconds(more) / *seconds(fewer);
      break;
    }
    const double factor = known == at_ ? 1 : growth;
    return {*seconds(known) * factor, table_.spread[number(known)]};
  }

 private:
  using At = std::vector<std::size_t>;

  [[nodiscard]] std::size_t number(const At& at) const { return point_number(table_.axes, at); }
  [[nodiscard]] std::optional<double> seconds(const At& at) const {
    return table_.seconds[number(at)];
  }
  [[nodiscard]] double work(const At& at) const {
    return work_of(table_.kind, point_of(table_.axes, number(at)));
  }

  /// Extrapolates in proportion to the work from the nearest smaller point with equal rows, for
  /// points without measurements at fewer rows.
  [[nodiscard]] KernelTime time_in_proportion() const {
    At known = at_;
    while (!seconds(known) && step_down(known)) {
    }
    const double factor = work(at_) / work(known);
    return {seconds(known).value_or(0) * factor, table_.spread[number(known)]};
  }

  /// Steps down along the last axis, except rows, that allows it.
  static bool step_down(At& at) {
    for (std::size_t axis = at.size(); axis-- > 1;) {
      if (at[axis] == 0) continue;
      --at[axis];
      return true;
    }
    return false;
  }

  const KernelTable& table_;
  std::vector<std::size_t> at_;
  double weight_ = 1;
};

}  // namespace

std::size_t point_count(const KernelGrid& grid) {
  std::size_t points = 1;
  for (const auto& axis : grid) points *= axis.size();
  return points;
}

KernelSizes point_of(const KernelGrid& grid, std::size_t number) {
  KernelSizes sizes(grid.size());
  for (std::size_t axis = grid.size(); axis-- > 0;) {
    sizes[axis] = grid[axis][number % grid[axis].size()];
    number /= grid[axis].size();
  }
  return sizes;
}

std::size_t point_number(const KernelGrid& grid, std::span<const std::size_t> at) {
  std::size_t number = 0;
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    number = number * grid[axis].size() + at[axis];
  }
  return number;
}

KernelTable unmeasured_table(KernelKind kind, KernelGrid axes) {
  const std::size_t points = point_count(axes);
  return {kind, std::move(axes), std::vector<std::optional<double>>(points),
          std::vector<double>(points)};
}

KernelTime time_of(const KernelTable& table, const KernelSizes& sizes) {
  std::vector<Place> places(sizes.size());
  KernelSizes inside(sizes.size());
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    places[axis] = place_of(table.axes[axis], sizes[axis]);
    inside[axis] = std::clamp(sizes[axis], table.axes[axis].front(), table.axes[axis].back());
  }
  // Interpolates time per work, which varies less than time: a causal mask hides half of a square
  // of pairs, but little of a wide rectangle.
  double log_time_per_work = 0;
  double spread = 0;
  for (std::size_t number = 0; number < std::size_t{1} << sizes.size(); ++number) {
    const Corner corner(table, places, number);
    if (corner.weight() <= 0) continue;
    const KernelTime time = corner.time();
    log_time_per_work += corner.weight() * std::log(time.seconds / corner.work());
    spread += corner.weight() * time.spread;
  }
  double work = work_of(table.kind, sizes);
  // Element-wise kernels below the smallest grid point cost the fixed time of a call.
  if (sizes.size() == 1) work = std::max(work, work_of(table.kind, inside));
  return {std::exp(log_time_per_work) * work, spread};
}

}  // namespace headroom
