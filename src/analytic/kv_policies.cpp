#include "kv_policies.h"

#include <fmt/format.h>

#include "headroom/error.h"
#include "setting_format.h"

namespace headroom::detail {
namespace {

bool is_general(KvPolicy policy) noexcept {
  return policy == KvPolicy::ideal || policy == KvPolicy::paged;
}

/// Throws Error{invalid_input} for an option that `about` ignores.
void require_effect(const KvPolicyInfo& about, bool given, bool has_effect, Setting setting,
                    std::string_view lacks) {
  if (!given || has_effect) return;
  throw_invalid_input(fmt::format("{} {} {}", Setting::kv_policy, about.name, lacks),
                      fmt::format("leave out {}", setting));
}

void require_positive(Integer value, Setting setting, std::string_view unit) {
  if (value >= 1) return;
  throw_invalid_input(fmt::format("{} must be at least 1", setting),
                      fmt::format("give {} a number of {}", setting, unit));
}

void require_room(const ResolvedPolicy& policy, Integer tokens, Integer batch) {
  if (policy.capacity < tokens) {
    throw_invalid_input(
        fmt::format("{} {} is smaller than the {} tokens of a sequence", Setting::kv_capacity,
                    to_string(policy.capacity), to_string(tokens)),
        fmt::format("give it the sum of {} and {}, or more", Setting::past_len, Setting::seq_len));
  }
  if (policy.slots > 0 && policy.slots < batch) {
    throw_invalid_input(fmt::format("{} {} is smaller than the {} sequences of the batch",
                                    Setting::kv_slots, to_string(policy.slots), to_string(batch)),
                        fmt::format("give {} the batch or more", Setting::kv_slots));
  }
}

void require_options_with_effect(const KvCacheRequest& request) {
  const KvPolicyInfo& about = info(request.policy);
  require_effect(about, request.block.has_value(), has_blocks(request.policy), Setting::kv_block,
                 "does not allocate blocks");
  require_effect(about, request.capacity.has_value(), reserves_for_length(request.policy),
                 Setting::kv_capacity, "does not reserve a length");
  require_effect(about, request.batched_tokens.has_value(), about.batched_tokens > 0,
                 Setting::kv_batched_tokens, "reserves nothing for the tokens of a pass");
  require_effect(about, request.slots.has_value(), is_llama_cpp(request.policy), Setting::kv_slots,
                 "has no cache that sequences share");
  constexpr std::string_view kNoStates = "does not count blocks of recurrent states";
  require_effect(about, request.prefix_caching, is_vllm(request.policy), Setting::kv_prefix_caching,
                 kNoStates);
  require_effect(about, request.speculative_tokens.has_value(), is_vllm(request.policy),
                 Setting::kv_speculative_tokens, kNoStates);
  require_effect(about, request.drafter_layers.has_value(), is_vllm(request.policy),
                 Setting::kv_drafter_layers, "does not count a drafter's layers");
}

/// Throws Error{invalid_input} for a setting about layers that the model lacks.
void require_kind(const ModelSpec& spec, bool given, bool has_layers, Setting setting,
                  std::string_view kind) {
  if (!given || has_layers) return;
  throw_invalid_input(
      fmt::format("{} has no {} layers, which {} is about", spec.name, kind, setting),
      fmt::format("leave out {}", setting));
}

void resolve_states(const KvCacheRequest& request, ResolvedPolicy& resolved) {
  resolved.speculative_tokens = request.speculative_tokens.value_or(0);
  resolved.drafter_layers = request.drafter_layers.value_or(0);
  resolved.state_blocks = (request.prefix_caching ? 2 : 1) + resolved.speculative_tokens;
  if (request.speculative_tokens) {
    require_positive(resolved.speculative_tokens, Setting::kv_speculative_tokens, "tokens");
  }
  if (request.drafter_layers) {
    require_positive(resolved.drafter_layers, Setting::kv_drafter_layers, "layers");
  }
}

/// Tokens of how many batches vLLM counts in a windowed layer. Since 0.26 blocks that leave a
/// window are freed once a batch has settled: max_concurrent_batches, of its second model runner
/// with asynchronous scheduling (the default), is one more than the pipeline's stages. Source:
/// vllm/config/vllm.py, vllm-project/vllm pull request 47728.
Integer batches_in_flight(const KvCacheRequest& request) {
  return request.policy == KvPolicy::vllm ? Integer{request.pipeline_stages} + 1 : Integer{1};
}

}  // namespace

bool is_vllm(KvPolicy policy) noexcept {
  return policy == KvPolicy::vllm || policy == KvPolicy::vllm_0_25;
}

bool is_llama_cpp(KvPolicy policy) noexcept {
  return policy == KvPolicy::llama_cpp || policy == KvPolicy::llama_cpp_swa_full ||
         policy == KvPolicy::llama_cpp_b5331;
}

bool is_hugging_face(KvPolicy policy) noexcept {
  return policy == KvPolicy::hf_dynamic || policy == KvPolicy::hf_static;
}

bool reserves_for_length(KvPolicy policy) noexcept {
  return policy == KvPolicy::hf_static || is_llama_cpp(policy);
}

bool has_blocks(KvPolicy policy) noexcept {
  return policy == KvPolicy::paged || is_vllm(policy) || policy == KvPolicy::sglang ||
         policy == KvPolicy::tensorrt_llm || policy == KvPolicy::tensorrt_llm_windows;
}

ResolvedPolicy resolve_policy(const KvCacheRequest& request, Integer tokens, Integer batch) {
  const KvPolicyInfo& about = info(request.policy);
  require_options_with_effect(request);
  ResolvedPolicy resolved;
  resolved.policy = request.policy;
  resolved.block = request.block.value_or(about.block);
  resolved.capacity = request.capacity ? Integer{*request.capacity} : tokens;
  resolved.batched_tokens = request.batched_tokens.value_or(about.batched_tokens);
  resolved.batches_in_flight = batches_in_flight(request);
  resolved.slots = request.slots.value_or(0);
  require_positive(resolved.block, Setting::kv_block, "tokens");
  if (request.batched_tokens) {
    require_positive(resolved.batched_tokens, Setting::kv_batched_tokens, "tokens");
  }
  if (request.slots) require_positive(resolved.slots, Setting::kv_slots, "sequences");
  resolve_states(request, resolved);
  require_room(resolved, tokens, batch);
  if (is_llama_cpp(about.policy)) resolved.capacity = round_up(resolved.capacity, about.block);
  return resolved;
}

void require_layers(const KvCacheRequest& request, const ModelSpec& spec, LayerKinds layers) {
  require_kind(spec, request.prefix_caching, layers.recurrent, Setting::kv_prefix_caching,
               "recurrent");
  require_kind(spec, request.speculative_tokens.has_value(), layers.recurrent,
               Setting::kv_speculative_tokens, "recurrent");
  require_kind(spec, request.drafter_layers.has_value(), layers.full, Setting::kv_drafter_layers,
               "full-attention");
}

void require_known(KvPolicy policy, const ModelSpec& spec, KvGrowth growth,
                   const AttentionSpec& attention) {
  const KvPolicyInfo& about = info(policy);
  const auto refuse_unknown = [&](std::string_view state) {
    throw_invalid_input(
        fmt::format("it is undocumented how {} caches {} of {}", about.name, state, spec.name),
        fmt::format("choose {} ideal or paged", Setting::kv_policy));
  };
  switch (growth) {
    case KvGrowth::full:
    case KvGrowth::windowed:
      return;
    case KvGrowth::compressed:
      if (!is_general(policy)) refuse_unknown("the compressed keys");
      return;
    case KvGrowth::encoder:
      if (!is_general(policy) && !is_hugging_face(policy)) refuse_unknown("the cross-attention");
      return;
    case KvGrowth::constant: {
      const bool hybrid = is_vllm(policy) || is_llama_cpp(policy);
      const bool known = is_general(policy) || (hybrid && attention.gated_delta.has_value());
      const bool compresses = attention.shared_key_value.has_value();
      if (!known) refuse_unknown(compresses ? "the compressed keys" : "the recurrent state");
      return;
    }
  }
}

void require_types(KvPolicy policy, KvType key, KvType value, KvScales scales) {
  const KvPolicyInfo& about = info(policy);
  const bool either = is_general(policy) || is_llama_cpp(policy);
  if (key != value && !either) {
    throw_invalid_input(fmt::format("{} stores keys and values in one type, not {}", about.name,
                                    name_of_types(key, value)),
                        fmt::format("choose one {} for both, or another {}", Setting::kv_dtype,
                                    Setting::kv_policy));
  }
  for (const KvType type : {key, value}) {
    const bool is_float = info(type).block_values == 1 && info(type).block_bytes > 1;
    if (is_llama_cpp(policy) && !is_block_type(type) && !is_float) {
      throw_invalid_input(
          fmt::format("{} has no KV-cache of type {}", about.name, info(type).name),
          fmt::format(
              "choose {} float16, bfloat16, float32, q8_0, q5_1, q5_0, q4_1, q4_0 or iq4_nl",
              Setting::kv_dtype));
    }
    if (is_block_type(type) && !either) {
      throw_invalid_input(
          fmt::format("{} is a type of llama.cpp, not of {}", info(type).name, about.name),
          fmt::format("choose another {} or {}", Setting::kv_dtype, Setting::kv_policy));
    }
  }
  if (scales == KvScales::kivi && policy != KvPolicy::ideal) {
    throw_invalid_input(
        fmt::format("{} kivi requires {} ideal", Setting::kv_scales, Setting::kv_policy),
        fmt::format("choose {} ideal or {} group", Setting::kv_policy, Setting::kv_scales));
  }
}

}  // namespace headroom::detail
