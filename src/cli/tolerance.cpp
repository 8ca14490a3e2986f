#include "tolerance.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "command_line.h"
#include "number_text.h"

namespace headroom::cli {
namespace {

constexpr const char* kTolerance = "--tolerance";

/// Larger fractions are percentages whose sign was forgotten.
constexpr double kLargestFraction = 1;

/// "10%" or "0.1".
std::optional<double> fraction_of(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  const std::optional<double> value = detail::decimal_of(text);
  if (!value || *value < 0) return std::nullopt;
  return percent ? *value / 100 : *value;
}

/// True if `name` is this quantity or a group with it.
bool names_quantity(std::string_view name, const QuantityInfo& quantity) {
  return name == quantity.name || (name == "time" && quantity.kind == QuantityKind::time);
}

[[noreturn]] void refuse_quantity(std::string_view name) {
  std::string known = "time, ops";
  for (const QuantityInfo& quantity : quantities()) known += fmt::format(", {}", quantity.name);
  refuse_value(kTolerance, fmt::format("unknown quantity \"{}\": use {}", name, known));
}

}  // namespace

namespace {

std::string_view name_in(std::string_view text) { return text.substr(0, text.find('=')); }

void add_tolerance(const std::string& text, CompareOptions& options) {
  const std::string_view whole(text);
  const auto equals = std::min(whole.find('='), whole.size());
  const std::string_view name = name_in(whole);
  const auto fraction = fraction_of(whole.substr(std::min(equals + 1, whole.size())));
  if (!fraction) refuse_value(kTolerance, fmt::format("write it as time=10%, not {}", text));
  if (*fraction > kLargestFraction && !text.ends_with('%')) {
    refuse_value(kTolerance, fmt::format("{} allows {:g} times the prediction: write {}% for a "
                                         "percentage",
                                         text, *fraction, text));
  }
  bool known = false;
  for (const QuantityInfo& quantity : quantities()) {
    if (!names_quantity(name, quantity)) continue;
    options.tolerances[quantity.quantity] = *fraction;
    known = true;
  }
  if (name == "ops") {
    options.operator_tolerance = *fraction;
    known = true;
  }
  if (!known) refuse_quantity(name);
}

}  // namespace

void add_tolerances(std::vector<std::string> texts, CompareOptions& options) {
  // Groups first: "time" leaves the tolerance of a time that has its own.
  std::stable_partition(texts.begin(), texts.end(),
                        [](const auto& text) { return name_in(text) == "time"; });
  std::set<std::string_view> names;
  for (const std::string& text : texts) {
    if (!names.insert(name_in(text)).second) {
      refuse_value(kTolerance, fmt::format("{} is given twice", name_in(text)));
    }
    add_tolerance(text, options);
  }
}

}  // namespace headroom::cli
