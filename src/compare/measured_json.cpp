// A measurement from the JSON that `measure` writes, or that was written by hand for another
// engine.
#include <fmt/format.h>

#include "figured_json.h"
#include "json_text.h"

namespace headroom {
namespace {

using detail::JsonFields;

TimeStatistics statistics_of(const JsonFields& time) {
  const nlohmann::json& samples = time.at("samples_s");
  if (!samples.is_array() || samples.empty()) time.fail("\"samples_s\" holds no run");
  std::vector<double> values;
  for (const nlohmann::json& sample : samples) {
    const bool good = sample.is_number() && std::isfinite(sample.get<double>()) && sample > 0;
    if (!good) time.fail("\"samples_s\" has what is no time above zero");
    values.push_back(sample.get<double>());
  }
  return summarize(std::move(values));
}

/// The median of a run's times and their spread, which have to be what the samples make them.
void read_measured_time(const JsonFields& time, Figured& figured) {
  const TimeStatistics statistics = statistics_of(time);
  const double median = statistics.median_s;
  detail::require_equal(time, "median_s", median, median);
  const std::pair<const char*, double> others[] = {
      {"mad_s", statistics.mad_s}, {"min_s", statistics.min_s}, {"max_s", statistics.max_s}};
  for (const auto& [key, expected] : others) {
    if (time.has(key)) detail::require_equal(time, key, expected, median);
  }
  figured.amounts[Quantity::time_s] = median;
  figured.time_spread = statistics.mad_s / median;
}

/// headroom's own file has everything, and its operators add up to the whole. What is missing was
/// cut, and would pass for what nobody measured.
void require_whole(const JsonFields& document, const Figured& figured) {
  if (figured.operator_times.empty()) document.fail("has no operators: it was cut");
  detail::require_token_times(document, figured.identity);
  detail::require_identity(document, figured.identity);
  const JsonFields counted = document.object("counted");
  detail::require_counts(counted, {"parameters", "weight_bytes", "kv_cache_bytes"});
  detail::require_counts(document.object("memory"),
                         {"arena_peak_bytes", "rss_before_bytes", "rss_peak_bytes"});
  detail::require_counts(document.object("context"), {"threads"});
  Integer flops = 0;
  for (std::size_t i = 0; i < figured.operator_times.size(); ++i) {
    const JsonFields one(document.at("ops")[i], fmt::format("{}/ops/{}", document.where(), i));
    flops = checked_add(flops, one.count("matrix_flops"));
  }
  if (flops != counted.count("matrix_flops")) {
    counted.fail("\"matrix_flops\" is not the sum of the operators'");
  }
  const JsonFields time = document.object("time");
  (void)time.at("mad_s");
  const double longest = time.positive("max_s");
  constexpr double kRounding = 1e-6;
  if (detail::sum_of_times(figured) > longest * (1 + kRounding)) {
    document.fail("its operators take longer than its longest run");
  }
}

}  // namespace

Figured measured_from_json(std::string_view text, const std::string& where) {
  const nlohmann::json json = detail::parse_json(text, where);
  const JsonFields document = detail::versioned_fields(json, where);
  if (document.has("formulas")) {
    document.fail("is a prediction, but the second file is a measurement");
  }
  Figured figured;
  figured.engine = document.text("engine");
  figured.identity = detail::read_identity(document, document);
  figured.identity.threads = document.object("context").length_if("threads");
  read_measured_time(document.object("time"), figured);
  detail::store_time(document, "ttft_s", Quantity::ttft_s, figured);
  detail::store_time(document, "tpot_s", Quantity::tpot_s, figured);
  const JsonFields counted = document.object("counted");
  detail::store_count(counted, "parameters", Quantity::parameters, figured);
  detail::store_count(counted, "matrix_flops", Quantity::matrix_flops, figured);
  detail::store_count(counted, "weight_bytes", Quantity::weight_bytes, figured);
  // No bytes are no cache.
  if (counted.count_if("kv_cache_bytes").value_or(0) > 0) {
    detail::store_count(counted, "kv_cache_bytes", Quantity::kv_cache_bytes, figured);
  }
  const JsonFields memory = document.object("memory");
  detail::store_count(memory, "arena_peak_bytes", Quantity::peak_activation_bytes, figured);
  detail::store_count(memory, "rss_peak_bytes", Quantity::rss_peak_bytes, figured);
  figured.rss_before_bytes = memory.count_if("rss_before_bytes");
  detail::read_operators(document, figured);
  if (figured.engine == kOwnEngine) require_whole(document, figured);
  return figured;
}

}  // namespace headroom
