// Dequantises ggml's tensor types to float32.
// Source: dequantize_row_* in ggml/src/ggml-quants.c and the structs in ggml/src/ggml-common.h,
// github.com/ggml-org/llama.cpp.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "ggml_type.h"

namespace headroom::checkpoint {

/// Returns true if dequantise supports the type. It supports no types with vector codebooks (IQ1,
/// IQ2, IQ3) and no integers.
[[nodiscard]] bool can_dequantise(GgmlType type) noexcept;

/// Writes the values of `data`, whole blocks of `type`, to `out`, whose size must match. `where`
/// names the file and the tensor. Throws Error{invalid_input} if the type is not supported or a
/// value is not finite.
void dequantise(GgmlType type, std::span<const std::byte> data, std::span<float> out,
                const std::string& where);

/// Throws as dequantise does for `data` that it would refuse.
void require_values(GgmlType type, std::span<const std::byte> data, const std::string& where);

}  // namespace headroom::checkpoint
