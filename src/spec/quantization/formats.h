// Formats of stored matrices, as quantisation methods write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "headroom/model_spec.h"

namespace headroom::detail {

/// Bits per value of a plain type, as read_dtype names it: "bfloat16"; 0 if it is unknown.
[[nodiscard]] std::int64_t bits_of_plain_type(std::string_view torch_dtype) noexcept;

/// Values of a plain type. An empty or unknown type is float32.
[[nodiscard]] StorageFormat plain_format(std::string_view torch_dtype);

/// Codes of integers of `bits` bits; empty if no kernel reads them.
[[nodiscard]] std::optional<GroupCodes> integer_codes(std::int64_t bits) noexcept;

/// Numbers that a whole matrix has once: `count` of `bits` bits.
[[nodiscard]] StoredNumbers once(std::int64_t bits, std::int64_t count = 1);
/// One number of `bits` bits per row, a scale per output channel.
[[nodiscard]] StoredNumbers per_row(std::int64_t bits);
/// One number of `bits` bits per `group` inputs of a row; a group of 0 is the row.
[[nodiscard]] StoredNumbers per_group(std::int64_t bits, std::int64_t group);

/// 8-bit floats (E4M3) with `scales` beside them; `grain` says what a scale covers.
[[nodiscard]] StorageFormat float8_format(std::string_view grain,
                                          std::vector<StoredNumbers> scales);
/// 8-bit floats with a float32 scale per block (DeepSeek-V3, arXiv 2412.19437, section 3.3.2).
[[nodiscard]] StorageFormat float8_blocks(BlockShape block);
/// 8-bit floats with an E8M0 scale of 8 bits per block (DeepSeek-V4).
[[nodiscard]] StorageFormat float8_power_blocks(BlockShape block);
/// 64-bit integers, as torch stores tables of indices.
[[nodiscard]] StorageFormat int64_format();

/// Microscaling: 4-bit or 8-bit floats with an E8M0 scale of 8 bits per 32 inputs (OCP Microscaling
/// Formats 1.0, section 5).
[[nodiscard]] StorageFormat mxfp4_format();
[[nodiscard]] StorageFormat mxfp8_format();

/// 4-bit floats with an E4M3 scale per 16 inputs and `tensor_scales` float32 numbers per matrix:
/// the scale of these scales, and the scale of a quantised input.
[[nodiscard]] StorageFormat nvfp4_format(std::int64_t tensor_scales);

/// 4-bit values of bitsandbytes in blocks of 64 along the flattened matrix, with the table of its
/// 16 levels. `nested` scales (double quantisation, arXiv 2305.14314, section 3): 8 bits per block,
/// a float32 per 256 blocks and the table of the 256 levels; otherwise a float32 per block.
enum class BlockScales { plain, nested };
/// Its scales and tables, for blocks of `block`.
[[nodiscard]] std::vector<StoredNumbers> bitsandbytes_scales(std::int64_t block,
                                                             BlockScales scales);
[[nodiscard]] StorageFormat bitsandbytes_4bit_format(std::string_view name, BlockScales scales);

/// 8-bit integers with a float32 scale per row (LLM.int8, arXiv 2208.07339).
[[nodiscard]] StorageFormat int8_rows_format();

/// Words of 32 bits that GPTQ packs along the input and AWQ along the output.
enum class WordLayout { gptq, awq };
/// `bits`-bit integers in groups of `group` inputs (0: a whole row) with a 16-bit scale and a zero
/// point of `bits` bits; GPTQ also stores the group of every input as 32 bits.
[[nodiscard]] StorageFormat packed_integer_format(WordLayout layout, std::int64_t bits,
                                                  std::int64_t group);

}  // namespace headroom::detail
