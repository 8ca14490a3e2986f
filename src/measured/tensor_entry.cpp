#include "tensor_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "headroom/error.h"

namespace headroom::measured {
namespace {

using nlohmann::json;

/// Sizes or offsets: whole numbers from 0 to 2^63 - 1.
std::vector<std::int64_t> counts(const json& entry, const char* key, const std::string& place) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const json& list = entry.at(key);
  const bool valid = list.is_array() && std::ranges::all_of(list, [](const json& value) {
                       return value.is_number_unsigned() && value.get<std::uint64_t>() <= kMost;
                     });
  if (!valid) {
    throw_damaged(place, fmt::format("\"{}\" is no list of numbers from 0 to 2^63 - 1", key));
  }
  return list.get<std::vector<std::int64_t>>();
}

StoredType element_type(const json& entry, const std::string& place) {
  const json& name = entry.at("dtype");
  if (!name.is_string()) throw_damaged(place, "\"dtype\" is no text");
  const auto type = stored_type(name.get_ref<const std::string&>());
  if (type) return *type;
  throw Error(ErrorCode::invalid_input,
              fmt::format("the data type \"{}\" is unknown", name.get_ref<const std::string&>()),
              place, "convert the weights to F32, F16 or BF16");
}

void require_keys(const json& entry, const std::string& place) {
  if (!entry.is_object()) throw_damaged(place, "its description is no JSON object");
  for (const char* const key : {"dtype", "shape", "data_offsets"}) {
    if (!entry.contains(key)) throw_damaged(place, fmt::format("it has no \"{}\"", key));
  }
  if (entry.size() > 3) throw_damaged(place, "it has keys besides dtype, shape and data_offsets");
}

/// The part of `data` that `entry` claims.
std::span<const std::byte> claimed(std::span<const std::byte> data, const json& entry,
                                   const std::string& place) {
  const std::vector<std::int64_t> offsets = counts(entry, "data_offsets", place);
  if (offsets.size() != 2) throw_damaged(place, "\"data_offsets\" has not two numbers");
  const auto begin = static_cast<std::size_t>(offsets[0]);
  const auto end = static_cast<std::size_t>(offsets[1]);
  if (begin > end) throw_damaged(place, fmt::format("its data end at {}, before {}", end, begin));
  if (end > data.size()) {
    throw_damaged(place, fmt::format("its data end at {} of {} bytes", end, data.size()));
  }
  return data.subspan(begin, end - begin);
}

}  // namespace

StoredTensor read_entry(const std::string& name, const json& entry, std::span<const std::byte> data,
                        const std::string& file) {
  const std::string place = tensor_place(file, name);
  require_keys(entry, place);
  StoredTensor tensor{name, element_type(entry, place), counts(entry, "shape", place),
                      claimed(data, entry, place)};
  const auto bytes = stored_bytes(tensor.type, tensor.shape);
  if (!bytes) throw_damaged(place, "its shape is larger than any file, or ends inside a byte");
  if (*bytes != tensor.data.size()) {
    throw_damaged(place, fmt::format("its shape takes {} bytes and its data have {}", *bytes,
                                     tensor.data.size()));
  }
  return tensor;
}

void throw_damaged(const std::string& place, const std::string& message) {
  throw Error(ErrorCode::invalid_input, message, place,
              "the file is damaged, cut short or no safetensors file: get or save it again");
}

}  // namespace headroom::measured
