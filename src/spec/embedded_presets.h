// The presets that the build compiled in, from presets/models (see cmake/EmbedPresets.cmake).
#pragma once

#include <span>
#include <string_view>

namespace headroom::detail {

struct EmbeddedPreset {
  std::string_view name;
  std::span<const std::string_view> aliases;
  std::string_view json;
};

/// All of them, sorted by name.
[[nodiscard]] std::span<const EmbeddedPreset> embedded_presets() noexcept;

}  // namespace headroom::detail
