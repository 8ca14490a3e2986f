// Sizes of each class in transformers, which its configs may leave out.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace headroom::detail {

/// The sizes of a default config of this model type, an object; null if transformers has no class.
/// Of a model with towers, the default configs of its parts.
[[nodiscard]] const nlohmann::json* class_sizes(std::string_view model_type);

/// The text of class_sizes.json, which tests/reference/make_class_sizes.py writes.
[[nodiscard]] std::string_view class_sizes_json() noexcept;

}  // namespace headroom::detail
