#include "kv_cells.h"

#include <algorithm>
#include <array>

namespace headroom::detail {
namespace {

/// Returns whether `policy` supports the windows of this model.
bool honours_windows(KvPolicy policy, const ModelSpec& spec) {
  const std::string_view type = spec.model_type;
  const bool is_llama4 = type == "llama4_text" || type == "llama4";
  switch (policy) {
    case KvPolicy::hf_dynamic:
    case KvPolicy::hf_static:
      // Read from sliding_window, attention_chunk_size or layer_types; GPT-Neo's config has none.
      return type != "gpt_neo";
    case KvPolicy::llama_cpp: {
      // Architectures with a swa_type: src/models/*.cpp, ggml-org/llama.cpp, read 2026-11-28.
      // Mistral's is "llama", without one, and Phi-3's is switched off.
      static constexpr std::array<std::string_view, 17> kKnown{
          "afmoe",       "cohere2", "exaone4",       "exaone_moe", "gemma2",      "gemma3",
          "gemma3_text", "gemma3n", "gemma3n_text",  "gemma4",     "gemma4_text", "gpt_oss",
          "laguna",      "mimo_v2", "mimo_v2_flash", "olmo3",      "step3p5"};
      return is_llama4 || std::ranges::find(kKnown, type) != kKnown.end();
    }
    case KvPolicy::sglang: {
      // is_hybrid_swa_model in python/sglang/srt/configs/model_config.py, sgl-project/sglang
      // 001adf5. It has Gemma 4, too, whose pool's part of the tokens is not known.
      static constexpr std::array<std::string_view, 5> kKnown{"gpt_oss", "laguna", "mimo_v2",
                                                              "mimo_v2_flash", "step3p5"};
      return is_llama4 || std::ranges::find(kKnown, type) != kKnown.end();
    }
    case KvPolicy::ideal:
    case KvPolicy::paged:
    case KvPolicy::vllm:
    case KvPolicy::vllm_0_25:
    case KvPolicy::tensorrt_llm_windows:
      return true;
    case KvPolicy::tensorrt_llm:
    case KvPolicy::llama_cpp_swa_full:
    case KvPolicy::llama_cpp_b5331:
      break;
  }
  return false;
}

/// SGLang's pool of windowed layers has this part of the tokens of the full layers' pool:
/// swa_full_tokens_ratio, 0.8, in python/sglang/srt/server_args.py.
Integer sglang_window_pool(Integer tokens) { return ceil_div(4 * tokens, 5); }

/// Cells of a windowed layer in llama.cpp: min(context, w·slots + n_ubatch), padded. Source:
/// src/llama-kv-cache-iswa.cpp, ggml-org/llama.cpp 02c28f5.
Integer llama_window_cells(const ResolvedPolicy& policy, Integer context, Integer window) {
  const Integer windows = checked_multiply(window, std::max<Integer>(1, policy.slots));
  return round_up(std::min(context, checked_add(windows, policy.batched_tokens)), policy.block);
}

/// Cells of a layer without a window in llama.cpp.
Integer llama_context(const ResolvedPolicy& policy, Integer batch) {
  return policy.slots > 0 ? checked_multiply(policy.capacity, batch) : policy.capacity;
}

Cells both(Integer cells) { return {cells, cells}; }

Cells windowed_cells(const ResolvedPolicy& policy, const CellQuery& query) {
  const Integer window = query.window.size;
  const Integer steady = block_cells(policy.block, query.tokens, query.used);
  switch (policy.policy) {
    case KvPolicy::ideal:
      return both(query.used);
    case KvPolicy::paged:
      return both(steady);
    case KvPolicy::tensorrt_llm_windows:
      return {steady, round_up(query.tokens, policy.block)};
    case KvPolicy::vllm:
    case KvPolicy::vllm_0_25:
      return {steady, checked_multiply(policy.block, vllm_reserved_blocks(policy, query))};
    case KvPolicy::sglang: {
      const Integer pool = round_up(sglang_window_pool(query.tokens), policy.block);
      return {steady, std::max(steady, pool)};
    }
    case KvPolicy::hf_dynamic:
      return both(std::min(query.tokens, window - 1));
    case KvPolicy::hf_static:
      return both(std::min(policy.capacity, window));
    case KvPolicy::tensorrt_llm:
    case KvPolicy::llama_cpp:
    case KvPolicy::llama_cpp_swa_full:
    case KvPolicy::llama_cpp_b5331:
      break;
  }
  return both(llama_window_cells(policy, llama_context(policy, query.batch), window));
}

}  // namespace

Integer block_cells(Integer block, Integer tokens, Integer used) {
  const Integer first = tokens - used;
  return round_up(tokens, block) - first / block * block;
}

Integer vllm_reserved_blocks(const ResolvedPolicy& policy, const CellQuery& query) {
  const Integer batched = checked_multiply(policy.batches_in_flight, policy.batched_tokens);
  const Integer window = query.window.size;
  switch (query.window.kind) {
    case WindowKind::sliding:
      // One block more: the window may start within a block.
      return ceil_div(std::min(window - 1 + batched, query.tokens), policy.block) + 1;
    case WindowKind::chunked:
      return ceil_div(std::min(window + batched, query.tokens), policy.block);
    case WindowKind::none:
    case WindowKind::centred:
      break;
  }
  return ceil_div(query.tokens, policy.block);
}

Cells cells_of(const ResolvedPolicy& policy, const CellQuery& query, const ModelSpec& spec) {
  if (query.growth == KvGrowth::windowed && honours_windows(policy.policy, spec)) {
    return windowed_cells(policy, query);
  }
  if (is_llama_cpp(policy.policy)) return both(llama_context(policy, query.batch));
  const bool for_length = query.growth != KvGrowth::encoder && reserves_for_length(policy.policy);
  if (for_length) return both(policy.capacity);
  return both(has_blocks(policy.policy) ? round_up(query.tokens, policy.block) : query.tokens);
}

}  // namespace headroom::detail
