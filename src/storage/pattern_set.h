// PatternSet: many module patterns, matched in time that hardly grows with their number.
#pragma once

#include <functional>
#include <regex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "headroom/model_spec.h"

namespace headroom::detail {

/// `name` without the words that one class or another puts in front of a module's name: "model.",
/// "language_model.", "transformer.", …
[[nodiscard]] std::string_view without_prefix(std::string_view name);

class PatternSet {
 public:
  /// Throws Error{invalid_input} for a regular expression that cannot be read.
  explicit PatternSet(std::span<const ModulePattern> patterns);

  /// Returns true if a pattern matches the module `name`, given without a prefix.
  [[nodiscard]] bool matches(std::string_view name) const;
  /// Returns true if layers may differ: a pattern contains a number.
  [[nodiscard]] bool names_layers() const noexcept { return names_layers_; }
  /// Returns true if experts of one layer may differ: a pattern numbers an expert.
  [[nodiscard]] bool names_experts() const noexcept { return names_experts_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  using Words = std::unordered_set<std::string, Hash, std::equal_to<>>;
  using Globs = std::unordered_map<std::string, std::vector<std::string>, Hash, std::equal_to<>>;
  struct Regex {
    std::regex regex;
    bool open_start = false;  ///< begins with .*, so that prefixes do not matter
  };

  void add_regex(const std::string& text);
  [[nodiscard]] bool words_match(std::string_view name) const;
  [[nodiscard]] bool globs_match(std::string_view name) const;
  [[nodiscard]] bool regexes_match(std::string_view name) const;
  [[nodiscard]] bool parts_match(std::string_view name) const;

  Words words_;
  Words first_words_;
  Globs globs_;  ///< by the whole words before the first wildcard
  std::vector<Regex> regexes_;
  std::vector<std::string> parts_;
  bool names_layers_ = false;
  bool names_experts_ = false;
};

}  // namespace headroom::detail
