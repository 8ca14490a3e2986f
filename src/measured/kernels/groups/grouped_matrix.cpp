#include "grouped_matrix.h"

#include <algorithm>
#include <cstring>

#include "../source_rows.h"
#include "headroom/error.h"
#include "memory_nodes.h"

namespace headroom::measured::groups {
namespace {

using checkpoint::CodeKind;
using checkpoint::GroupedWeights;
using simd::kLanes;

/// Bytes of a row that are read at once.
std::int64_t unit_of(CodeKind kind) {
  switch (kind) {
    case CodeKind::nibble:
      return 4;
    case CodeKind::int8:
    case CodeKind::float8:
      return 1;
    case CodeKind::float16:
    case CodeKind::bfloat16:
      break;
  }
  return 2;
}

/// Columns of a nibble's word share a scale.
bool fills_words(const GroupedWeights& weights) {
  if (weights.kind != CodeKind::nibble) return true;
  constexpr std::int64_t kWord = 8;
  return weights.columns % kWord == 0 && (weights.group % kWord == 0 || weights.groups() == 1);
}

std::optional<IntegerCodes> codes_for(ActivationPath path, const GroupedWeights& weights) {
  switch (path) {
    case ActivationPath::int8:
      return integer_codes(weights);
    case ActivationPath::float32:
    case ActivationPath::bfloat16:  // make_group_kernel refuses it
      break;
  }
  return std::nullopt;
}

/// Copies a unit of codes, whose nibbles `convert` moves.
void copy_unit(const std::byte* from, std::byte* to, std::uint32_t (*convert)(std::uint32_t)) {
  std::uint32_t word;
  std::memcpy(&word, from, sizeof word);
  word = convert(word);
  std::memcpy(to, &word, sizeof word);
}

}  // namespace

GroupedMatrix::GroupedMatrix(const GroupedWeights& weights, SourceMemory source,
                             ActivationPath path)
    : kind_(weights.kind),
      kernels_(&kernels_of(weights.kind, weights.levels)),
      integers_(codes_for(path, weights)),
      levels_(weights.levels),
      rows_(weights.rows),
      columns_(weights.columns),
      group_(weights.group),
      scales_(weights),
      order_(weights.order.begin(), weights.order.end()) {
  if (!fills_words(weights)) throw Error(ErrorCode::internal, "groups do not fill whole words");
  codes_.resize(static_cast<std::size_t>(tiles() * tile_bytes()));
  place_rows(codes_, tiles(), 1);
  if (rows_ % kLanes != 0) std::fill_n(codes_.end() - tile_bytes(), tile_bytes(), std::byte{0});
  for_source_rows(weights.codes, source, rows_, kLanes, [&](Range rows) {
#pragma omp parallel for schedule(static)
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      store_row(weights.codes.data() + row * weights.row_bytes(), row);
    }
  });
}

std::int64_t GroupedMatrix::tiles() const noexcept { return (rows_ + kLanes - 1) / kLanes; }

std::int64_t GroupedMatrix::tile_bytes() const noexcept {
  return columns_ * checkpoint::code_bits(kind_) / 8 * kLanes;
}

std::int64_t GroupedMatrix::held_bytes() const noexcept {
  return static_cast<std::int64_t>(codes_.size() + order_.size() * sizeof(std::int32_t)) +
         scales_.held_bytes();
}

std::int64_t GroupedMatrix::scale_floats() const noexcept { return scales_.groups() * kLanes; }

std::int64_t GroupedMatrix::scratch_floats() const noexcept {
  return 2 * scale_floats() * blocks::kTilesAtOnce;
}

/// Integer products read four bytes of a row.
std::int64_t GroupedMatrix::unit() const noexcept { return takes_int8() ? 4 : unit_of(kind_); }

/// Interleaves the units of a tile's rows.
void GroupedMatrix::store_row(const std::byte* from, std::int64_t row) {
  const bool moves_nibbles = takes_int8() && kind_ == CodeKind::nibble;
  std::byte* to = codes_.data() + row / kLanes * tile_bytes() + row % kLanes * unit();
  for (std::int64_t at = 0; at < tile_bytes() / kLanes; at += unit(), to += unit() * kLanes) {
    if (moves_nibbles) {
      copy_unit(from + at, to, with_nibbles_in_halves);
    } else {
      std::memcpy(to, from + at, static_cast<std::size_t>(unit()));
    }
  }
}

/// Gathers the row as it was stored.
void GroupedMatrix::read_row(std::int64_t row, float* to) const {
  GroupedWeights one;
  one.rows = 1;
  one.columns = columns_;
  one.kind = kind_;
  one.levels = levels_;
  one.group = group_;
  one.scales.kind = checkpoint::ScaleKind::float32;
  const std::byte* from = codes_.data() + row / kLanes * tile_bytes() + row % kLanes * unit();
  one.codes.resize(static_cast<std::size_t>(one.row_bytes()));
  for (std::int64_t at = 0; at < one.row_bytes(); at += unit(), from += unit() * kLanes) {
    if (takes_int8() && kind_ == CodeKind::nibble) {
      copy_unit(from, one.codes.data() + at, with_nibbles_in_turns);
    } else {
      std::memcpy(one.codes.data() + at, from, static_cast<std::size_t>(unit()));
    }
  }
  std::vector<float> scales(static_cast<std::size_t>(scale_floats()), 1.0F);
  if (scales_.has_scales()) scales_.decode(row / kLanes, scales.data());
  std::vector<float> zeros(scales.size());
  if (scales_.has_zeros()) scales_.decode_zeros(row / kLanes, zeros.data());
  one.scales.values.resize(static_cast<std::size_t>(scales_.groups()) * sizeof(float));
  for (std::int64_t group = 0; group < scales_.groups(); ++group) {
    const auto lane = static_cast<std::size_t>(group * kLanes + row % kLanes);
    std::memcpy(one.scales.values.data() + static_cast<std::size_t>(group) * sizeof(float),
                &scales[lane], sizeof(float));
    if (!scales_.has_zeros()) continue;
    const auto zero = static_cast<int>(zeros[lane]);
    one.zeros.push_back(static_cast<std::uint8_t>(zero));
  }
  one.order.assign(order_.begin(), order_.end());
  checkpoint::dequantise_row(one, 0, {to, static_cast<std::size_t>(columns_)});
}

/// Scales of 1 and zero points of 0 where none are stored; zero points of integer codes in their
/// steps.
void GroupedMatrix::decode_scales(std::int64_t tile, float* scales, float* zeros) const {
  const std::int64_t count = scale_floats();
  if (scales_.has_scales()) {
    scales_.decode(tile, scales);
  } else {
    std::fill_n(scales, count, 1.0F);
  }
  if (scales_.has_zeros()) {
    scales_.decode_zeros(tile, zeros);
  } else {
    std::fill_n(zeros, count, 0.0F);
  }
  if (!integers_) return;
  for (std::int64_t i = 0; i < count; ++i)
    zeros[i] = zeros[i] / integers_->factor + integers_->zero;
}

/// Operands that all tiles share, and the y of the first.
template <class Tile, class X>
Tile GroupedMatrix::tile_with(const blocks::RowOperands<X>& operands) const {
  Tile common;
  common.columns = columns_;
  common.group = group_;
  common.x = operands.x;
  common.x_stride = operands.x_stride;
  common.y = operands.y;
  common.y_stride = operands.y_stride;
  return common;
}

/// `common` has what all tiles share, and the y of the first. Scratch holds the scales of all tiles
/// of a product, then their zero points.
template <class Tile>
void GroupedMatrix::multiply_tiles(const blocks::TileProducts<Tile>& products, const Tile& common,
                                   std::int64_t rows, Range range, float* scratch) const {
  const std::int64_t count = scale_floats();
  float* const all_zeros = scratch + count * blocks::kTilesAtOnce;
  const auto operands_of = [&](std::int64_t tile, std::int64_t next) {
    const std::int64_t tiles = next > 0 ? blocks::kTilesAtOnce : 1;
    for (std::int64_t i = 0; i < tiles; ++i) {
      decode_scales(tile + i * next, scratch + i * count, all_zeros + i * count);
    }
    Tile at = common;
    at.codes = codes_.data() + tile * tile_bytes();
    at.scales = scratch;
    at.zeros = all_zeros;
    at.y += tile * kLanes;
    at.lanes = std::min(kLanes, rows_ - tile * kLanes);
    at.next = {next, next * tile_bytes(), count};
    return at;
  };
  blocks::multiply_range(products, range, rows_ / kLanes, rows, operands_of);
}

void GroupedMatrix::multiply(const blocks::RowOperands<float>& operands, Range range,
                             float* scratch) const {
  auto common = tile_with<GroupTile>(operands);
  common.levels = &levels_;
  multiply_tiles(scales_.has_zeros() ? kernels_->with_zeros : kernels_->plain, common,
                 operands.rows, range, scratch);
}

void GroupedMatrix::multiply(const blocks::RowOperands<blocks::Int8Block>& operands, Range range,
                             float* scratch) const {
  auto common = tile_with<IntegerTile>(operands);
  common.factor = integers_->factor;
  common.table = &integers_->table;
  multiply_tiles(integers_->products, common, operands.rows, range, scratch);
}

}  // namespace headroom::measured::groups
