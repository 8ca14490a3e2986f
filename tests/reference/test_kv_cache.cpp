// KV-cache memory of engines and of quantised values, against the engines' documentation, recorded
// caches of the reference code, and sums by hand.
#include <doctest/doctest.h>

#include "headroom/error.h"
#include "headroom/model_source.h"
#include "headroom/report.h"
#include "headroom/storage.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

ModelSpec preset(const char* name) { return read_preset(find_preset(name).value()).spec; }

KvCacheUse use_of(const ModelSpec& spec, const Workload& workload, const KvCacheRequest& request) {
  const Graph graph = build_graph(spec, graph_options(workload));
  return kv_cache_use(spec, graph, workload, request).value();
}

Workload decode_at(std::int64_t tokens, std::int64_t batch = 1) {
  Workload workload;
  workload.phase = Phase::decode;
  workload.batch_size = batch;
  workload.seq_len = 1;
  workload.past_len = tokens - 1;
  workload.dtype = DType::bfloat16;
  workload.kv_dtype = DType::bfloat16;
  return workload;
}

KvCacheRequest by(KvPolicy policy) {
  KvCacheRequest request;
  request.policy = policy;
  return request;
}

KvCacheRequest in(KvType type, KvScales scales = KvScales::none) {
  KvCacheRequest request;
  set_type(request, type);
  request.scales = scales;
  return request;
}

/// Layers with a window of 32 keys and layers without, 2 to 1, as in vLLM's documentation.
ModelSpec two_to_one(std::int64_t layers, std::int64_t window) {
  nlohmann::json types = nlohmann::json::array();
  for (std::int64_t i = 0; i < layers; ++i) {
    types.push_back(i % 3 == 0 ? "full_attention" : "sliding_attention");
  }
  return spec_of(
      {{"model_type", "gpt_oss"},
       {"hidden_size", 64},
       {"num_attention_heads", 4},
       {"num_key_value_heads", 2},
       {"head_dim", 16},
       {"num_hidden_layers", layers},
       {"intermediate_size", 64},
       {"num_local_experts", 4},
       {"num_experts_per_tok", 2},
       {"vocab_size", 96},
       {"rope_scaling",
        {{"rope_type", "yarn"}, {"factor", 32.0}, {"original_max_position_embeddings", 4096}}},
       {"sliding_window", window},
       {"layer_types", types}});
}

}  // namespace

TEST_CASE("the ideal policy uses and reserves the bytes of the graph's polynomials") {
  for (const char* name : {"llama-3-8b", "gemma-2-9b", "t5-base", "deepseek-v3", "gpt-oss-20b",
                           "qwen3-next-80b-a3b", "linear-transformer"}) {
    CAPTURE(name);
    if (!find_preset(name)) continue;
    const ModelSpec spec = preset(name);
    const Workload workload = decode_at(5000, 3);
    const KvCacheUse use = use_of(spec, workload, {});
    const Counted counted = count(spec, workload);
    CHECK(use.used_bytes == counted.figures.kv_cache_bytes);
    CHECK(use.reserved_bytes == use.used_bytes);
    CHECK(use.bytes_per_token == counted.figures.kv_cache_bytes_per_token);
    CHECK(use.scale_bytes == 0);
  }
}

// Two vectors of each key-value head in 2 bytes, in the layers without a window: 18 of gpt-oss-120b
// with 8 heads of 64, 10 of Gemma 3 27B with 16 of 128, none of Mistral 7B v0.1.
TEST_CASE("a layer with a full window adds nothing for a further token") {
  const auto per_token = [](const char* name, std::int64_t tokens) {
    return use_of(preset(name), decode_at(tokens), {}).bytes_per_token;
  };
  CHECK(per_token("gpt-oss-120b", 8192) == Integer{18} * 2 * 8 * 64 * 2);
  CHECK(per_token("gpt-oss-120b", 100) == Integer{36} * 2 * 8 * 64 * 2);
  CHECK(per_token("gemma-3-27b", 131'072) == Integer{10} * 2 * 16 * 128 * 2);
  CHECK(per_token("mistral-7b-v0.1", 32'768) == 0);
}

// Of a layer's keys of 512 values, one stands for 4 tokens in 21 layers, beside an index key of
// 128, and one for 128 in 20 (DeepSeek-V4-Flash): 21·(512 + 128)·2/4 + 20·512·2/128.
TEST_CASE("compressed keys grow by their mean over the tokens of one") {
  const ModelSpec spec = preset("deepseek-v4-flash");
  const Workload workload = decode_at(131'072);
  CHECK(use_of(spec, workload, {}).bytes_per_token == 6880);
  CHECK(count(spec, workload).figures.kv_cache_bytes_per_token == 6880);
}

TEST_CASE("hf-dynamic has as many elements as transformers' recorded caches") {
  std::size_t compared = 0;
  for (const CsvRow& row : read_csv(data_folder() / "golden/kv_cache.csv")) {
    if (row.at("method").find("5.10") == std::string::npos) continue;
    CAPTURE(row.at("model"));
    CAPTURE(row.at("tokens"));
    const ModelSpec spec = spec_of(golden_config(row), row.at("model"));
    Workload workload;
    workload.batch_size = number(row, "batch");
    workload.seq_len = number(row, "tokens");
    workload.enc_seq_len = std::max<std::int64_t>(1, number(row, "enc_tokens"));
    workload.kv_dtype = DType::int8;  // one byte per element, so bytes equal elements
    const KvCacheUse use = use_of(spec, workload, by(KvPolicy::hf_dynamic));
    CHECK(use.reserved_bytes == number(row, "total_elements"));
    ++compared;
  }
  CHECK(compared > 20);
}

TEST_CASE(
    "vLLM's documentation: 112 tokens in blocks of 16 with a window of 32 use 7 + 2 · 2 blocks") {
  // Groups of 10 layers: one full, two windowed.
  const ModelSpec spec = two_to_one(30, 32);
  const KvCacheUse use = use_of(spec, decode_at(112), by(KvPolicy::vllm));
  const Integer page = 10 * 16 * (2 * 2 * 16 * 2);  // layers, tokens, a token's keys and values
  CHECK(use.steady_bytes == (7 + 2 + 2) * page);
  CHECK(use.block == 16);
}

TEST_CASE("vLLM budgets the window, the tokens of a pass and one block for a windowed layer") {
  // SlidingWindowSpec.max_memory_usage_bytes with 8,192 batched tokens: 12 layers of gpt-oss-20b,
  // 513 blocks of 16 tokens and 2 · 8 heads · 64 values of 2 bytes, are 192.4 MiB, and 12 full
  // layers 192 MiB. While decoding, the window of 128 fills 8 blocks.
  const KvCacheUse use = use_of(preset("gpt-oss-20b"), decode_at(8192), by(KvPolicy::vllm_0_25));
  const Integer page = 16 * 2 * 8 * 64 * 2;
  CHECK(use.reserved_bytes == 12 * page * (512 + 513));
  CHECK(use.steady_bytes == 12 * page * (512 + 8));
  KvCacheRequest request = by(KvPolicy::vllm_0_25);
  request.batched_tokens = 2048;
  // 127 + 2048 tokens in 136 blocks, and one more.
  CHECK(use_of(preset("gpt-oss-20b"), decode_at(8192), request).reserved_bytes ==
        12 * page * (512 + 137));
}

TEST_CASE(
    "since 0.26 vLLM budgets two passes, as Gemma 4's start with 32,768 batched tokens shows") {
  // vllm-project/vllm issue 49878: 262,144 tokens of Gemma 4 31B need 45.79 GiB in 0.25.1 and
  // 70.79 GiB in 0.26.0. 10 full layers have 8,192 pages of 256 KiB, and each of the 5 groups of 10
  // windowed ones 2,113 or 4,161.
  KvCacheRequest request = by(KvPolicy::vllm);
  request.batched_tokens = 32'768;
  const ModelSpec spec = preset("gemma-4-31b-it-nvfp4");
  const Integer page = Integer{10} * 256 * 1024;
  CHECK(use_of(spec, decode_at(262'144), request).reserved_bytes == page * (8192 + 5 * 4161));
  request.policy = KvPolicy::vllm_0_25;
  CHECK(use_of(spec, decode_at(262'144), request).reserved_bytes == page * (8192 + 5 * 2113));
}

TEST_CASE("a further pipeline stage has one more of vLLM's batches in flight") {
  // 127 + 2 · 2048 tokens in 264 blocks, 127 + 3 · 2048 in 392, and one more.
  KvCacheRequest request = by(KvPolicy::vllm);
  request.batched_tokens = 2048;
  const Integer page = 16 * 2 * 8 * 64 * 2;
  const ModelSpec spec = preset("gpt-oss-20b");
  CHECK(use_of(spec, decode_at(8192), request).reserved_bytes == 12 * page * (512 + 265));
  request.pipeline_stages = 2;
  CHECK(use_of(spec, decode_at(8192), request).reserved_bytes == 12 * page * (512 + 393));
}

TEST_CASE("vLLM gives Qwen3-Next blocks of 544 tokens, which a recurrent layer fills to 98.5 %") {
  // vLLM prints "Setting attention block size to 544 tokens" and "Padding mamba page size by
  // 1.49%". A recurrent layer has 32 heads of 128 · 128 values, and 3 · (2 · 2048 + 4096) of its
  // convolution. 12 full layers and 36 recurrent ones are 4 groups of 12.
  const KvCacheUse use = use_of(preset("qwen3-next-80b-a3b"), decode_at(1000), by(KvPolicy::vllm));
  const Integer state = (32 * 128 * 128 + 3 * 8192) * 2;
  const Integer page = 544 * (2 * 2 * 256) * 2;
  CHECK(use.block == 544);
  CHECK(100 * (page - state) / state == 1);
  CHECK(use.reserved_bytes == 12 * page * (2 + 3));
}

TEST_CASE("vLLM keeps Qwen3.5's recurrent state in the type that its config names") {
  // A log of a 27B with fp8 keys and values: "Setting attention block size to 1568 tokens",
  // "Padding mamba page size by 0.13%".
  const ModelSpec spec = spec_of(read_json(data_folder() / "wild/qwen3.5-27b.config.json"));
  KvCacheRequest request = in(KvType::float8);
  request.policy = KvPolicy::vllm;
  const KvCacheUse use = use_of(spec, decode_at(1000), request);
  const Integer state = 48 * 128 * 128 * 4 + 3 * (2 * 2048 + 6144) * 2;
  const Integer page = 1568 * (2 * 4 * 256);
  CHECK(use.block == 1568);
  CHECK(10'000 * (page - state) / state == 12);
  CHECK(use.reserved_bytes == 16 * page * (1 + 3));
}

TEST_CASE("vLLM holds a state more with prefix caching, and one per speculative token") {
  // MambaSpec.max_memory_usage_bytes: 1 block, 2 in mode "align", and num_speculative_blocks.
  const ModelSpec spec =
      preset("qwen3-next-80b-a3b");  // 12 full layers, 3 groups of recurrent ones
  KvCacheRequest request = by(KvPolicy::vllm);
  request.prefix_caching = true;
  const Integer block = Integer{12} * 544 * (2 * 2 * 256) * 2;
  CHECK(use_of(spec, decode_at(1000), request).reserved_bytes == block * (2 + 3 * 2));
  CHECK(use_of(spec, decode_at(1000), request).steady_bytes == block * (2 + 3));
  // 4 inputs of the convolution more make blocks of 576 tokens: 1,179,648 bytes for 1,163,264.
  request.speculative_tokens = 4;
  const Integer larger = Integer{12} * 576 * (2 * 2 * 256) * 2;
  const KvCacheUse use = use_of(spec, decode_at(1000), request);
  CHECK(use.block == 576);
  CHECK(use.reserved_bytes == larger * (2 + 3 * 6));
  CHECK(use.steady_bytes == larger * (2 + 3 * 5));
}

TEST_CASE("a drafter's layers join those with full attention in vLLM") {
  // gpt-oss-20b with one more full layer: 13 full and 12 windowed ones, both in groups of 13.
  KvCacheRequest request = by(KvPolicy::vllm);
  request.drafter_layers = 1;
  const Integer page = 16 * 2 * 8 * 64 * 2;
  CHECK(use_of(preset("gpt-oss-20b"), decode_at(8192), request).reserved_bytes ==
        13 * page * (512 + 513));
  CHECK(use_of(preset("llama-3-8b"), decode_at(160), request).reserved_bytes ==
        Integer{33} * 4096 * 160);
}

TEST_CASE(
    "vLLM's documentation: Gemma-3-27B's 52 windowed layers are 6 groups of 10, 8 of them "
    "padding") {
  const ModelSpec spec = preset("gemma-3-27b");
  const KvCacheUse use = use_of(spec, decode_at(16'384), by(KvPolicy::vllm));
  const AttentionSpec& attention = spec.decoder->self_attention;
  const Integer page =
      Integer{10} * 16 * 2 * attention.num_key_value_heads * attention.head_dim * 2;
  // The window of 1024 keys ends at a block boundary here and fills 64 blocks.
  CHECK(use.steady_bytes == page * (1024 + 6 * 64));
  // 1023 + 8192 tokens in 576 blocks, and one more; since 0.26 all 16,384 tokens.
  CHECK(use_of(spec, decode_at(16'384), by(KvPolicy::vllm_0_25)).reserved_bytes ==
        page * (1024 + 6 * 577));
  CHECK(use.reserved_bytes == page * (1024 + 6 * 1025));
}

TEST_CASE("a window that straddles blocks uses one block more") {
  const ModelSpec spec = two_to_one(3, 32);
  const auto windowed = [&](std::int64_t tokens) {
    const KvCacheUse use = use_of(spec, decode_at(tokens), by(KvPolicy::paged));
    for (const KvCacheRow& row : use.rows) {
      if (row.growth == KvGrowth::windowed) return row.reserved_tokens;
    }
    return Integer{0};
  };
  CHECK(windowed(112) == 32);
  CHECK(windowed(113) == 48);
  CHECK(windowed(16) == 16);
  CHECK(windowed(17) == 32);
}

TEST_CASE("paged blocks round up each sequence separately") {
  const ModelSpec spec = preset("llama-3-8b");
  KvCacheRequest request = by(KvPolicy::paged);
  request.block = 64;
  const KvCacheUse use = use_of(spec, decode_at(8193, 5), request);
  CHECK(use.used_bytes == Integer{131'072} * 8193 * 5);
  CHECK(use.reserved_bytes == Integer{131'072} * 8256 * 5);
}

TEST_CASE("a static cache reserves its length, and min(w, length) with a window") {
  KvCacheRequest request = by(KvPolicy::hf_static);
  request.capacity = 100;
  const KvCacheUse use = use_of(two_to_one(3, 32), decode_at(8), request);
  const Integer token = 2 * 2 * 16 * 2;
  CHECK(use.reserved_bytes == token * (100 + 2 * 32));
}

TEST_CASE("llama.cpp pads its context to 256 cells and reserves w + 512 for a supported window") {
  const Integer llama_token = 131'072;
  CHECK(use_of(preset("llama-3-8b"), decode_at(8193, 2), by(KvPolicy::llama_cpp)).reserved_bytes ==
        llama_token * 8448 * 2);
  const ModelSpec spec = two_to_one(3, 128);
  const Integer token = 2 * 2 * 16 * 2;
  CHECK(use_of(spec, decode_at(4096), by(KvPolicy::llama_cpp)).reserved_bytes ==
        token * (4096 + 2 * 768));  // 128 + 512, padded
  CHECK(use_of(spec, decode_at(4096), by(KvPolicy::llama_cpp_swa_full)).reserved_bytes ==
        token * 3 * 4096);
  // Slots that share a cache: four windows of 128 and 512 cells of a pass are 1024.
  KvCacheRequest shared = by(KvPolicy::llama_cpp);
  shared.slots = 4;
  CHECK(use_of(spec, decode_at(4096), shared).reserved_bytes == token * (4096 + 2 * 1024));
  // MiMo-V2-Flash has 9 full layers of 4 key-value heads and 39 windowed ones of 8, all with keys
  // of 192 values and values of 128 (src/models/mimo2.cpp: LLAMA_SWA_TYPE_STANDARD).
  const Integer head = (192 + 128) * 2;
  CHECK(use_of(preset("mimo-v2-flash"), decode_at(4096), by(KvPolicy::llama_cpp)).reserved_bytes ==
        head * (9 * 4 * 4096 + 39 * 8 * 768));
  // GGUF files store Mistral as Llama, which has no window.
  const KvCacheUse mistral =
      use_of(preset("mistral-7b-v0.1"), decode_at(8192), by(KvPolicy::llama_cpp));
  CHECK(mistral.reserved_bytes == Integer{131'072} * 8192);
  CHECK(mistral.used_bytes == Integer{131'072} * 4096);
}

TEST_CASE("latent vectors stay latent in vLLM and are expanded by transformers") {
  const ModelSpec spec = preset("deepseek-v3");
  const Workload workload = decode_at(1600);
  CHECK(use_of(spec, workload, by(KvPolicy::vllm)).reserved_bytes == Integer{70'272} * 1600);
  CHECK(use_of(spec, workload, by(KvPolicy::llama_cpp)).reserved_bytes == Integer{70'272} * 1792);
  // 61 layers, 128 heads, 192 + 128 values of 2 bytes
  CHECK(use_of(spec, workload, by(KvPolicy::hf_dynamic)).reserved_bytes ==
        Integer{61} * 128 * 320 * 2 * 1600);
}

TEST_CASE("llama.cpp b5331 stores V of the latent vectors beside K") {
  // Its log of DeepSeek-V3 at 16,384 tokens: 2,074 MiB; since pull request 19067, 1,098 MiB.
  const ModelSpec spec = preset("deepseek-v3");
  const Integer mib = 1024 * 1024;
  CHECK(use_of(spec, decode_at(16'384), by(KvPolicy::llama_cpp_b5331)).reserved_bytes ==
        2074 * mib);
  CHECK(use_of(spec, decode_at(16'384), by(KvPolicy::llama_cpp)).reserved_bytes == 1098 * mib);
}

TEST_CASE("transformers caches Falcon's keys and values once for each query head") {
  // modeling_falcon.py broadcasts them before the cache: 1,006,632,960 elements for falcon-40b at
  // 1,024 tokens, 16 times those of its 8 key-value heads.
  Workload workload = decode_at(1024);
  workload.kv_dtype = DType::int8;  // one byte per element, so bytes equal elements
  const ModelSpec spec = preset("falcon-40b");
  CHECK(use_of(spec, workload, by(KvPolicy::hf_dynamic)).reserved_bytes == 1'006'632'960);
  CHECK(use_of(spec, workload, by(KvPolicy::hf_static)).reserved_bytes == 1'006'632'960);
  CHECK(use_of(spec, workload, {}).reserved_bytes == 62'914'560);
  CHECK(use_of(preset("falcon-7b"), workload, by(KvPolicy::hf_dynamic)).reserved_bytes ==
        4'194'304);
}

TEST_CASE("keys and values have types of their own") {
  // Qwen3-235B-A22B at 8,192 tokens with --cache-type-k q8_0: a log prints 399.5 and 752 MiB.
  KvCacheRequest request = by(KvPolicy::llama_cpp);
  request.key_type = KvType::q8_0;
  request.value_type = KvType::float16;
  const KvCacheUse use = use_of(preset("qwen3-235b-a22b"), decode_at(8192), request);
  CHECK(use.used_bytes == Integer{2303} * 512 * 1024);  // 1151.5 MiB
  CHECK(!has_plain_values(use));
  CHECK(name_of_types(use.key_type, use.value_type) == "k=q8_0,v=float16");
  request.policy = KvPolicy::vllm;
  CHECK_THROWS_AS((void)use_of(preset("qwen3-235b-a22b"), decode_at(8192), request), Error);
}

TEST_CASE("quantised values use these bytes, with their scales") {
  // Llama-3-8B: 32 layers, 8 heads, keys and values of 128: 65,536 values and 512 vectors per
  // token.
  const ModelSpec spec = preset("llama-3-8b");
  const Workload workload = decode_at(1000);
  const auto used = [&](const KvCacheRequest& request) {
    return use_of(spec, workload, request).used_bytes;
  };
  CHECK(used(in(KvType::float8)) == Integer{65'536} * 1000);
  CHECK(used(in(KvType::float8, KvScales::tensor)) == Integer{65'536} * 1000 + 32 * 2 * 4);
  CHECK(used(in(KvType::float8, KvScales::token_head)) == Integer{65'536 + 512 * 2} * 1000);
  CHECK(used(in(KvType::int8, KvScales::token_head)) == Integer{65'536 + 512 * 4} * 1000);
  CHECK(used(in(KvType::int4)) == Integer{32'768} * 1000);
  CHECK(used(in(KvType::int4, KvScales::group)) == Integer{32'768 + 512 * 4 * 4} * 1000);
  CHECK(used(in(KvType::int2)) == Integer{16'384} * 1000);
  CHECK(used(in(KvType::q8_0)) == Integer{65'536} / 32 * 34 * 1000);
  CHECK(used(in(KvType::q4_0)) == Integer{65'536} / 32 * 18 * 1000);
  CHECK(use_of(spec, workload, in(KvType::q4_0)).bytes_per_token == 36'864);
}

// vllm/v1/kv_cache_interface.py: block_size * num_kv_heads * (head_size + head_size_v) values and
// 2 * block_size * num_kv_heads float32 scales in a page.
TEST_CASE("vLLM's token-head scales have 4 bytes each") {
  KvCacheRequest request = in(KvType::int8, KvScales::token_head);
  request.policy = KvPolicy::vllm;
  const KvCacheUse use = use_of(preset("llama-3-8b"), decode_at(1000), request);
  const Integer page = 16 * 8 * (128 + 128) + 2 * 16 * 8 * 4;
  CHECK(use.reserved_bytes == Integer{32} * 63 * page);
  CHECK(use.used_bytes == Integer{32} * 1000 * (page / 16));
}

// addSequence takes blocks for every token of a prompt; adjustBlocksIfNeeded frees the first block
// while n - 32·freed >= w + 32.
TEST_CASE("TensorRT-LLM frees blocks that have left a window, if it is told the windows") {
  const ModelSpec spec = preset("gpt-oss-20b");  // 12 layers with a window of 128, 12 without
  const Integer token = 2 * 8 * 64 * 2;          // of one layer, bfloat16
  for (const std::int64_t tokens : {100, 128, 159, 160, 161, 1000, 8192}) {
    CAPTURE(tokens);
    std::int64_t freed = 0;
    while (tokens - 32 * freed >= 128 + 32) ++freed;
    const std::int64_t blocks = (tokens + 31) / 32;
    const KvCacheUse use = use_of(spec, decode_at(tokens), by(KvPolicy::tensorrt_llm_windows));
    CHECK(use.steady_bytes == 12 * token * 32 * (blocks + blocks - freed));
    CHECK(use.reserved_bytes == 24 * token * 32 * blocks);
    const KvCacheUse whole = use_of(spec, decode_at(tokens), by(KvPolicy::tensorrt_llm));
    CHECK(whole.steady_bytes == use.reserved_bytes);
    CHECK(whole.reserved_bytes == use.reserved_bytes);
  }
}

TEST_CASE("KIVI does not quantise the last keys and values") {
  // arXiv 2402.02750: of 1000 tokens 1000 mod 128 = 104 keys and 128 values stay in 16 bits.
  const ModelSpec spec = preset("llama-3-8b");
  const KvCacheUse use = use_of(spec, decode_at(1000), in(KvType::int2, KvScales::kivi));
  const Integer heads = 32 * 8;  // of all layers
  const Integer keys = 896 * 128 / 4 + 896 / 32 * 128 * 4 + 104 * 128 * 2;
  const Integer values = 872 * 128 / 4 + 872 * 4 * 4 + 128 * 128 * 2;
  CHECK(use.used_bytes == heads * (keys + values));
}

TEST_CASE("SGLang's pool of windowed layers has 0.8 of the tokens of full ones in some models") {
  const KvCacheUse use = use_of(preset("gpt-oss-20b"), decode_at(1000), by(KvPolicy::sglang));
  const Integer token = 12 * 2 * 8 * 64 * 2;
  CHECK(use.reserved_bytes == token * (1000 + 800));
  CHECK(use.steady_bytes == token * (1000 + 128));
  // MiMo-V2-Flash's pool, too (is_hybrid_swa_model): 9 full layers, and 39 of 0.8 of the tokens.
  const KvCacheUse mimo = use_of(preset("mimo-v2-flash"), decode_at(1000), by(KvPolicy::sglang));
  CHECK(mimo.reserved_bytes == Integer{(192 + 128) * 2} * (9 * 4 * 1000 + 39 * 8 * 800));
  // Gemma's windows are masks: every layer caches all tokens.
  const KvCacheUse gemma = use_of(preset("gemma-2-9b"), decode_at(8192), by(KvPolicy::sglang));
  CHECK(gemma.reserved_bytes == Integer{42} * 2 * 8 * 256 * 2 * 8192);
}

TEST_CASE("an undocumented rule, and an option without effect, is an error") {
  const auto refuses = [](const char* name, const KvCacheRequest& request) {
    CAPTURE(name);
    CHECK_THROWS_AS((void)use_of(preset(name), decode_at(64), request), Error);
  };
  refuses("t5-base", by(KvPolicy::vllm));
  refuses("llama-3-8b", in(KvType::bfloat16, KvScales::group));
  refuses("llama-3-8b", in(KvType::q8_0, KvScales::tensor));
  refuses("llama-3-8b", in(KvType::float8, KvScales::kivi));
  KvCacheRequest request = by(KvPolicy::llama_cpp);
  set_type(request, KvType::float8);
  refuses("llama-3-8b", request);
  request = by(KvPolicy::ideal);
  request.block = 16;
  refuses("llama-3-8b", request);
  request = by(KvPolicy::hf_static);
  request.capacity = 63;
  refuses("llama-3-8b", request);
  request = by(KvPolicy::vllm);
  request.block = 0;
  refuses("llama-3-8b", request);
  request = by(KvPolicy::vllm);
  request.drafter_layers = 0;
  refuses("llama-3-8b", request);
}

TEST_CASE("settings of recurrent layers and drafters are errors where they have no effect") {
  const auto refused = [](const char* name, const KvCacheRequest& request) {
    try {
      (void)use_of(preset(name), decode_at(64), request);
    } catch (const Error& error) {
      return std::string(error.what()) + " | " + error.hint();
    }
    return std::string();
  };
  KvCacheRequest caching = by(KvPolicy::vllm);
  caching.prefix_caching = true;
  CHECK(refused("qwen3-next-80b-a3b", caching).empty());
  CHECK(refused("llama-3-8b", caching).find("no recurrent layers") != std::string::npos);
  caching.policy = KvPolicy::paged;
  CHECK(refused("qwen3-next-80b-a3b", caching).find("leave out") != std::string::npos);
  KvCacheRequest speculative = by(KvPolicy::vllm);
  speculative.speculative_tokens = 3;
  CHECK(refused("llama-3-8b", speculative).find("no recurrent layers") != std::string::npos);
  speculative.policy = KvPolicy::llama_cpp;
  CHECK(refused("qwen3-next-80b-a3b", speculative).find("leave out") != std::string::npos);
  KvCacheRequest drafter = by(KvPolicy::sglang);
  drafter.drafter_layers = 1;
  CHECK(refused("llama-3-8b", drafter).find("leave out") != std::string::npos);
}

TEST_CASE("the KV-cache at the end of a generation holds all tokens but the last") {
  AnalyzeReport report = make_analyze_report(load_model("gpt2"), {});
  add_generation(report, {}, 100);
  // 12 layers, keys and values of 768 in 4 bytes, of 128 + 99 tokens.
  CHECK(report.generation.value().use.used_bytes == 12 * 2 * 768 * 4 * (128 + 99));
  AnalyzeReport encoder = make_analyze_report(load_model("bert-tiny"), {});
  CHECK_THROWS_AS(add_generation(encoder, {}, 100), Error);
}

// gpt-oss-20b: layers alternate between a window of 128 and full attention (config.json,
// layer_types), so their caches have a name each.
TEST_CASE("the caches of alternating layers have a name each") {
  const Model model = read_preset(find_preset("gpt-oss-20b").value());
  const ExplainReport report = make_explain_report(model, {}, Subject::kv);
  REQUIRE(report.parts.size() == 3);
  CHECK(report.parts[0].name == "decoder.layers.attention.kv_cache[0:24:2]");
  CHECK(report.parts[1].name == "decoder.layers.attention.kv_cache[1:24:2]");
}
