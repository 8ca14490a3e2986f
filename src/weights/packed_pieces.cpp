#include "packed_pieces.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "headroom/error.h"

namespace headroom::detail {
namespace {

using checkpoint::GroupedWeights;
using checkpoint::ScaleKind;
using checkpoint::StoredTensor;
using checkpoint::StoredType;

std::string text_at(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

/// A size of at most 2^20, which no group or block exceeds; empty for any other value.
std::optional<std::int64_t> size_in(const nlohmann::json& value) {
  constexpr std::int64_t kMost = 1 << 20;
  if (!value.is_number_integer()) return std::nullopt;
  const auto size = value.get<std::int64_t>();
  if (size != -1 && (size < 1 || size > kMost)) return std::nullopt;
  return size;
}

/// Reads the sizes of a block, [rows, columns].
void read_block(const nlohmann::json& object, const char* key, PackedSettings& settings) {
  const auto block = object.find(key);
  if (block == object.end() || !block->is_array() || block->size() != 2) return;
  const auto rows = size_in((*block)[0]);
  const auto columns = size_in((*block)[1]);
  if (rows > 0 && columns > 0) {
    settings.block_rows = *rows;
    settings.block_columns = *columns;
  }
}

/// compressed-tensors states the block of each group of modules.
void read_group_blocks(const nlohmann::json& quantization, PackedSettings& settings) {
  const auto groups = quantization.find("config_groups");
  if (groups == quantization.end() || !groups->is_object()) return;
  for (const auto& group : *groups) {
    if (!group.is_object()) continue;
    const auto weights = group.find("weights");
    if (weights == group.end() || !weights->is_object()) continue;
    read_block(*weights, "block_structure", settings);
  }
}

/// AutoRound once called itself intel/auto-round and its packing the backend.
void read_auto_round(const nlohmann::json& quantization, PackedSettings& settings) {
  const std::string method = text_at(quantization, "quant_method");
  const bool is_old = method == "intel/auto-round";
  settings.is_auto_round = is_old || method == "auto-round";
  settings.packing_format = text_at(quantization, "packing_format");
  if (is_old && settings.packing_format.empty()) {
    settings.packing_format = text_at(quantization, "backend");
  }
}

std::int64_t blocks_of(std::int64_t size, std::int64_t block) { return (size + block - 1) / block; }

}  // namespace

PackedSettings packed_settings(const std::filesystem::path& folder) {
  PackedSettings settings;
  std::ifstream file(folder / "config.json");
  if (!file) return settings;
  const auto config = nlohmann::json::parse(file, nullptr, false);
  if (!config.is_object()) return settings;
  const auto found = config.find("quantization_config");
  if (found == config.end() || !found->is_object()) return settings;
  settings.checkpoint_format = text_at(*found, "checkpoint_format");
  settings.version = text_at(*found, "version");
  if (const auto group = found->find("group_size"); group != found->end()) {
    settings.group_size = size_in(*group);
  }
  read_auto_round(*found, settings);
  read_block(*found, "weight_block_size", settings);
  read_group_blocks(*found, settings);
  return settings;
}

const StoredTensor* PackedPieces::find(std::string_view label) const {
  const char before_label = weight_.packing == Packing::mxfp4 ? '_' : '.';
  return files_.find(fmt::format("{}{}{}", weight_.base, before_label, label));
}

const StoredTensor& PackedPieces::at(std::string_view label) const {
  const StoredTensor* const piece = find(label);
  if (piece != nullptr) return *piece;
  throw Error(ErrorCode::invalid_input,
              fmt::format("the packed weight lacks its tensor {}.{}", weight_.base, label),
              checkpoint::tensor_place(files_.location(weight_.name), weight_.name),
              "download or convert the weights again");
}

const StoredTensor& PackedPieces::at(std::string_view label, StoredType type,
                                     std::vector<std::int64_t> shape) const {
  const StoredTensor& piece = at(label);
  if (piece.type == type && piece.shape == shape) return piece;
  fail(piece, fmt::format("is {} [{}], but the weight requires {} [{}]",
                          checkpoint::stored_name(piece.type), fmt::join(piece.shape, ", "),
                          checkpoint::stored_name(type), fmt::join(shape, ", ")));
}

void PackedPieces::require_only(std::initializer_list<std::string_view> labels) const {
  for (const std::string_view label : weight_.labels) {
    if (std::ranges::find(labels, label) != labels.end()) continue;
    refuse(fmt::format("no kernel uses its tensor \"{}\" in {} weights", label, weight_.type));
  }
}

void PackedPieces::fail(const StoredTensor& piece, const std::string& what) const {
  throw Error(ErrorCode::invalid_input, what,
              checkpoint::tensor_place(files_.location(piece.name), piece.name),
              "check that all files and the config.json are of one model");
}

void PackedPieces::refuse(const std::string& what) const {
  throw Error(ErrorCode::invalid_input, what,
              checkpoint::tensor_place(files_.location(weight_.name), weight_.name),
              "convert the weights to F32, F16 or BF16, or to GGUF");
}

ScaleKind scale_kind(const PackedPieces& pieces, const StoredTensor& scales) {
  switch (scales.type) {
    case StoredType::float32:
      return ScaleKind::float32;
    case StoredType::float16:
      return ScaleKind::float16;
    case StoredType::bfloat16:
      return ScaleKind::bfloat16;
    case StoredType::float8_e4m3:
      return ScaleKind::float8;
    case StoredType::float8_e8m0:
    case StoredType::uint8:
      return ScaleKind::exponent;
    case StoredType::boolean:
    case StoredType::float4:
    case StoredType::float6_e2m3:
    case StoredType::float6_e3m2:
    case StoredType::int8:
    case StoredType::float8_e5m2:
    case StoredType::float8_e4m3_fnuz:
    case StoredType::float8_e5m2_fnuz:
    case StoredType::int16:
    case StoredType::uint16:
    case StoredType::int32:
    case StoredType::uint32:
    case StoredType::complex64:
    case StoredType::float64:
    case StoredType::int64:
    case StoredType::uint64:
      break;
  }
  pieces.fail(scales,
              fmt::format("scales of type {} are unknown", checkpoint::stored_name(scales.type)));
}

void set_scales(const PackedPieces& pieces, const StoredTensor& scales, GroupedWeights& to) {
  const PackedSettings& settings = pieces.settings();
  std::vector<std::int64_t> shape = scales.shape;
  while (shape.size() > 2 && shape.back() == 1) shape.pop_back();
  if (shape.size() < 2) shape.resize(2, 1);
  to.scales.kind = scale_kind(pieces, scales);
  to.scales.values.assign(scales.data.begin(), scales.data.end());
  const bool is_block = shape.size() == 2 && shape[0] == blocks_of(to.rows, settings.block_rows) &&
                        shape[1] == blocks_of(to.columns, settings.block_columns);
  const bool blocks_first = scales.name.ends_with(".weight_scale_inv");
  if (shape.size() == 2 && shape[0] == 1 && shape[1] == 1) {
    to.scales.rows_per_scale = to.rows;
    to.group = to.columns;
  } else if (!(is_block && blocks_first) && shape.size() == 2 && shape[0] == to.rows &&
             shape[1] > 0 && to.columns % shape[1] == 0) {
    to.group = to.columns / shape[1];
  } else if (is_block) {
    to.scales.rows_per_scale = settings.block_rows;
    to.group = settings.block_columns;
  } else {
    pieces.fail(scales, fmt::format("has shape [{}], which is no scale per tensor, row, group or "
                                    "block of {} × {} of a weight [{}, {}]",
                                    fmt::join(scales.shape, ", "), settings.block_rows,
                                    settings.block_columns, to.rows, to.columns));
  }
}

std::vector<std::byte> transposed(std::span<const std::byte> matrix, std::int64_t rows,
                                  std::int64_t columns, std::size_t size) {
  std::vector<std::byte> result(matrix.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      std::memcpy(result.data() + static_cast<std::size_t>(column * rows + row) * size,
                  matrix.data() + static_cast<std::size_t>(row * columns + column) * size, size);
    }
  }
  return result;
}

}  // namespace headroom::detail
