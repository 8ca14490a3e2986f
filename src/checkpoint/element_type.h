// Element types of the safetensors format, and their values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "headroom/expr.h"

namespace headroom::checkpoint {

/// Encoding of one element of a stored tensor: all types of the format, little-endian.
enum class StoredType : std::uint8_t {
  boolean,
  float4,
  float6_e2m3,
  float6_e3m2,
  uint8,
  int8,
  float8_e5m2,
  float8_e4m3,
  float8_e8m0,
  float8_e4m3_fnuz,
  float8_e5m2_fnuz,
  int16,
  uint16,
  float16,
  bfloat16,
  int32,
  uint32,
  float32,
  complex64,
  float64,
  int64,
  uint64,
};

/// More elements than any file stores; one more factor below 2^63 cannot overflow.
inline constexpr Integer kMostStoredElements = Integer{1} << 60U;

/// The type's name in a file, such as "BF16".
[[nodiscard]] std::string_view stored_name(StoredType type);

/// The type with this name in a file; empty if the format has none.
[[nodiscard]] std::optional<StoredType> stored_type(std::string_view name);

/// Bits per element; small floats do not fill a byte.
[[nodiscard]] unsigned stored_bits(StoredType type);

/// Bytes of a tensor of this shape; empty if a size is negative, the elements do not fill whole
/// bytes, or the tensor exceeds any file.
[[nodiscard]] std::optional<std::uint64_t> stored_bytes(StoredType type,
                                                        std::span<const std::int64_t> shape);

/// The value of an IEEE 754 half-precision number: exact, including subnormals, infinities and NaN.
[[nodiscard]] float half_to_float(std::uint16_t bits);

/// The value of a bfloat16 number, the upper half of a float32; exact.
[[nodiscard]] float bfloat16_to_float(std::uint16_t bits);

}  // namespace headroom::checkpoint
