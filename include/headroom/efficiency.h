// Fractions of a device's peak rates that runs reach: one source for every command.
#pragma once

#include <string_view>

#include "headroom/architecture.h"
#include "headroom/workload.h"

namespace headroom {

/// Serving runs prefill and decode steps, training whole steps with an optimizer.
enum class Purpose { serve, train };

/// Fractions of peak rates that are reached.
struct Efficiency {
  double matrix = 1;   ///< of peak FLOP/s, by large GEMMs
  double memory = 1;   ///< of memory bandwidth, by all other operators
  double network = 1;  ///< of interconnect bandwidth
};

/// Origin of an efficiency: measured on this machine, fitted to published runs of this
/// architecture, given by the user, or taken from another architecture.
enum class EfficiencyOrigin { measured, published, given, assumed };

[[nodiscard]] std::string_view name_of(EfficiencyOrigin origin) noexcept;

/// Efficiencies with their origin. `source` names the runs, or the architecture that lends them.
struct SourcedEfficiency {
  Efficiency fractions;
  EfficiencyOrigin origin = EfficiencyOrigin::assumed;
  std::string_view source;
};

/// Efficiencies of `architecture` for arithmetic in `dtype`. The table and its sources are in
/// src/machine/efficiency.cpp.
[[nodiscard]] SourcedEfficiency known_efficiency(Architecture architecture, Purpose purpose,
                                                 DType dtype) noexcept;

}  // namespace headroom
