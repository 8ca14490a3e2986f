// Integers packed into words of 32 bits: GPTQ, AWQ and compressed-tensors. Sources: QuantLinear in
// auto_gptq/nn_modules/qlinear/qlinear_cuda_old.py; awq/utils/packing_utils.py of AutoAWQ;
// pack_to_int32 in compressed_tensors/compressors/pack_quantized/helpers.py.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>

#include "packed_pieces.h"
#include "unpacked.h"

namespace headroom::detail {
namespace {

using checkpoint::CodeKind;
using checkpoint::GroupedWeights;
using checkpoint::StoredTensor;
using checkpoint::StoredType;

constexpr std::int64_t kWordBytes = 4;

std::uint32_t word_at(std::span<const std::byte> words, std::int64_t index) {
  std::uint32_t word = 0;
  std::memcpy(&word, words.data() + index * kWordBytes, kWordBytes);
  return word;
}

/// Turns unsigned codes of eight bits, stored with an offset of 128, into signed ones.
void remove_offset(std::vector<std::byte>& codes) {
  for (std::byte& code : codes) code ^= std::byte{0x80};
}

/// The codes' bits; throws for all but 4 and 8.
std::int64_t bits_in(const PackedPieces& pieces, std::int64_t words, std::int64_t values) {
  const auto bits = bits_of(words, values);
  if (bits == 4 || bits == 8) return *bits;
  pieces.refuse(fmt::format("no kernel runs {} weights", pieces.weight().type));
}

void set_bits(std::int64_t bits, GroupedWeights& to) {
  to.kind = bits == 4 ? CodeKind::nibble : CodeKind::int8;
  to.levels = checkpoint::integer_levels(0);
}

/// Sets zero points, [rows, groups], of unsigned codes. One that all groups share moves into the
/// levels of the nibbles.
void set_zeros(std::vector<std::uint8_t> zeros, GroupedWeights& to) {
  const auto differ = std::ranges::adjacent_find(zeros, std::ranges::not_equal_to{});
  const bool shared = differ == zeros.end() && !zeros.empty();
  if (to.kind == CodeKind::nibble) {
    if (shared) {
      to.levels = checkpoint::integer_levels(zeros.front());
    } else {
      to.zeros = std::move(zeros);
    }
    return;
  }
  constexpr std::uint8_t kOffset = 128;
  if (shared && zeros.front() == kOffset) return;
  for (std::uint8_t& zero : zeros) zero ^= kOffset;
  to.zeros = std::move(zeros);
}

/// Number of inputs that share a scale: all, as many as the config states, or an even share.
std::int64_t group_of(const PackedPieces& pieces, const StoredTensor& scales, std::int64_t groups,
                      std::int64_t columns) {
  if (groups == 1) return columns;
  const std::int64_t stated = pieces.settings().group_size.value_or(0);
  if (stated > 0 && (columns + stated - 1) / stated == groups) return stated;
  if (groups > 0 && columns % groups == 0) return columns / groups;
  pieces.fail(scales, fmt::format("has scales of {} groups, which do not divide {} inputs", groups,
                                  columns));
}

/// Returns whether all groups of inputs, int32, are negative: compressed-tensors writes -1 where it
/// has no order.
bool is_unused(const StoredTensor& indices) {
  const std::int64_t count = std::ssize(indices.data) / kWordBytes;
  for (std::int64_t i = 0; i < count; ++i) {
    if (std::bit_cast<std::int32_t>(word_at(indices.data, i)) >= 0) return false;
  }
  return true;
}

/// Sorts the columns by their groups, `indices` [columns]; empty if they are sorted.
std::vector<std::int32_t> order_of(const PackedPieces& pieces, const StoredTensor& indices,
                                   const GroupedWeights& to) {
  std::vector<std::int32_t> group(static_cast<std::size_t>(to.columns));
  std::memcpy(group.data(), indices.data.data(), indices.data.size());
  std::vector<std::int32_t> order(group.size());
  std::iota(order.begin(), order.end(), 0);
  const auto group_at = [&](std::int32_t column) {
    return group[static_cast<std::size_t>(column)];
  };
  std::ranges::stable_sort(order, {}, group_at);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto expected = static_cast<std::int64_t>(i) / to.group;
    if (group_at(order[i]) == expected) continue;
    pieces.fail(indices, fmt::format("does not give each group {} inputs", to.group));
  }
  if (std::ranges::is_sorted(order)) return {};
  return order;
}

/// Puts the columns of every row in the order of `to`.
void reorder_columns(GroupedWeights& to) {
  if (to.order.empty()) return;
  const std::vector<std::byte> from = std::move(to.codes);
  to.codes = std::vector<std::byte>(from.size());
  for (std::int64_t row = 0; row < to.rows; ++row) {
    const std::byte* const own = from.data() + row * to.row_bytes();
    std::byte* const codes = to.codes.data() + row * to.row_bytes();
    for (std::int64_t i = 0; i < to.columns; ++i) {
      const std::int64_t column = to.order[static_cast<std::size_t>(i)];
      if (to.kind == CodeKind::int8) {
        codes[i] = own[column];
        continue;
      }
      const std::byte code = own[column / 2] >> (column % 2 * 4) & std::byte{15};
      codes[i / 2] |= code << (i % 2 * 4);
    }
  }
}

/// Zero points packed along the output, [groups, out·bits/32], as [out, groups]. `first` is added
/// to each, within its bits: a stored 15 of 4 bits and `first` 1 are 0, as in AutoGPTQ's torch
/// kernels; ExLlamaV2's and vLLM's have 16 there. `places` has the position in a word of each of
/// its values.
std::vector<std::uint8_t> unpacked_zeros(const StoredTensor& packed, const GroupedWeights& to,
                                         unsigned first, std::span<const unsigned> places) {
  const auto bits = static_cast<unsigned>(checkpoint::code_bits(to.kind));
  const auto per_word = std::ssize(places);
  const std::int64_t groups = to.groups();
  std::vector<std::uint8_t> zeros(static_cast<std::size_t>(to.rows * groups));
  for (std::int64_t group = 0; group < groups; ++group) {
    for (std::int64_t row = 0; row < to.rows; ++row) {
      const std::uint32_t word =
          word_at(packed.data, group * (to.rows / per_word) + row / per_word);
      const unsigned place = places[static_cast<std::size_t>(row % per_word)];
      const unsigned mask = (1U << bits) - 1;
      zeros[static_cast<std::size_t>(row * groups + group)] =
          static_cast<std::uint8_t>(((word >> (bits * place)) + first) & mask);
    }
  }
  return zeros;
}

constexpr std::array<unsigned, 8> kInOrder{0, 1, 2, 3, 4, 5, 6, 7};
/// The position in AWQ's word of each of eight outputs: its order is 0, 2, 4, 6, 1, 3, 5, 7.
constexpr std::array<unsigned, 8> kAwqPlaces{0, 4, 1, 5, 2, 6, 3, 7};

/// Scales [groups, out] as [out, groups].
void set_transposed_scales(const PackedPieces& pieces, GroupedWeights& to) {
  const StoredTensor& scales = pieces.at("scales");
  if (scales.shape.size() != 2 || scales.shape[1] != to.rows) {
    pieces.fail(scales, fmt::format("is not [groups, {}]", to.rows));
  }
  to.group = group_of(pieces, scales, scales.shape[0], to.columns);
  to.scales.kind = scale_kind(pieces, scales);
  to.scales.values = transposed(scales.data, scales.shape[0], scales.shape[1],
                                checkpoint::stored_bits(scales.type) / 8);
}

/// A format of GPTQ's tensors, and the number to add to its stored zero points.
struct ZeroFormat {
  std::string_view name;
  unsigned first;
};

/// AutoGPTQ stores zero points less one; GPTQModel's second format does not.
constexpr std::array kGptqFormats{ZeroFormat{"", 1}, ZeroFormat{"gptq", 1},
                                  ZeroFormat{"gptq_v2", 0}};
/// Source: dynamic_import_quant_linear_for_packing in auto_round/export/export_to_autoround.
constexpr std::array kAutoRoundFormats{
    ZeroFormat{"", 1}, ZeroFormat{"auto_round:auto_gptq", 1}, ZeroFormat{"auto_round:gptq", 1},
    ZeroFormat{"auto_round", 0}, ZeroFormat{"auto_round:gptqmodel", 0}};

unsigned first_zero_of(const PackedPieces& pieces) {
  const PackedSettings& settings = pieces.settings();
  const bool is_auto_round = settings.is_auto_round;
  const std::string& name = is_auto_round ? settings.packing_format : settings.checkpoint_format;
  const auto formats = is_auto_round ? std::span<const ZeroFormat>(kAutoRoundFormats)
                                     : std::span<const ZeroFormat>(kGptqFormats);
  const auto found = std::ranges::find(formats, name, &ZeroFormat::name);
  if (found != formats.end()) return found->first;
  pieces.refuse(fmt::format("the {} \"{}\" of {} is not known for GPTQ's tensors",
                            is_auto_round ? "packing_format" : "checkpoint_format", name,
                            is_auto_round ? "AutoRound" : "GPTQ"));
}

void require_awq_format(const PackedPieces& pieces) {
  const PackedSettings& settings = pieces.settings();
  const std::string& version = settings.version;
  const bool is_gemm = version.empty() || version == "gemm" || version == "GEMM";
  if (!is_gemm) pieces.refuse(fmt::format("the version \"{}\" of AWQ is not supported", version));
  if (settings.is_auto_round && settings.packing_format != "auto_round:auto_awq") {
    pieces.refuse(fmt::format("the packing_format \"{}\" of AutoRound does not fit AWQ's tensors",
                              settings.packing_format));
  }
}

/// A word holds consecutive inputs of one output: [in·bits/32, out].
GroupedWeights gptq(const PackedPieces& pieces) {
  pieces.require_only({"qweight", "qzeros", "scales", "g_idx"});
  const StoredTensor& packed = pieces.at("qweight");
  GroupedWeights to{.rows = pieces.rows(), .columns = pieces.columns()};
  const std::int64_t bits = bits_in(pieces, packed.shape[0], to.columns);
  const std::int64_t words = to.columns * bits / kWordBits;
  (void)pieces.at("qweight", StoredType::int32, {words, to.rows});
  set_bits(bits, to);
  set_transposed_scales(pieces, to);
  to.codes = transposed(packed.data, words, to.rows, kWordBytes);
  if (to.kind == CodeKind::int8) remove_offset(to.codes);
  const std::int64_t per_word = kWordBits / bits;
  if (to.rows % per_word != 0) pieces.refuse("GPTQ's outputs do not fill words");
  const StoredTensor& zeros =
      pieces.at("qzeros", StoredType::int32, {to.groups(), to.rows / per_word});
  set_zeros(unpacked_zeros(zeros, to, first_zero_of(pieces),
                           std::span(kInOrder).first(static_cast<std::size_t>(per_word))),
            to);
  if (pieces.find("g_idx") != nullptr) {
    to.order = order_of(pieces, pieces.at("g_idx", StoredType::int32, {to.columns}), to);
    reorder_columns(to);
  }
  return to;
}

/// A word holds eight outputs of one input, interleaved: [in, out/8].
GroupedWeights awq(const PackedPieces& pieces) {
  require_awq_format(pieces);
  pieces.require_only({"qweight", "qzeros", "scales"});
  GroupedWeights to{.rows = pieces.rows(), .columns = pieces.columns()};
  set_bits(bits_in(pieces, pieces.at("qweight").shape[1], to.rows), to);
  if (to.kind != CodeKind::nibble) pieces.refuse("AWQ runs in 4 bits");
  if (to.columns % 2 != 0)
    pieces.refuse(fmt::format("AWQ has {} inputs, an odd number", to.columns));
  constexpr std::int64_t kPerWord = 8;
  const StoredTensor& packed =
      pieces.at("qweight", StoredType::int32, {to.columns, to.rows / kPerWord});
  set_transposed_scales(pieces, to);
  to.codes.resize(static_cast<std::size_t>(to.rows * to.row_bytes()));
  for (std::int64_t column = 0; column < to.columns; ++column) {
    for (std::int64_t row = 0; row < to.rows; ++row) {
      const std::uint32_t word = word_at(packed.data, (column * to.rows + row) / kPerWord);
      const unsigned place = kAwqPlaces[static_cast<std::size_t>(row % kPerWord)];
      const auto code = static_cast<std::byte>(word >> (4 * place) & 15U);
      to.codes[static_cast<std::size_t>(row * to.row_bytes() + column / 2)] |= code
                                                                               << (column % 2 * 4);
    }
  }
  const StoredTensor& zeros =
      pieces.at("qzeros", StoredType::int32, {to.groups(), to.rows / kPerWord});
  set_zeros(unpacked_zeros(zeros, to, 0, kAwqPlaces), to);
  return to;
}

/// Zero points packed along the output, [out·bits/32, groups], as [out, groups].
std::vector<std::uint8_t> compressed_zeros(const PackedPieces& pieces, const GroupedWeights& to,
                                           std::int64_t bits) {
  const std::int64_t per_word = kWordBits / bits;
  const std::int64_t groups = to.groups();
  const StoredTensor& packed = pieces.at("weight_zero_point", StoredType::int32,
                                         {(to.rows + per_word - 1) / per_word, groups});
  std::vector<std::uint8_t> zeros;
  zeros.reserve(static_cast<std::size_t>(to.rows * groups));
  for (std::int64_t row = 0; row < to.rows; ++row) {
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::uint32_t word = word_at(packed.data, row / per_word * groups + group);
      const std::int64_t shift = row % per_word * bits;
      zeros.push_back(static_cast<std::uint8_t>(word >> shift & ((1U << bits) - 1)));
    }
  }
  return zeros;
}

}  // namespace

GroupedWeights unpack_gptq_or_awq(const PackedPieces& pieces) {
  const StoredTensor* const packed = pieces.find("qweight");
  if (packed == nullptr || packed->shape.size() != 2 || pieces.weight().shape.size() != 2) {
    pieces.refuse(fmt::format("no kernel runs {} weights", pieces.weight().type));
  }
  return packed->shape[1] == pieces.rows() ? gptq(pieces) : awq(pieces);
}

GroupedWeights unpack_compressed_tensors(const PackedPieces& pieces) {
  const StoredTensor& packed = pieces.at("weight_packed");
  if (packed.type == StoredType::uint8) return unpack_float4(pieces);
  pieces.require_only(
      {"weight_packed", "weight_scale", "weight_shape", "weight_zero_point", "weight_g_idx"});
  GroupedWeights to{.rows = pieces.rows(), .columns = pieces.columns()};
  const std::int64_t bits = bits_in(pieces, packed.shape.back(), to.columns);
  (void)pieces.at("weight_packed", StoredType::int32, {to.rows, to.columns * bits / kWordBits});
  set_bits(bits, to);
  set_scales(pieces, pieces.at("weight_scale"), to);
  to.codes.assign(packed.data.begin(), packed.data.end());
  if (to.kind == CodeKind::int8) remove_offset(to.codes);
  // Values and zero points have the same offset. Without zero points it is their zero.
  const auto offset = static_cast<std::uint8_t>(1U << (bits - 1));
  const bool has_zeros = pieces.find("weight_zero_point") != nullptr;
  set_zeros(has_zeros ? compressed_zeros(pieces, to, bits) : std::vector<std::uint8_t>{offset}, to);
  if (pieces.find("weight_g_idx") != nullptr) {
    const StoredTensor& indices = pieces.at("weight_g_idx", StoredType::int32, {to.columns});
    if (!is_unused(indices)) to.order = order_of(pieces, indices, to);
    reorder_columns(to);
  }
  return to;
}

}  // namespace headroom::detail
