#include "rule_matcher.h"

#include <algorithm>
#include <utility>

#include "stored/names.h"

namespace headroom::detail {
namespace {

template <class Value>
bool contains_value(const std::vector<Value>& list, const Value& value) {
  return std::ranges::find(list, value) != list.end();
}

/// The conditions of `rule` apart from patterns; an empty list is none.
bool concerns(const StorageRule& rule, const RuledWeight& weight, std::int64_t layer) {
  const auto ends_path = [&](const std::string& end) { return weight.path.ends_with(end); };
  return contains_value(rule.kinds, weight.kind) && weight.in % rule.input_multiple == 0 &&
         (rule.layers.empty() || contains_value(rule.layers, layer)) &&
         (rule.weights.empty() || std::ranges::any_of(rule.weights, ends_path));
}

}  // namespace

RuleMatcher::RuleMatcher(const WeightStorage& storage, StorageFormat plain)
    : plain_(std::move(plain)) {
  rules_.reserve(storage.rules.size());
  for (const StorageRule& rule : storage.rules) {
    rules_.push_back({&rule, PatternSet(rule.patterns)});
    const PatternSet& patterns = rules_.back().patterns;
    tells_layers_ = tells_layers_ || !rule.layers.empty() || patterns.names_layers();
    tells_experts_ = tells_experts_ || patterns.names_experts();
  }
}

bool RuleMatcher::has_patterns() const {
  return std::ranges::any_of(rules_,
                             [](const ReadyRule& ready) { return !ready.rule->patterns.empty(); });
}

const StorageFormat& RuleMatcher::format(FormatId id) const {
  if (id == 0) return plain_;
  const std::optional<StorageFormat>& own = rules_[id - 1].rule->format;
  return own ? *own : plain_;
}

FormatId RuleMatcher::format_id(const RuledWeight& weight, std::int64_t layer,
                                std::int64_t expert) const {
  std::vector<std::string> modules;
  modules.reserve(weight.names.size());
  for (const std::string& name : weight.names) modules.push_back(filled(name, layer, expert));
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const auto& [rule, patterns] = rules_[i];
    if (!concerns(*rule, weight, layer)) continue;
    const auto matched = [&ready = patterns](const std::string& module) {
      return ready.matches(module);
    };
    if (rule->patterns.empty() || std::ranges::any_of(modules, matched)) return i + 1;
  }
  return 0;
}

}  // namespace headroom::detail
