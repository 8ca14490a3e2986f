// llama-bench: n_gen = 0 is a prompt; n_prompt = 0 is single-token steps; both set is a prompt with
// its generation. Fields vary between versions; avg_ts, n_prompt and n_gen are always present.
#include <cmath>
#include <nlohmann/json.hpp>

#include "formats.h"
#include "headroom/workload.h"
#include "json_fields.h"

namespace headroom::detail {
namespace {

constexpr double kNanosecond = 1e-9;
/// MAD over standard deviation of a normal distribution.
constexpr double kMadPerDeviation = 1 / 1.4826;
/// Disagreement of the total time with the rate, beyond which the file is damaged.
constexpr double kTimeDisagreement = 0.2;

/// "llama 1B F16" is float16; a quantised model has no one element type.
std::optional<std::string> dtype_of(const std::string& model_type) {
  if (model_type.ends_with("BF16")) return "bfloat16";
  if (model_type.ends_with("F16")) return "float16";
  if (model_type.ends_with("F32")) return "float32";
  return std::nullopt;
}

/// Attention that the file states: `flash_attn` is true or 1, or false or 0; -1 leaves it to the
/// device, and older files state none.
std::optional<std::string> attention_of(const nlohmann::json& entry) {
  const auto stated = entry.find("flash_attn");
  if (stated == entry.end()) return std::nullopt;
  if (*stated == true || *stated == 1) return std::string(name_of(AttentionImplementation::fused));
  if (*stated == false || *stated == 0) return std::string(name_of(AttentionImplementation::eager));
  return std::nullopt;
}

/// Tokens of one test.
struct LlamaBenchTest {
  std::int64_t prompt = 0;
  std::int64_t generated = 0;
  std::int64_t depth = 0;  ///< tokens in the KV-cache before the test
};

double seconds_of(const JsonFields& fields, const LlamaBenchTest& test) {
  const double tokens = static_cast<double>(test.prompt + test.generated);
  const double by_rate = tokens / fields.positive("avg_ts");
  if (!fields.has("avg_ns")) return by_rate;
  const double seconds = fields.positive("avg_ns") * kNanosecond;
  if (std::abs(seconds / by_rate - 1) > kTimeDisagreement) {
    fields.fail("\"avg_ns\" and \"avg_ts\" contradict each other");
  }
  return seconds;
}

void add_time(const LlamaBenchTest& test, double seconds, ComparedRun& run) {
  RunIdentity& identity = run.identity;
  identity.past_len = test.depth;
  identity.seq_len = test.prompt;
  run.amounts[Quantity::time_s] = seconds;
  if (test.generated == 0) {
    identity.phase = MeasuredPhase::prefill;
  } else if (test.prompt == 0) {
    // The mean step is a time per output token; the middle step has the mean length.
    identity.phase = MeasuredPhase::decode;
    identity.seq_len = 1;
    identity.past_len = test.depth + test.generated / 2;
    run.amounts[Quantity::time_s] = seconds / static_cast<double>(test.generated);
    run.note += (run.note.empty() ? "" : "; ") +
                std::string("the mean step is compared with the prediction of the middle step");
  } else {
    identity.phase = MeasuredPhase::generate;
    identity.new_tokens = test.generated + 1;
  }
}

}  // namespace

bool is_llama_bench(const nlohmann::json& entry) {
  return entry.contains("avg_ts") && entry.contains("n_prompt") && entry.contains("n_gen");
}

ComparedRun from_llama_bench(const nlohmann::json& entry, const std::string& where) {
  const JsonFields fields(entry, where);
  const LlamaBenchTest test{fields.length("n_prompt"), fields.length("n_gen"),
                            fields.length_if("n_depth").value_or(0)};
  if (test.prompt == 0 && test.generated == 0) {
    fields.fail("tests neither a prompt nor a generation");
  }
  ComparedRun run;
  run.engine = "llama-bench";
  run.kernels = Engine::llama_cpp;
  run.identity.batch_size = 1;
  run.identity.threads = fields.length_if("n_threads");
  run.identity.attention = attention_of(entry);
  if (const auto type = fields.text_if("model_type")) {
    run.identity.dtype = dtype_of(*type);
    run.note = "llama-bench measured " + *type;
  }
  const double seconds = seconds_of(fields, test);
  add_time(test, seconds, run);
  if (const auto deviation = fields.amount_if("stddev_ns")) {
    run.time_spread = *deviation * kNanosecond / seconds * kMadPerDeviation;
  }
  if (const auto parameters = fields.count_if("model_n_params")) {
    run.amounts[Quantity::parameters] = *parameters;
  }
  if (const auto size = fields.count_if("model_size"); size && run.identity.dtype) {
    run.amounts[Quantity::weight_bytes] = *size;
  }
  return run;
}

}  // namespace headroom::detail
