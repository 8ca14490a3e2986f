// Values of ggml's tensor types as float32.
// Source: dequantize_row_* in ggml/src/ggml-quants.c and the structs in ggml/src/ggml-common.h,
// github.com/ggml-org/llama.cpp.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "ggml_type.h"

namespace headroom::checkpoint {

/// Whether dequantise knows the type. It knows none whose values come from a table of vectors (IQ1,
/// IQ2, IQ3), and no integers.
[[nodiscard]] bool can_dequantise(GgmlType type) noexcept;

/// Writes the values of `data`, whole blocks of `type`, to `out`, which has room for exactly them.
/// `where` names the file and the tensor. Throws Error{invalid_input} for a type that is not known,
/// or when a value is not finite.
void dequantise(GgmlType type, std::span<const std::byte> data, std::span<float> out,
                const std::string& where);

}  // namespace headroom::checkpoint
