// Weights of bitsandbytes. Source: QuantState.from_dict, dequantize_4bit and
// int8_vectorwise_dequant in bitsandbytes/functional.py; the first of two values of a byte is in
// its high bits.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "packed_pieces.h"

namespace headroom::detail {
namespace {

using checkpoint::CodeKind;
using checkpoint::GroupedWeights;
using checkpoint::ScaleKind;
using checkpoint::StoredTensor;
using checkpoint::StoredType;

/// The values of a float32 piece of `count` elements.
std::vector<float> floats_of(const PackedPieces& pieces, std::string_view label,
                             std::int64_t count) {
  const StoredTensor& piece = pieces.at(label, StoredType::float32, {count});
  std::vector<float> values(static_cast<std::size_t>(count));
  std::memcpy(values.data(), piece.data.data(), piece.data.size());
  return values;
}

nlohmann::json state_of(const PackedPieces& pieces) {
  for (const char* const label :
       {"weight.quant_state.bitsandbytes__nf4", "weight.quant_state.bitsandbytes__fp4"}) {
    const StoredTensor* const state = pieces.find(label);
    if (state == nullptr) continue;
    const std::string_view text(reinterpret_cast<const char*>(state->data.data()),
                                state->data.size());
    auto json = nlohmann::json::parse(text, nullptr, false);
    if (json.is_object()) return json;
    pieces.fail(*state, "is not a JSON object");
  }
  pieces.refuse("the weight has no quant_state of NF4 or FP4");
}

/// A size of at most 2^24, which no block exceeds; 0 for any other value.
std::int64_t integer_in(const nlohmann::json& state, const char* key) {
  constexpr std::uint64_t kMost = 1U << 24U;
  const auto found = state.find(key);
  if (found == state.end() || !found->is_number_unsigned()) return 0;
  const auto value = found->get<std::uint64_t>();
  return value <= kMost ? static_cast<std::int64_t>(value) : 0;
}

/// Scales of eight bits, a float32 scale for every 256 of them, and an offset (arXiv 2305.14314,
/// section 3).
void set_nested_scales(const PackedPieces& pieces, const nlohmann::json& state, std::int64_t blocks,
                       GroupedWeights& to) {
  constexpr std::int64_t kBlocksPerScale = 256;
  const StoredTensor& codes = pieces.at("weight.absmax", StoredType::uint8, {blocks});
  const auto offset = state.find("nested_offset");
  const bool is_known = integer_in(state, "nested_blocksize") == kBlocksPerScale &&
                        offset != state.end() && offset->is_number();
  if (!is_known) pieces.fail(codes, "its nested scales are not in blocks of 256 with an offset");
  to.scales.kind = ScaleKind::nested;
  to.scales.values.assign(codes.data.begin(), codes.data.end());
  to.scales.offset = offset->get<float>();
  to.scales.second_scales =
      floats_of(pieces, "weight.nested_absmax", (blocks + kBlocksPerScale - 1) / kBlocksPerScale);
  const auto table = floats_of(pieces, "weight.nested_quant_map", kBlocksPerScale);
  std::ranges::copy(table, to.scales.table.begin());
}

}  // namespace

GroupedWeights unpack_bitsandbytes_4bit(const PackedPieces& pieces) {
  pieces.require_only({"weight", "weight.absmax", "weight.quant_map", "weight.nested_absmax",
                       "weight.nested_quant_map", "weight.quant_state.bitsandbytes__nf4",
                       "weight.quant_state.bitsandbytes__fp4"});
  const StoredTensor& packed = pieces.at("weight");
  if (pieces.weight().shape.size() != 2) pieces.refuse("only matrices run in 4 bits");
  GroupedWeights to{.rows = pieces.rows(), .columns = pieces.columns(), .kind = CodeKind::nibble};
  const nlohmann::json state = state_of(pieces);
  to.group = integer_in(state, "blocksize");
  if (to.group == 0 || to.columns % to.group != 0) {
    pieces.refuse(fmt::format("no kernel runs blocks of {} values that cross rows of {}", to.group,
                              to.columns));
  }
  const std::int64_t blocks = to.rows * to.groups();
  if (std::ssize(packed.data) != to.rows * to.columns / 2) {
    pieces.fail(packed, "does not have two values per byte");
  }
  to.codes.reserve(packed.data.size());
  for (const std::byte pair : packed.data) to.codes.push_back(pair << 4U | pair >> 4U);
  const auto levels = floats_of(pieces, "weight.quant_map", std::ssize(to.levels));
  std::ranges::copy(levels, to.levels.begin());
  if (pieces.find("weight.nested_absmax") != nullptr) {
    set_nested_scales(pieces, state, blocks, to);
    return to;
  }
  const StoredTensor& scales = pieces.at("weight.absmax", StoredType::float32, {blocks});
  to.scales.kind = ScaleKind::float32;
  to.scales.values.assign(scales.data.begin(), scales.data.end());
  return to;
}

GroupedWeights unpack_bitsandbytes_8bit(const PackedPieces& pieces) {
  pieces.require_only({"weight", "SCB", "weight_format"});
  if (pieces.weight().shape.size() != 2) pieces.refuse("only matrices run in 8 bits");
  GroupedWeights to{.rows = pieces.rows(), .columns = pieces.columns(), .kind = CodeKind::int8};
  const StoredTensor& weight = pieces.at("weight", StoredType::int8, {to.rows, to.columns});
  const StoredTensor* const layout = pieces.find("weight_format");
  const bool is_row_major =
      layout == nullptr || (layout->data.size() == 1 && layout->data.front() == std::byte{0});
  if (!is_row_major) pieces.refuse("no kernel runs bitsandbytes' tiled layouts (weight_format)");
  const StoredTensor& scales = pieces.at("SCB", StoredType::float32, {to.rows});
  to.group = to.columns;
  to.codes.assign(weight.data.begin(), weight.data.end());
  to.scales.kind = ScaleKind::float32;
  to.scales.values.assign(scales.data.begin(), scales.data.end());
  to.scales.factor = 1.0F / 127;
  return to;
}

}  // namespace headroom::detail
