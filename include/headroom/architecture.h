// Architectures of devices: efficiencies and the runtime's memory are known by these.
#pragma once

#include <optional>
#include <string_view>

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

}  // namespace headroom
