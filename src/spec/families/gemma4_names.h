// Tensors and GGUF keys of Gemma 3n and Gemma 4. Internal to src/spec/families.
#pragma once

#include "../family.h"

namespace headroom::detail {

/// The tensors of both, in files of safetensors.
[[nodiscard]] NameTable gemma4_names();

[[nodiscard]] GgufForm gemma3n_form();
[[nodiscard]] GgufForm gemma4_form();

}  // namespace headroom::detail
