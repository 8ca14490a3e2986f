#include "methods.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace headroom::detail {

std::vector<ModuleKind> layer_matrices() { return {ModuleKind::linear, ModuleKind::experts}; }

std::vector<ModuleKind> linear_matrices() {
  return {ModuleKind::linear, ModuleKind::experts, ModuleKind::router, ModuleKind::head,
          ModuleKind::tower};
}

std::vector<ModuleKind> all_matrices() {
  return {ModuleKind::linear, ModuleKind::experts,     ModuleKind::router, ModuleKind::embedding,
          ModuleKind::head,   ModuleKind::convolution, ModuleKind::tower};
}

ModulePattern pattern_of(std::string text) {
  constexpr std::string_view kRegex = "re:";
  if (text.starts_with(kRegex)) return {text.substr(kRegex.size()), PatternSyntax::regex};
  if (text.find_first_of("\\[(^$|+") != std::string::npos) {
    return {std::move(text), PatternSyntax::regex};
  }
  const bool wild = text.find_first_of("*?") != std::string::npos;
  return {std::move(text), wild ? PatternSyntax::glob : PatternSyntax::words};
}

std::vector<ModulePattern> patterns_of(std::vector<std::string> texts) {
  std::vector<ModulePattern> patterns;
  patterns.reserve(texts.size());
  for (std::string& text : texts) patterns.push_back(pattern_of(std::move(text)));
  return patterns;
}

void keep_plain(WeightStorage& storage, std::vector<std::string> modules) {
  if (modules.empty()) return;
  storage.rules.push_back({.kinds = all_matrices(), .patterns = patterns_of(std::move(modules))});
}

std::int64_t whole_number(ConfigReader& config, ConfigReader::Keys keys, std::int64_t otherwise) {
  constexpr double kLargest = 1e6;
  const double value = config.number_or(keys, static_cast<double>(otherwise));
  if (value == std::floor(value) && std::abs(value) <= kLargest) {
    return static_cast<std::int64_t>(value);
  }
  config.fail(*keys.begin(), "expected a whole number", "write a number of bits or values");
}

std::int64_t group_size(ConfigReader& config, ConfigReader::Keys keys, std::int64_t otherwise) {
  return std::max<std::int64_t>(0, whole_number(config, keys, otherwise));
}

}  // namespace headroom::detail
