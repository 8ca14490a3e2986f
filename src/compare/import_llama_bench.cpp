// llama-bench: n_gen = 0 is a prompt, n_prompt = 0 are steps of one token, both are one after the
// other. Fields come and go between versions; avg_ts, n_prompt and n_gen are always there.
#include <algorithm>

#include "import.h"
#include "json_fields.h"

namespace headroom::detail {
namespace {

constexpr double kNanoseconds = 1e-9;

/// The element type that the tool calls f16, bf16 or f32; none for what is quantised.
std::optional<std::string> dtype_of(const std::string& model_type) {
  if (model_type.ends_with("BF16")) return "bfloat16";
  if (model_type.ends_with("F16")) return "float16";
  if (model_type.ends_with("F32")) return "float32";
  return std::nullopt;
}

}  // namespace

bool is_llama_bench(const nlohmann::json& entry) {
  return entry.contains("avg_ts") && entry.contains("n_prompt") && entry.contains("n_gen");
}

Figured from_llama_bench(const nlohmann::json& entry, const std::string& where) {
  const JsonFields fields(entry, where);
  const auto prompt = fields.length("n_prompt");
  const auto generated = fields.length("n_gen");
  const auto depth = fields.length_if("n_depth").value_or(0);
  if (prompt == 0 && generated == 0) fields.fail("tests neither a prompt nor a generation");
  const double tokens_per_s = fields.positive("avg_ts");
  Figured figured;
  figured.engine = "llama-bench";
  RunIdentity& identity = figured.identity;
  identity.batch_size = 1;
  identity.threads = fields.length_if("n_threads");
  if (const auto type = fields.text_if("model_type")) {
    identity.dtype = dtype_of(*type);
    figured.note = "llama-bench measured " + *type;
  }
  const double whole = static_cast<double>(prompt + generated) / tokens_per_s;
  const double seconds = fields.has("avg_ns") ? fields.positive("avg_ns") * kNanoseconds : whole;
  if (std::abs(seconds / whole - 1) > 0.2) fields.fail("\"avg_ns\" and \"avg_ts\" contradict");
  if (generated == 0) {
    identity.phase = MeasuredPhase::prefill;
    identity.seq_len = prompt;
    identity.past_len = depth;
    figured.amounts[Quantity::time_s] = seconds;
  } else if (prompt == 0) {
    // Steps after the first token, so that their mean is the time per output token. The middle
    // one stands for all.
    identity.phase = MeasuredPhase::decode;
    identity.seq_len = 1;
    identity.past_len = depth + generated / 2;
    figured.amounts[Quantity::time_s] = seconds / static_cast<double>(generated);
    figured.note +=
        (figured.note.empty() ? "" : "; ") +
        std::string("its time of a step is the mean over all, held against the middle one");
  } else {
    identity.phase = MeasuredPhase::generate;
    identity.seq_len = prompt;
    identity.past_len = depth;
    identity.new_tokens = generated + 1;
    figured.amounts[Quantity::time_s] = seconds;
  }
  if (const auto spread = fields.has("stddev_ns") && fields.at("stddev_ns").is_number()
                              ? std::optional(fields.at("stddev_ns").get<double>())
                              : std::nullopt) {
    constexpr double kMadOfDeviation = 1 / 1.4826;  // for a normal spread
    figured.time_spread = *spread * kNanoseconds / seconds * kMadOfDeviation;
  }
  if (const auto parameters = fields.count_if("model_n_params")) {
    figured.amounts[Quantity::parameters] = *parameters;
  }
  if (const auto size = fields.count_if("model_size"); size && identity.dtype) {
    figured.amounts[Quantity::weight_bytes] = *size;
  }
  return figured;
}

}  // namespace headroom::detail
