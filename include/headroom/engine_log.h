// Start-up logs: what an engine prints of its weights and KV-cache, and the same by prediction.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headroom/compare.h"
#include "headroom/device_rates.h"
#include "headroom/storage.h"

namespace headroom {

enum class LogEngine { vllm, llama_cpp };

[[nodiscard]] std::string_view name_of(LogEngine engine) noexcept;

/// Settings and figures of a start-up log. A field is empty if the log does not print it.
struct EngineLog {
  LogEngine engine = LogEngine::vllm;
  std::optional<std::string> version;  ///< "0.8.1", "b5331"

  // Settings.
  std::optional<std::int64_t> tensor_parallel;
  std::optional<std::int64_t> pipeline_parallel;
  std::optional<std::int64_t> context;         ///< tokens: vLLM's max_model_len, llama.cpp's cells
  std::optional<std::int64_t> sequences;       ///< llama.cpp: with cells of their own
  std::optional<std::int64_t> slots;           ///< llama.cpp: sequences that share the cells
  std::optional<std::int64_t> batched_tokens;  ///< vLLM's max_num_batched_tokens, n_ubatch
  KvTypes kv_types;                            ///< empty: the activations'
  bool prefix_caching = false;                 ///< vLLM
  std::optional<std::int64_t> speculative_tokens;      ///< vLLM
  std::optional<double> memory_share;                  ///< vLLM: gpu_memory_utilization
  std::optional<std::int64_t> block;                   ///< vLLM: tokens of a block
  LatentAttention latent = LatentAttention::absorbed;  ///< llama.cpp: how MLA is cached
  KvPolicy llama_cpp_windows = KvPolicy::llama_cpp;    ///< llama.cpp: windows kept whole or not

  // Figures.
  std::optional<double> weight_bytes;        ///< vLLM: of the rank with most; llama.cpp: of all
  std::optional<double> file_bytes;          ///< llama.cpp: of all tensors in their files
  std::optional<double> device_bytes;        ///< vLLM: of the device, which versions of V0 print
  std::optional<double> cache_bytes;         ///< vLLM: free for the cache, on the rank with least
  std::optional<std::int64_t> cache_tokens;  ///< vLLM
  std::optional<double> concurrency;         ///< vLLM: sequences of `context` tokens
};

/// Returns whether `text` has a line of a start-up log that `read_engine_log` knows.
[[nodiscard]] bool is_engine_log(std::string_view text);

/// Reads vLLM's log (0.4 to 0.20; formats of its gpu_executor.py, worker.py, gpu_model_runner.py
/// and kv_cache_utils.py) or llama.cpp's (b1700 to b9000; llama-model.cpp, llama-kv-cache.cpp).
/// Throws Error{invalid_input} if it prints neither weights nor cache.
[[nodiscard]] EngineLog read_engine_log(std::string_view text, const std::string& where);

/// The log's figures as a measurement.
[[nodiscard]] ComparedRun measured_start(const EngineLog& log);

/// These figures by prediction: weights of the largest rank, and the tokens that fit into the
/// bytes that the engine had left (vLLM), or the bytes of its cells (llama.cpp). Of vLLM on a
/// device also the bytes that were left, with the log's memory of the device if it states that.
/// Throws
/// Error{invalid_input} for a plan that the model cannot run.
[[nodiscard]] ComparedRun predicted_start(const Model& model, const EngineLog& log,
                                          const std::optional<DeviceRates>& device = {});

/// The log's settings in words: "vLLM 0.8.1 · tp 2 · context 8192 · KV-cache float8".
[[nodiscard]] std::string describe(const EngineLog& log);

}  // namespace headroom
