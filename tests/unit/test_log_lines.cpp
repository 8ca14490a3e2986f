// Single lines of start-up logs in rarer forms of vLLM's and llama.cpp's format strings, and
// values that are not read.
#include <doctest/doctest.h>

#include "headroom/engine_log.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

constexpr double kMebi = 1024.0 * 1024.0;
constexpr double kGibi = 1024.0 * kMebi;

/// A log of vLLM with this line before that of its weights.
EngineLog vllm_log(const std::string& line) {
  return read_engine_log(line + "\nINFO Model loading took 2.50 GiB\n", "log");
}

/// A log of llama.cpp with this line before that of its weights.
EngineLog llama_cpp_log(const std::string& line) {
  return read_engine_log(line + "\nload_tensors: CPU model buffer size = 100.00 MiB\n", "log");
}

std::optional<KvType> vllm_type(const std::string& name) {
  return vllm_log("engine (v1) with config: kv_cache_dtype=" + name + ", x").kv_types.key;
}

}  // namespace

TEST_CASE("vLLM's names of the cache's type are known, and auto is the activations'") {
  CHECK(vllm_type("fp8") == KvType::float8);
  CHECK(vllm_type("fp8_e5m2") == KvType::float8);
  CHECK(vllm_type("bfloat16") == KvType::bfloat16);
  CHECK(vllm_type("float16") == KvType::float16);
  CHECK(vllm_type("half") == KvType::float16);
  CHECK_FALSE(vllm_type("auto"));
}

TEST_CASE("a config line without a version, and shares and blocks out of range, set nothing") {
  CHECK_FALSE(vllm_log("engine with config: model='m'").version);
  CHECK_FALSE(vllm_log("engine (v, x) with config: model='m'").version);
  CHECK(vllm_log("'gpu_memory_utilization': 1.0").memory_share == 1.0);
  CHECK_FALSE(vllm_log("'gpu_memory_utilization': 90").memory_share);
  CHECK_FALSE(vllm_log("'gpu_memory_utilization': 0").memory_share);
  CHECK_FALSE(vllm_log("'block_size': 0").block);
  CHECK_FALSE(vllm_log("max_num_batched_tokens=0").batched_tokens);
}

TEST_CASE("numbers that no engine prints are not read") {
  CHECK_FALSE(
      vllm_log("# GPU blocks: 4503599627370496, 'block_size': 4503599627370496").cache_tokens);
  CHECK_FALSE(vllm_log("Available KV cache memory: 4294967296 GiB").cache_bytes);
  CHECK_FALSE(vllm_log("engine (v1) with config: max_seq_len=0, x").context);
  CHECK_FALSE(vllm_log("engine (v1) with config: tensor_parallel_size=0, x").tensor_parallel);
  CHECK_FALSE(vllm_log("Maximum concurrency for 0 tokens per request: 3.5x").context);
}

TEST_CASE("a number at the end of a line, without one, or with a fraction") {
  CHECK(vllm_log("GPU KV cache size: 1,024").cache_tokens == 1024);
  CHECK_FALSE(vllm_log("GPU KV cache size: ").cache_tokens);
  CHECK_FALSE(vllm_log("GPU KV cache size: 10.5 tokens").cache_tokens);
  CHECK_FALSE(vllm_log("GPU KV cache size: 9,007,199,254,740,992 tokens").cache_tokens);
  CHECK(vllm_log("GPU KV cache size: 9,007,199,254,740,991 tokens").cache_tokens ==
        9'007'199'254'740'991);
}

TEST_CASE("llama.cpp prints the size of a small file in MiB, and of one with no buffers alone") {
  const std::string small = "print_info: file size   = 0.50 MiB (4.89 BPW)";
  CHECK(llama_cpp_log(small).file_bytes == doctest::Approx(0.5 * kMebi));
  CHECK(llama_cpp_log(small).weight_bytes == doctest::Approx(0.5 * kMebi));
  const EngineLog cache = read_engine_log(
      "print_info: file size   = 2.00 GiB (4.89 BPW)\n"
      "llama_kv_cache: size = 256.00 MiB (  4096 cells,  16 layers,  1/1 seqs), K (f16): 128.00 "
      "MiB, V (f16): 128.00 MiB\n",
      "log");
  CHECK(cache.file_bytes == doctest::Approx(2 * kGibi));
  CHECK_FALSE(cache.weight_bytes);
}

TEST_CASE("types of llama.cpp's cache are ggml's, and a name that is none is not read") {
  const auto types = [](const std::string& rest) {
    return llama_cpp_log("llama_new_context_with_model: KV self size  = 64.00 MiB, " + rest);
  };
  const EngineLog blocks = types("K (q4_0): 32.00 MiB, V (q8_0): 32.00 MiB");
  CHECK(blocks.kv_types.key == KvType::q4_0);
  CHECK(blocks.kv_types.value == KvType::q8_0);
  const EngineLog others = types("K (bf16): 32.00 MiB, V (q9_9): 32.00 MiB");
  CHECK(others.kv_types.key == KvType::bfloat16);
  CHECK_FALSE(others.kv_types.value);
  const EngineLog latent = types("c^KV (f16): 64.00 MiB, kv^T: not used");
  CHECK(latent.kv_types.key == KvType::float16);
  CHECK(latent.kv_types.value == KvType::float16);
  CHECK(latent.latent == LatentAttention::absorbed);
  CHECK(types("K (f16): 32.00 MiB, V (f16): 32.00 MiB").latent == LatentAttention::naive);
}

TEST_CASE("llama.cpp's context is on a line of its own in versions that name their caller") {
  CHECK(llama_cpp_log("llama_new_context_with_model: n_ctx      = 2048").context == 2048);
  CHECK(llama_cpp_log("llama_init_from_model: n_ctx         = 4096").context == 4096);
  CHECK_FALSE(llama_cpp_log("llama_context: n_ctx         = 4096").context);
}

TEST_CASE("a cache of one stream states no layers in older versions, and has one sequence") {
  const EngineLog log = llama_cpp_log("llama_kv_cache: size = 64.00 MiB (  512 cells, K (f16))");
  CHECK(log.context == 512);
  CHECK(log.sequences == 1);
  CHECK_FALSE(log.slots);
}
