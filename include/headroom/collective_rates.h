// CollectiveRates: times of the collectives of parallel plans, measured between processes by
// `mpirun … headroom calibrate --collectives`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/op.h"

namespace headroom {

/// A time at one payload.
struct CollectivePoint {
  std::int64_t bytes = 0;  ///< as Collective::bytes
  double seconds = 0;      ///< median, of the slowest rank
  double spread = 0;       ///< relative: median absolute deviation / median
};

/// Processes that communicated: groups of `ranks`, all at the same time, as under a plan.
struct CollectiveGroups {
  std::int64_t processes = 0;
  std::int64_t ranks = 0;  ///< of a group; divides `processes`
  std::int64_t hosts = 1;  ///< of all processes
  bool operator==(const CollectiveGroups&) const = default;
};

/// Times of one collective over payloads. Ranks of all-reduce, all-gather and reduce-scatter are
/// neighbours, as tensor-parallel ones; those of a send are a stage apart.
struct CollectiveTable {
  CollectiveKind kind = CollectiveKind::none;
  CollectiveGroups groups;
  std::vector<CollectivePoint> points;  ///< by ascending bytes; not empty
};

struct CollectiveRates {
  std::string date;
  std::string library;  ///< "Open MPI v4.1.4"
  std::vector<CollectiveTable> tables;
};

/// Collectives that a calibration measures.
[[nodiscard]] const std::vector<CollectiveKind>& measured_collectives();

/// Seconds of one collective of `bytes`: interpolated between the logarithms of payloads and times;
/// a smaller one takes as long as the smallest, and a larger one longer in proportion.
[[nodiscard]] double seconds_of(const CollectiveTable& table, double bytes);

/// The table of this collective. Throws Error{invalid_input} that says how to measure it.
[[nodiscard]] const CollectiveTable& table_of(const CollectiveRates& rates, CollectiveKind kind,
                                              const CollectiveGroups& groups);

/// `rates` with those of `newer`, whose tables replace those of equal groups.
[[nodiscard]] CollectiveRates merged(CollectiveRates rates, const CollectiveRates& newer);

[[nodiscard]] std::string_view name_of(CollectiveKind kind) noexcept;

}  // namespace headroom
