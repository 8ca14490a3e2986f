#include "config_reader.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "class_sizes.h"
#include "headroom/error.h"
#include "headroom/expr.h"
#include "reading_limits.h"
#include "similar.h"

namespace headroom::detail {

using nlohmann::json;

/// Infinity as transformers 5 writes it into JSON, which has no word for it.
static bool is_infinity(const json& value) { return value == json{{"__float__", "Infinity"}}; }

ConfigReader::ConfigReader(const json& object, std::string file)
    : ConfigReader(object, std::move(file), {}, std::make_shared<UnreadKeys>()) {}

ConfigReader::ConfigReader(const json& object, std::string file, std::string pointer,
                           std::shared_ptr<UnreadKeys> unread)
    : object_(&object),
      file_(std::move(file)),
      pointer_(std::move(pointer)),
      unread_(std::move(unread)) {
  if (object.is_object()) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("expected an object, not {}", object.type_name()),
              file_ + (pointer_.empty() ? "" : "#" + pointer_), "write { … } here");
}

bool ConfigReader::has(std::string_view key) const {
  const auto found = object_->find(key);
  return found != object_->end() && !found->is_null();
}

bool ConfigReader::is_null(std::string_view key) const {
  const auto found = object_->find(key);
  return found != object_->end() && found->is_null();
}

bool ConfigReader::is_text(std::string_view key, std::string_view text) const {
  const auto found = object_->find(key);
  return found != object_->end() && found->is_string() && *found == text;
}

const json* ConfigReader::take(Keys keys) {
  const json* value = nullptr;
  for (const std::string_view key : keys) {
    taken_.emplace(key);
    if (!has(key)) continue;
    const json& found = *object_->find(key);
    if (value == nullptr) {
      value = &found;
      found_key_ = key;
    } else if (found != *value) {
      fail(key, fmt::format("differs from \"{}\", which is the same setting", found_key_),
           "keep one of the two");
    }
  }
  return value;
}

std::int64_t ConfigReader::integer_of(const json& value, std::string_view key,
                                      std::int64_t least) const {
  // Tools that pass through YAML or spreadsheets write 28.0.
  constexpr double kLargestExact = 0x1p53;
  const double real = value.is_number_float() ? value.get<double>() : 0.5;
  if (std::trunc(real) == real && std::abs(real) <= kLargestExact) {
    return integer_of(json(static_cast<std::int64_t>(real)), key, least);
  }
  if (!value.is_number_integer()) {
    fail(key, fmt::format("expected a whole number, not {}", value.dump().substr(0, 40)),
         "write a whole number that fits 64 bits");
  }
  const bool too_large = value.is_number_unsigned() &&
                         value.get<std::uint64_t>() >
                             static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (too_large) fail(key, value.dump() + " does not fit 64 bits", "write a smaller number");
  const auto number = value.get<std::int64_t>();
  if (number < least) {
    fail(key, fmt::format("must be at least {}, not {}", least, number), "write a larger number");
  }
  if (number > kLargestSize) {
    fail(key, fmt::format("must be at most 2^56, not {}", number), "write a smaller number");
  }
  return number;
}

std::string ConfigReader::text_of(const json& value, std::string_view key) const {
  if (!value.is_string()) {
    fail(key, fmt::format("expected a string, not {}", value.type_name()), "write \"…\" here");
  }
  return value.get<std::string>();
}

std::int64_t ConfigReader::size(Keys keys) {
  if (const json* value = take(keys)) return integer_of(*value, found_key_, 1);
  if (const auto of_class = size_of_class(keys)) return *of_class;
  std::vector<std::string> present;
  for (const auto& [key, value] : object_->items()) {
    if (!value.is_null()) present.push_back(key);
  }
  const std::vector<std::string> close = similar_words(*keys.begin(), present);
  fail(*keys.begin(), "is missing",
       close.empty() ? fmt::format("add \"{}\"", *keys.begin())
                     : fmt::format("add it, or rename \"{}\" if that is it", close.front()));
}

std::int64_t ConfigReader::size_or(Keys keys, std::int64_t otherwise) {
  return optional_size(keys).value_or(otherwise);
}

std::int64_t ConfigReader::position_after_padding() {
  return sum("pad_token_id", count_or({"pad_token_id"}, 1), 1);
}

std::int64_t ConfigReader::sum(std::string_view key, std::int64_t size, std::int64_t more) const {
  if (size <= std::numeric_limits<std::int64_t>::max() - more) return size + more;
  fail(key, fmt::format("{} does not fit 64 bits with {} more", size, more),
       "write a smaller number");
}

void ConfigReader::require_one_per_layer(std::string_view key, std::size_t entries,
                                         std::int64_t num_layers, const std::string& hint) const {
  if (static_cast<std::int64_t>(entries) == num_layers) return;
  fail(key, fmt::format("has {} entries for {} layers", entries, num_layers), hint);
}

std::int64_t ConfigReader::size_or_of_class(Keys keys, std::int64_t otherwise) {
  if (const auto given = optional_size(keys)) return *given;
  note_filled(*keys.begin(), otherwise);
  return otherwise;
}

void ConfigReader::use_class_sizes(std::string_view model_type) {
  class_sizes_ = class_sizes(model_type);
}

std::optional<std::int64_t> ConfigReader::size_of_class(Keys keys) {
  if (class_sizes_ == nullptr) return std::nullopt;
  for (const std::string_view key : keys) {
    const auto found = class_sizes_->find(key);
    if (found == class_sizes_->end()) continue;
    found_key_ = key;
    note_filled(key, found->get<std::int64_t>());
    return found->get<std::int64_t>();
  }
  return std::nullopt;
}

void ConfigReader::note_filled(std::string_view key, std::int64_t value) {
  note_of_class(key, std::to_string(value));
}

void ConfigReader::note_of_class(std::string_view key, std::string_view value) {
  const std::string note = fmt::format("{} {}", key, value);
  std::vector<std::string>& filled = unread_->filled;
  if (std::ranges::find(filled, note) == filled.end()) filled.push_back(note);
}

std::int64_t ConfigReader::count_or(Keys keys, std::int64_t otherwise) {
  const json* value = take(keys);
  return value == nullptr ? otherwise : integer_of(*value, found_key_, 0);
}

std::optional<std::int64_t> ConfigReader::optional_size(Keys keys) {
  if (const json* value = take(keys)) return integer_of(*value, found_key_, 1);
  // null states that there is none.
  const bool is_stated = std::ranges::any_of(keys, [&](auto key) { return is_null(key); });
  return is_stated ? std::nullopt : size_of_class(keys);
}

std::int64_t ConfigReader::countable(std::int64_t count) const {
  if (count <= kMostLayers) return count;
  fail(found_key_, fmt::format("is more than {}", kMostLayers),
       "write the model's number of layers");
}

std::int64_t ConfigReader::layers(Keys keys) { return countable(size(keys)); }

std::int64_t ConfigReader::layers_or(Keys keys, std::int64_t otherwise) {
  return countable(size_or(keys, otherwise));
}

double ConfigReader::number_or(Keys keys, double otherwise) {
  const json* value = take(keys);
  if (value == nullptr) return otherwise;
  if (!value->is_number()) {
    fail(found_key_, fmt::format("expected a number, not {}", value->type_name()),
         "write a number here");
  }
  return value->get<double>();
}

double ConfigReader::probability_or(Keys keys, double otherwise) {
  const double value = number_or(keys, otherwise);
  if (value >= 0 && value < 1) return value;
  fail(found_key_, fmt::format("expected a probability, not {}", value),
       "write a number in [0, 1)");
}

bool ConfigReader::flag_or(Keys keys, bool otherwise) {
  const json* value = take(keys);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) {
    fail(found_key_, fmt::format("expected true or false, not {}", value->type_name()),
         "write true or false");
  }
  return value->get<bool>();
}

std::optional<std::string> ConfigReader::optional_text(Keys keys) {
  const json* value = take(keys);
  if (value == nullptr) return std::nullopt;
  return text_of(*value, found_key_);
}

std::string ConfigReader::text_or(Keys keys, std::string otherwise) {
  return optional_text(keys).value_or(std::move(otherwise));
}

const json& ConfigReader::list(std::string_view key) {
  static const json kNone = json::array();
  const json* value = take({key});
  if (value == nullptr) return kNone;
  if (value->is_array()) return *value;
  fail(key, fmt::format("expected a list, not {}", value->type_name()), "write [ … ]");
}

std::vector<std::string> ConfigReader::texts(std::string_view key) {
  std::vector<std::string> result;
  for (const json& item : list(key)) result.push_back(text_of(item, key));
  return result;
}

std::vector<double> ConfigReader::numbers(std::string_view key) {
  std::vector<double> result;
  for (const json& item : list(key)) {
    if (is_infinity(item)) {
      result.push_back(std::numeric_limits<double>::max());
      continue;
    }
    if (!item.is_number()) fail(key, "expected a list of numbers", "write numbers only");
    result.push_back(item.get<double>());
  }
  return result;
}

std::vector<bool> ConfigReader::flags(std::string_view key) {
  std::vector<bool> result;
  for (const json& item : list(key)) {
    if (!item.is_boolean()) fail(key, "expected a list of booleans", "write true or false only");
    result.push_back(item.get<bool>());
  }
  return result;
}

std::vector<std::string> ConfigReader::expanded_patterns(std::string_view key) {
  std::vector<std::string> result;
  for (const json& item : list(key)) {
    const bool fits = item.is_array() && item.size() == 2 && item[0].is_array();
    const std::int64_t times = fits ? integer_of(item[1], key, 0) : 0;
    if (!fits) fail(key, "expected a list of patterns", "write [[[\"…\"], times], …]");
    const Integer entries = checked_multiply(times, item[0].size());
    if (entries > kMostLayers - std::ssize(result)) {
      fail(key, fmt::format("names more than {} layers", kMostLayers),
           "write the model's number of layers");
    }
    for (std::int64_t i = 0; i < times; ++i) {
      for (const json& word : item[0]) result.push_back(text_of(word, key));
    }
  }
  return result;
}

std::array<std::int64_t, 2> ConfigReader::sides_or(std::string_view key, std::int64_t otherwise) {
  const json* value = take({key});
  if (value == nullptr) return {otherwise, otherwise};
  if (!value->is_array()) return {integer_of(*value, key, 1), integer_of(*value, key, 1)};
  if (value->size() != 2) fail(key, "expected height and width", "write [height, width]");
  return {integer_of((*value)[0], key, 1), integer_of((*value)[1], key, 1)};
}

std::vector<std::int64_t> ConfigReader::integers_or(std::string_view key, std::int64_t otherwise) {
  const json* value = take({key});
  if (value == nullptr) return {otherwise};
  if (!value->is_array()) return {integer_of(*value, key, INT64_MIN)};
  if (value->empty()) fail(key, "is an empty list", "name at least one");
  std::vector<std::int64_t> values;
  for (const json& one : *value) values.push_back(integer_of(one, key, INT64_MIN));
  return values;
}

std::vector<std::array<std::int64_t, 2>> ConfigReader::pairs(std::string_view key) {
  std::vector<std::array<std::int64_t, 2>> pairs;
  for (const json& pair : list(key)) {
    if (!pair.is_array() || pair.size() != 2) {
      fail(key, "has an entry that is not a pair", "write [[height, width], …]");
    }
    pairs.push_back({integer_of(pair[0], key, 1), integer_of(pair[1], key, 1)});
  }
  if (pairs.empty()) fail(key, "is an empty list", "name at least one pair");
  return pairs;
}

bool ConfigReader::truth_or(Keys keys, bool otherwise) {
  const json* value = take(keys);
  if (value != nullptr && value->is_number()) return value->get<double>() != 0;
  return flag_or(keys, otherwise);
}

std::vector<std::int64_t> ConfigReader::count_or_counts(std::string_view key) {
  const auto found = object_->find(key);
  if (found != object_->end() && found->is_array()) return counts(key);
  if (!has(key)) return {};
  return {count_or({key}, 0)};
}

std::vector<std::int64_t> ConfigReader::list_of_counts(std::string_view key) {
  const auto found = object_->find(key);
  if (found == object_->end() || !found->is_array()) return {};
  return counts(key);
}

std::vector<std::int64_t> ConfigReader::counts(std::string_view key) {
  std::vector<std::int64_t> result;
  for (const json& item : list(key)) result.push_back(integer_of(item, key, 0));
  return result;
}

std::optional<ConfigReader> ConfigReader::object(std::string_view key) {
  const json* value = take({key});
  if (value == nullptr) return std::nullopt;
  return ConfigReader(*value, file_, pointer_to(key), unread_);
}

std::vector<ConfigReader> ConfigReader::objects(std::string_view key) {
  std::vector<ConfigReader> readers;
  const json& items = list(key);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string pointer = fmt::format("{}/{}", pointer_to(key), i);
    readers.push_back(ConfigReader(items[i], file_, pointer, unread_));
  }
  return readers;
}

const json* ConfigReader::part_of_class(std::string_view key) {
  if (class_sizes_ == nullptr || is_null(key)) return nullptr;
  const auto part = class_sizes_->find(key);
  if (part == class_sizes_->end()) return nullptr;
  for (const auto& [name, value] : part->items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    note_of_class(fmt::format("{}.{}", key, name), text);
  }
  return &*part;
}

ConfigReader ConfigReader::object_or_empty(std::string_view key) {
  static const json kEmpty = json::object();
  if (auto present = object(key)) return *std::move(present);
  const json* const of_class = part_of_class(key);
  return ConfigReader(of_class == nullptr ? kEmpty : *of_class, file_, pointer_to(key), unread_);
}

void ConfigReader::ignore_keys_of(const ConfigReader& nested) {
  for (const std::string& key : nested.keys()) taken_.insert(key);
}

std::vector<std::string> ConfigReader::keys() const {
  std::vector<std::string> names;
  names.reserve(object_->size());
  for (const auto& [key, value] : object_->items()) {
    if (!value.is_null()) names.push_back(key);
  }
  return names;
}

bool ConfigReader::is_object(std::string_view key) const {
  const auto found = object_->find(key);
  return found != object_->end() && found->is_object();
}

bool ConfigReader::is_list(std::string_view key) const {
  const auto found = object_->find(key);
  return found != object_->end() && found->is_array();
}

bool ConfigReader::is_text(std::string_view key) const {
  const auto found = object_->find(key);
  return found != object_->end() && found->is_string();
}

ConfigReader ConfigReader::with_defaults(std::string_view defaults,
                                         std::vector<std::string>& filled) const {
  const auto merged = std::make_shared<json>(*object_);
  const json absent = json::parse(defaults);
  for (const auto& [key, value] : absent.items()) {
    if (object_->contains(key)) continue;
    filled.push_back(key);
    (*merged)[key] = value;
  }
  ConfigReader reader = *this;
  reader.object_ = merged.get();
  reader.owned_ = merged;
  return reader;
}

std::optional<std::int64_t> ConfigReader::entries(std::string_view key) {
  const json* value = take({key});
  if (value == nullptr) return std::nullopt;
  if (!value->is_object()) {
    fail(key, fmt::format("expected an object, not {}", value->type_name()), "write { … }");
  }
  return static_cast<std::int64_t>(value->size());
}

void ConfigReader::expect(std::string_view key, const json& only) {
  const json* value = take({key});
  if (value == nullptr || *value == only) return;
  fail(key,
       fmt::format("{} is not supported; only {} is", value->dump().substr(0, 60), only.dump()),
       "use another model: the figures of this one would be wrong");
}

void ConfigReader::expect_flag(std::string_view key, bool only) { expect(key, only); }

void ConfigReader::expect_number(std::string_view key, double only) {
  const bool whole = only == std::floor(only);
  expect(key, whole ? json(static_cast<std::int64_t>(only)) : json(only));
}

void ConfigReader::expect_text(std::string_view key, std::string_view only) { expect(key, only); }

void ConfigReader::expect_empty(std::string_view key) {
  const json* value = take({key});
  if (value == nullptr) return;
  expect(key, value->is_object() ? json::object() : json::array());
}

void ConfigReader::ignore(Keys keys) {
  for (const std::string_view key : keys) taken_.emplace(key);
}

void ConfigReader::finish() {
  constexpr std::size_t kLongest = 40;
  for (const auto& [key, value] : object_->items()) {
    if (taken_.contains(key)) continue;
    UnreadKey unread{pointer_to(key), value.dump().substr(0, kLongest)};
    switch (effect_of_unread(key, *object_)) {
      case KeyEffect::none:
        break;
      case KeyEffect::unlikely:
        unread_->unlikely.push_back(std::move(unread));
        break;
      case KeyEffect::structural:
        unread_->structural.push_back(std::move(unread));
        break;
    }
    if (unread_->unlikely.size() + unread_->structural.size() > kMostUnknownKeys) {
      fail(key, fmt::format("is one of more than {} unknown keys", kMostUnknownKeys),
           "this is not a model's config.json");
    }
  }
}

void ConfigReader::require_all_read() const {
  for (const auto& [key, value] : object_->items()) {
    if (!taken_.contains(key)) fail(key, "is unknown", "remove the key");
  }
}

std::string ConfigReader::pointer_to(std::string_view key) const {
  // RFC 6901: ~ and / inside a key are escaped.
  std::string escaped;
  for (const char c : key) escaped += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return pointer_ + "/" + escaped;
}

void ConfigReader::fail(std::string_view key, const std::string& message,
                        const std::string& hint) const {
  throw Error(ErrorCode::invalid_input, message, file_ + "#" + pointer_to(key), hint);
}

}  // namespace headroom::detail
