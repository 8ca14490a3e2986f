#include "gguf_metadata.h"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "headroom/error.h"
#include "safetensors.h"
#include "utf8.h"

namespace headroom::checkpoint {
namespace {

// docs/gguf.md: a key has at most 2^16 - 1 bytes.
constexpr std::size_t kLongestKey = 65535;
// Published files have lists of strings and numbers, never lists of lists.
constexpr int kDeepestNesting = 4;
// Bytes of a key's length, a type, and a one-byte value.
constexpr std::uint64_t kLeastPair = 8 + 4 + 1;

GgufValueType value_type(std::uint32_t number, const std::string& place) {
  if (number <= static_cast<std::uint32_t>(GgufValueType::float64)) {
    return static_cast<GgufValueType>(number);
  }
  throw_damaged_gguf(place, fmt::format("its type {} is unknown", number));
}

/// Bytes of a value; empty for types that store their own length.
std::optional<std::uint64_t> fixed_size(GgufValueType type) {
  switch (type) {
    case GgufValueType::uint8:
    case GgufValueType::int8:
    case GgufValueType::boolean:
      return 1;
    case GgufValueType::uint16:
    case GgufValueType::int16:
      return 2;
    case GgufValueType::uint32:
    case GgufValueType::int32:
    case GgufValueType::float32:
      return 4;
    case GgufValueType::uint64:
    case GgufValueType::int64:
    case GgufValueType::float64:
      return 8;
    case GgufValueType::string:
    case GgufValueType::array:
      break;
  }
  return std::nullopt;
}

bool take_flag(ByteReader& reader, const std::string& place) {
  const auto value = reader.take<std::uint8_t>();
  if (value > 1) throw_damaged_gguf(place, fmt::format("{} is neither true nor false", value));
  return value == 1;
}

GgufArray take_array(ByteReader& reader, const std::string& place, int depth);

/// Skips the elements of an array; throws if any is missing.
void skip_elements(ByteReader& reader, const GgufArray& array, const std::string& place,
                   int depth) {
  if (const auto size = fixed_size(array.type)) {
    if (array.count > reader.left() / *size) {
      throw_damaged_gguf(place,
                         fmt::format("its {} elements do not fit into the file", array.count));
    }
    (void)reader.take_bytes(array.count * *size);
    return;
  }
  for (std::uint64_t i = 0; i < array.count; ++i) {
    if (array.type == GgufValueType::string) {
      (void)reader.take_text();
    } else {
      (void)take_array(reader, place, depth + 1);
    }
  }
}

GgufArray take_array(ByteReader& reader, const std::string& place, int depth) {
  if (depth > kDeepestNesting) throw_damaged_gguf(place, "its lists are nested too deeply");
  GgufArray array;
  array.type = value_type(reader.take<std::uint32_t>(), place);
  array.count = reader.take<std::uint64_t>();
  ByteReader ahead = reader;
  skip_elements(ahead, array, place, depth);
  array.data = reader.take_bytes(ahead.position() - reader.position());
  return array;
}

GgufValue take_value(ByteReader& reader, GgufValueType type, const std::string& place) {
  switch (type) {
    case GgufValueType::uint8:
      return std::uint64_t{reader.take<std::uint8_t>()};
    case GgufValueType::uint16:
      return std::uint64_t{reader.take<std::uint16_t>()};
    case GgufValueType::uint32:
      return std::uint64_t{reader.take<std::uint32_t>()};
    case GgufValueType::uint64:
      return reader.take<std::uint64_t>();
    case GgufValueType::int8:
      return std::int64_t{reader.take<std::int8_t>()};
    case GgufValueType::int16:
      return std::int64_t{reader.take<std::int16_t>()};
    case GgufValueType::int32:
      return std::int64_t{reader.take<std::int32_t>()};
    case GgufValueType::int64:
      return reader.take<std::int64_t>();
    case GgufValueType::float32:
      return static_cast<double>(reader.take<float>());
    case GgufValueType::float64:
      return reader.take<double>();
    case GgufValueType::boolean:
      return take_flag(reader, place);
    case GgufValueType::string:
      return reader.take_text();
    case GgufValueType::array:
      return take_array(reader, place, 1);
  }
  throw_damaged_gguf(place, "its type is unknown");
}

std::string_view take_key(ByteReader& reader) {
  const std::uint64_t at = reader.position();
  const std::string_view key = reader.take_text();
  if (key.empty() || key.size() > kLongestKey || !detail::is_printable_utf8(key)) {
    throw_damaged_gguf(reader.file(), fmt::format("the key at byte {} is not a valid name", at));
  }
  return key;
}

[[noreturn]] void throw_no_list(const std::string& where, const char* of) {
  throw Error(ErrorCode::invalid_input, fmt::format("is not a list of {}", of), where,
              "convert the model again with a current converter");
}

}  // namespace

void throw_damaged_gguf(const std::string& place, const std::string& message) {
  throw Error(ErrorCode::invalid_input, message, place,
              "download or convert the file again: it is damaged, truncated or not GGUF");
}

std::map<std::string_view, GgufValue> take_metadata(ByteReader& reader, std::uint64_t count) {
  if (count > reader.left() / kLeastPair) {
    throw_damaged_gguf(reader.file(),
                       fmt::format("{} metadata keys do not fit into the file", count));
  }
  std::map<std::string_view, GgufValue> metadata;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string_view key = take_key(reader);
    const std::string place = tensor_place(reader.file(), key);
    const GgufValueType type = value_type(reader.take<std::uint32_t>(), place);
    if (!metadata.emplace(key, take_value(reader, type, place)).second) {
      throw_damaged_gguf(place, "the key is listed twice");
    }
  }
  return metadata;
}

std::vector<std::int64_t> GgufArray::integers(const std::string& where) const {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::vector<std::int64_t> values;
  ByteReader reader(data, where);
  for (std::uint64_t i = 0; i < count; ++i) {
    const GgufValue value = take_value(reader, type, where);
    const auto* const natural = std::get_if<std::uint64_t>(&value);
    const auto* const whole = std::get_if<std::int64_t>(&value);
    if (whole != nullptr) {
      values.push_back(*whole);
    } else if (natural != nullptr && *natural <= kMost) {
      values.push_back(static_cast<std::int64_t>(*natural));
    } else {
      throw_no_list(where, "whole numbers");
    }
  }
  return values;
}

std::vector<double> GgufArray::numbers(const std::string& where) const {
  std::vector<double> values;
  ByteReader reader(data, where);
  for (std::uint64_t i = 0; i < count; ++i) {
    const GgufValue value = take_value(reader, type, where);
    const auto* const number = std::get_if<double>(&value);
    if (number == nullptr) throw_no_list(where, "numbers");
    values.push_back(*number);
  }
  return values;
}

std::vector<bool> GgufArray::flags(const std::string& where) const {
  if (type != GgufValueType::boolean) throw_no_list(where, "booleans");
  std::vector<bool> values;
  ByteReader reader(data, where);
  for (std::uint64_t i = 0; i < count; ++i) values.push_back(take_flag(reader, where));
  return values;
}

}  // namespace headroom::checkpoint
