#include "unpack_integers.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "element_type.h"

namespace headroom::detail {
namespace {

using checkpoint::StoredType;
using checkpoint::TensorInfo;

bool has_type(const TensorInfo& tensor, StoredType type) {
  return tensor.type == checkpoint::DataType(type);
}

std::optional<std::int64_t> group_in(const nlohmann::json& object) {
  const auto found = object.find("group_size");
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto group = found->get<std::uint64_t>();
  constexpr std::uint64_t kLargestGroup = 1U << 16U;
  if (group == 0 || group > kLargestGroup) return std::nullopt;
  return static_cast<std::int64_t>(group);
}

bool has_one_byte(const TensorInfo& tensor) {
  const auto* const stored = std::get_if<StoredType>(&tensor.type);
  return stored != nullptr && checkpoint::stored_bits(*stored) == 8;
}

/// Integers of 8 bits are one value or two; uint8 is always two (MX and NVFP4).
bool has_two_values_per_byte(const TensorInfo& values, const TensorInfo& scales) {
  if (has_type(values, StoredType::uint8)) return true;
  if (!has_type(values, StoredType::int8) || scales.shape.size() != 2) return false;
  const std::int64_t out = values.shape[values.shape.size() - 2];
  return scales.shape.front() != out && scales.shape.back() == out;
}

/// Tiles of 32-bit integers, each eight values of 4 bits.
UnpackResult unpack_tiles(const std::string& module, const TensorInfo& values,
                          const TensorInfo& scales) {
  constexpr std::int64_t kPerWord = kWordBits / 4;
  if (scales.shape.size() != 3 || scales.shape[1] == 0) return std::nullopt;
  const std::int64_t out = scales.shape[1];
  const Integer all = checked_multiply(product(values.shape), kPerWord);
  if (all % out != 0 || all / out > kLargestDimension) return std::nullopt;
  return unpacked(module + ".weight", "torchao 4-bit", {out, static_cast<std::int64_t>(all / out)});
}

}  // namespace

Integer product(std::span<const std::int64_t> shape) {
  Integer values = 1;
  for (const std::int64_t size : shape) values = checked_multiply(values, size);
  return values;
}

UnpackResult unpacked(std::string name, std::string type, std::vector<std::int64_t> shape) {
  const Integer values = product(shape);
  return Unpacked{std::move(name), std::move(type), std::move(shape), values};
}

std::optional<std::int64_t> bits_of(std::int64_t words, std::int64_t values) {
  if (values <= 0 || words <= 0) return std::nullopt;
  const Integer all = Integer{kWordBits} * words;
  if (all % values != 0 || all / values > 8) return std::nullopt;
  return static_cast<std::int64_t>(all / values);
}

MlxGroups::MlxGroups(const std::filesystem::path& folder) {
  std::ifstream file(folder / "config.json");
  if (!file) return;
  const auto config = nlohmann::json::parse(file, nullptr, false);
  if (!config.is_object()) return;
  auto found = config.find("quantization");
  if (found == config.end()) found = config.find("quantization_config");
  if (found == config.end() || !found->is_object()) return;
  group_ = group_in(*found);
  for (const auto& [module, own] : found->items()) {
    if (!own.is_object()) continue;
    if (const auto group = group_in(own)) own_[module] = *group;
  }
}

std::optional<std::int64_t> MlxGroups::of(const std::string& module) const {
  const auto own = own_.find(module);
  return own == own_.end() ? group_ : std::optional(own->second);
}

UnpackResult unpack_mlx(const std::string& module, const TensorInfo& values,
                        const TensorInfo& scales, std::optional<std::int64_t> group) {
  if (!group || !has_type(values, StoredType::uint32)) return std::nullopt;
  if (values.shape.size() < 2 || scales.shape.size() != values.shape.size()) return std::nullopt;
  const auto outer = values.shape.first(values.shape.size() - 1);
  if (!std::ranges::equal(outer, scales.shape.first(outer.size()))) return std::nullopt;
  if (scales.shape.back() > kLargestDimension / *group) return std::nullopt;
  const std::int64_t in = scales.shape.back() * *group;
  const auto bits = bits_of(values.shape.back(), in);
  if (!bits) return std::nullopt;
  std::vector<std::int64_t> shape(outer.begin(), outer.end());
  shape.push_back(in);
  return unpacked(module + ".weight", fmt::format("MLX {}-bit, groups of {}", *bits, *group),
                  std::move(shape));
}

UnpackResult unpack_torchao(const std::string& module, const TensorInfo& values,
                            const TensorInfo& scales) {
  if (has_type(values, StoredType::int32) && values.shape.size() == 4) {
    return unpack_tiles(module, values, scales);
  }
  if (values.shape.size() < 2 || !has_one_byte(values)) return std::nullopt;
  std::vector<std::int64_t> shape(values.shape.begin(), values.shape.end());
  if (!has_two_values_per_byte(values, scales)) {
    return unpacked(module + ".weight",
                    fmt::format("{}, torchao", checkpoint::name_of(values.type)), std::move(shape));
  }
  if (shape.back() > kLargestDimension) return std::nullopt;
  shape.back() *= 2;
  return unpacked(module + ".weight", "torchao 4-bit", std::move(shape));
}

UnpackResult unpack_hqq(const std::string& module, const TensorInfo& values,
                        std::vector<std::int64_t> shape) {
  const Integer count = product(shape);
  constexpr std::int64_t kByte = 8;
  const Integer bits =
      count == 0 ? 0 : checked_multiply(static_cast<Integer>(values.bytes), kByte) / count;
  // Ten values of 3 bits take 32.
  if (shape.size() != 2 || bits < 1 || bits > kByte) return std::nullopt;
  return unpacked(module + ".weight", fmt::format("HQQ {}-bit", to_string(bits)), std::move(shape));
}

}  // namespace headroom::detail
