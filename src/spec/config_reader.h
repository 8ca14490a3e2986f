// ConfigReader: takes values out of one JSON object and remembers which keys were taken, so that a
// key that nobody understood is an error instead of a wrong figure.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headroom::detail {

/// A word in a config and what it means here.
template <class Value>
using Choices = std::initializer_list<std::pair<std::string_view, Value>>;

/// Every function throws Error{invalid_input} naming file and JSON pointer. A key whose value is
/// null counts as absent, as it does for Hugging Face. Where several keys are given they are
/// spellings of one setting, and must agree.
class ConfigReader {
 public:
  using Keys = std::initializer_list<std::string_view>;

  ConfigReader(const nlohmann::json& object, std::string file, std::string pointer = {});

  [[nodiscard]] bool has(std::string_view key) const;
  /// Whether the key is there and null, which for some families is not the same as absent.
  [[nodiscard]] bool is_null(std::string_view key) const;

  /// A count of at least 1.
  [[nodiscard]] std::int64_t size(Keys keys);
  [[nodiscard]] std::int64_t size_or(Keys keys, std::int64_t otherwise);
  /// A count that may be 0.
  [[nodiscard]] std::int64_t count_or(Keys keys, std::int64_t otherwise);
  [[nodiscard]] std::optional<std::int64_t> optional_size(Keys keys);

  /// A number of layers, at least 1. Layers may be listed one by one, so a number that no model has
  /// is refused: it would only use up time and memory.
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
  /// [[["a", "b"], n], …] as the list that it stands for, each pattern n times.
  [[nodiscard]] std::vector<std::string> expanded_patterns(std::string_view key);
  /// true or false, or a number that is not or is 0.
  [[nodiscard]] bool truth_or(Keys keys, bool otherwise);
  /// Whole numbers from 0 on.
  [[nodiscard]] std::vector<std::int64_t> counts(std::string_view key);
  /// A nested object; empty when absent.
  [[nodiscard]] std::optional<ConfigReader> object(std::string_view key);
  /// The number of entries of a nested object; empty when absent.
  [[nodiscard]] std::optional<std::int64_t> entries(std::string_view key);

  /// One of the words in `choices`. Throws, listing them, for any other.
  template <class Value>
  [[nodiscard]] Value choice_or(Keys keys, Choices<Value> choices, Value otherwise) {
    const std::optional<std::string> word = optional_text(keys);
    if (!word) return otherwise;
    std::string known;
    for (const auto& [name, meaning] : choices) {
      if (name == *word) return meaning;
      known += (known.empty() ? "" : ", ") + std::string(name);
    }
    fail(found_key_, "\"" + *word + "\" is not understood", "use one of: " + known);
  }

  /// Requires `key`, where present, to have the only value that is understood.
  void expect_flag(std::string_view key, bool only);
  void expect_number(std::string_view key, double only);
  void expect_text(std::string_view key, std::string_view only);
  /// Requires the list or object at `key`, where present, to be empty.
  void expect_empty(std::string_view key);
  /// Marks keys that never change a figure.
  void ignore(Keys keys);
  /// Throws for the first key that nothing has taken.
  void finish() const;

  /// Throws Error{invalid_input} at `key`.
  [[noreturn]] void fail(std::string_view key, const std::string& message,
                         const std::string& hint) const;

 private:
  void expect(std::string_view key, const nlohmann::json& only);
  /// The value of the first of `keys` that is there, null if none; marks all of them as taken.
  [[nodiscard]] const nlohmann::json* take(Keys keys);
  /// The list at `key`; empty when absent.
  [[nodiscard]] const nlohmann::json& list(std::string_view key);
  [[nodiscard]] std::int64_t integer_of(const nlohmann::json& value, std::string_view key,
                                        std::int64_t least) const;
  /// `count` layers, found at the key that was last taken.
  [[nodiscard]] std::int64_t countable(std::int64_t count) const;
  [[nodiscard]] std::string text_of(const nlohmann::json& value, std::string_view key) const;

  const nlohmann::json* object_;
  std::string file_;
  std::string pointer_;
  std::set<std::string, std::less<>> taken_;
  std::string found_key_;
};

}  // namespace headroom::detail
