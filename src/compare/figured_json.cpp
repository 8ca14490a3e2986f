// Both sides from the JSON that `analyze --machine` and `measure` write.
#include <fmt/format.h>

#include "headroom/compare.h"
#include "json_fields.h"
#include "json_text.h"

namespace headroom {
namespace {

using detail::JsonFields;

MeasuredPhase phase_from(const JsonFields& fields) {
  const std::string word = fields.text("phase");
  for (const MeasuredPhase phase :
       {MeasuredPhase::prefill, MeasuredPhase::decode, MeasuredPhase::generate}) {
    if (word == name_of(phase)) return phase;
  }
  fields.fail(fmt::format("there is no phase \"{}\"", word));
}

RunIdentity identity_from(const JsonFields& document, MeasuredPhase phase) {
  RunIdentity identity;
  identity.model = document.object("model").text("name");
  identity.phase = phase;
  const JsonFields workload = document.object("workload");
  identity.batch_size = workload.length_if("batch_size");
  identity.seq_len = workload.length_if("seq_len");
  identity.enc_seq_len = workload.length_if("enc_seq_len");
  identity.past_len = workload.length_if("past_len");
  identity.dtype = workload.text_if("dtype");
  identity.attention = workload.text_if("attention");
  return identity;
}

void store(Figured& figured, Quantity quantity, const std::optional<Integer>& count) {
  if (count) figured.amounts[quantity] = *count;
}

void store(Figured& figured, Quantity quantity, const std::optional<double>& seconds) {
  if (seconds) figured.amounts[quantity] = *seconds;
}

void read_operators(const JsonFields& holder, Figured& figured) {
  const nlohmann::json& list = holder.at("ops");
  if (!list.is_array()) holder.fail("\"ops\" is no list");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonFields one(list[i], fmt::format("{}/ops/{}", holder.where(), i));
    const nlohmann::json& seconds = one.at("time_s");
    if (!seconds.is_number() || !(seconds.get<double>() >= 0)) {
      one.fail("\"time_s\" is not a time");
    }
    figured.operator_times.emplace_back(one.text("path"), seconds.get<double>());
  }
}

JsonFields versioned(const nlohmann::json& json, const std::string& where) {
  JsonFields document(json, where);
  if (document.count("schema_version") != kSchemaVersion) {
    document.fail(fmt::format("\"schema_version\" is not {}", kSchemaVersion));
  }
  return document;
}

double median_of(const JsonFields& time) {
  const nlohmann::json& samples = time.at("samples_s");
  if (!samples.is_array() || samples.empty()) time.fail("\"samples_s\" holds no run");
  std::vector<double> values;
  for (const nlohmann::json& sample : samples) {
    const bool good = sample.is_number() && std::isfinite(sample.get<double>()) && sample > 0;
    if (!good) time.fail("\"samples_s\" has what is no time above zero");
    values.push_back(sample.get<double>());
  }
  const double median = time.positive("median_s");
  const double counted = summarize(values).median_s;
  if (std::abs(median - counted) > 1e-6 * counted) {
    time.fail(
        fmt::format("\"median_s\" is {}, but the median of its samples is {}", median, counted));
  }
  return median;
}

}  // namespace

Figured predicted_from_json(std::string_view text, const std::string& where) {
  const nlohmann::json json = detail::parse_json(text, where);
  const JsonFields document = versioned(json, where);
  if (document.has("engine")) document.fail("is a measurement, but the first file is a prediction");
  if (!document.has("run") || !document.has("time")) {
    document.fail(
        "predicts no run: write it with `headroom analyze MODEL --machine here --format "
        "json`");
  }
  const JsonFields run = document.object("run");
  Figured figured;
  figured.identity = identity_from(document, phase_from(run));
  figured.identity.new_tokens = run.length_if("new_tokens");
  store(figured, Quantity::parameters, std::optional(run.count("parameters")));
  store(figured, Quantity::matrix_flops, std::optional(run.count("matrix_flops")));
  store(figured, Quantity::weight_bytes, std::optional(run.count("weight_bytes")));
  store(figured, Quantity::kv_cache_bytes, run.count_if("kv_cache_bytes"));
  store(figured, Quantity::peak_activation_bytes,
        std::optional(run.count("peak_activation_bytes")));
  figured.rss_growth_bytes = run.count("rss_growth_bytes");
  const JsonFields time = document.object("time");
  store(figured, Quantity::time_s, std::optional(time.positive("total_s")));
  store(figured, Quantity::ttft_s, time.positive_if("ttft_s"));
  store(figured, Quantity::tpot_s, time.positive_if("tpot_s"));
  figured.time_low_s = time.positive_if("low_s");
  figured.time_high_s = time.positive_if("high_s");
  figured.identity.threads = time.length_if("threads");
  figured.time_is_assumed = time.text("basis") == name_of(TimeBasis::assumed);
  read_operators(time, figured);
  return figured;
}

Figured measured_from_json(std::string_view text, const std::string& where) {
  const nlohmann::json json = detail::parse_json(text, where);
  const JsonFields document = versioned(json, where);
  if (document.has("formulas"))
    document.fail("is a prediction, but the second file is a measurement");
  Figured figured;
  figured.engine = document.text("engine");
  figured.identity = identity_from(document, phase_from(document));
  figured.identity.new_tokens = document.length_if("new_tokens");
  const JsonFields time = document.object("time");
  const double median = median_of(time);
  store(figured, Quantity::time_s, std::optional(median));
  if (const auto spread = time.positive_if("mad_s")) figured.time_spread = *spread / median;
  store(figured, Quantity::ttft_s, document.positive_if("ttft_s"));
  store(figured, Quantity::tpot_s, document.positive_if("tpot_s"));
  const JsonFields counted = document.object("counted");
  store(figured, Quantity::parameters, counted.count_if("parameters"));
  store(figured, Quantity::matrix_flops, counted.count_if("matrix_flops"));
  store(figured, Quantity::weight_bytes, counted.count_if("weight_bytes"));
  const auto cache = counted.count_if("kv_cache_bytes");
  if (cache && *cache > 0) store(figured, Quantity::kv_cache_bytes, cache);
  const JsonFields memory = document.object("memory");
  store(figured, Quantity::peak_activation_bytes, memory.count_if("arena_peak_bytes"));
  store(figured, Quantity::rss_peak_bytes, memory.count_if("rss_peak_bytes"));
  figured.rss_before_bytes = memory.count_if("rss_before_bytes");
  figured.identity.threads = document.object("context").length_if("threads");
  if (figured.engine == "headroom" && document.at("ops").empty()) {
    document.fail("has no operators: it was cut");
  }
  read_operators(document, figured);
  return figured;
}

}  // namespace headroom
