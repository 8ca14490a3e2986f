// Windows of EXAONE 4 and K-EXAONE.
#pragma once

#include "../decoder.h"

namespace headroom::detail {

/// Layers from one with full attention to the next, `sliding_window_pattern`: a number, or "LLLG"
/// for three local layers and a global one, as vLLM and llama.cpp read it. Throws
/// Error{invalid_input} for another pattern.
[[nodiscard]] std::int64_t read_exaone_period(ConfigReader& config);

}  // namespace headroom::detail
