// Start-up logs of engines. Files of tests/data/logs/start are lines of public threads, as printed
// (README.md there); other lines are made here in the format strings of vLLM and llama.cpp.
#include <doctest/doctest.h>

#include <cmath>

#include "headroom/engine_log.h"
#include "headroom/error.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

constexpr double kBytesOfGiB = 1024.0 * 1024.0 * 1024.0;
constexpr double kBytesOfMiB = 1024.0 * 1024.0;

EngineLog log_of(const char* file) {
  const auto path = data_folder() / "logs/start" / file;
  return read_engine_log(read_file(path), path.string());
}

Integer count_of(const ComparedRun& run, Quantity quantity) {
  REQUIRE(run.amounts.contains(quantity));
  return std::get<Integer>(run.amounts.at(quantity));
}

/// (measured − predicted)/predicted.
double difference(const char* model, const EngineLog& log, Quantity quantity) {
  const auto predicted =
      static_cast<double>(count_of(predicted_start(load_model(model), log), quantity));
  return static_cast<double>(count_of(measured_start(log), quantity)) / predicted - 1;
}

}  // namespace

TEST_CASE("vLLM's log of Qwen2.5-1.5B prints the weights and tokens that are predicted") {
  const EngineLog log = log_of("vllm_qwen2.5-1.5b.log");
  CHECK(log.engine == LogEngine::vllm);
  CHECK(log.weight_bytes == doctest::Approx(2.89 * kBytesOfGiB));
  CHECK(log.cache_bytes == doctest::Approx(0.56 * kBytesOfGiB));
  CHECK(log.cache_tokens == 20'992);
  CHECK(std::abs(difference("qwen2.5-1.5b", log, Quantity::weight_bytes)) < kPrintedTolerance);
  // 2 · 28 layers · 2 heads · 128 · 2 B = 28,672 B for a token.
  CHECK(count_of(predicted_start(load_model("qwen2.5-1.5b"), log), Quantity::kv_cache_tokens) ==
        Integer{std::llround(0.56 * kBytesOfGiB / 28'672)});
  CHECK(std::abs(difference("qwen2.5-1.5b", log, Quantity::kv_cache_tokens)) < kPrintedTolerance);
}

TEST_CASE("vLLM's first engine words its memory in another way") {
  const EngineLog log = log_of("vllm_llama-3-8b_v0.log");
  CHECK(log.cache_bytes == doctest::Approx(53.29 * kBytesOfGiB));
  CHECK(!log.cache_tokens);
  CHECK(std::abs(difference("llama-3-8b", log, Quantity::weight_bytes)) < kPrintedTolerance);
}

// The log's lines: (71.29 - 14.96 - 1.79 - 1.26) GiB, a share of 0.9 of 79.22 GiB.
TEST_CASE("vLLM's memory for the cache is its share of the device, without weights and runtime") {
  const EngineLog log = log_of("vllm_llama-3-8b_v0.log");
  CHECK(log.device_bytes == doctest::Approx(79.22 * kBytesOfGiB));
  CHECK(log.memory_share == doctest::Approx(0.9));
  const DeviceRates device =
      device_rates(find_machine("h100-80gb"), Purpose::serve, DType::bfloat16);
  const Model model = load_model("llama-3-8b");
  const Quantity available = Quantity::kv_cache_available_bytes;
  CHECK(!predicted_start(model, log).amounts.contains(available));
  const auto predicted =
      static_cast<double>(count_of(predicted_start(model, log, device), available));
  CHECK(predicted == doctest::Approx(53.29 * kBytesOfGiB).epsilon(0.05));
}

TEST_CASE("blocks are tokens over the block that the log states, or 16") {
  const std::string lines =
      "INFO worker.py:1] Available KV cache memory: 7.73 GiB\n"
      "INFO kv_cache_utils.py:1] GPU KV cache size: 144,768 tokens\n";
  const EngineLog log = read_engine_log(lines, "log");
  CHECK(count_of(measured_start(log), Quantity::kv_cache_blocks) == 9048);
  const EngineLog wide = read_engine_log(
      "INFO utils.py:1] non-default args: {'block_size': 64, 'gpu_memory_utilization': 0.95}\n" +
          lines,
      "log");
  CHECK(wide.memory_share == doctest::Approx(0.95));
  CHECK(count_of(measured_start(wide), Quantity::kv_cache_blocks) == 2262);
  const ComparedRun predicted = predicted_start(load_model("qwen2.5-1.5b"), wide);
  CHECK(count_of(predicted, Quantity::kv_cache_blocks) ==
        count_of(predicted, Quantity::kv_cache_tokens) / 64);
}

TEST_CASE("llama.cpp's log of gpt-oss-20b prints the cells of both kinds of layers") {
  const EngineLog log = log_of("llama_cpp_gpt-oss-20b.log");
  CHECK(log.engine == LogEngine::llama_cpp);
  CHECK(log.context == 131'072);
  CHECK(log.batched_tokens == 2048);
  CHECK(log.sequences == 1);
  CHECK(!log.slots);
  CHECK(log.weight_bytes == doctest::Approx((586.82 + 11536.18) * kBytesOfMiB));
  CHECK(log.cache_bytes == doctest::Approx((3072 + 54) * kBytesOfMiB));
  CHECK(difference("gpt-oss-20b", log, Quantity::kv_cache_bytes) == 0);
}

TEST_CASE("llama.cpp's log of Qwen3-1.7B prints the cells of 1024 tokens") {
  const EngineLog log = log_of("llama_cpp_qwen3-1.7b.log");
  CHECK(!log.weight_bytes);
  CHECK(difference("qwen3-1.7b", log, Quantity::kv_cache_bytes) == 0);
}

TEST_CASE("settings of vLLM's config line set the plan and the cache's type") {
  const EngineLog log = read_engine_log(
      "INFO core.py:69] Initializing a V1 LLM engine (v0.8.1) with config: model='m', "
      "speculative_config=None, dtype=torch.bfloat16, max_seq_len=8192, tensor_parallel_size=2, "
      "pipeline_parallel_size=1, kv_cache_dtype=fp8_e4m3, enable_prefix_caching=True\n"
      "INFO loader.py] Loading model weights took 7.4829 GB\n"
      "INFO loader.py] Loading model weights took 7.5000 GB\n"
      "INFO worker.py] Available KV cache memory: 10.50 GiB\n"
      "INFO worker.py] Available KV cache memory: 10.00 GiB\n"
      "INFO kv_cache_utils.py] GPU KV cache size: 327,680 tokens\n"
      "INFO kv_cache_utils.py] Maximum concurrency for 8,192 tokens per request: 40.00x\n",
      "vllm.log");
  CHECK(log.version == "0.8.1");
  CHECK(log.tensor_parallel == 2);
  CHECK(log.pipeline_parallel == 1);
  CHECK(log.context == 8192);
  CHECK(log.kv_types.key == KvType::float8);
  CHECK(log.prefix_caching);
  CHECK(log.weight_bytes == doctest::Approx(7.5 * kBytesOfGiB));
  CHECK(log.cache_bytes == doctest::Approx(10 * kBytesOfGiB));
  CHECK(describe(log) == "vLLM 0.8.1 · tp 2 · pp 1 · context 8192 · KV-cache float8");
  // Llama-3-8B on each of two ranks: 32 layers · 2 · 4 heads · 128 · 1 B = 32,768 B for a token.
  const ComparedRun predicted = predicted_start(load_model("llama-3-8b"), log);
  CHECK(count_of(predicted, Quantity::kv_cache_tokens) == Integer{327'680});
  CHECK(std::get<double>(predicted.amounts.at(Quantity::max_concurrency)) == doctest::Approx(40.0));
  CHECK(std::get<double>(measured_start(log).amounts.at(Quantity::max_concurrency)) == 40.0);
  // Half of every matrix of layers and tables; norms are whole.
  CHECK(static_cast<double>(count_of(predicted, Quantity::weight_bytes)) ==
        doctest::Approx(8'030'261'248.0).epsilon(0.0001));
}

TEST_CASE("a log's version chooses vLLM's rule of windowed layers") {
  // vllm-project/vllm issue 49878: of 49 GiB, a sequence of 262,144 tokens needs 45.79 GiB before
  // 0.26 and 70.79 since, with passes of 32,768.
  const auto concurrency = [](const std::string& version) {
    const EngineLog log = read_engine_log(
        "INFO core.py:109] Initializing a V1 LLM engine (v" + version +
            ") with config: model='m', max_seq_len=262144, kv_cache_dtype=bfloat16\n"
            "INFO scheduler.py] Chunked prefill is enabled with max_num_batched_tokens=32768.\n"
            "INFO gpu_worker.py] Available KV cache memory: 49.0 GiB\n",
        "vllm.log");
    CHECK(log.batched_tokens == 32'768);
    const ComparedRun run = predicted_start(load_model("gemma-4-31b-it-nvfp4"), log);
    return std::get<double>(run.amounts.at(Quantity::max_concurrency));
  };
  CHECK(concurrency("0.25.1") == doctest::Approx(49 / 45.79).epsilon(0.0002));
  CHECK(concurrency("0.19.1rc1.dev301+g60995c05b") == concurrency("0.25.1"));
  CHECK(concurrency("0.26.0") == doctest::Approx(49 / 70.79).epsilon(0.0002));
  CHECK(concurrency("0.1.dev20073+g8e685d198") == concurrency("0.26.0"));
}

TEST_CASE("vLLM's blocks have 16 tokens") {
  const EngineLog log = read_engine_log("INFO kv_cache_utils.py:395] # GPU blocks: 1381\n", "log");
  CHECK(log.cache_tokens == 22'096);
}

// The buffers of Llama 3.1 8B in Q4_K_M on a processor with AMX, as a public thread quotes them
// (github.com/ikawrakow/ik_llama.cpp); the file's size is its own.
TEST_CASE("tensors that llama.cpp maps and copies count once, by the size of their file") {
  const std::string buffers =
      "load_tensors:   CPU_Mapped model buffer size =  4685.30 MiB\n"
      "load_tensors:          AMX model buffer size =  4491.48 MiB\n";
  const double mib = 1024.0 * 1024.0;
  CHECK(read_engine_log(buffers, "log").weight_bytes == doctest::Approx(9176.78 * mib));
  const std::string file = "print_info: file size   = 4.58 GiB (4.89 BPW)\n";
  CHECK(read_engine_log(file + buffers, "log").weight_bytes == doctest::Approx(4.58 * 1024 * mib));
  // A draft model beside it: both files count.
  const std::string draft =
      "print_info: file size   = 0.60 GiB (4.89 BPW)\n"
      "load_tensors:   CPU_Mapped model buffer size =   614.00 MiB\n";
  CHECK(read_engine_log(file + buffers + draft, "log").weight_bytes ==
        doctest::Approx((4.58 + 0.60) * 1024 * mib));
  const std::string offloaded =
      "llm_load_print_meta: model size       = 4.58 GiB (4.89 BPW)\n"
      "llm_load_tensors:        CPU buffer size =   281.81 MiB\n"
      "llm_load_tensors:      CUDA0 buffer size =  4403.49 MiB\n";
  CHECK(read_engine_log(offloaded, "log").weight_bytes == doctest::Approx(4685.30 * mib));
}

TEST_CASE("slots of llama.cpp share the cells of one stream, or have cells of their own") {
  const char* const line =
      "llama_kv_cache: size = 256.00 MiB (  4096 cells,  16 layers,  %s seqs), K (q8_0): 128.00 "
      "MiB, V (q8_0): 128.00 MiB\n";
  const auto with = [&](const char* sequences) {
    std::string text(line);
    text.replace(text.find("%s"), 2, sequences);
    return read_engine_log(text, "log");
  };
  const EngineLog shared = with("4/1");
  CHECK(shared.slots == 4);
  CHECK(shared.sequences == 1);
  CHECK(shared.kv_types.value == KvType::q8_0);
  const EngineLog apart = with(" 4/4");
  CHECK(!apart.slots);
  CHECK(apart.sequences == 4);
}

TEST_CASE("logs of older llama.cpp, of latent caches and of whole windows are read") {
  const EngineLog old = read_engine_log(
      "main: build = 2843 (e8496488)\n"
      "llm_load_tensors:      CUDA0 buffer size =  4403.49 MiB\n"
      "llm_load_tensors:        CPU buffer size =   281.81 MiB\n"
      "llama_new_context_with_model: n_ctx      = 8192\n"
      "llama_new_context_with_model: KV self size  = 1024.00 MiB, K (f16):  512.00 MiB, V (f16):  "
      "512.00 MiB\n",
      "log");
  CHECK(old.version == "b2843");
  CHECK(old.context == 8192);
  CHECK(old.latent == LatentAttention::naive);
  CHECK(old.weight_bytes == doctest::Approx(4685.30 * kBytesOfMiB));
  CHECK(difference("llama-3-8b", old, Quantity::kv_cache_bytes) == 0);

  const EngineLog latent = read_engine_log(
      "llama_kv_cache: size =  354.75 MiB (  8448 cells,  43 layers,  1/1 seqs), K (f16):  354.75 "
      "MiB, V (f16):    0.00 MiB\n",
      "log");
  CHECK(latent.latent == LatentAttention::absorbed);

  const EngineLog whole = read_engine_log(
      "llama_kv_cache_iswa: using full-size SWA cache (ref: link)\n"
      "llama_kv_cache: size = 3072.00 MiB (131072 cells,  12 layers,  1/1 seqs), K (f16): 1536.00 "
      "MiB, V (f16): 1536.00 MiB\n",
      "log");
  CHECK(whole.llama_cpp_windows == KvPolicy::llama_cpp_swa_full);
}

TEST_CASE("text without a known line is no log, and numbers out of range are not read") {
  CHECK(!is_engine_log("INFO: Application startup complete.\n"));
  CHECK(!is_engine_log(R"([{"avg_ts": 200.0, "n_prompt": 512}])"));
  CHECK(!is_engine_log("# GPU blocks: many\nModel loading took long\n"));
  CHECK(!is_engine_log("GPU KV cache size: 99999999999999999999 tokens\n"));
  CHECK_THROWS_AS((void)read_engine_log("", "log"), Error);
}
