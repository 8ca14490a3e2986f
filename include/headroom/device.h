// Devices: their architectures, the memory that drivers report and runtimes take, and the fractions
// of peak rates that runs reach.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headroom/integer.h"
#include "headroom/workload.h"

namespace headroom {

/// Generation of a device, by its maker's name.
enum class Architecture {
  volta,
  turing,
  ampere,
  ada,
  hopper,
  blackwell,
  cdna,
  rdna,
  gaudi,
  tpu,
  trainium,
  apple,
  cpu,
  other,
};

[[nodiscard]] std::string_view name_of(Architecture architecture) noexcept;
/// The architecture of that name; empty if there is none.
[[nodiscard]] std::optional<Architecture> architecture_named(std::string_view name) noexcept;

/// Basis of a memory figure: a tool printed it on this device, or a named rule gives it.
enum class MemoryBasis { reading, assumed };

[[nodiscard]] std::string_view name_of(MemoryBasis basis) noexcept;

struct MemoryFigure {
  Integer bytes = 0;
  MemoryBasis basis = MemoryBasis::assumed;
  std::string source;
  std::string url;  ///< of the source; may be empty
};

/// A device's memory, ECC as the device ships. The difference is the driver's, or, on Apple's
/// devices, what Metal leaves to the system.
struct DeviceMemory {
  MemoryFigure total;   ///< by the driver: nvidia-smi, rocm-smi, hl-smi; installed memory otherwise
  MemoryFigure usable;  ///< by one process: cudaMemGetInfo, Metal's recommendedMaxWorkingSetSize
};

/// Memory that a process takes on its device besides tensors.
struct RuntimeMemory {
  Integer context_bytes = 0;  ///< the process's context and its loaded kernels
  Integer group_bytes = 0;    ///< the communication library, for each group of ranks
  double fragmentation = 0;   ///< reserved by the allocator on top of activations and buffers
};

/// The runtime of devices of `architecture`; sources beside the figures.
[[nodiscard]] RuntimeMemory runtime_memory(Architecture architecture) noexcept;

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
