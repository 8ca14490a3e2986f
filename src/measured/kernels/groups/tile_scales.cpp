#include "tile_scales.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "element_type.h"
#include "group_codes.h"

namespace headroom::measured::groups {
namespace {

using checkpoint::CodeKind;
using checkpoint::GroupedWeights;
using checkpoint::ScaleKind;

std::size_t bytes_of(ScaleKind kind) {
  return static_cast<std::size_t>(checkpoint::scale_bytes(kind));
}

/// Powers of two of eight bits, E8M0; the smallest is subnormal in float32.
Floats widen_exponents(const std::byte* from) {
  const Words bits = widen_bytes(from);
  return std::bit_cast<Floats>(bits == 0U ? Words{} + (1U << 22U) : bits << 23U);
}

Floats widen_scales(ScaleKind kind, const std::byte* from) {
  switch (kind) {
    case ScaleKind::float32: {
      Floats values;
      std::memcpy(&values, from, sizeof values);
      return values;
    }
    case ScaleKind::float16:
      return widen_halves(from);
    case ScaleKind::bfloat16:
      return widen_bfloat16(from);
    case ScaleKind::float8:
      return widen_float8(from) * kFloat8Factor;
    case ScaleKind::exponent:
      return widen_exponents(from);
    case ScaleKind::none:
    case ScaleKind::nested:
      break;
  }
  return Floats{} + 1.0F;
}

/// Values [rows, groups] as [tiles, groups, kLanes], `size` bytes each.
PooledVector<std::byte> in_tiles(std::span<const std::byte> values, std::int64_t rows,
                                 std::int64_t groups, std::size_t size) {
  const std::int64_t tiles = (rows + kLanes - 1) / kLanes;
  PooledVector<std::byte> tiled(static_cast<std::size_t>(tiles * groups * kLanes) * size);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t group = 0; group < groups; ++group) {
      const auto from = static_cast<std::size_t>(row * groups + group) * size;
      const std::int64_t to = (row / kLanes * groups + group) * kLanes + row % kLanes;
      std::memcpy(tiled.data() + static_cast<std::size_t>(to) * size, values.data() + from, size);
    }
  }
  return tiled;
}

}  // namespace

TileScales::TileScales(const GroupedWeights& weights)
    : groups_(weights.groups()), rows_(weights.rows), kind_(weights.kind) {
  grid_ = weights.scales;
  const std::vector<std::byte> values = std::exchange(grid_.values, {});
  if (grid_.rows_per_scale > 1) {
    values_.assign(values.begin(), values.end());
  } else if (grid_.kind == ScaleKind::nested) {
    // The tiles hold the matrix's own rows; second scales are found by the rows of the grid.
    const auto skipped = static_cast<std::size_t>(grid_.first_row * groups_);
    values_ = in_tiles(std::span(values).subspan(skipped), rows_, groups_, 1);
  } else if (has_scales()) {
    values_ = in_tiles(values, rows_, groups_, bytes_of(grid_.kind));
  }
  if (!weights.zeros.empty()) lay_out_zeros(weights);
}

void TileScales::lay_out_zeros(const GroupedWeights& weights) {
  const PooledVector<std::byte> bytes =
      in_tiles(std::as_bytes(std::span(weights.zeros)), rows_, groups_, 1);
  if (kind_ != CodeKind::nibble) {
    zeros_.resize(bytes.size());
    std::memcpy(zeros_.data(), bytes.data(), bytes.size());
    return;
  }
  zeros_.resize(bytes.size() / 2);
  for (std::size_t i = 0; i < zeros_.size(); ++i) {
    const auto low = std::to_integer<unsigned>(bytes[2 * i]);
    const auto high = std::to_integer<unsigned>(bytes[2 * i + 1]);
    zeros_[i] = static_cast<std::uint8_t>(low | high << 4U);
  }
}

void TileScales::decode(std::int64_t tile, float* to) const {
  if (grid_.rows_per_scale > 1) return decode_shared(tile, to);
  if (grid_.kind == ScaleKind::nested) return decode_nested(tile, to);
  const std::size_t step = bytes_of(grid_.kind) * kLaneCount;
  const std::byte* from = values_.data() + static_cast<std::size_t>(tile * groups_) * step;
  for (std::int64_t group = 0; group < groups_; ++group, from += step, to += kLanes) {
    simd::store(to, widen_scales(grid_.kind, from) * grid_.factor);
  }
}

void TileScales::decode_shared(std::int64_t tile, float* to) const {
  for (std::int64_t lane = 0; lane < kLanes; ++lane) {
    const std::int64_t row = std::min(rows_ - 1, tile * kLanes + lane);
    const std::int64_t block = (grid_.first_row + row) / grid_.rows_per_scale;
    for (std::int64_t group = 0; group < groups_; ++group) {
      std::array<std::byte, sizeof(Floats)> one{};
      const std::size_t size = bytes_of(grid_.kind);
      std::memcpy(one.data(),
                  values_.data() + static_cast<std::size_t>(block * groups_ + group) * size, size);
      to[group * kLanes + lane] = widen_scales(grid_.kind, one.data())[0] * grid_.factor;
    }
  }
}

void TileScales::decode_nested(std::int64_t tile, float* to) const {
  constexpr std::int64_t kScalesPerSecondScale = 256;
  const std::byte* from = values_.data() + tile * groups_ * kLanes;
  for (std::int64_t group = 0; group < groups_; ++group) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      const std::int64_t row = grid_.first_row + std::min(rows_ - 1, tile * kLanes + lane);
      const auto second = static_cast<std::size_t>((row * groups_ + group) / kScalesPerSecondScale);
      const auto code = std::to_integer<std::size_t>(*from++);
      *to++ = std::fma(grid_.table[code], grid_.second_scales[second], grid_.offset);
    }
  }
}

void TileScales::decode_zeros(std::int64_t tile, float* to) const {
  const std::int64_t first = tile * groups_ * kLanes;
  for (std::int64_t i = 0; i < groups_ * kLanes; ++i) {
    if (kind_ == CodeKind::nibble) {
      const unsigned pair = zeros_[static_cast<std::size_t>((first + i) / 2)];
      to[i] = static_cast<float>(pair >> static_cast<unsigned>(i % 2 * 4) & 15U);
    } else {
      const std::uint8_t zero = zeros_[static_cast<std::size_t>(first + i)];
      to[i] = static_cast<float>(std::bit_cast<std::int8_t>(zero));
    }
  }
}

std::int64_t TileScales::held_bytes() const noexcept {
  std::size_t bytes = values_.size() + zeros_.size();
  if (grid_.kind == ScaleKind::nested) {
    bytes += sizeof grid_.table + grid_.second_scales.size() * sizeof(float);
  }
  return static_cast<std::int64_t>(bytes);
}

}  // namespace headroom::measured::groups
