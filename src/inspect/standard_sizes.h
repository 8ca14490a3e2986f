// The little that a config or a GGUF file says of a model whose architecture is unknown.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "headroom/model_source.h"

namespace headroom::detail {

struct StatedModel {
  std::string model_type;                ///< empty: not stated
  std::string architecture;              ///< the class; empty: not stated
  bool is_known = false;                 ///< a family reads it, with this class
  bool has_known_type = false;           ///< a family reads others of its type
  std::string torch_dtype;               ///< of the stored weights; empty: not stated
  std::optional<StandardSizes> sizes{};  ///< of the model, or of its text_config
  std::string missing;                   ///< the first key that `sizes` needs and the config lacks
};

/// Reads config.json. Throws Error{invalid_input} if it is not a JSON object.
[[nodiscard]] StatedModel read_stated_config(const std::filesystem::path& config);

/// Reads a GGUF file's metadata. Throws Error{invalid_input} if the file is not valid.
[[nodiscard]] StatedModel read_stated_gguf(const std::filesystem::path& file);

}  // namespace headroom::detail
