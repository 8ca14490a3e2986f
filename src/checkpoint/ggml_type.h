// ggml's tensor types, as stored in GGUF files. A block of `block_size` values of one row has
// `block_bytes` bytes.
// Source: enum ggml_type in ggml/include/ggml.h and the block structs' static assertions in
// ggml/src/ggml-common.h, github.com/ggml-org/llama.cpp; docs/gguf.md, github.com/ggml-org/ggml.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace headroom::checkpoint {

/// The values are the type numbers in a file.
enum class GgmlType : std::uint8_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q8_1 = 9,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  q8_k = 15,
  iq2_xxs = 16,
  iq2_xs = 17,
  iq3_xxs = 18,
  iq1_s = 19,
  iq4_nl = 20,
  iq3_s = 21,
  iq2_s = 22,
  iq4_xs = 23,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  iq1_m = 29,
  bf16 = 30,
  tq1_0 = 34,
  tq2_0 = 35,
  mxfp4 = 39,
  nvfp4 = 40,
  q1_0 = 41,
  q2_0 = 42,
};

struct GgmlTypeInfo {
  GgmlType type;
  std::string_view name;    ///< ggml's name: "Q4_K"
  std::int64_t block_size;  ///< values
  std::int64_t block_bytes;
};

[[nodiscard]] const GgmlTypeInfo& info(GgmlType type);

/// All types, in the order of their numbers.
[[nodiscard]] std::span<const GgmlTypeInfo> ggml_types();

/// The type with this number in a file; empty if ggml has none or removed it.
[[nodiscard]] std::optional<GgmlType> ggml_type(std::uint32_t number);

/// Bytes of a row-major tensor of this shape, whose last size is that of a row; empty if rows do
/// not fill whole blocks or the tensor exceeds any file.
[[nodiscard]] std::optional<std::int64_t> ggml_bytes(GgmlType type,
                                                     std::span<const std::int64_t> shape);

}  // namespace headroom::checkpoint
