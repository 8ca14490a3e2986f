// How a model's family stores its weights.
#pragma once

#include <string>

#include "gguf_conversion.h"
#include "headroom/model_spec.h"
#include "stored_names.h"

namespace headroom::detail {

/// The names of the weights in the family's safetensors. Throws Error{invalid_input} for a family
/// without stored weights, with the reason.
[[nodiscard]] NameTable safetensors_names(const ModelSpec& spec);

/// The converter's change to the family's values. Throws Error{invalid_input} naming `file` where
/// it is not known.
[[nodiscard]] GgufConversion gguf_conversion(const ModelSpec& spec, const std::string& file);

}  // namespace headroom::detail
