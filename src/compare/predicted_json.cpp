// A prediction from the JSON that `analyze --machine` writes.
#include <fmt/format.h>

#include "figured_json.h"
#include "json_text.h"

namespace headroom {
namespace {

using detail::JsonFields;

bool is_assumed(const JsonFields& time) {
  const std::string basis = time.text("basis");
  if (basis == name_of(TimeBasis::assumed)) return true;
  if (basis == name_of(TimeBasis::modelled)) return false;
  time.fail(fmt::format("there is no basis \"{}\"", basis));
}

void read_run(const JsonFields& run, Figured& figured) {
  detail::require_counts(run,
                         {"parameters", "matrix_flops", "weight_bytes", "peak_activation_bytes"});
  detail::store_count(run, "parameters", Quantity::parameters, figured);
  detail::store_count(run, "matrix_flops", Quantity::matrix_flops, figured);
  detail::store_count(run, "weight_bytes", Quantity::weight_bytes, figured);
  detail::store_count(run, "kv_cache_bytes", Quantity::kv_cache_bytes, figured);
  detail::store_count(run, "peak_activation_bytes", Quantity::peak_activation_bytes, figured);
  figured.rss_growth_bytes = run.count("rss_growth_bytes");
}

void read_predicted_time(const JsonFields& time, Figured& figured) {
  detail::require_token_times(time, figured.identity);
  detail::store_time(time, "total_s", Quantity::time_s, figured);
  detail::store_time(time, "ttft_s", Quantity::ttft_s, figured);
  detail::store_time(time, "tpot_s", Quantity::tpot_s, figured);
  figured.time_low_s = time.positive_if("low_s");
  figured.time_high_s = time.positive_if("high_s");
  figured.identity.threads = time.length_if("threads");
  figured.time_is_assumed = is_assumed(time);
  detail::read_operators(time, figured);
  const double sum = detail::sum_of_times(figured);
  detail::require_equal(time, "total_s", sum, sum);
}

}  // namespace

Figured predicted_from_json(std::string_view text, const std::string& where) {
  const nlohmann::json json = detail::parse_json(text, where);
  const JsonFields document = detail::versioned_fields(json, where);
  if (document.has("engine")) document.fail("is a measurement, but the first file is a prediction");
  if (!document.has("run") || !document.has("time")) {
    document.fail(
        "predicts no run: write it with `headroom analyze MODEL --machine here --format json`");
  }
  const JsonFields run = document.object("run");
  Figured figured;
  figured.identity = detail::read_identity(document, run);
  detail::require_identity(document, figured.identity);
  read_run(run, figured);
  read_predicted_time(document.object("time"), figured);
  return figured;
}

}  // namespace headroom
