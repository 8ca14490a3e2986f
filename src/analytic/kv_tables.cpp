// Types of a KV-cache and policies of engines, with their sources.
#include <algorithm>
#include <array>

#include "enum_table.h"
#include "headroom/storage.h"

namespace headroom {
namespace {

// Blocks as in weights: ggml/src/ggml-common.h, github.com/ggml-org/llama.cpp.
constexpr std::array kTypes{
    KvTypeInfo{KvType::float32, "float32", 1, 4, DType::float32},
    KvTypeInfo{KvType::float16, "float16", 1, 2, DType::float16},
    KvTypeInfo{KvType::bfloat16, "bfloat16", 1, 2, DType::bfloat16},
    KvTypeInfo{KvType::float8, "float8", 1, 1, DType::float8},
    KvTypeInfo{KvType::int8, "int8", 1, 1, DType::int8},
    KvTypeInfo{KvType::int4, "int4", 2, 1, DType::int8},
    KvTypeInfo{KvType::int2, "int2", 4, 1, DType::int8},
    KvTypeInfo{KvType::q8_0, "q8_0", 32, 2 + 32, DType::int8},
    KvTypeInfo{KvType::q5_1, "q5_1", 32, 2 + 2 + 4 + 16, DType::int8},
    KvTypeInfo{KvType::q5_0, "q5_0", 32, 2 + 4 + 16, DType::int8},
    KvTypeInfo{KvType::q4_1, "q4_1", 32, 2 + 2 + 16, DType::int8},
    KvTypeInfo{KvType::q4_0, "q4_0", 32, 2 + 16, DType::int8},
    KvTypeInfo{KvType::iq4_nl, "iq4_nl", 32, 2 + 16, DType::int8},
};
static_assert(detail::lists_every<kTypes>(&KvTypeInfo::type));

constexpr std::array kPolicies{
    KvPolicyInfo{KvPolicy::ideal, "ideal", KvWindows::honoured, 1, 0, "",
                 "only the keys that the next step reads", "a lower bound"},
    KvPolicyInfo{KvPolicy::paged, "paged", KvWindows::honoured, 16, 0, "",
                 "whole blocks per sequence and layer; blocks that leave a window are freed",
                 "PagedAttention, arXiv 2309.06180, section 4"},
    KvPolicyInfo{KvPolicy::hf_dynamic, "hf-dynamic", KvWindows::by_model, 1, 0, "",
                 "the tokens of the sequence, w - 1 in a layer with a window of w",
                 "DynamicCache, src/transformers/cache_utils.py, huggingface/transformers 4.56 "
                 "(2025-08)"},
    KvPolicyInfo{KvPolicy::hf_static, "hf-static", KvWindows::by_model, 1, 0, "",
                 "max_cache_len tokens, min(w, max_cache_len) in a layer with a window of w",
                 "StaticCache, src/transformers/cache_utils.py, huggingface/transformers 4.56 "
                 "(2025-08)"},
    KvPolicyInfo{
        KvPolicy::vllm, "vllm", KvWindows::honoured, 16, 8192, "0.26 and later",
        "blocks of 16 tokens; a layer with a window of w: min(w - 1 + 2 * "
        "max_num_batched_tokens, tokens) and one block more, for the two batches in flight of "
        "asynchronous scheduling (one more per further pipeline stage); layers in groups of equal "
        "size, the last group of a kind padded; a recurrent state fills one block, two with "
        "prefix caching, and one more per speculative token",
        "max_memory_usage_bytes in vllm/v1/kv_cache_interface.py, max_in_flight_tokens and "
        "max_concurrent_batches in vllm/config/vllm.py, groups in vllm/v1/core/kv_cache_utils.py, "
        "vllm-project/vllm 0.26 (pull request 47728, 2026-07)"},
    KvPolicyInfo{
        KvPolicy::vllm_0_25, "vllm-0.25", KvWindows::honoured, 16, 8192, "0.25 and earlier",
        "blocks of 16 tokens; a layer with a window of w: min(w - 1 + "
        "max_num_batched_tokens, tokens) and one block more; layers in groups of equal "
        "size, the last group of a kind padded; a recurrent state fills one block, two with "
        "prefix caching, and one more per speculative token",
        "max_memory_usage_bytes in vllm/v1/kv_cache_interface.py, groups in "
        "vllm/v1/core/kv_cache_utils.py, vllm-project/vllm 001cabc (2026-04)"},
    KvPolicyInfo{
        KvPolicy::sglang, "sglang", KvWindows::by_model, 1, 0, "",
        "pages of --page-size tokens, 1 by default; windowed layers of gpt-oss, Laguna, Llama 4, "
        "MiMo-V2 and Step-3.5 have a pool of 0.8 (swa_full_tokens_ratio) of the tokens, of others "
        "a full one",
        "python/sglang/srt/server_args.py and configs/model_config.py "
        "(is_hybrid_swa_model), sgl-project/sglang 001adf5 (read 2026-11-28)"},
    KvPolicyInfo{KvPolicy::tensorrt_llm, "tensorrt-llm", KvWindows::ignored, 32, 0, "",
                 "blocks of tokens_per_block tokens, 32 by default; every layer caches all tokens "
                 "unless max_attention_window is set",
                 "KVCacheManager in tensorrt_llm/_torch/pyexecutor/resource_manager.py, "
                 "NVIDIA/TensorRT-LLM 001541b (read 2026-11-28)"},
    KvPolicyInfo{KvPolicy::tensorrt_llm_windows, "tensorrt-llm-windows", KvWindows::honoured, 32, 0,
                 "",
                 "with max_attention_window as the model's windows: a prompt takes blocks for all "
                 "its tokens in every layer (addSequence); decoding frees those that a window has "
                 "left (adjustBlocksIfNeeded)",
                 "cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp, NVIDIA/TensorRT-LLM b35ac1b "
                 "(1.2.0rc2, 2025-11)"},
    KvPolicyInfo{KvPolicy::llama_cpp, "llama.cpp", KvWindows::by_model, 256, 512, "",
                 "a context in multiples of 256 cells; w + n_ubatch cells, padded likewise, in a "
                 "layer with a window of w (w per slot in a shared cache); recurrent state in "
                 "float32",
                 "src/llama-context.cpp, src/llama-kv-cache-iswa.cpp and "
                 "src/llama-memory-recurrent.cpp, ggml-org/llama.cpp 02c28f5 (read 2026-11-28)"},
    KvPolicyInfo{KvPolicy::llama_cpp_swa_full, "llama.cpp-swa-full", KvWindows::ignored, 256, 0, "",
                 "a context in multiples of 256 cells in every layer (--swa-full)",
                 "src/llama-kv-cache-iswa.cpp, ggml-org/llama.cpp 02c28f5 (read 2026-11-28)"},
    KvPolicyInfo{KvPolicy::llama_cpp_b5331, "llama.cpp-b5331", KvWindows::ignored, 256, 0, "",
                 "a context in multiples of 256 cells in every layer; multi-head latent attention "
                 "stores V of kv_lora_rank beside the latent K (until pull request 19067, "
                 "2026-01)",
                 "ggml-org/llama.cpp b5331 (2025-05), pull requests 12801 and 19067"},
};
static_assert(detail::lists_every<kPolicies>(&KvPolicyInfo::policy));

}  // namespace

std::span<const KvTypeInfo> kv_types() noexcept { return kTypes; }

const KvTypeInfo& info(KvType type) noexcept { return kTypes[static_cast<std::size_t>(type)]; }

KvType kv_type(DType dtype) noexcept {
  switch (dtype) {
    case DType::float32:
      return KvType::float32;
    case DType::float16:
      return KvType::float16;
    case DType::bfloat16:
      return KvType::bfloat16;
    case DType::float8:
      return KvType::float8;
    case DType::int8:
      return KvType::int8;
    case DType::float4:  // no KV-cache has it: resolve() refuses it
    case DType::int4:
      break;
  }
  return KvType::int4;
}

bool is_block_type(KvType type) noexcept { return info(type).block_values == 32; }

std::span<const KvPolicyInfo> kv_policies() noexcept { return kPolicies; }

const KvPolicyInfo& info(KvPolicy policy) noexcept {
  return kPolicies[static_cast<std::size_t>(policy)];
}

std::string_view name_of(KvScales scales) noexcept {
  switch (scales) {
    case KvScales::none:
      return "none";
    case KvScales::tensor:
      return "tensor";
    case KvScales::token_head:
      return "token-head";
    case KvScales::group:
      return "group";
    case KvScales::kivi:
      break;
  }
  return "kivi";
}

std::string_view name_of(KvGrowth growth) noexcept {
  switch (growth) {
    case KvGrowth::full:
      return "full";
    case KvGrowth::windowed:
      return "windowed";
    case KvGrowth::compressed:
      return "compressed";
    case KvGrowth::encoder:
      return "encoder";
    case KvGrowth::constant:
      break;
  }
  return "constant";
}

}  // namespace headroom
