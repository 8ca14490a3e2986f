// From a GGUF file's metadata to the config.json that the model was published with, as far as it
// describes its shape. One reader then understands both.
#pragma once

#include <string>

#include "gguf.h"

namespace headroom::detail {

/// The config, as JSON text, of a file that says `content`; `file` is its name. Throws
/// Error{invalid_input} naming file and key for an architecture that is not understood, and for
/// what the family has no key for.
[[nodiscard]] std::string config_from_gguf(const checkpoint::GgufContent& content,
                                           const std::string& file);

}  // namespace headroom::detail
