// Mistral Small 3.1, whose record another family's reader needs.
#pragma once

#include "../family.h"

namespace headroom::detail {

/// Pixtral's tower, and the text model that text_config names.
[[nodiscard]] Family mistral3_family();

}  // namespace headroom::detail
