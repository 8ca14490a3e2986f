// Memory of a device: the totals that its driver and one process see, and what a process takes of
// it besides its tensors.
#pragma once

#include <string>
#include <string_view>

#include "headroom/architecture.h"
#include "headroom/integer.h"

namespace headroom {

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

}  // namespace headroom
