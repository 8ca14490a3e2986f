#include "component_sums.h"

namespace headroom::detail {
namespace {

// Shorter numbers within a word distinguish weights of one layer: w1, wi_0, ln_2.
constexpr std::size_t kLeastIndexDigits = 3;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void ComponentSums::add(std::string_view category, std::string_view component,
                        const TensorTotals& totals) {
  auto found = by_component_.find(component);
  if (found == by_component_.end()) {
    found = by_component_.emplace(component, rows_.size()).first;
    rows_.push_back({std::string(category), std::string(component), {}});
  }
  rows_[found->second].totals += totals;
}

void name_pattern(std::string_view name, std::string& pattern) {
  pattern.clear();
  std::size_t copied = 0;  // characters of `name` before it are in the pattern
  for (std::size_t at = 0; at < name.size(); ++at) {
    if (!is_digit(name[at])) continue;
    const std::size_t begin = at;
    while (at < name.size() && is_digit(name[at])) ++at;
    const bool whole_word =
        (begin == 0 || name[begin - 1] == '.') && (at == name.size() || name[at] == '.');
    if (!whole_word && at - begin < kLeastIndexDigits) continue;
    pattern.append(name, copied, begin - copied);
    pattern += "{}";
    copied = at;
  }
  pattern.append(name, copied);
}

}  // namespace headroom::detail
