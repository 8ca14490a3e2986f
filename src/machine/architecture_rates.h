// Rates of devices by architecture: fractions of their peaks, fixed times of their kernels, and the
// link to their host. Internal to src/machine, src/predict and src/plan.
#pragma once

#include <optional>
#include <string_view>

#include "headroom/machine_profile.h"

namespace headroom::detail {

/// Fractions of peak that GEMMs of a serving step reach, in whole tiles, by bits of their types.
struct ServingMatrix {
  double bits16 = 0;
  double bits8 = 0;
  double bits4 = 0;

  /// Types of 32 bits reach as much as those of 16.
  [[nodiscard]] double of(DType dtype) const noexcept;
};

/// Seconds of an operator with weights besides its work when serving, by bytes of its type.
struct ServingKernelSeconds {
  double wide = 0;
  double narrow = 0;  ///< types of one byte and less
};

/// Devices on which llama.cpp reaches alike fractions of the peaks (llama_cpp_rates.cpp).
enum class LlamaCppDevices { nvidia, hopper, rdna, apple };

/// Figures that an architecture's devices share. Defaults are those of architectures without
/// published runs or data sheets of their own.
struct ArchitectureRates {
  Architecture architecture = Architecture::other;
  SourcedEfficiency training;
  double training_kernel_s = 5e-6;  ///< fixed, of a kernel in a training step
  ServingMatrix serving_matrix{0.50, 0.50, 0.50};
  std::string_view serving_source = "memory and network as on Hopper, no source for arithmetic";
  EfficiencyOrigin serving_origin = EfficiencyOrigin::assumed;
  /// Whole efficiencies of serving with GEMMs in 8 bits, where runs are published.
  std::optional<SourcedEfficiency> serving_8_bits{};
  ServingKernelSeconds serving_kernel{};
  double host_bytes_per_s = 32e9;              ///< of the link to the host, in one direction
  bool in_host_memory = false;                 ///< computes in the host's memory
  std::optional<LlamaCppDevices> llama_cpp{};  ///< empty: no results are published
};

/// The rates of `architecture`; sources beside the figures in src/machine/efficiency.cpp.
[[nodiscard]] const ArchitectureRates& architecture_rates(Architecture architecture) noexcept;

}  // namespace headroom::detail
