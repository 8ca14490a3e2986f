#include "kv_policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "headroom/error.h"
#include "setting_format.h"

namespace headroom::detail {
namespace {

// llama.cpp's default --ubatch-size: tokens that one pass may add to a window.
constexpr Integer kMicroBatch = 512;

/// Returns whether `policy` supports the windows of this model.
bool honours_windows(KvPolicy policy, const ModelSpec& spec) {
  switch (policy) {
    case KvPolicy::hf_dynamic:
    case KvPolicy::hf_static:
      // Read from sliding_window, attention_chunk_size or layer_types; GPT-Neo's config has none.
      return spec.model_type != "gpt_neo";
    case KvPolicy::llama_cpp: {
      // Architectures with a swa_type in src/llama-model.cpp. Mistral's is "llama", without one.
      static constexpr std::array<std::string_view, 5> kKnown{"cohere2", "gemma2", "gemma3_text",
                                                              "gpt_oss", "llama4_text"};
      const std::string_view type = spec.model_type;
      return std::ranges::find(kKnown, type) != kKnown.end() || type == "gemma3" ||
             type == "llama4";
    }
    case KvPolicy::ideal:
    case KvPolicy::paged:
    case KvPolicy::vllm:
      return true;
    case KvPolicy::sglang:
    case KvPolicy::tensorrt_llm:
    case KvPolicy::llama_cpp_swa_full:
      break;
  }
  return false;
}

/// Tokens in the blocks that contain the last `used` tokens.
Integer block_cells(Integer block, const CellQuery& query) {
  const Integer first = query.tokens - query.used;
  return round_up(query.tokens, block) - first / block * block;
}

Integer windowed_cells(const ResolvedPolicy& policy, const CellQuery& query) {
  const Integer window = query.window.size;
  switch (policy.policy) {
    case KvPolicy::ideal:
      return query.used;
    case KvPolicy::paged:
    case KvPolicy::vllm:
    case KvPolicy::sglang:
    case KvPolicy::tensorrt_llm:
      return block_cells(policy.block, query);
    case KvPolicy::hf_dynamic:
      return std::min(query.tokens, window - 1);
    case KvPolicy::hf_static:
      return std::min(policy.capacity, window);
    case KvPolicy::llama_cpp:
    case KvPolicy::llama_cpp_swa_full:
      break;
  }
  return round_up(std::min(policy.capacity, window + kMicroBatch), policy.block);
}

}  // namespace

bool reserves_for_length(KvPolicy policy) noexcept {
  return policy == KvPolicy::hf_static || policy == KvPolicy::llama_cpp ||
         policy == KvPolicy::llama_cpp_swa_full;
}

bool has_blocks(KvPolicy policy) noexcept {
  return policy == KvPolicy::paged || policy == KvPolicy::vllm || policy == KvPolicy::sglang ||
         policy == KvPolicy::tensorrt_llm;
}

ResolvedPolicy resolve_policy(const KvCacheRequest& request, Integer tokens) {
  const KvPolicyInfo& about = info(request.policy);
  ResolvedPolicy resolved{request.policy, about.block, tokens};
  if (request.block && !has_blocks(request.policy)) {
    throw_invalid_input(
        fmt::format("{} {} does not allocate blocks", Setting::kv_policy, about.name),
        fmt::format("leave out {}", Setting::kv_block));
  }
  if (request.capacity && !reserves_for_length(request.policy)) {
    throw_invalid_input(
        fmt::format("{} {} does not reserve a length", Setting::kv_policy, about.name),
        fmt::format("leave out {}", Setting::kv_capacity));
  }
  if (request.block) resolved.block = *request.block;
  if (request.capacity) resolved.capacity = *request.capacity;
  if (resolved.block < 1) {
    throw_invalid_input(fmt::format("{} must be at least 1", Setting::kv_block),
                        fmt::format("give {} a number of tokens", Setting::kv_block));
  }
  if (resolved.capacity < tokens) {
    throw_invalid_input(
        fmt::format("{} {} is smaller than the {} tokens of a sequence", Setting::kv_capacity,
                    to_string(resolved.capacity), to_string(tokens)),
        fmt::format("give it the sum of {} and {}, or more", Setting::past_len, Setting::seq_len));
  }
  if (about.policy == KvPolicy::llama_cpp || about.policy == KvPolicy::llama_cpp_swa_full) {
    resolved.capacity = round_up(resolved.capacity, about.block);
  }
  return resolved;
}

Integer reserved_cells(const ResolvedPolicy& policy, const CellQuery& query,
                       const ModelSpec& spec) {
  if (query.growth == KvGrowth::windowed && honours_windows(policy.policy, spec)) {
    return windowed_cells(policy, query);
  }
  const bool for_length = query.growth != KvGrowth::encoder && reserves_for_length(policy.policy);
  const CellQuery all{query.growth, {}, query.tokens, query.tokens};
  if (for_length) return policy.capacity;
  return has_blocks(policy.policy) ? block_cells(policy.block, all) : query.tokens;
}

void require_known(KvPolicy policy, const ModelSpec& spec, KvGrowth growth) {
  const KvPolicyInfo& about = info(policy);
  const bool general = policy == KvPolicy::ideal || policy == KvPolicy::paged;
  const bool hugging_face = policy == KvPolicy::hf_dynamic || policy == KvPolicy::hf_static;
  const auto refuse_unknown = [&](std::string_view state) {
    throw_invalid_input(
        fmt::format("it is undocumented how {} caches {} of {}", about.name, state, spec.name),
        fmt::format("choose {} ideal or paged", Setting::kv_policy));
  };
  switch (growth) {
    case KvGrowth::full:
      return;
    case KvGrowth::windowed:
      if (about.windows == KvWindows::unknown) refuse_unknown("the sliding-window layers");
      return;
    case KvGrowth::encoder:
      if (!general && !hugging_face) refuse_unknown("the cross-attention");
      return;
    case KvGrowth::constant:
      if (!general) refuse_unknown("the recurrent state");
      return;
  }
}

void require_type(KvPolicy policy, KvType type, KvScales scales) {
  const KvPolicyInfo& about = info(policy);
  const bool llama_cpp = policy == KvPolicy::llama_cpp || policy == KvPolicy::llama_cpp_swa_full;
  const bool general = policy == KvPolicy::ideal || policy == KvPolicy::paged;
  const bool is_float = info(type).block_values == 1 && info(type).block_bytes > 1;
  if (llama_cpp && !is_block_type(type) && !is_float) {
    throw_invalid_input(
        fmt::format("{} has no KV-cache of type {}", about.name, info(type).name),
        fmt::format("choose {} float16, bfloat16, float32, q8_0, q5_1, q5_0, q4_1, q4_0 or iq4_nl",
                    Setting::kv_dtype));
  }
  if (is_block_type(type) && !llama_cpp && !general) {
    throw_invalid_input(
        fmt::format("{} is a type of llama.cpp, not of {}", info(type).name, about.name),
        fmt::format("choose another {} or {}", Setting::kv_dtype, Setting::kv_policy));
  }
  if (scales == KvScales::kivi && policy != KvPolicy::ideal) {
    throw_invalid_input(
        fmt::format("{} kivi requires {} ideal", Setting::kv_scales, Setting::kv_policy),
        fmt::format("choose {} ideal or {} group", Setting::kv_policy, Setting::kv_scales));
  }
}

Integer vllm_group_size(Integer fewest_layers, Integer most_layers) {
  const bool about_equal = 4 * most_layers < 5 * fewest_layers;
  return about_equal ? most_layers : fewest_layers;
}

}  // namespace headroom::detail
