#include "formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace headroom {

std::string_view name_of(StatedType type) noexcept {
  switch (type) {
    case StatedType::float8:
      return "float8";
    case StatedType::int8:
      return "int8";
    case StatedType::float4:
      return "float4";
    case StatedType::mxfp8:
      return "mxfp8";
    case StatedType::mxfp4:
      return "mxfp4";
    case StatedType::nvfp4:
      return "nvfp4";
    case StatedType::int4:
      break;
  }
  return "int4";
}

namespace {

constexpr std::int64_t kBitsPerByte = 8;

/// Numbers along a dimension; at least one.
Integer blocks_along(std::int64_t size, std::int64_t block) {
  return block == 0 ? Integer{1} : ceil_div(Integer{size}, Integer{block});
}

/// Bytes of `rows` rows of `count` numbers, each in whole words.
Integer bytes_of_rows(const StoredNumbers& numbers, Integer rows, Integer count) {
  const Integer bits = round_up(checked_multiply(count, numbers.bits), Integer{numbers.word_bits});
  return checked_multiply(rows, ceil_div(bits, Integer{kBitsPerByte}));
}

Integer bytes_of_numbers(const StoredNumbers& numbers, std::int64_t out, std::int64_t in) {
  switch (numbers.along) {
    case PackedAlong::in:
      return bytes_of_rows(numbers, blocks_along(out, numbers.block.out),
                           blocks_along(in, numbers.block.in));
    case PackedAlong::out:
      return bytes_of_rows(numbers, blocks_along(in, numbers.block.in),
                           blocks_along(out, numbers.block.out));
    case PackedAlong::flat:
      break;
  }
  const Integer values = checked_multiply(out, in);
  return bytes_of_rows(numbers, 1,
                       ceil_div(values, Integer{std::max<std::int64_t>(1, numbers.block.in)}));
}

}  // namespace

Integer StorageFormat::bytes(std::int64_t out, std::int64_t in) const {
  if (out == 0 || in == 0) return 0;
  Integer sum = bytes_of_numbers(values, out, in);
  for (const StoredNumbers& numbers : beside) {
    sum = checked_add(sum, bytes_of_numbers(numbers, out, in));
  }
  return sum;
}

namespace detail {
namespace {

constexpr std::int64_t kFloat32 = 32;

struct PlainType {
  std::string_view torch_dtype;
  std::string_view name;
  std::int64_t bits;
  std::optional<GroupCodes> codes{};
};

constexpr std::array kPlainTypes{PlainType{"float32", "F32", 32},
                                 PlainType{"bfloat16", "BF16", 16, GroupCodes::bfloat16},
                                 PlainType{"float16", "F16", 16, GroupCodes::float16},
                                 PlainType{"half", "F16", 16, GroupCodes::float16},
                                 PlainType{"float", "F32", 32},
                                 PlainType{"float64", "F64", 64},
                                 PlainType{"double", "F64", 64},
                                 PlainType{"float8_e4m3fn", "F8_E4M3", 8},
                                 PlainType{"float8_e5m2", "F8_E5M2", 8}};

const PlainType* find_plain_type(std::string_view torch_dtype) noexcept {
  const auto* const found = std::ranges::find(kPlainTypes, torch_dtype, &PlainType::torch_dtype);
  return found == kPlainTypes.end() ? nullptr : found;
}

StoredNumbers values_of(std::int64_t bits) { return {.bits = bits}; }

std::string grain_of(std::int64_t group) {
  return group == 0 ? "a scale per row" : fmt::format("groups of {}", group);
}

}  // namespace

std::int64_t bits_of_plain_type(std::string_view torch_dtype) noexcept {
  const PlainType* const type = find_plain_type(torch_dtype);
  return type == nullptr ? 0 : type->bits;
}

StorageFormat plain_format(std::string_view torch_dtype) {
  const PlainType* const found = find_plain_type(torch_dtype);
  const PlainType& type = found == nullptr ? kPlainTypes.front() : *found;
  return {std::string(type.name), values_of(type.bits), {}, type.codes};
}

std::optional<GroupCodes> integer_codes(std::int64_t bits) noexcept {
  if (bits == 4) return GroupCodes::four_bits;
  return bits == 8 ? std::optional(GroupCodes::int8) : std::nullopt;
}

StoredNumbers once(std::int64_t bits, std::int64_t count) {
  return {.bits = bits * count, .block = {0, 0}};
}

StoredNumbers per_row(std::int64_t bits) { return {.bits = bits, .block = {1, 0}}; }

StoredNumbers per_group(std::int64_t bits, std::int64_t group) {
  return {.bits = bits, .block = {1, group}};
}

StorageFormat float8_format(std::string_view grain, std::vector<StoredNumbers> scales) {
  return {fmt::format("FP8, {}", grain), values_of(8), std::move(scales), GroupCodes::float8};
}

StorageFormat float8_blocks(BlockShape block) {
  return float8_format(fmt::format("a scale per {} × {}", block.out, block.in),
                       {{.bits = kFloat32, .block = block}});
}

StorageFormat float8_power_blocks(BlockShape block) {
  return float8_format(fmt::format("an E8M0 scale per {} × {}", block.out, block.in),
                       {{.bits = 8, .block = block}});
}

StorageFormat int64_format() { return {"I64", values_of(64)}; }

StorageFormat mxfp4_format() {
  return {"MXFP4", values_of(4), {per_group(8, 32)}, GroupCodes::four_bits};
}

StorageFormat mxfp8_format() {
  return {"MXFP8", values_of(8), {per_group(8, 32)}, GroupCodes::float8};
}

StorageFormat nvfp4_format(std::int64_t tensor_scales) {
  return {"NVFP4",
          values_of(4),
          {per_group(8, 16), once(kFloat32, tensor_scales)},
          GroupCodes::four_bits};
}

namespace {

/// One number of `bits` bits per `block` values of the flattened matrix.
StoredNumbers flat(std::int64_t bits, std::int64_t block) {
  return {.bits = bits, .block = {1, block}, .along = PackedAlong::flat};
}

}  // namespace

std::vector<StoredNumbers> bitsandbytes_scales(std::int64_t block, BlockScales scales) {
  // bitsandbytes, functional.py: a code of 16 float32 levels; nested scales have blocks of 256 and
  // a code of 256 float32 levels. The short JSON text of each tensor's state (about 100 B) depends
  // on its values and is left out.
  constexpr std::int64_t kBlocksPerScale = 256;
  switch (scales) {
    case BlockScales::plain:
      return {flat(kFloat32, block), once(kFloat32, 16)};
    case BlockScales::nested:
      break;
  }
  return {flat(8, block), flat(kFloat32, block * kBlocksPerScale), once(kFloat32, 16 + 256)};
}

StorageFormat bitsandbytes_4bit_format(std::string_view name, BlockScales scales) {
  constexpr std::int64_t kBlock = 64;  // blocksize
  StorageFormat format{fmt::format("{}, blocks of {}", name, kBlock), flat(4, 1),
                       bitsandbytes_scales(kBlock, scales), GroupCodes::four_bits};
  if (scales == BlockScales::nested) format.name += ", nested scales";
  return format;
}

StorageFormat int8_rows_format() {
  // weight, SCB [out], and weight_format, one byte that names the layout.
  return {"INT8, a scale per row", values_of(8), {per_row(kFloat32), once(8)}, GroupCodes::int8};
}

StorageFormat packed_integer_format(WordLayout layout, std::int64_t bits, std::int64_t group) {
  constexpr std::int64_t kWord = 32;
  const bool gptq = layout == WordLayout::gptq;
  // GPTQ: qweight [in·bits/32, out]: whole words along the input. AWQ: [in, out·bits/32].
  // Both: qzeros [groups, out·bits/32] and scales [groups, out] of 16 bits.
  const StoredNumbers values{
      .bits = bits, .along = gptq ? PackedAlong::in : PackedAlong::out, .word_bits = kWord};
  const StoredNumbers zeros{
      .bits = bits, .block = {1, group}, .along = PackedAlong::out, .word_bits = kWord};
  StorageFormat format{fmt::format("{} {}-bit, {}", gptq ? "GPTQ" : "AWQ", bits, grain_of(group)),
                       values,
                       {per_group(16, group), zeros},
                       gptq || bits == 4 ? integer_codes(bits) : std::nullopt};
  if (gptq) format.beside.push_back({.bits = 32, .block = {0, 1}});  // g_idx
  return format;
}

}  // namespace detail
}  // namespace headroom
