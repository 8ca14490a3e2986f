#include "run_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "schema_version.h"

namespace headroom::detail {
namespace {

MeasuredPhase phase_from(const JsonFields& fields) {
  const std::string word = fields.text("phase");
  for (const MeasuredPhase phase :
       {MeasuredPhase::prefill, MeasuredPhase::decode, MeasuredPhase::generate}) {
    if (word == name_of(phase)) return phase;
  }
  fields.fail(fmt::format("\"phase\" is \"{}\", not prefill, decode or generate", word));
}

}  // namespace

JsonFields versioned_fields(const nlohmann::json& json, const std::string& where) {
  JsonFields document(json, where);
  const Integer version = document.count("schema_version");
  if (version < kOldestReadVersion || version > kSchemaVersion) {
    document.fail(
        fmt::format("\"schema_version\" is not {} to {}", kOldestReadVersion, kSchemaVersion));
  }
  return document;
}

RunIdentity read_identity(const JsonFields& document, const JsonFields& run) {
  RunIdentity identity;
  identity.model = document.object("model").text("name");
  identity.new_tokens = run.length_if("new_tokens");
  identity.phase = phase_from(run);
  // A workload has the phase of the first pass.
  if (identity.new_tokens) identity.phase = MeasuredPhase::generate;
  const JsonFields workload = document.object("workload");
  identity.batch_size = workload.length_if("batch_size");
  identity.seq_len = workload.length_if("seq_len");
  identity.enc_seq_len = workload.length_if("enc_seq_len");
  identity.past_len = workload.length_if("past_len");
  identity.visual_tokens =
      workload.has("images") ? workload.object("images").length("visual_tokens") : 0;
  identity.audio_tokens =
      workload.has("audio") ? workload.object("audio").length("audio_tokens") : 0;
  identity.global_tokens = workload.has("global_tokens") ? workload.length("global_tokens") : 0;
  identity.weights = workload.text_if("weights");
  identity.dtype = workload.text_if("dtype");
  identity.attention = workload.text_if("attention");
  identity.logits = workload.text_if("logits");
  return identity;
}

void store_count(const JsonFields& fields, const char* key, Quantity quantity, ComparedRun& run) {
  if (const auto count = fields.count_if(key)) run.amounts[quantity] = *count;
}

void store_time(const JsonFields& fields, const char* key, Quantity quantity, ComparedRun& run) {
  if (const auto seconds = fields.positive_if(key)) run.amounts[quantity] = *seconds;
}

void read_operators(const JsonFields& holder, ComparedRun& run) {
  const nlohmann::json& list = holder.at("ops");
  if (!list.is_array()) holder.fail("\"ops\" is not a list");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonFields one(list[i], fmt::format("{}/ops/{}", holder.where(), i));
    const nlohmann::json& seconds = one.at("time_s");
    if (!seconds.is_number() || !(seconds.get<double>() >= 0)) {
      one.fail("\"time_s\" is not a time");
    }
    run.operator_times.emplace_back(one.text("path"), seconds.get<double>());
  }
}

double sum_of_operator_times(const ComparedRun& run) {
  double sum = 0;
  for (const auto& [path, seconds] : run.operator_times) sum += seconds;
  return sum;
}

void require_equal(const JsonFields& fields, const char* key, double expected, double scale) {
  const nlohmann::json& value = fields.at(key);
  if (!value.is_number()) fields.fail(fmt::format("\"{}\" is not a number", key));
  constexpr double kRounding = 1e-6;
  if (std::abs(value.get<double>() - expected) <= kRounding * scale) return;
  fields.fail(fmt::format("\"{}\" is {}, but the other figures give {}", key, value.get<double>(),
                          expected));
}

void require_counts(const JsonFields& fields, std::initializer_list<const char*> keys) {
  for (const char* key : keys) (void)fields.count(key);
}

void require_identity(const JsonFields& document, const RunIdentity& identity) {
  const JsonFields workload = document.object("workload");
  require_counts(workload, {"batch_size", "seq_len", "past_len"});
  (void)workload.text("dtype");
  (void)workload.text("attention");
  const bool generates = identity.phase == MeasuredPhase::generate;
  if (generates && !identity.new_tokens) document.fail("\"new_tokens\" is missing");
}

void require_token_times(const JsonFields& fields, const RunIdentity& identity) {
  if (identity.phase != MeasuredPhase::generate) return;
  (void)fields.positive("ttft_s");
  if (identity.new_tokens.value_or(1) > 1) (void)fields.positive("tpot_s");
}

}  // namespace headroom::detail
