// Storage of a model family's weights.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gguf_conversion.h"
#include "headroom/model_spec.h"
#include "stored_names.h"

namespace headroom::detail {

/// The names of the weights in safetensors files. Throws Error{invalid_input} with the reason if
/// the family has no stored weights.
[[nodiscard]] NameTable safetensors_names(const ModelSpec& spec);

/// The family's own names in GGUF files; empty if it has none.
[[nodiscard]] std::vector<std::span<const NameRule>> gguf_rules(const ModelSpec& spec);

/// The GGUF converter's change to the family's values. Throws Error{invalid_input} naming `file` if
/// it is unknown.
[[nodiscard]] GgufConversion gguf_conversion(const ModelSpec& spec, const std::string& file);

}  // namespace headroom::detail
