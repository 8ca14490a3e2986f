// Matrices of quantised checkpoints in one layout, whatever tensors and packing they come from:
// rows of codes with scales, and perhaps zero points, of groups of columns, each in the bits that
// the files store. Scattered rows of blocks that share a scale get scales of their own, in float32.
//
//   weight[row, order[c]] = scale(row, g)·(value(code[row, c]) − zero[row, g]),  g = c / group
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace headroom::checkpoint {

enum class CodeKind {
  nibble,    ///< four bits, an index into `levels`; two per byte, the first one in the low bits
  int8,      ///< signed
  float8,    ///< E4M3
  float16,   ///< two bytes; without scales
  bfloat16,  ///< likewise
};

/// Bits of a code.
[[nodiscard]] std::int64_t code_bits(CodeKind kind) noexcept;

enum class ScaleKind {
  none,  ///< all scales are 1
  float32,
  float16,
  bfloat16,
  float8,    ///< E4M3, as in NVFP4
  exponent,  ///< E8M0, a power of two of the OCP microscaling formats
  nested,    ///< eight bits, an index into `table`, with a second scale for every 256 scales
};

/// Bytes of a stored scale; 0 if there are none.
[[nodiscard]] std::int64_t scale_bytes(ScaleKind kind) noexcept;

/// Scales of a matrix: one for each group of columns of each block of `rows_per_scale` rows.
struct ScaleGrid {
  ScaleKind kind = ScaleKind::none;
  std::vector<std::byte> values{};  ///< [blocks of rows, groups], row-major
  std::int64_t rows_per_scale = 1;
  std::int64_t first_row = 0;          ///< of the matrix, in the rows that the grid covers
  float factor = 1;                    ///< of all scales, such as NVFP4's scale of a tensor
  std::array<float, 256> table{};      ///< nested: values of the codes
  std::vector<float> second_scales{};  ///< nested: of every 256 scales of the grid
  float offset = 0;                    ///< nested: added to the scales
};

/// A matrix [rows, columns].
struct GroupedWeights {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  CodeKind kind = CodeKind::nibble;
  std::array<float, 16> levels{};  ///< values of nibbles
  std::vector<std::byte> codes{};  ///< [rows, columns], each row in whole bytes
  std::int64_t group = 0;          ///< columns that share a scale; the last group may have fewer
  ScaleGrid scales{};
  /// [rows, groups], as a code is: unsigned for nibbles, signed for int8. Empty: all are 0.
  std::vector<std::uint8_t> zeros{};
  /// [columns]: the column of the weight that each column of codes is. Empty: as they are.
  std::vector<std::int32_t> order{};

  [[nodiscard]] std::int64_t groups() const noexcept { return (columns + group - 1) / group; }
  [[nodiscard]] std::int64_t row_bytes() const noexcept { return columns * code_bits(kind) / 8; }
};

/// Integer levels of a nibble: 0 to 15 less `zero`.
[[nodiscard]] std::array<float, 16> integer_levels(int zero) noexcept;
/// Values of the 16 floats of four bits (E2M1; OCP Microscaling Formats 1.0, table 4).
[[nodiscard]] std::array<float, 16> float4_levels() noexcept;

/// The value of a float of eight bits, E4M3 without infinities (arXiv 2209.05433, table 1).
[[nodiscard]] float float8_to_float(std::uint8_t bits) noexcept;

/// The scale of group `group` of row `row`.
[[nodiscard]] float scale_of(const GroupedWeights& weights, std::int64_t row, std::int64_t group);

/// Writes the values of row `row` to `to`, [columns].
void dequantise_row(const GroupedWeights& weights, std::int64_t row, std::span<float> to);

/// The rows of `weights` with these indices, in this order.
[[nodiscard]] GroupedWeights select_rows(const GroupedWeights& weights,
                                         std::span<const std::int64_t> rows);

/// Returns whether `select_columns` can return these columns: whole groups, or a part of one, of
/// codes in the order of the columns, and whole bytes of codes.
[[nodiscard]] bool has_columns(const GroupedWeights& weights, std::int64_t first,
                               std::int64_t count) noexcept;

/// The columns from `first` on. Nested scales become float32.
[[nodiscard]] GroupedWeights select_columns(const GroupedWeights& weights, std::int64_t first,
                                            std::int64_t count);

/// Throws Error{invalid_input} at `where` if a code, a level of nibbles or a scale is not finite.
void require_finite(const GroupedWeights& weights, const std::string& where);

}  // namespace headroom::checkpoint
