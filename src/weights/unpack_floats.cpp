// Floats and integers of eight bits with scales, and floats of four bits. Sources: DeepSeek-V3's
// inference/kernel.py, weight_dequant; modelopt/torch/export/quant_utils.py;
// compressed_tensors/compressors/nvfp4 and mxfp4; convert_moe_packed_tensors in
// transformers/integrations/mxfp4.py.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "packed_pieces.h"

namespace headroom::detail {
namespace {

using checkpoint::CodeKind;
using checkpoint::GroupedWeights;
using checkpoint::StoredTensor;
using checkpoint::StoredType;

/// Bytes of two values, the first one in the low bits.
GroupedWeights float4_codes(std::span<const std::byte> bytes, std::int64_t rows,
                            std::int64_t columns) {
  GroupedWeights to{.rows = rows, .columns = columns, .kind = CodeKind::nibble};
  to.levels = checkpoint::float4_levels();
  to.codes.assign(bytes.begin(), bytes.end());
  return to;
}

/// The single float32 of a piece.
float one_float(const PackedPieces& pieces, std::string_view label) {
  const StoredTensor& piece = pieces.at(label);
  if (piece.type != StoredType::float32 || piece.data.size() != sizeof(float)) {
    pieces.fail(piece, "is not a single F32");
  }
  float value = 0;
  std::memcpy(&value, piece.data.data(), sizeof value);
  return value;
}

/// Sets scales of groups of 16 or 32 columns: [rows, columns/group].
void set_float4_scales(const PackedPieces& pieces, GroupedWeights& to) {
  const StoredTensor& scales = pieces.at("weight_scale");
  set_scales(pieces, scales, to);
  const bool is_row_major = scales.shape.size() == 2 && scales.shape[0] == to.rows;
  if (!is_row_major || to.scales.rows_per_scale != 1) {
    pieces.fail(scales, fmt::format("is not [{}, groups]", to.rows));
  }
}

/// Integer zero points, one per scale, as [rows, groups].
void set_int8_zeros(const PackedPieces& pieces, GroupedWeights& to) {
  const StoredTensor* const zeros = pieces.find("weight_zero_point");
  if (zeros == nullptr) return;
  const auto is_zero = [](std::byte value) { return value == std::byte{0}; };
  if (std::ranges::all_of(zeros->data, is_zero)) return;
  const std::int64_t groups = to.groups();
  const std::int64_t blocks = (to.rows + to.scales.rows_per_scale - 1) / to.scales.rows_per_scale;
  if (zeros->type != StoredType::int8 || std::ssize(zeros->data) != blocks * groups) {
    pieces.fail(*zeros, "is not an I8 for every scale");
  }
  to.zeros.reserve(static_cast<std::size_t>(to.rows * groups));
  for (std::int64_t row = 0; row < to.rows; ++row) {
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::int64_t at = row / to.scales.rows_per_scale * groups + group;
      to.zeros.push_back(std::to_integer<std::uint8_t>(zeros->data[static_cast<std::size_t>(at)]));
    }
  }
}

/// NVFP4 of ModelOpt.
GroupedWeights nvfp4(const PackedPieces& pieces) {
  const std::int64_t bytes = pieces.columns() / 2;
  const StoredTensor& packed = pieces.at("weight", StoredType::uint8, {pieces.rows(), bytes});
  GroupedWeights to = float4_codes(packed.data, pieces.rows(), pieces.columns());
  set_float4_scales(pieces, to);
  to.scales.factor = one_float(pieces, "weight_scale_2");
  return to;
}

}  // namespace

GroupedWeights unpack_float4(const PackedPieces& pieces) {
  const StoredTensor& packed =
      pieces.at("weight_packed", StoredType::uint8, {pieces.rows(), pieces.columns() / 2});
  GroupedWeights to = float4_codes(packed.data, pieces.rows(), pieces.columns());
  set_float4_scales(pieces, to);
  if (pieces.find("weight_global_scale") != nullptr) {
    to.scales.factor = 1 / one_float(pieces, "weight_global_scale");
  }
  return to;
}

GroupedWeights unpack_scaled(const PackedPieces& pieces) {
  if (pieces.find("pre_quant_scale") != nullptr) {
    pieces.refuse("no kernel scales the inputs of a layer (pre_quant_scale)");
  }
  if (pieces.weight().shape.size() != 2) pieces.refuse("only matrices run with scales");
  const StoredTensor& weight = pieces.at("weight");
  if (weight.type == StoredType::uint8 && pieces.find("weight_scale_2") != nullptr) {
    return nvfp4(pieces);
  }
  GroupedWeights to{.rows = pieces.rows(), .columns = pieces.columns()};
  if (weight.type == StoredType::float8_e4m3) {
    to.kind = CodeKind::float8;
  } else if (weight.type == StoredType::int8) {
    to.kind = CodeKind::int8;
  } else {
    pieces.refuse(
        fmt::format("no kernel runs {} weights with scales", checkpoint::stored_name(weight.type)));
  }
  const StoredTensor* const inverse = pieces.find("weight_scale_inv");
  set_scales(pieces, inverse != nullptr ? *inverse : pieces.at("weight_scale"), to);
  to.codes.assign(weight.data.begin(), weight.data.end());
  if (to.kind == CodeKind::int8) set_int8_zeros(pieces, to);
  return to;
}

GroupedWeights unpack_mxfp4(const PackedPieces& pieces, std::optional<std::int64_t> expert) {
  const std::vector<std::int64_t>& shape = pieces.weight().shape;  // [experts, in, out]
  constexpr std::int64_t kGroup = 32;
  if (shape.size() != 3 || !expert || shape[1] % kGroup != 0) {
    pieces.refuse("MXFP4 runs as stacked experts");
  }
  const std::int64_t groups = shape[1] / kGroup;
  const StoredTensor blocks = checkpoint::slice(
      pieces.at("blocks", StoredType::uint8, {shape[0], shape[2], groups, kGroup / 2}), *expert);
  const StoredTensor scales = checkpoint::slice(
      pieces.at("scales", StoredType::uint8, {shape[0], shape[2], groups}), *expert);
  GroupedWeights to = float4_codes(blocks.data, shape[2], shape[1]);
  to.group = kGroup;
  to.scales.kind = checkpoint::ScaleKind::exponent;
  to.scales.values.assign(scales.data.begin(), scales.data.end());
  return to;
}

GroupedWeights plain_16bit(const StoredTensor& tensor) {
  GroupedWeights to{.rows = tensor.shape.front(), .columns = 1};
  for (const std::int64_t size : std::span(tensor.shape).subspan(1)) to.columns *= size;
  to.kind = tensor.type == StoredType::float16 ? CodeKind::float16 : CodeKind::bfloat16;
  to.group = to.columns;
  to.codes.assign(tensor.data.begin(), tensor.data.end());
  return to;
}

}  // namespace headroom::detail
