#include "element_type.h"

#include <algorithm>
#include <array>
#include <bit>

namespace headroom::checkpoint {
namespace {

struct TypeRow {
  StoredType type;
  std::string_view name;
  unsigned bits;
};

constexpr std::array<TypeRow, 22> kStoredTypes{{
    {StoredType::boolean, "BOOL", 8},
    {StoredType::float4, "F4", 4},
    {StoredType::float6_e2m3, "F6_E2M3", 6},
    {StoredType::float6_e3m2, "F6_E3M2", 6},
    {StoredType::uint8, "U8", 8},
    {StoredType::int8, "I8", 8},
    {StoredType::float8_e5m2, "F8_E5M2", 8},
    {StoredType::float8_e4m3, "F8_E4M3", 8},
    {StoredType::float8_e8m0, "F8_E8M0", 8},
    {StoredType::float8_e4m3_fnuz, "F8_E4M3FNUZ", 8},
    {StoredType::float8_e5m2_fnuz, "F8_E5M2FNUZ", 8},
    {StoredType::int16, "I16", 16},
    {StoredType::uint16, "U16", 16},
    {StoredType::float16, "F16", 16},
    {StoredType::bfloat16, "BF16", 16},
    {StoredType::int32, "I32", 32},
    {StoredType::uint32, "U32", 32},
    {StoredType::float32, "F32", 32},
    {StoredType::complex64, "C64", 64},
    {StoredType::float64, "F64", 64},
    {StoredType::int64, "I64", 64},
    {StoredType::uint64, "U64", 64},
}};

constexpr bool rows_follow_the_enum() {
  for (std::size_t i = 0; i < kStoredTypes.size(); ++i) {
    if (static_cast<std::size_t>(kStoredTypes[i].type) != i) return false;
  }
  return static_cast<std::size_t>(StoredType::uint64) + 1 == kStoredTypes.size();
}
static_assert(rows_follow_the_enum(), "each row's index is the value of its type");

const TypeRow& row(StoredType type) { return kStoredTypes.at(static_cast<std::size_t>(type)); }

}  // namespace

std::string_view stored_name(StoredType type) { return row(type).name; }

std::optional<StoredType> stored_type(std::string_view name) {
  const auto found = std::ranges::find(kStoredTypes, name, &TypeRow::name);
  if (found == kStoredTypes.end()) return std::nullopt;
  return found->type;
}

unsigned stored_bits(StoredType type) { return row(type).bits; }

std::optional<std::uint64_t> stored_bytes(StoredType type, std::span<const std::int64_t> shape) {
  Integer elements = 1;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    elements = checked_multiply(elements, size);
    if (elements > kMostStoredElements) return std::nullopt;
  }
  const Integer bits = checked_multiply(elements, stored_bits(type));
  if (bits % 8 != 0) return std::nullopt;
  return static_cast<std::uint64_t>(bits / 8);
}

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 0) {  // zero and subnormals: multiples of 2^-24, normal numbers as float32
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  // 127 - 15 is the difference of the exponent biases; all ones stay all ones.
  const std::uint32_t widened = exponent == 0x1FU ? 0xFFU : exponent + (127U - 15U);
  return std::bit_cast<float>(sign | (widened << 23U) | (fraction << 13U));
}

float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

}  // namespace headroom::checkpoint
