// Translates GGUF metadata to the model's published config.json, as far as it describes sizes and
// operators. One reader then serves both formats.
#pragma once

#include <string>

#include "gguf.h"

namespace headroom::detail {

/// Returns true if a family reads files of this architecture.
[[nodiscard]] bool is_known_architecture(const checkpoint::GgufContent& content,
                                         const std::string& file);

/// The config of a file with `content`, as JSON text; `file` is its name. Throws
/// Error{invalid_input} naming file and key if the architecture is unknown or the family's
/// config cannot express a value.
[[nodiscard]] std::string config_from_gguf(const checkpoint::GgufContent& content,
                                           const std::string& file);

}  // namespace headroom::detail
