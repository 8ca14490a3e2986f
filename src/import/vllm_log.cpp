// vLLM prints bytes in units of 2^30, also where it calls them GB, and each rank prints its own.
#include <algorithm>

#include "log_formats.h"

namespace headroom::detail {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

/// Tokens of a block where the log prints blocks alone: vLLM's default on CUDA devices.
constexpr std::int64_t kBlock = 16;

/// The cache's type by vLLM's name (CacheDType); empty for "auto".
std::optional<KvType> vllm_cache_type(std::string_view name) {
  if (name.starts_with("fp8")) return KvType::float8;
  if (name == "bfloat16") return KvType::bfloat16;
  if (name == "float16" || name == "half") return KvType::float16;
  return std::nullopt;
}

template <class Value>
void set_if(std::optional<Value>& target, const std::optional<Value>& value) {
  if (value) target = value;
}

/// "the current vLLM instance can use total_gpu_memory (79.22GiB) x gpu_memory_utilization (0.90)",
/// or both on lines of their own, or as an argument: "'gpu_memory_utilization': 0.95".
void read_device(const LogLine& line, EngineLog& log) {
  for (const char* const words : {"total_gpu_memory (", "total_gpu_memory "}) {
    if (const auto gib = line.number_after(words)) log.device_bytes = *gib * kGiB;
  }
  for (const char* const words : {"gpu_memory_utilization (", "gpu_memory_utilization': ",
                                  "gpu_memory_utilization=", "gpu_memory_utilization "}) {
    const auto share = line.number_after(words);
    if (share > 0 && share <= 1) log.memory_share = share;
  }
  for (const char* const words : {"'block_size': ", " block_size="}) {
    const auto block = line.count_after(words);
    if (block > 0) log.block = block;
  }
}

/// "Initializing a V1 LLM engine (v0.8.1) with config: model='…', …".
void read_config(const LogLine& line, EngineLog& log) {
  if (const std::string_view version = line.word_after("engine (v"); !version.empty()) {
    log.version = std::string(version);
  }
  set_if(log.tensor_parallel, line.size_after("tensor_parallel_size="));
  set_if(log.pipeline_parallel, line.size_after("pipeline_parallel_size="));
  set_if(log.context, line.size_after("max_seq_len="));
  set_if(log.speculative_tokens, line.count_after("num_spec_tokens="));
  if (const auto type = vllm_cache_type(line.word_after("kv_cache_dtype="))) {
    log.kv_types = {type, type};
  }
  log.prefix_caching = line.has("enable_prefix_caching=True");
}

/// "Chunked prefill is enabled with max_num_batched_tokens=8192."
void read_batched_tokens(const LogLine& line, EngineLog& log) {
  const auto tokens = line.count_after("max_num_batched_tokens=");
  if (tokens > 0) log.batched_tokens = tokens;
}

/// Versions since 2024 word the weights in four ways.
std::optional<double> weights_of(const LogLine& line) {
  for (const char* const words :
       {"Model loading took ", "Loading model weights took ", "model weights take "}) {
    if (const auto gib = line.number_after(words)) return *gib * kGiB;
  }
  return std::nullopt;
}

std::optional<double> cache_bytes_of(const LogLine& line) {
  for (const char* const words : {"Available KV cache memory: ", "memory reserved for KV Cache is ",
                                  "available_kv_cache_memory "}) {
    if (const auto gib = line.number_after(words)) return *gib * kGiB;
  }
  return std::nullopt;
}

std::optional<std::int64_t> cache_tokens_of(const LogLine& line, std::int64_t block) {
  if (const auto tokens = line.count_after("GPU KV cache size: ")) return tokens;
  for (const char* const words :
       {"# GPU blocks: ", "# CUDA blocks: ", "# cuda blocks: ", "# rocm blocks: "}) {
    const auto blocks = line.count_after(words);
    std::int64_t tokens = 0;
    if (blocks && !__builtin_mul_overflow(*blocks, block, &tokens)) return tokens;
  }
  return std::nullopt;
}

bool read_concurrency(const LogLine& line, EngineLog& log) {
  const auto context = line.size_after("Maximum concurrency for ");
  if (!context) return false;
  log.context = context;
  set_if(log.concurrency, line.number_after("tokens per request: "));
  return true;
}

}  // namespace

bool read_vllm_line(const LogLine& line, EngineLog& log) {
  if (line.has("with config: ")) read_config(line, log);
  read_device(line, log);
  read_batched_tokens(line, log);
  const std::optional<double> weights = weights_of(line);
  const std::optional<double> cache = cache_bytes_of(line);
  const std::optional<std::int64_t> tokens = cache_tokens_of(line, log.block.value_or(kBlock));
  if (weights) log.weight_bytes = std::max(log.weight_bytes.value_or(0), *weights);
  if (cache) log.cache_bytes = std::min(log.cache_bytes.value_or(*cache), *cache);
  set_if(log.cache_tokens, tokens);
  // One line has tokens and concurrency in newer versions.
  const bool has_concurrency = read_concurrency(line, log);
  return weights || cache || tokens || has_concurrency;
}

}  // namespace headroom::detail
