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

/// The two formats of four-bit floats differ in their scales: E4M3 of 16 columns with a second
/// scale of the tensor (NVFP4), or E8M0 of 32 columns (MXFP4; OCP Microscaling Formats 1.0, table
/// 1).
enum class Float4Format { nvfp4, mxfp4 };

/// Sets scales of groups of columns: [rows, columns/group].
void set_float4_scales(const PackedPieces& pieces, Float4Format format, GroupedWeights& to) {
  const bool is_nvfp4 = format == Float4Format::nvfp4;
  const std::int64_t group = is_nvfp4 ? 16 : 32;
  const StoredTensor& scales = pieces.at("weight_scale");
  const checkpoint::ScaleKind kind = scale_kind(pieces, scales);
  const auto wanted = is_nvfp4 ? checkpoint::ScaleKind::float8 : checkpoint::ScaleKind::exponent;
  const std::vector<std::int64_t> shape{to.rows, to.columns / group};
  if (kind != wanted || scales.shape != shape || to.columns % group != 0) {
    pieces.fail(scales, fmt::format("is not {} [{}, {} / {}], the scales of {}",
                                    is_nvfp4 ? "F8_E4M3" : "F8_E8M0 or U8", to.rows, to.columns,
                                    group, is_nvfp4 ? "NVFP4" : "MXFP4"));
  }
  to.group = group;
  to.scales.kind = kind;
  to.scales.values.assign(scales.data.begin(), scales.data.end());
}

/// The zero points; null if there are none or all are 0.
const StoredTensor* nonzero_points(const PackedPieces& pieces) {
  const StoredTensor* const zeros = pieces.find("weight_zero_point");
  if (zeros == nullptr) return nullptr;
  const auto is_zero = [](std::byte value) { return value == std::byte{0}; };
  return std::ranges::all_of(zeros->data, is_zero) ? nullptr : zeros;
}

void require_symmetric(const PackedPieces& pieces) {
  const StoredTensor* const zeros = nonzero_points(pieces);
  if (zeros != nullptr) pieces.fail(*zeros, "is not 0, but floats have no zero points");
}

/// Integer zero points, one per scale, as [rows, groups].
void set_int8_zeros(const PackedPieces& pieces, GroupedWeights& to) {
  const StoredTensor* const zeros = nonzero_points(pieces);
  if (zeros == nullptr) return;
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
  pieces.require_only({"weight", "weight_scale", "weight_scale_2"});
  const std::int64_t bytes = pieces.columns() / 2;
  const StoredTensor& packed = pieces.at("weight", StoredType::uint8, {pieces.rows(), bytes});
  GroupedWeights to = float4_codes(packed.data, pieces.rows(), pieces.columns());
  set_float4_scales(pieces, Float4Format::nvfp4, to);
  to.scales.factor = one_float(pieces, "weight_scale_2");
  return to;
}

}  // namespace

GroupedWeights unpack_float4(const PackedPieces& pieces) {
  pieces.require_only(
      {"weight_packed", "weight_scale", "weight_global_scale", "weight_zero_point"});
  require_symmetric(pieces);
  const StoredTensor& packed =
      pieces.at("weight_packed", StoredType::uint8, {pieces.rows(), pieces.columns() / 2});
  GroupedWeights to = float4_codes(packed.data, pieces.rows(), pieces.columns());
  const bool is_nvfp4 = pieces.find("weight_global_scale") != nullptr;
  set_float4_scales(pieces, is_nvfp4 ? Float4Format::nvfp4 : Float4Format::mxfp4, to);
  if (is_nvfp4) to.scales.factor = 1 / one_float(pieces, "weight_global_scale");
  return to;
}

GroupedWeights unpack_scaled(const PackedPieces& pieces) {
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
  const bool is_inverse = pieces.find("weight_scale_inv") != nullptr;
  const std::string_view scales = is_inverse ? "weight_scale_inv" : "weight_scale";
  pieces.require_only({"weight", scales, "weight_zero_point"});
  set_scales(pieces, pieces.at(scales), to);
  to.codes.assign(weight.data.begin(), weight.data.end());
  if (to.kind == CodeKind::int8) {
    set_int8_zeros(pieces, to);
  } else {
    require_symmetric(pieces);
  }
  return to;
}

GroupedWeights unpack_mxfp4(const PackedPieces& pieces, std::optional<std::int64_t> expert) {
  pieces.require_only({"blocks", "scales"});
  const std::vector<std::int64_t>& shape = pieces.weight().shape;  // [experts, in, out]
  constexpr std::int64_t kGroup = 32;
  if (shape.size() != 3 || !expert || shape[1] % kGroup != 0) {
    pieces.refuse("MXFP4 runs as stacked experts");
  }
  if (*expert < 0 || *expert >= shape[0]) {
    pieces.refuse(fmt::format("has {} experts, not an expert {}", shape[0], *expert));
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
