#include "options.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>
#include <utility>

#include "similar.h"

namespace headroom::cli {
namespace {

/// "--format" of "--format,-f".
std::string first_spelling(const std::string& names) { return names.substr(0, names.find(',')); }

Choices<DType> dtype_choices() {
  return {{"float32", DType::float32}, {"fp32", DType::float32},      {"f32", DType::float32},
          {"float16", DType::float16}, {"fp16", DType::float16},      {"f16", DType::float16},
          {"half", DType::float16},    {"bfloat16", DType::bfloat16}, {"bf16", DType::bfloat16},
          {"float8", DType::float8},   {"fp8", DType::float8},        {"int8", DType::int8}};
}

}  // namespace

CLI::Option* add_count(CLI::App& app, const std::string& name,
                       std::function<void(std::int64_t)> set, const std::string& description) {
  const auto parse = [name, set = std::move(set)](const std::string& word) {
    std::int64_t value = 0;
    const char* const end = word.data() + word.size();
    const auto [rest, failed] = std::from_chars(word.data(), end, value);
    if (failed != std::errc{} || rest != end) {
      throw CLI::ValidationError(first_spelling(name),
                                 "takes a whole number of 64 bits, not \"" + word + "\"");
    }
    set(value);
  };
  return app.add_option_function<std::string>(name, parse, description)->type_name("N");
}

CLI::Option* add_count(CLI::App& app, const std::string& name, CountRange range,
                       std::function<void(std::int64_t)> set, const std::string& description) {
  const auto set_within = [name, range, set = std::move(set)](std::int64_t value) {
    if (value < range.least || value > range.most) {
      throw CLI::ValidationError(first_spelling(name), fmt::format("takes {} to {}, not {}",
                                                                   range.least, range.most, value));
    }
    set(value);
  };
  return add_count(app, name, set_within, description);
}

void refuse_choice(const std::string& option, const std::string& word,
                   const std::vector<std::string>& known) {
  const std::string guess = detail::did_you_mean(word, known);
  throw CLI::ValidationError(first_spelling(option), "does not know \"" + word + "\"" +
                                                         (guess.empty() ? "" : "; " + guess));
}

void add_output_options(CLI::App& app, OutputOptions& options) {
  add_choice<Format>(app, "--format,-f", options.format,
                     {{"table", Format::table},
                      {"json", Format::json},
                      {"csv", Format::csv},
                      {"markdown", Format::markdown},
                      {"md", Format::markdown}},
                     "How the report is written (table)");
  app.add_option("--output,-o", options.file, "Write to a file, whole or not at all")
      ->type_name("FILE");
  app.add_flag("--quiet,-q", options.quiet, "No notes on standard error");
}

void add_inference_options(CLI::App& app, WorkloadRequest& request) {
  const auto group = [](CLI::Option* option) { option->group("Workload"); };
  const auto count = [&](const char* name, auto& target, const char* description) {
    group(add_count(
        app, name, [&target](std::int64_t value) { target = value; }, description));
  };
  count("--batch,-b", request.batch_size, "Sequences at once (1)");
  count("--seq,-s", request.seq_len,
        "New tokens of each sequence (128; 1 in decode; an image's own)");
  count("--enc-seq", request.enc_seq_len, "Tokens that an encoder-decoder's encoder reads (128)");
  count("--past,-p", request.past_len, "Tokens already in the KV-cache (0; 127 in decode)");
  group(add_choice<DType>(app, "--dtype", request.dtype, dtype_choices(),
                          "Type of weights and activations (float32)"));
  group(add_choice<AttentionImplementation>(
      app, "--attention", request.attention,
      {{"eager", AttentionImplementation::eager}, {"fused", AttentionImplementation::fused}},
      "How attention is computed (eager)"));
}

namespace {

void add_phase_and_training(CLI::App& app, WorkloadRequest& request) {
  const auto group = [](CLI::Option* option) { option->group("Workload"); };
  group(add_choice<Phase>(
      app, "--phase", request.phase,
      {{"prefill", Phase::prefill}, {"decode", Phase::decode}, {"train", Phase::train}},
      "What the model does (prefill)"));
  add_inference_options(app, request);
  group(add_choice<LatentAttention>(
      app, "--latent", request.latent,
      {{"absorbed", LatentAttention::absorbed}, {"naive", LatentAttention::naive}},
      "How multi-head latent attention decodes: in the latent space, or with expanded keys and "
      "values in the KV-cache, as the reference code does (absorbed)"));
  group(add_choice<Recompute>(
      app, "--recompute", request.recompute,
      {{"none", Recompute::none}, {"selective", Recompute::selective}, {"full", Recompute::full}},
      "What training computes again instead of keeping (none)"));
  group(add_choice<Kernels>(app, "--kernels", request.kernels,
                            {{"reference", Kernels::reference}, {"fused", Kernels::fused}},
                            "Kernels of a training step: of the reference code, or one an operator "
                            "(reference)"));
}

/// Every spelling of a DType, and the types that only a KV-cache has.
Choices<KvType> kv_type_choices() {
  Choices<KvType> choices;
  for (const auto& [word, dtype] : dtype_choices()) choices.emplace_back(word, kv_type(dtype));
  for (const KvTypeInfo& type : kv_types()) {
    const bool is_new = type.counted_as == DType::int8 && type.type != KvType::int8;
    if (is_new) choices.emplace_back(type.name, type.type);
  }
  return choices;
}

Choices<KvPolicy> kv_policy_choices() {
  Choices<KvPolicy> choices;
  for (const KvPolicyInfo& policy : kv_policies()) choices.emplace_back(policy.name, policy.policy);
  return choices;
}

}  // namespace

void add_workload_options(CLI::App& app, WorkloadRequest& request) {
  add_phase_and_training(app, request);
  add_choice<DType>(app, "--kv-dtype", request.kv_dtype, dtype_choices(),
                    "Type of the KV-cache (as --dtype)")
      ->group("Workload");
}

void add_workload_options(CLI::App& app, WorkloadRequest& request, KvCacheRequest& kv_cache) {
  const auto group = [](CLI::Option* option) { option->group("KV-cache"); };
  add_phase_and_training(app, request);
  group(add_choice<KvType>(app, "--kv-dtype", kv_cache.type, kv_type_choices(),
                           "Type of the KV-cache (as --dtype)"));
  group(add_choice<KvScales>(app, "--kv-scales", kv_cache.scales,
                             {{"none", KvScales::none},
                              {"tensor", KvScales::tensor},
                              {"token-head", KvScales::token_head},
                              {"group", KvScales::group},
                              {"kivi", KvScales::kivi}},
                             "What scales are stored beside its values (none)"));
  group(add_choice<KvPolicy>(app, "--kv-policy", kv_cache.policy, kv_policy_choices(),
                             "How much an engine reserves for it (ideal)"));
  group(add_count(
      app, "--kv-block", [&](std::int64_t n) { kv_cache.block = n; },
      "Tokens of a block, where the policy has blocks (its own)"));
  group(add_count(
      app, "--kv-capacity", [&](std::int64_t n) { kv_cache.capacity = n; },
      "Tokens that a sequence has room for, where the policy reserves for a length (its own)"));
}

}  // namespace headroom::cli
