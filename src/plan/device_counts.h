// Numbers of devices that a search for the fewest tries. Internal to the library.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "headroom/plan.h"

namespace headroom::detail {

/// Numbers of devices of one machine. Up to 64 each counts, so that a node may be used in part;
/// above, whole nodes only: multiples of a node of 8 to 64 devices, of smaller nodes with 8 devices
/// or more together, and of 8 devices of larger nodes. All are multiples of the given degrees.
class DeviceCounts {
 public:
  /// From `least` to `most` devices. With `least` = `most`, the one number counts in any case.
  DeviceCounts(std::int64_t least, std::int64_t most, std::int64_t devices_per_node,
               const FixedDegrees& fixed);

  /// Each at least twice the one before, and the largest.
  [[nodiscard]] std::vector<std::int64_t> doubling() const;
  /// Those up to 64, ascending.
  [[nodiscard]] std::vector<std::int64_t> single() const;
  /// Those below `found`, ascending; above 64, only those of more than half of it.
  [[nodiscard]] std::vector<std::int64_t> below(std::int64_t found) const;

 private:
  /// The least one that is at least `devices`; may exceed `most_`.
  [[nodiscard]] std::int64_t from(std::int64_t devices) const;

  std::int64_t least_;
  std::int64_t most_;
  std::int64_t degrees_;  ///< product of those given
  std::int64_t step_;     ///< above 64, a multiple of `degrees_`
};

/// The fewest devices of `counts` that `works` accepts; empty if it accepts none. More devices may
/// be worse than fewer, so all numbers up to 64 below the answer are tried. Calls `works` at most
/// once with a number, doubling numbers first.
[[nodiscard]] std::optional<std::int64_t> fewest_that_works(
    const DeviceCounts& counts, const std::function<bool(std::int64_t)>& works);

}  // namespace headroom::detail
