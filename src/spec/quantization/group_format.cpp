#include "group_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "formats.h"
#include "similar.h"

namespace headroom {
namespace {

using CodesName = std::pair<std::string_view, GroupCodes>;

constexpr std::array<CodesName, 5> kCodes{{{"4bit", GroupCodes::four_bits},
                                           {"int8", GroupCodes::int8},
                                           {"fp8", GroupCodes::float8},
                                           {"f16", GroupCodes::float16},
                                           {"bf16", GroupCodes::bfloat16}}};

constexpr std::array<std::pair<std::string_view, GroupScales>, 4> kScales{
    {{"s8", GroupScales::bits8},
     {"s16", GroupScales::bits16},
     {"s32", GroupScales::bits32},
     {"nested", GroupScales::nested}}};

constexpr std::string_view kZeros = "zeros";
constexpr std::string_view kRow = "row";
constexpr std::string_view kTensor = "tensor";
constexpr BlockShape kWholeRow{1, 0};
constexpr BlockShape kWholeTensor{0, 0};

template <class Table>
std::string_view word_of(const Table& table, decltype(Table{}[0].second) value) {
  return std::ranges::find(table, value, [](const auto& entry) { return entry.second; })->first;
}

template <class Table>
auto value_named(const Table& table, std::string_view word)
    -> std::optional<decltype(table[0].second)> {
  const auto found = std::ranges::find(table, word, [](const auto& entry) { return entry.first; });
  if (found == table.end()) return std::nullopt;
  return found->second;
}

std::string grain_word(BlockShape grain) {
  if (grain == kWholeRow) return std::string(kRow);
  if (grain == kWholeTensor) return std::string(kTensor);
  return fmt::format("{}x{}", grain.out, grain.in);
}

/// A positive size of at most seven digits.
std::optional<std::int64_t> size_in(std::string_view word) {
  constexpr std::size_t kMostDigits = 7;
  std::int64_t size = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), size);
  const bool is_whole = error == std::errc{} && end == word.data() + word.size();
  if (!is_whole || size < 1 || word.size() > kMostDigits) return std::nullopt;
  return size;
}

std::optional<BlockShape> grain_in(std::string_view word) {
  if (word == kRow) return kWholeRow;
  if (word == kTensor) return kWholeTensor;
  const std::size_t times = word.find('x');
  if (times == std::string_view::npos) return std::nullopt;
  const auto out = size_in(word.substr(0, times));
  const auto in = size_in(word.substr(times + 1));
  if (!out || !in) return std::nullopt;
  return BlockShape{*out, *in};
}

std::vector<std::string_view> words_in(std::string_view name) {
  std::vector<std::string_view> words;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = name.find('-');
    words.push_back(name.substr(0, end));
    if (end != std::string_view::npos) name.remove_prefix(end + 1);
  }
  return words;
}

bool has_16_bits(GroupCodes codes) {
  return codes == GroupCodes::float16 || codes == GroupCodes::bfloat16;
}

constexpr std::int64_t kCodesAtOnce = 8;  // of four bits

bool fills_words(const GroupFormat& format) {
  return format.codes != GroupCodes::four_bits || format.grain.in % kCodesAtOnce == 0;
}

/// bitsandbytes nests scales of blocks along a row only.
bool nests_blocks(const GroupFormat& format) {
  const bool is_block = format.grain.out == 1 && format.grain.in > 0;
  return format.scales != GroupScales::nested || is_block;
}

std::int64_t bits_of(GroupCodes codes) {
  switch (codes) {
    case GroupCodes::four_bits:
      return 4;
    case GroupCodes::int8:
    case GroupCodes::float8:
      return 8;
    case GroupCodes::float16:
    case GroupCodes::bfloat16:
      break;
  }
  return 16;
}

/// Scales of `grain`, and the numbers that they need themselves.
std::vector<StoredNumbers> stored_scales(GroupScales scales, BlockShape grain) {
  switch (scales) {
    case GroupScales::none:
      return {};
    case GroupScales::bits8:
      return {{.bits = 8, .block = grain}};
    case GroupScales::bits16:
      return {{.bits = 16, .block = grain}};
    case GroupScales::bits32:
      return {{.bits = 32, .block = grain}};
    case GroupScales::nested:
      break;
  }
  return detail::bitsandbytes_scales(grain.in, detail::BlockScales::nested);
}

GroupScales scales_in(const StorageFormat& format) {
  const StoredNumbers& scale = format.beside.front();
  // Only bitsandbytes writes numbers along the flattened matrix: scales, and nested ones' own.
  const bool has_second = format.beside.size() > 1 && format.beside[1].along == PackedAlong::flat;
  if (has_second) return GroupScales::nested;
  // A tensor's scale stands beside that of its inputs.
  if (scale.block == kWholeTensor) return GroupScales::bits32;
  if (scale.bits == 8) return GroupScales::bits8;
  return scale.bits == 16 ? GroupScales::bits16 : GroupScales::bits32;
}

}  // namespace

std::string name_of(const GroupFormat& format) {
  std::string name(word_of(kCodes, format.codes));
  if (format.scales == GroupScales::none) return name;
  name += fmt::format("-{}-{}", grain_word(format.grain), word_of(kScales, format.scales));
  if (format.has_zeros) name += fmt::format("-{}", kZeros);
  return name;
}

std::optional<GroupFormat> group_format_named(std::string_view name) {
  const std::string lower = detail::lower_case(name);
  const std::vector<std::string_view> words = words_in(lower);
  const auto codes = value_named(kCodes, words.front());
  if (!codes) return std::nullopt;
  GroupFormat format{.codes = *codes};
  if (has_16_bits(*codes)) return words.size() == 1 ? std::optional(format) : std::nullopt;
  if (words.size() < 3 || words.size() > 4) return std::nullopt;
  const auto grain = grain_in(words[1]);
  const auto scales = value_named(kScales, words[2]);
  format.has_zeros = words.size() == 4;
  if (!grain || !scales || (format.has_zeros && words[3] != kZeros)) return std::nullopt;
  format.grain = *grain;
  format.scales = *scales;
  if (!fills_words(format) || !nests_blocks(format)) return std::nullopt;
  return format;
}

namespace detail {

std::optional<GroupFormat> group_format_of(const StorageFormat& stored) {
  if (!stored.codes) return std::nullopt;
  GroupFormat format{.codes = *stored.codes};
  if (has_16_bits(format.codes))
    return stored.beside.empty() ? std::optional(format) : std::nullopt;
  if (stored.beside.empty()) return std::nullopt;
  const StoredNumbers& scale = stored.beside.front();
  format.grain = scale.block;
  format.scales = scales_in(stored);
  format.has_zeros =
      !stored.equal_zeros && std::any_of(stored.beside.begin() + 1, stored.beside.end(),
                                         [&](const StoredNumbers& numbers) {
                                           return numbers.block == scale.block &&
                                                  numbers.bits == stored.values.bits;
                                         });
  if (!fills_words(format)) return std::nullopt;
  return format;
}

StorageFormat storage_format(const GroupFormat& format) {
  StorageFormat stored{name_of(format),
                       {.bits = bits_of(format.codes)},
                       stored_scales(format.scales, format.grain),
                       format.codes};
  if (format.has_zeros) {
    stored.beside.push_back({.bits = stored.values.bits, .block = format.grain});
  }
  return stored;
}

bool fits_rows(const GroupFormat& format, std::int64_t in) noexcept {
  if (format.scales == GroupScales::nested && in % format.grain.in != 0) return false;
  return format.codes != GroupCodes::four_bits || in % kCodesAtOnce == 0;
}

bool runs_in_groups(const ModelSpec& spec) {
  const auto has_codes = [](const StorageRule& rule) {
    return rule.format && rule.format->codes && !has_16_bits(*rule.format->codes);
  };
  return !spec.quantization.empty() || std::ranges::any_of(spec.storage.rules, has_codes);
}

}  // namespace detail
}  // namespace headroom
