// Drafts for speculative decoding, which a config names by its class: `model_type` is that of the
// layers, such as llama.
#pragma once

#include <string_view>

#include "../family.h"

namespace headroom::detail {

/// The family of drafts with the class `architecture`, or null.
[[nodiscard]] const Family* find_draft(std::string_view architecture);
/// As that, and EAGLE-3 for Llama's class with a vocabulary of a draft.
[[nodiscard]] const Family* find_draft(const ConfigReader& config, std::string_view architecture);

}  // namespace headroom::detail
