#include "tolerance.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>
#include <system_error>

namespace headroom::cli {
namespace {

/// "10%" or "0.1".
std::optional<double> share_of(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  double share = 0;
  const auto [rest, failed] = std::from_chars(text.data(), text.data() + text.size(), share);
  const bool whole = failed == std::errc{} && rest == text.data() + text.size();
  if (!whole || !std::isfinite(share) || share < 0) return std::nullopt;
  return percent ? share / 100 : share;
}

/// Whether `name` means this quantity, alone or with others.
bool means(std::string_view name, const QuantityInfo& quantity) {
  return name == quantity.name || (name == "time" && quantity.kind == QuantityKind::time);
}

[[noreturn]] void refuse(std::string_view name) {
  std::string known = "time, ops";
  for (const QuantityInfo& quantity : quantities()) known += fmt::format(", {}", quantity.name);
  throw CLI::ValidationError("--tolerance",
                             fmt::format("there is no quantity \"{}\": take {}", name, known));
}

}  // namespace

void add_tolerance(const std::string& text, CompareOptions& options) {
  const std::string_view whole(text);
  const auto equals = std::min(whole.find('='), whole.size());
  const std::string_view name = whole.substr(0, equals);
  const auto share = share_of(whole.substr(std::min(equals + 1, whole.size())));
  if (!share) {
    throw CLI::ValidationError("--tolerance", fmt::format("{} is not like time=10%", text));
  }
  bool known = false;
  for (const QuantityInfo& quantity : quantities()) {
    if (!means(name, quantity)) continue;
    options.tolerances[quantity.quantity] = *share;
    known = true;
  }
  if (name == "ops") {
    options.operator_tolerance = *share;
    known = true;
  }
  if (!known) refuse(name);
}

}  // namespace headroom::cli
