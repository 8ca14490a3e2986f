// Random configs near published ones: a tiny config of a family with some of its keys changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace headroom::test {

/// Random choices, equal on every platform for equal seeds (std::uniform_int_distribution is not).
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  /// From 0 to `count` − 1.
  [[nodiscard]] std::size_t below(std::size_t count) { return engine_() % count; }
  /// From `least` to `most`.
  [[nodiscard]] std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(below(static_cast<std::size_t>(most - least + 1)));
  }
  template <class Choices>
  [[nodiscard]] const auto& one_of(const Choices& choices) {
    return *std::next(std::begin(choices), static_cast<std::ptrdiff_t>(below(std::size(choices))));
  }

 private:
  std::mt19937_64 engine_;
};

/// Generator of configs. A config of a seed is valid or nearly so: sizes that must fit each other
/// are often changed together, values come from configs of any family that has the key.
class RandomConfigs {
 public:
  /// Reads the tiny configs of `data` (tests/data).
  explicit RandomConfigs(const std::filesystem::path& data);

  [[nodiscard]] nlohmann::json config(std::uint64_t seed) const;

  /// The published configs, from which all others are made.
  [[nodiscard]] const std::vector<nlohmann::json>& bases() const noexcept { return bases_; }

 private:
  void add_base(const nlohmann::json& config);
  void collect_values(const nlohmann::json& object);
  void change(nlohmann::json& object, Random& random) const;
  void add_key_of_kin(nlohmann::json& object, Random& random) const;

  std::vector<nlohmann::json> bases_;
  std::map<std::string, std::vector<nlohmann::json>> values_;  ///< seen at each key
  std::map<std::string, std::vector<std::string>> keys_;       ///< seen with each model_type
};

}  // namespace headroom::test
