// ggml's block types of 32 values as vectors over the rows of a tile. A format has:
//   kType              type in a file
//   kValues            values of a block
//   kGroup             values that share a scale
//   kFields            bytes of a block, for the tile's layout
//   kMaxCode           no code is larger
//   codes(tile, g, i)  unsigned codes of values 4i to 4i + 3 of group g, one per byte, of every row
//   scale(tile, g), and least(tile, g) or kZero   of group g: value = scale·code − least, or
//                      scale·(code − kZero); 128 if codes exceed 127
// Source: dequantize_row_* in ggml/src/ggml-quants.c, github.com/ggml-org/llama.cpp.
#pragma once

#include <array>

#include "block_tile.h"
#include "byte_table.h"
#include "ggml_type.h"

namespace headroom::measured::blocks {

using checkpoint::GgmlType;

/// Bytes of four bits each, in a word.
inline constexpr std::uint32_t kLowNibbles = 0x0f0f0f0fU;

/// Codes of a block of 32: the low nibbles of 16 bytes from `offset`, then their high nibbles.
[[gnu::always_inline]] inline Words nibbles(BlockTile tile, std::size_t offset, std::size_t i) {
  return tile.quad(offset + 4 * (i % 4)) >> (i < 4 ? 0U : 4U) & kLowNibbles;
}

/// Bit i of every lane's lowest four as bit 4 of byte i.
inline Words fifth_bits(Words bits) {
  return (bits & 1U) << 4U | (bits & 2U) << 11U | (bits & 4U) << 18U | (bits & 8U) << 25U;
}

struct FormatQ8_0 {
  static constexpr GgmlType kType = GgmlType::q8_0;
  static constexpr std::size_t kValues = 32;
  static constexpr std::size_t kGroup = 32;
  static constexpr std::uint32_t kMaxCode = 255;
  static constexpr std::array kFields{BlockField{0, 2, 2}, BlockField{2, 32, 4}};
  /// Signed bytes plus 128.
  static Words codes(BlockTile tile, std::size_t /*g*/, std::size_t i) {
    return tile.quad(2 + 4 * i) ^ 0x80808080U;
  }
  static Floats scale(BlockTile tile, std::size_t /*g*/) { return tile.half(0); }
  static constexpr float kZero = 128;
};

struct FormatQ4_0 {
  static constexpr GgmlType kType = GgmlType::q4_0;
  static constexpr std::size_t kValues = 32;
  static constexpr std::size_t kGroup = 32;
  static constexpr std::uint32_t kMaxCode = 15;
  static constexpr std::array kFields{BlockField{0, 2, 2}, BlockField{2, 16, 4}};
  static Words codes(BlockTile tile, std::size_t /*g*/, std::size_t i) {
    return nibbles(tile, 2, i);
  }
  static Floats scale(BlockTile tile, std::size_t /*g*/) { return tile.half(0); }
  static Floats least(BlockTile tile, std::size_t /*g*/) { return tile.half(0) * 8.0F; }
};

struct FormatQ4_1 {
  static constexpr GgmlType kType = GgmlType::q4_1;
  static constexpr std::size_t kValues = 32;
  static constexpr std::size_t kGroup = 32;
  static constexpr std::uint32_t kMaxCode = 15;
  static constexpr std::array kFields{BlockField{0, 4, 2}, BlockField{4, 16, 4}};
  static Words codes(BlockTile tile, std::size_t /*g*/, std::size_t i) {
    return nibbles(tile, 4, i);
  }
  static Floats scale(BlockTile tile, std::size_t /*g*/) { return tile.half(0); }
  static Floats least(BlockTile tile, std::size_t /*g*/) { return -tile.half(2); }
};

struct FormatQ5_0 {
  static constexpr GgmlType kType = GgmlType::q5_0;
  static constexpr std::size_t kValues = 32;
  static constexpr std::size_t kGroup = 32;
  static constexpr std::uint32_t kMaxCode = 31;
  static constexpr std::array kFields{BlockField{0, 2, 2}, BlockField{2, 20, 4}};
  static Words codes(BlockTile tile, std::size_t /*g*/, std::size_t i) {
    return nibbles(tile, 6, i) | fifth_bits(tile.quad(2) >> static_cast<std::uint32_t>(4 * i));
  }
  static Floats scale(BlockTile tile, std::size_t /*g*/) { return tile.half(0); }
  static Floats least(BlockTile tile, std::size_t /*g*/) { return tile.half(0) * 16.0F; }
};

struct FormatQ5_1 {
  static constexpr GgmlType kType = GgmlType::q5_1;
  static constexpr std::size_t kValues = 32;
  static constexpr std::size_t kGroup = 32;
  static constexpr std::uint32_t kMaxCode = 31;
  static constexpr std::array kFields{BlockField{0, 4, 2}, BlockField{4, 20, 4}};
  static Words codes(BlockTile tile, std::size_t /*g*/, std::size_t i) {
    return nibbles(tile, 8, i) | fifth_bits(tile.quad(4) >> static_cast<std::uint32_t>(4 * i));
  }
  static Floats scale(BlockTile tile, std::size_t /*g*/) { return tile.half(0); }
  static Floats least(BlockTile tile, std::size_t /*g*/) { return -tile.half(2); }
};

/// Values of the 16 codes of IQ4_NL and IQ4_XS, plus 128.
inline constexpr ByteTable kNonLinear{1,   24,  45,  63,  79,  93,  106, 118,
                                      129, 141, 153, 166, 181, 197, 217, 241};

struct FormatIq4Nl {
  static constexpr GgmlType kType = GgmlType::iq4_nl;
  static constexpr std::size_t kValues = 32;
  static constexpr std::size_t kGroup = 32;
  static constexpr std::uint32_t kMaxCode = kNonLinear.back();
  static constexpr std::array kFields{BlockField{0, 2, 2}, BlockField{2, 16, 4}};
  static Words codes(BlockTile tile, std::size_t /*g*/, std::size_t i) {
    return look_up(kNonLinear, nibbles(tile, 2, i));
  }
  static Floats scale(BlockTile tile, std::size_t /*g*/) { return tile.half(0); }
  static constexpr float kZero = 128;
};

/// OCP microscaling: a power of two, and floats of four bits (E2M1) doubled, plus 12.
struct FormatMxfp4 {
  static constexpr GgmlType kType = GgmlType::mxfp4;
  static constexpr std::size_t kValues = 32;
  static constexpr std::size_t kGroup = 32;
  static constexpr std::uint32_t kMaxCode = 24;
  static constexpr std::array kFields{BlockField{0, 1, 1}, BlockField{1, 16, 4}};
  static constexpr ByteTable kFloat4{12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
  static Words codes(BlockTile tile, std::size_t /*g*/, std::size_t i) {
    return look_up(kFloat4, nibbles(tile, 1, i));
  }
  /// 2^(exponent − 128); the two smallest are subnormal.
  static Floats scale(BlockTile tile, std::size_t /*g*/) {
    const Words exponent = tile.byte(0);
    const Words normal = (exponent - 1U) << 23U;
    return std::bit_cast<Floats>(exponent < 2U ? (exponent + 1U) << 21U : normal);
  }
  static constexpr float kZero = 12;
};

}  // namespace headroom::measured::blocks
