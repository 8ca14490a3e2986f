// Both sides of a start-up log: its figures, and the same by prediction.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "enum_table.h"
#include "headroom/engine_log.h"
#include "headroom/error.h"
#include "headroom/plan.h"

namespace headroom {
namespace {

struct LogEngineName {
  LogEngine engine;
  std::string_view name;
};
constexpr LogEngineName kLogEngines[] = {{LogEngine::vllm, "vLLM"},
                                         {LogEngine::llama_cpp, "llama.cpp"}};
static_assert(detail::lists_every<kLogEngines>(&LogEngineName::engine));

/// Without a context in the log, tokens are converted to bytes at this length.
constexpr std::int64_t kUsualContext = 4096;

Integer rounded(double bytes) { return Integer{std::llround(bytes)}; }

/// Settings of recurrent layers have no effect on a model without them.
bool has_recurrent_layers(const ModelSpec& spec) {
  WorkloadRequest request;
  request.phase = Phase::decode;
  const Workload workload = resolve(request, spec);
  const auto use = kv_cache_use(spec, build_graph(spec, graph_options(workload)), workload, {});
  return use && std::ranges::any_of(use->rows, [](const KvCacheRow& row) {
           return row.growth == KvGrowth::constant;
         });
}

/// vLLM's rule for a log's version: "0.19.1rc1.dev301+g6099" is before 0.26. Without a version, or
/// for a build of no release ("0.1.dev20073+g8e68"), the latest.
KvPolicy vllm_rule(const std::optional<std::string>& version) {
  if (!version || !version->starts_with("0.") || version->starts_with("0.1.dev")) {
    return KvPolicy::vllm;
  }
  return std::strtol(version->c_str() + 2, nullptr, 10) < 26 ? KvPolicy::vllm_0_25 : KvPolicy::vllm;
}

KvCacheRequest cache_request(const EngineLog& log, const ModelSpec& spec) {
  KvCacheRequest request;
  set_types(request, log.kv_types);
  switch (log.engine) {
    case LogEngine::vllm:
      request.policy = vllm_rule(log.version);
      request.batched_tokens = log.batched_tokens;
      if ((log.prefix_caching || log.speculative_tokens) && has_recurrent_layers(spec)) {
        request.prefix_caching = log.prefix_caching;
        request.speculative_tokens = log.speculative_tokens;
      }
      break;
    case LogEngine::llama_cpp:
      request.policy = log.llama_cpp_windows;
      request.batched_tokens = log.batched_tokens;
      request.slots = log.slots;
      break;
  }
  return request;
}

DType activations_of(const ModelSpec& spec) {
  return stored_16_bit_type(spec).value_or(DType::bfloat16);
}

/// Memory of the rank that holds most, for one sequence of `context` tokens.
PlanMemory rank_memory(const Model& model, const EngineLog& log, std::int64_t context,
                       const std::optional<DeviceRates>& device) {
  PlanQuery query;
  query.dtype = activations_of(model.spec);
  query.kv_cache = cache_request(log, model.spec);
  const DType cached = stated_kv_dtype(model.spec).value_or(query.dtype);
  query.kv_dtype = counted_type(query.kv_cache, cached).value_or(cached);
  PlanChoice choice;
  choice.parallel.tensor = log.tensor_parallel.value_or(1);
  choice.parallel.pipeline = log.pipeline_parallel.value_or(1);
  Planner planner(model.spec, query, device.value_or(rates_without_speed({}, 0)));
  const Load load{1, context};
  require_legal(choice, load, planner.limits(context));
  return planner.evaluate(choice, load).memory;
}

/// Tokens of a block where the log prints none: vLLM's default on CUDA devices.
constexpr std::int64_t kBlock = 16;

std::int64_t block_of(const EngineLog& log) { return log.block.value_or(kBlock); }

/// vLLM divides the bytes that are left into blocks, and the tokens by the context
/// (get_max_concurrency_for_kv_cache_config).
void add_vllm_cache(const EngineLog& log, Integer sequence_bytes, std::int64_t context,
                    ComparedRun& run) {
  if (!log.cache_bytes || sequence_bytes == 0) return;
  const double sequences = *log.cache_bytes / static_cast<double>(sequence_bytes);
  const Integer tokens = rounded(sequences * static_cast<double>(context));
  run.amounts[Quantity::kv_cache_tokens] = tokens;
  run.amounts[Quantity::kv_cache_blocks] = tokens / block_of(log);
  if (log.context) run.amounts[Quantity::max_concurrency] = sequences;
}

/// vLLM's default of gpu_memory_utilization, 0.4 to 0.20.
constexpr double kMemoryShare = 0.9;

/// The engine's share of the device, without weights, activations of a pass and the runtime
/// (determine_available_memory of vllm/v1/worker/gpu_worker.py).
void add_available(const EngineLog& log, const PlanMemory& memory, double device_bytes,
                   ComparedRun& run) {
  const Integer taken = memory.total() - memory.kv_cache - memory.runtime.driver;
  const double share = log.memory_share.value_or(kMemoryShare);
  const double left = share * device_bytes - static_cast<double>(taken);
  run.amounts[Quantity::kv_cache_available_bytes] = rounded(std::max(0.0, left));
}

void predict_vllm(const Model& model, const EngineLog& log,
                  const std::optional<DeviceRates>& device, ComparedRun& run) {
  const std::int64_t context = log.context.value_or(kUsualContext);
  const PlanMemory memory = rank_memory(model, log, context, device);
  run.amounts[Quantity::weight_bytes] = memory.weights + memory.embedding_states;
  add_vllm_cache(log, memory.kv_cache, context, run);
  if (device) {
    const Integer usable = device->memory_bytes - device->driver_bytes;
    add_available(log, memory, log.device_bytes.value_or(static_cast<double>(usable)), run);
  }
}

/// Keys and values: llama.cpp prints recurrent states apart.
Integer bytes_of_cells(const KvCacheUse& use) {
  Integer bytes = 0;
  for (const KvCacheRow& row : use.rows) {
    if (row.growth == KvGrowth::full || row.growth == KvGrowth::windowed) {
      bytes += row.reserved_bytes;
    }
  }
  return bytes;
}

void predict_llama_cpp(const Model& model, const EngineLog& log, ComparedRun& run) {
  WorkloadRequest request;
  request.phase = Phase::decode;
  request.batch_size = log.sequences.value_or(1);
  request.past_len = log.context.value_or(kUsualContext) - 1;
  request.dtype = DType::float16;
  if (has_latent_attention(model.spec)) request.latent = log.latent;
  request.attention = AttentionImplementation::fused;
  const Workload workload = resolve(request, model.spec);
  const Graph graph = build_graph(model.spec, graph_options(workload));
  run.amounts[Quantity::weight_bytes] = stored_weights(model.spec, graph).bytes;
  if (!log.context) return;
  const auto use = kv_cache_use(model.spec, graph, workload, cache_request(log, model.spec));
  if (use) run.amounts[Quantity::kv_cache_bytes] = bytes_of_cells(*use);
}

}  // namespace

std::string_view name_of(LogEngine engine) noexcept {
  return kLogEngines[static_cast<std::size_t>(engine)].name;
}

ComparedRun measured_start(const EngineLog& log) {
  ComparedRun run;
  run.engine = name_of(log.engine);
  if (log.weight_bytes) run.amounts[Quantity::weight_bytes] = rounded(*log.weight_bytes);
  switch (log.engine) {
    case LogEngine::vllm:
      if (log.cache_tokens) {
        run.amounts[Quantity::kv_cache_tokens] = Integer{*log.cache_tokens};
        run.amounts[Quantity::kv_cache_blocks] = Integer{*log.cache_tokens / block_of(log)};
      }
      if (log.cache_bytes) {
        run.amounts[Quantity::kv_cache_available_bytes] = rounded(*log.cache_bytes);
      }
      if (log.concurrency) run.amounts[Quantity::max_concurrency] = *log.concurrency;
      break;
    case LogEngine::llama_cpp:
      if (log.cache_bytes) run.amounts[Quantity::kv_cache_bytes] = rounded(*log.cache_bytes);
      break;
  }
  return run;
}

ComparedRun predicted_start(const Model& model, const EngineLog& log,
                            const std::optional<DeviceRates>& device) {
  ComparedRun run;
  run.identity.model = model.spec.name;
  switch (log.engine) {
    case LogEngine::vllm:
      predict_vllm(model, log, device, run);
      break;
    case LogEngine::llama_cpp:
      predict_llama_cpp(model, log, run);
      break;
  }
  return run;
}

std::string describe(const EngineLog& log) {
  std::string words(name_of(log.engine));
  if (log.version) words += " " + *log.version;
  const auto add = [&](const char* label, const std::optional<std::int64_t>& value) {
    if (value) words += fmt::format(" · {} {}", label, *value);
  };
  add("tp", log.tensor_parallel);
  add("pp", log.pipeline_parallel);
  add("context", log.context);
  add("sequences", log.slots ? log.slots : log.sequences);
  if (log.kv_types.key) {
    const KvType value = log.kv_types.value.value_or(*log.kv_types.key);
    words += fmt::format(" · KV-cache {}", name_of_types(*log.kv_types.key, value));
  }
  return words;
}

}  // namespace headroom
