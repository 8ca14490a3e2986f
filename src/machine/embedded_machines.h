// The catalogue that is compiled in. Internal to src/machine.
#pragma once

#include <span>
#include <string_view>

namespace headroom::detail {

/// The JSON text of every machine of presets/machines.
[[nodiscard]] std::span<const std::string_view> embedded_machines() noexcept;

}  // namespace headroom::detail
