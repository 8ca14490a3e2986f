// ggml's block types of 256 values (k-quants and IQ4_XS) as vectors over the rows of a tile; see
// block_formats.h for the members of a format.
#pragma once

#include "block_formats.h"

namespace headroom::measured::blocks {

/// Four codes of four bits of group g of 32, from `offset`: 32 bytes hold one group in their low
/// nibbles and the next in their high ones.
inline Words k_nibbles(BlockTile tile, std::size_t offset, std::size_t g, std::size_t i) {
  const auto shift = static_cast<std::uint32_t>(g % 2 * 4);
  return tile.quad(offset + g / 2 * 32 + 4 * i) >> shift & kLowNibbles;
}

/// Four codes of two bits of group g of 16, from `offset`: each half of the block has 32 bytes with
/// four runs of two groups.
inline Words k_pairs(BlockTile tile, std::size_t offset, std::size_t g, std::size_t i) {
  const auto shift = static_cast<std::uint32_t>(g % 8 / 2 * 2);
  return tile.quad(offset + g / 8 * 32 + g % 2 * 16 + 4 * i) >> shift & 0x03030303U;
}

/// One bit of each of four values from `first` of 32 bytes that eight runs share: bit `run`.
inline Words k_bits(BlockTile tile, std::size_t first, std::size_t run) {
  return tile.quad(first) >> static_cast<std::uint32_t>(run) & 0x01010101U;
}

/// Scales and minima of Q4_K and Q5_K: eight of each, six bits in 12 bytes after d and dmin.
struct SixBitScales {
  static constexpr std::size_t kBytes = 4;  ///< offset in the block

  static Floats scale(BlockTile tile, std::size_t g) {
    const Words bits = g < 4 ? tile.byte(kBytes + g) & 63U
                             : tile.low(kBytes + g + 4) | tile.byte(kBytes + g - 4) >> 6U << 4U;
    return tile.half(0) * to_floats(bits);
  }
  static Floats least(BlockTile tile, std::size_t g) {
    const Words bits = g < 4 ? tile.byte(kBytes + g + 4) & 63U
                             : tile.high(kBytes + g + 4) | tile.byte(kBytes + g) >> 6U << 4U;
    return tile.half(2) * to_floats(bits);
  }
};

struct FormatQ4K : SixBitScales {
  static constexpr GgmlType kType = GgmlType::q4_k;
  static constexpr std::size_t kValues = 256;
  static constexpr std::size_t kGroup = 32;
  static constexpr std::uint32_t kMaxCode = 15;
  static constexpr std::array kFields{BlockField{0, 4, 2}, BlockField{4, 12, 1},
                                      BlockField{16, 128, 4}};
  static Words codes(BlockTile tile, std::size_t g, std::size_t i) {
    return k_nibbles(tile, 16, g, i);
  }
};

struct FormatQ5K : SixBitScales {
  static constexpr GgmlType kType = GgmlType::q5_k;
  static constexpr std::size_t kValues = 256;
  static constexpr std::size_t kGroup = 32;
  static constexpr std::uint32_t kMaxCode = 31;
  static constexpr std::array kFields{BlockField{0, 4, 2}, BlockField{4, 12, 1},
                                      BlockField{16, 160, 4}};
  static Words codes(BlockTile tile, std::size_t g, std::size_t i) {
    return k_nibbles(tile, 48, g, i) | k_bits(tile, 16 + 4 * i, g) << 4U;
  }
};

struct FormatQ6K {
  static constexpr GgmlType kType = GgmlType::q6_k;
  static constexpr std::size_t kValues = 256;
  static constexpr std::size_t kGroup = 16;
  static constexpr std::uint32_t kMaxCode = 63;
  static constexpr std::array kFields{BlockField{0, 192, 4}, BlockField{192, 16, 1},
                                      BlockField{208, 2, 2}};
  /// Each half of the block has 64 bytes of low nibbles and 32 bytes of bit pairs.
  static Words codes(BlockTile tile, std::size_t g, std::size_t i) {
    const Words four = tile.quad(g / 8 * 64 + g % 4 * 16 + 4 * i);
    const auto shift = static_cast<std::uint32_t>(g % 8 / 4 * 4);
    return (four >> shift & kLowNibbles) | k_pairs(tile, 128, g, i) << 4U;
  }
  static Floats scale(BlockTile tile, std::size_t g) {
    return tile.half(208) * __builtin_convertvector(tile.signed_byte(192 + g), Floats);
  }
  static Floats least(BlockTile tile, std::size_t g) { return scale(tile, g) * 32.0F; }
};

struct FormatQ2K {
  static constexpr GgmlType kType = GgmlType::q2_k;
  static constexpr std::size_t kValues = 256;
  static constexpr std::size_t kGroup = 16;
  static constexpr std::uint32_t kMaxCode = 3;
  static constexpr std::array kFields{BlockField{0, 16, 1}, BlockField{16, 64, 4},
                                      BlockField{80, 4, 2}};
  static Words codes(BlockTile tile, std::size_t g, std::size_t i) {
    return k_pairs(tile, 16, g, i);
  }
  static Floats scale(BlockTile tile, std::size_t g) {
    return tile.half(80) * to_floats(tile.low(g));
  }
  static Floats least(BlockTile tile, std::size_t g) {
    return tile.half(82) * to_floats(tile.high(g));
  }
};

struct FormatQ3K {
  static constexpr GgmlType kType = GgmlType::q3_k;
  static constexpr std::size_t kValues = 256;
  static constexpr std::size_t kGroup = 16;
  static constexpr std::uint32_t kMaxCode = 7;
  static constexpr std::array kFields{BlockField{0, 96, 4}, BlockField{96, 12, 1},
                                      BlockField{108, 2, 2}};
  static Words codes(BlockTile tile, std::size_t g, std::size_t i) {
    return k_pairs(tile, 32, g, i) | k_bits(tile, g % 2 * 16 + 4 * i, g / 2) << 2U;
  }
  /// Four bits of a scale in the first 8 bytes, two more in the last 4.
  static Floats scale(BlockTile tile, std::size_t g) {
    const Words four = g < 8 ? tile.low(96 + g) : tile.high(96 + g - 8);
    const Words two = tile.byte(104 + g % 4) >> static_cast<std::uint32_t>(g / 4 * 2) & 3U;
    return tile.half(108) * (to_floats(four | two << 4U) - 32.0F);
  }
  static Floats least(BlockTile tile, std::size_t g) { return scale(tile, g) * 4.0F; }
};

struct FormatIq4Xs {
  static constexpr GgmlType kType = GgmlType::iq4_xs;
  static constexpr std::size_t kValues = 256;
  static constexpr std::size_t kGroup = 32;
  static constexpr std::uint32_t kMaxCode = kNonLinear.back();
  static constexpr std::array kFields{BlockField{0, 4, 2}, BlockField{4, 4, 1},
                                      BlockField{8, 128, 4}};
  static Words codes(BlockTile tile, std::size_t g, std::size_t i) {
    return look_up(kNonLinear, nibbles(tile, 8 + 16 * g, i));
  }
  static Floats scale(BlockTile tile, std::size_t g) {
    const Words four = g % 2 == 0 ? tile.low(4 + g / 2) : tile.high(4 + g / 2);
    const Words two = tile.pair(2) >> static_cast<std::uint32_t>(2 * g) & 3U;
    return tile.half(0) * (to_floats(four | two << 4U) - 32.0F);
  }
  static constexpr float kZero = 128;
};

}  // namespace headroom::measured::blocks
