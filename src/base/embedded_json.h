// JSON files that the build compiled in (see cmake/EmbedJson.cmake).
#pragma once

#include <span>
#include <string_view>

namespace headroom::detail {

struct EmbeddedJson {
  std::string_view name;
  std::span<const std::string_view> aliases;
  std::string_view json;
};

/// Every model of presets/models, sorted by name.
[[nodiscard]] std::span<const EmbeddedJson> embedded_presets() noexcept;

/// The catalogue: every machine of presets/machines, likewise.
[[nodiscard]] std::span<const EmbeddedJson> embedded_machines() noexcept;

}  // namespace headroom::detail
