// ConfigReader: reads values from one JSON object and records the keys it has read, so that an
// unknown key that could change a figure is an error instead of a wrong figure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unread_keys.h"

namespace headroom::detail {

/// A word in a config and its value here.
template <class Value>
using Choices = std::initializer_list<std::pair<std::string_view, Value>>;

/// Every function throws Error{invalid_input} naming the file and the JSON pointer. As in Hugging
/// Face, null counts as absent. Several keys are spellings of one setting and must agree.
class ConfigReader {
 public:
  using Keys = std::initializer_list<std::string_view>;

  ConfigReader(const nlohmann::json& object, std::string file);

  [[nodiscard]] bool has(std::string_view key) const;
  /// Returns true if the key is present and null, which some families distinguish from absent.
  [[nodiscard]] bool is_null(std::string_view key) const;

  /// True if the key's value is the word `text`.
  [[nodiscard]] bool is_text(std::string_view key, std::string_view text) const;

  /// Takes sizes that the config leaves out from this model type's class (class_sizes.h), and notes
  /// them.
  void use_class_sizes(std::string_view model_type);

  /// An integer of at least 1.
  [[nodiscard]] std::int64_t size(Keys keys);
  [[nodiscard]] std::int64_t size_or(Keys keys, std::int64_t otherwise);
  /// As `size_or`, where `otherwise` is the class's own size: notes it if the config omits the key.
  [[nodiscard]] std::int64_t size_or_of_class(Keys keys, std::int64_t otherwise);
  /// An integer of at least 0.
  [[nodiscard]] std::int64_t count_or(Keys keys, std::int64_t otherwise);
  [[nodiscard]] std::optional<std::int64_t> optional_size(Keys keys);
  /// The first position of models that count from behind `pad_token_id`, such as RoBERTa.
  [[nodiscard]] std::int64_t position_after_padding();
  /// size + more, where `key` gives the size; refuses a sum beyond 64 bits.
  [[nodiscard]] std::int64_t sum(std::string_view key, std::int64_t size, std::int64_t more) const;

  /// A number of layers, at least 1. Absurd numbers are rejected: layers may be listed one by one,
  /// which would exhaust time and memory.
  [[nodiscard]] std::int64_t layers(Keys keys);
  [[nodiscard]] std::int64_t layers_or(Keys keys, std::int64_t otherwise);

  [[nodiscard]] double number_or(Keys keys, double otherwise);
  /// A probability in [0, 1).
  [[nodiscard]] double probability_or(Keys keys, double otherwise);
  [[nodiscard]] bool flag_or(Keys keys, bool otherwise);
  [[nodiscard]] std::optional<std::string> optional_text(Keys keys);
  [[nodiscard]] std::string text_or(Keys keys, std::string otherwise);
  [[nodiscard]] std::vector<std::string> texts(std::string_view key);
  [[nodiscard]] std::vector<double> numbers(std::string_view key);
  /// A list of booleans; empty if absent.
  [[nodiscard]] std::vector<bool> flags(std::string_view key);
  /// Expands [[["a", "b"], n], …]: each pattern n times.
  [[nodiscard]] std::vector<std::string> expanded_patterns(std::string_view key);
  /// Height and width: a list of both, or one size for both.
  [[nodiscard]] std::array<std::int64_t, 2> sides_or(std::string_view key, std::int64_t otherwise);
  /// An integer or a list of them; `otherwise` if the key is absent.
  [[nodiscard]] std::vector<std::int64_t> integers_or(std::string_view key, std::int64_t otherwise);
  /// A list of pairs of integers of at least 1.
  [[nodiscard]] std::vector<std::array<std::int64_t, 2>> pairs(std::string_view key);
  /// A boolean, or a number: true unless it is 0.
  [[nodiscard]] bool truth_or(Keys keys, bool otherwise);
  /// An integer of at least 0, or a list of them; empty if absent.
  [[nodiscard]] std::vector<std::int64_t> count_or_counts(std::string_view key);
  /// The list of integers at `key`; empty, and not marked as read, if it is one number or absent.
  [[nodiscard]] std::vector<std::int64_t> list_of_counts(std::string_view key);
  /// A list of integers of at least 0.
  [[nodiscard]] std::vector<std::int64_t> counts(std::string_view key);
  /// A nested object; empty if absent.
  [[nodiscard]] std::optional<ConfigReader> object(std::string_view key);
  /// A list of nested objects; empty if absent.
  [[nodiscard]] std::vector<ConfigReader> objects(std::string_view key);
  /// A nested object. If absent, the class's own, which is noted, or one without keys.
  [[nodiscard]] ConfigReader object_or_empty(std::string_view key);
  /// The keys of this object that are not null.
  [[nodiscard]] std::vector<std::string> keys() const;
  /// Returns true if the key holds an object.
  [[nodiscard]] bool is_object(std::string_view key) const;
  /// Returns true if the key holds a list.
  [[nodiscard]] bool is_list(std::string_view key) const;
  /// Returns true if the key holds a string.
  [[nodiscard]] bool is_text(std::string_view key) const;
  /// This object with the keys of `defaults`, a JSON object, where it lacks them. Appends those
  /// keys to `filled`.
  [[nodiscard]] ConfigReader with_defaults(std::string_view defaults,
                                           std::vector<std::string>& filled) const;
  /// The number of entries in a nested object; empty if absent.
  [[nodiscard]] std::optional<std::int64_t> entries(std::string_view key);

  /// One of the words in `choices`. Throws for any other, and lists them.
  template <class Value>
  [[nodiscard]] Value choice_or(Keys keys, Choices<Value> choices, Value otherwise) {
    const std::optional<std::string> word = optional_text(keys);
    if (!word) return otherwise;
    std::string known;
    for (const auto& [name, meaning] : choices) {
      if (name == *word) return meaning;
      known += (known.empty() ? "" : ", ") + std::string(name);
    }
    fail(found_key_, "\"" + *word + "\" is not supported", "use one of: " + known);
  }

  /// Notes the value of a key that the config omits and its class fills in.
  void note_of_class(std::string_view key, std::string_view value);

  /// Requires `key`, if present, to have the only supported value.
  void expect_flag(std::string_view key, bool only);
  void expect_number(std::string_view key, double only);
  void expect_text(std::string_view key, std::string_view only);
  /// Requires the list or object at `key`, if present, to be empty.
  void expect_empty(std::string_view key);
  /// Marks keys that never change a figure as read.
  void ignore(Keys keys);
  /// Ignores the keys of a nested object, which has its own values of them.
  void ignore_keys_of(const ConfigReader& nested);
  /// Records the keys that were not read, judged by what they can change.
  void finish();
  /// The unread keys of this object, of the objects nested in it, and of the one around it.
  [[nodiscard]] const UnreadKeys& unread() const { return *unread_; }
  /// Throws for the first key that was not read.
  void require_all_read() const;

  /// Throws at `key`, a list, unless it has one entry for each layer.
  void require_one_per_layer(std::string_view key, std::size_t entries, std::int64_t num_layers,
                             const std::string& hint) const;

  /// Throws Error{invalid_input} at `key`.
  [[noreturn]] void fail(std::string_view key, const std::string& message,
                         const std::string& hint) const;

 private:
  ConfigReader(const nlohmann::json& object, std::string file, std::string pointer,
               std::shared_ptr<UnreadKeys> unread);
  [[nodiscard]] std::string pointer_to(std::string_view key) const;
  void expect(std::string_view key, const nlohmann::json& only);
  /// The value of the first of `keys` that is present, or null; marks all of them as read.
  [[nodiscard]] const nlohmann::json* take(Keys keys);
  /// The first of `keys` that the class has a size for; empty if it has none.
  [[nodiscard]] std::optional<std::int64_t> size_of_class(Keys keys);
  void note_filled(std::string_view key, std::int64_t value);
  /// The nested object that the class fills in at `key`; null if there is none.
  [[nodiscard]] const nlohmann::json* part_of_class(std::string_view key);
  /// The list at `key`; empty if absent.
  [[nodiscard]] const nlohmann::json& list(std::string_view key);
  [[nodiscard]] std::int64_t integer_of(const nlohmann::json& value, std::string_view key,
                                        std::int64_t least) const;
  /// Returns `count`, from the last key read; throws if it is too large.
  [[nodiscard]] std::int64_t countable(std::int64_t count) const;
  [[nodiscard]] std::string text_of(const nlohmann::json& value, std::string_view key) const;

  const nlohmann::json* object_;
  std::shared_ptr<const nlohmann::json> owned_{};  ///< of with_defaults
  const nlohmann::json* class_sizes_ = nullptr;
  std::string file_;
  std::string pointer_;
  std::set<std::string, std::less<>> taken_;
  std::string found_key_;
  std::shared_ptr<UnreadKeys> unread_;
};

}  // namespace headroom::detail
