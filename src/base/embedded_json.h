// JSON files compiled into the binary (cmake/EmbedJson.cmake).
#pragma once

#include <span>
#include <string_view>

namespace headroom::detail {

/// One embedded file.
struct EmbeddedJson {
  std::string_view name;
  std::span<const std::string_view> aliases;
  std::string_view json;
};

/// Every model of presets/models, sorted by name.
[[nodiscard]] std::span<const EmbeddedJson> embedded_presets() noexcept;

/// Every machine of presets/machines, sorted by name.
[[nodiscard]] std::span<const EmbeddedJson> embedded_machines() noexcept;

}  // namespace headroom::detail
