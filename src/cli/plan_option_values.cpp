#include "plan_option_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "command_line.h"
#include "number_text.h"
#include "options.h"

namespace headroom::cli {
namespace {

/// Bytes of a unit; empty if it is unknown.
std::optional<double> bytes_of_unit(std::string_view unit) {
  static const Choices<double> units{{"", 1},
                                     {"B", 1},
                                     {"kB", 1e3},
                                     {"MB", 1e6},
                                     {"GB", 1e9},
                                     {"TB", 1e12},
                                     {"KiB", 1024.0},
                                     {"MiB", 1048576.0},
                                     {"GiB", 1073741824.0},
                                     {"TiB", 1099511627776.0}};
  const auto found = std::ranges::find(units, unit, &std::pair<std::string, double>::first);
  return found == units.end() ? std::nullopt : std::optional(found->second);
}

/// Seconds of a unit; empty if it is unknown. A number without a unit could mean any.
std::optional<double> seconds_of_unit(std::string_view unit) {
  static const Choices<double> units{
      {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}};
  const auto found = std::ranges::find(units, unit, &std::pair<std::string, double>::first);
  return found == units.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

double parse_seconds(const std::string& names, const std::string& text) {
  constexpr double kLongest = 1e6;
  std::string_view rest(text);
  const auto number = detail::take_decimal(rest);
  const auto unit = seconds_of_unit(rest);
  if (!number || !unit || *number <= 0 || *number * *unit > kLongest) {
    refuse_value(names, fmt::format("takes a time such as 500ms or 2s, not \"{}\"", text));
  }
  return *number * *unit;
}

double parse_positive(const std::string& names, const std::string& text, double most) {
  std::string_view rest(text);
  const auto number = detail::take_decimal(rest);
  if (!number || !rest.empty() || *number <= 0 || *number > most) {
    refuse_value(names, fmt::format("takes a number above 0, at most {}, not \"{}\"", most, text));
  }
  return *number;
}

Integer parse_bytes(const std::string& names, const std::string& text) {
  constexpr double kMostBytes = 1e18;
  constexpr double kLeastPlainBytes = 1e6;  // a smaller number without a unit forgot it
  std::string_view rest(text);
  const auto number = detail::take_decimal(rest);
  const auto unit = bytes_of_unit(rest);
  if (!number || !unit || *number < 0 || *number * *unit >= kMostBytes) {
    refuse_value(names, fmt::format("takes bytes such as 80GB or 79.1GiB, not \"{}\"", text));
  }
  if (rest.empty() && *number > 0 && *number < kLeastPlainBytes) {
    refuse_value(names, fmt::format("{} is {} bytes: write {}GB or {}GiB", text, text, text, text));
  }
  return static_cast<Integer>(std::llround(*number * *unit));
}

Integer parse_positive_bytes(const std::string& names, const std::string& text) {
  const Integer bytes = parse_bytes(names, text);
  if (bytes == 0) refuse_value(names, fmt::format("must be above 0, not \"{}\"", text));
  return bytes;
}

Recomputation parse_recomputation(const std::string& names, const std::string& word) {
  for (const auto& [name, kind] : recompute_choices()) {
    if (word == name) return {kind, 1};
  }
  constexpr std::string_view kEvery = "every=";
  constexpr std::int64_t kMostLayers = std::int64_t{1} << 40U;
  if (word.starts_with(kEvery)) {
    const auto layers = detail::integer_of(std::string_view(word).substr(kEvery.size()));
    if (layers && *layers >= 1 && *layers <= kMostLayers) return {Recompute::full, *layers};
  }
  if (const auto modules = recompute_modules(word)) return {Recompute::selective, 1, *modules};
  refuse_value(names, fmt::format("takes none, selective, full, every=K, or modules of core_attn, "
                                  "layernorm, mla_up_proj, mlp, moe, moe_act and shared_experts, "
                                  "not \"{}\"",
                                  word));
}

namespace {

/// No word means on.
bool is_on(const std::string& names, const std::string& word) {
  if (word == "off" || word == "0" || word == "false") return false;
  if (word.empty() || word == "on" || word == "1" || word == "true") return true;
  refuse_value(names, fmt::format("takes on or off, not \"{}\"", word));
}

}  // namespace

SequenceParallel parse_sequence_parallel(const std::string& names, const std::string& word) {
  return is_on(names, word) ? SequenceParallel::on : SequenceParallel::off;
}

BatchOverlap parse_batch_overlap(const std::string& names, const std::string& word) {
  return is_on(names, word) ? BatchOverlap::two_batches : BatchOverlap::none;
}

TensorOverlap parse_tensor_overlap(const std::string& names, const std::string& word) {
  return is_on(names, word) ? TensorOverlap::on : TensorOverlap::off;
}

double parse_imbalance(const std::string& names, const std::string& text) {
  constexpr double kMost = 1e6;
  std::string_view rest(text);
  const auto number = detail::take_decimal(rest);
  if (!number || !rest.empty() || *number < 1 || *number > kMost) {
    refuse_value(names, fmt::format("must be from 1 to {}, not \"{}\"", kMost, text));
  }
  return *number;
}

double parse_efficiency(const std::string& names, const std::string& text) {
  constexpr double kLeast = 0.001;
  std::string_view rest(text);
  const auto number = detail::take_decimal(rest);
  if (!number || !rest.empty() || *number < kLeast || *number > 1) {
    refuse_value(names, fmt::format("must be from {} to 1, not \"{}\"", kLeast, text));
  }
  return *number;
}

}  // namespace headroom::cli
