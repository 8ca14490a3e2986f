// The tensor types of ggml, which GGUF files store. Values come in blocks: a block of `block_size`
// values of one row takes `block_bytes`.
// Source: enum ggml_type in ggml/include/ggml.h and the block structs' static assertions in
// ggml/src/ggml-common.h, github.com/ggml-org/llama.cpp; docs/gguf.md, github.com/ggml-org/ggml.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace headroom::checkpoint {

/// The numbers are those in a file.
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
  std::string_view name;    ///< as ggml prints it: "Q4_K"
  std::int64_t block_size;  ///< values
  std::int64_t block_bytes;
};

[[nodiscard]] const GgmlTypeInfo& info(GgmlType type);

/// Every type, in the order of their numbers.
[[nodiscard]] std::span<const GgmlTypeInfo> ggml_types();

/// The type that a file means by `number`; empty when ggml has no such type, or has it no more.
[[nodiscard]] std::optional<GgmlType> ggml_type(std::uint32_t number);

/// Bytes of a tensor of this shape, row-major, so that the last size is that of a row; empty when
/// rows do not fill whole blocks, or when no file could hold them.
[[nodiscard]] std::optional<std::int64_t> ggml_bytes(GgmlType type,
                                                     std::span<const std::int64_t> shape);

}  // namespace headroom::checkpoint
