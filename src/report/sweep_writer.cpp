#include <fmt/format.h>

#include <limits>

#include "default_settings.h"
#include "headroom/report.h"
#include "headroom/storage.h"
#include "invocation_json.h"
#include "schema_version.h"

namespace headroom {
namespace {

/// Columns in order. A figure that does not apply is empty in CSV and null in JSON.
constexpr std::string_view kSweepHeader =
    "phase,attention,recompute,kernels,weights,dtype,arithmetic,kv_key_dtype,kv_value_dtype,"
    "enc_seq_len,past_len,seq_len,batch_size,"
    "weight_bytes,matrix_flops,elementwise_flops,backward_matrix_flops,traffic_bytes,"
    "activation_bytes,kv_cache_bytes,time_s,time_low_s,time_high_s,images,image_height,image_width,"
    "audio,audio_seconds,recompute_matrix_flops\n";

void append_value(std::string& text, Integer value) {
  const bool fits = value >= 0 && value <= std::numeric_limits<std::int64_t>::max();
  if (fits) {
    const fmt::format_int digits(static_cast<std::int64_t>(value));
    text.append(digits.data(), digits.size());
  } else {
    text += to_string(value);
  }
}

void append_value(std::string& text, double value) {
  fmt::format_to(std::back_inserter(text), "{}", value);
}

}  // namespace

SweepWriter::SweepWriter(SweepFormat format, const ModelSpec& spec, Invocation invocation)
    : format_(format),
      has_encoder_(spec.reads_two_sequences()),
      has_cache_(spec.main_stack().causal()),
      has_tower_(spec.tower.has_value()),
      has_audio_tower_(spec.audio_tower.has_value()),
      invocation_(std::move(invocation)) {}

std::string SweepWriter::header() const {
  return format_ == SweepFormat::csv ? std::string(kSweepHeader) : std::string();
}

void SweepWriter::append_word(std::string& text, const char* key,
                              std::optional<std::string_view> value) const {
  if (format_ == SweepFormat::json_lines) {
    text += text.ends_with('{') ? "\"" : ",\"";
    text += key;
    text += value ? "\":\"" : "\":null";
    text += value.value_or("");
    if (value) text += '"';
  } else {
    if (!text.empty()) text += ',';
    text += value.value_or("");
  }
}

template <class Value>
void SweepWriter::append_number(std::string& text, const char* key, bool applies,
                                Value value) const {
  text += ',';
  if (format_ == SweepFormat::json_lines) {
    text += '"';
    text += key;
    text += "\":";
    if (!applies) text += "null";
  }
  if (applies) append_value(text, value);
}

/// The batch changes fastest: everything before it is written once.
void SweepWriter::start_prefix(const SweepRow& row) {
  const Workload& workload = row.workload;
  const bool cached = has_cache_ && workload.phase != Phase::train;
  const auto type_name = [&](KvType type) {
    return cached ? std::optional(info(type).name) : std::nullopt;
  };
  last_ = row;
  prefix_ = format_ == SweepFormat::json_lines ? "{" : "";
  append_word(prefix_, "phase", name_of(workload.phase));
  append_word(prefix_, "attention", name_of(workload.attention));
  append_word(prefix_, "recompute", name_of(workload.recompute));
  append_word(prefix_, "kernels", name_of(workload.kernels));
  append_word(prefix_, "weights", name_of(workload.weights));
  append_word(prefix_, "dtype", name_of(workload.dtype));
  append_word(prefix_, "arithmetic", name_of(workload.arithmetic_type()));
  append_word(prefix_, "kv_key_dtype", type_name(row.key_type));
  append_word(prefix_, "kv_value_dtype", type_name(row.value_type));
  append_number(prefix_, "enc_seq_len", has_encoder_, Integer{workload.enc_seq_len});
  append_number(prefix_, "past_len", cached, Integer{workload.past_len});
  append_number(prefix_, "seq_len", true, Integer{workload.seq_len});
}

bool SweepWriter::has_prefix_of(const SweepRow& row) const {
  const Workload& workload = row.workload;
  const Workload& last = last_.workload;
  return !prefix_.empty() && workload.seq_len == last.seq_len &&
         workload.past_len == last.past_len && workload.enc_seq_len == last.enc_seq_len &&
         workload.weights == last.weights && workload.dtype == last.dtype &&
         workload.arithmetic == last.arithmetic && row.key_type == last_.key_type &&
         row.value_type == last_.value_type && workload.attention == last.attention &&
         workload.recompute == last.recompute && workload.phase == last.phase;
}

void SweepWriter::append_figures(const SweepRow& row, std::string& text) {
  if (!has_prefix_of(row)) start_prefix(row);
  const bool training = row.workload.phase == Phase::train;
  text += prefix_;
  append_number(text, "batch_size", true, Integer{row.workload.batch_size});
  append_number(text, "weight_bytes", true, row.weight_bytes);
  append_number(text, "matrix_flops", true, row.matrix_flops);
  append_number(text, "elementwise_flops", true, row.elementwise_flops);
  append_number(text, "backward_matrix_flops", training, row.backward_matrix_flops);
  append_number(text, "traffic_bytes", true, row.traffic_bytes);
  append_number(text, "activation_bytes", true, row.activation_bytes);
  append_number(text, "kv_cache_bytes", has_cache_ && !training, row.kv_cache_bytes);
  append_number(text, "time_s", row.time_s.has_value(), row.time_s.value_or(0));
  append_number(text, "time_low_s", row.time_low_s.has_value(), row.time_low_s.value_or(0));
  append_number(text, "time_high_s", row.time_high_s.has_value(), row.time_high_s.value_or(0));
  const WorkloadImages& images = row.workload.images;
  append_number(text, "images", has_tower_, Integer{images.count});
  append_number(text, "image_height", images.count > 0, Integer{images.size.height});
  append_number(text, "image_width", images.count > 0, Integer{images.size.width});
  const WorkloadAudio& audio = row.workload.audio;
  append_number(text, "audio", has_audio_tower_, Integer{audio.count});
  append_number(text, "audio_seconds", audio.count > 0, Integer{audio.seconds});
  append_number(text, "recompute_matrix_flops", training, row.recompute_matrix_flops);
}

void SweepWriter::append_row(const SweepRow& row, std::string& text) {
  append_figures(row, text);
  if (is_first_ && !invocation_.arguments.empty()) append_origin(row.workload, text);
  is_first_ = false;
  text += format_ == SweepFormat::json_lines ? "}\n" : "\n";
}

/// Further keys of the first line, so that every line stays a row.
void SweepWriter::append_origin(const Workload& workload, std::string& text) {
  const detail::Json report{{"workload",
                             {{"phase", name_of(workload.phase)},
                              {"batch_size", workload.batch_size},
                              {"seq_len", workload.seq_len},
                              {"past_len", workload.past_len},
                              {"dtype", name_of(workload.dtype)},
                              {"attention", name_of(workload.attention)},
                              {"recompute", name_of(workload.recompute)},
                              {"kernels", name_of(workload.kernels)}}}};
  defaults_ = detail::describe_defaults(report, invocation_);
  if (format_ != SweepFormat::json_lines) return;
  const detail::Json origin =
      detail::to_json(invocation_, detail::defaults_of(report, invocation_));
  text += fmt::format(",\"schema_version\":{},\"schema\":\"sweep.schema.json\",\"produced_by\":{}",
                      kSchemaVersion, origin.dump());
}

}  // namespace headroom
