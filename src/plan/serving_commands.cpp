// vLLM, SGLang and TensorRT-LLM: degrees, lengths and types of a serving plan as their options.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "command_words.h"
#include "engine_commands.h"
#include "weight_commands.h"

namespace headroom::detail {
namespace {

std::string_view name_of_activations(DType type) {
  return type == DType::float16 ? "float16" : type == DType::float32 ? "float32" : "bfloat16";
}

bool caches_in_float8(const PlanQuestion& question) {
  return question.query.kv_cache.key_type == KvType::float8;
}

bool has_adapters(const PlanQuestion& question) {
  return question.query.adapter.kind != AdapterKind::none;
}

/// The least rank that vLLM reserves for adapters of `rank` (MaxLoRARanks of vllm/config/lora.py);
/// empty if it takes none so large.
std::optional<std::int64_t> vllm_rank(std::int64_t rank) {
  constexpr std::array<std::int64_t, 9> kRanks{1, 8, 16, 32, 64, 128, 256, 320, 512};
  const auto* const found = std::ranges::lower_bound(kRanks, rank);
  return found == kRanks.end() ? std::nullopt : std::optional(*found);
}

/// Adapters of requests, which the engine loads by name.
void add_vllm_adapters(const PlanQuestion& question, CommandWords& words, EngineCommand& command) {
  if (!has_adapters(question)) return;
  const Adapter& adapter = question.query.adapter;
  const std::optional<std::int64_t> rank = vllm_rank(adapter.rank);
  if (!rank) {
    command.notes.push_back(
        fmt::format("vLLM takes adapters up to rank 512, not {}", adapter.rank));
    return;
  }
  words.add("--enable-lora");
  words.add("--max-loras", adapter.held);
  words.add("--max-lora-rank", *rank);
  if (*rank == adapter.rank) return;
  command.notes.push_back(
      fmt::format("vLLM takes rank {} for adapters of rank {}, and reserves their memory", *rank,
                  adapter.rank));
}

std::string_view sglang_modules(AdapterTargets targets) {
  switch (targets) {
    case AdapterTargets::query_value:
      return "q_proj v_proj";
    case AdapterTargets::attention:
      return "q_proj k_proj v_proj o_proj";
    case AdapterTargets::all:
      break;
  }
  return "all";
}

/// SGLang keeps adapters in a pool of this size (docs.sglang.io, advanced_features/lora); without
/// paths at the start it needs the rank and the matrices.
void add_sglang_adapters(const PlanQuestion& question, CommandWords& words,
                         EngineCommand& command) {
  if (!has_adapters(question)) return;
  const Adapter& adapter = question.query.adapter;
  words.add("--enable-lora");
  words.add("--max-loras-per-batch", adapter.held);
  words.add("--max-lora-rank", adapter.rank);
  words.add("--lora-target-modules", sglang_modules(adapter.targets));
  command.notes.emplace_back("name the adapters with --lora-paths, or load them while serving");
}

/// Most tokens of a prompt that one pass takes; empty: the engine's choice.
std::optional<std::int64_t> pass_tokens_of(const PlanQuery& query) {
  if (query.kv_cache.batched_tokens) return query.kv_cache.batched_tokens;
  const bool is_asked = query.prefill_tokens != PlanQuery{}.prefill_tokens;
  return is_asked ? std::optional(query.prefill_tokens) : std::nullopt;
}

/// vLLM's options of the cache and of passes (docs.vllm.ai, configuration/engine_args).
/// It refuses passes of fewer tokens than `sequences` (SchedulerConfig).
void add_vllm_cache(const PlanQuery& query, std::int64_t sequences, CommandWords& words,
                    EngineCommand& command) {
  if (const auto tokens = pass_tokens_of(query)) {
    words.add("--max-num-batched-tokens", std::max(*tokens, sequences));
  }
  if (query.kv_cache.block) words.add("--block-size", *query.kv_cache.block);
  if (query.kv_cache.prefix_caching) words.add("--enable-prefix-caching");
  if (query.kv_cache.speculative_tokens.value_or(0) > 0) {
    command.notes.emplace_back("speculative tokens are set with --speculative-config");
  }
}

/// SGLang's (docs.sglang.io, advanced_features/server_arguments).
void add_sglang_cache(const PlanQuery& query, CommandWords& words) {
  if (const auto tokens = pass_tokens_of(query)) words.add("--chunked-prefill-size", *tokens);
  if (query.kv_cache.block) words.add("--page-size", *query.kv_cache.block);
}

/// TensorRT-LLM's.
void add_tensorrt_llm_cache(const PlanQuery& query, CommandWords& words, EngineCommand& command) {
  if (const auto tokens = pass_tokens_of(query)) words.add("--max_num_tokens", *tokens);
  if (!query.kv_cache.block) return;
  command.notes.push_back(
      fmt::format("blocks are set in the file of --extra_llm_api_options: kv_cache_config: "
                  "{{tokens_per_block: {}}}",
                  *query.kv_cache.block));
}

/// Notes a context beyond the model's positions, which the engine refuses without `variable`.
/// Engines extend the positions of a scaled RoPE by rules of their own.
void note_context(const PlanQuestion& question, std::string_view variable, EngineCommand& command) {
  const PositionSpec& position = question.model.spec.position;
  const std::int64_t trained = position.max_position_embeddings - position.offset;
  const bool is_scaled = position.rope.scaling != RopeScalingKind::none;
  const bool is_known = position.max_position_embeddings > 0 && !is_scaled;
  if (!is_known || question.load.seq_len <= trained) return;
  command.notes.push_back(
      fmt::format("the model has {} positions: a longer context needs {}=1", trained, variable));
}

/// Types of the cache that are neither the activations' nor float8.
void note_cache(const PlanQuestion& question, EngineCommand& command) {
  const KvCacheRequest& cache = question.query.kv_cache;
  if (!cache.key_type || caches_in_float8(question)) return;
  if (info(*cache.key_type).counted_as == question.query.dtype) return;
  command.notes.push_back(
      fmt::format("no option stores the KV-cache as {}",
                  name_of_types(*cache.key_type, cache.value_type.value_or(*cache.key_type))));
}

void note_context_parallelism(const PlanChoice& choice, EngineCommand& command) {
  if (choice.parallel.context > 1) {
    command.notes.emplace_back("context parallelism has no option here");
  }
}

/// One command starts one node.
void note_nodes(const PlanQuestion& question, const PlanChoice& choice, std::string_view how,
                EngineCommand& command) {
  const std::int64_t node = question.rates.link.devices_per_node;
  const std::int64_t nodes = ceil_div(choice.parallel.devices(), node);
  if (nodes == 1) return;
  command.notes.push_back(fmt::format("the plan spans {} nodes: {}", nodes, how));
}

/// An engine's option for the part of the device's memory that it takes.
struct MemoryShare {
  std::string_view option;
  double by_default;
};
// vllm/config/cache.py, gpu_memory_utilization: weights, activations and cache.
constexpr MemoryShare kVllmShare{"--gpu-memory-utilization", 0.90};
// sglang/srt/server_args.py, mem_fraction_static: weights and cache; by device and load, 0.88 at
// most where measured.
constexpr MemoryShare kSglangShare{"--mem-fraction-static", 0.88};

/// Adds the share of a plan that takes more than the default: without it the engine would have a
/// smaller cache, or would not start.
void add_memory_share(const PlanQuestion& question, Integer taken, const MemoryShare& share,
                      CommandWords& words, EngineCommand& command) {
  constexpr double kMost = 0.98;  // the driver's and the CUDA context's part is 1 to 2 %
  const double part = static_cast<double>(taken) / static_cast<double>(question.rates.memory_bytes);
  if (part <= share.by_default) return;
  words.add(share.option, fmt::format("{:.2f}", std::min(kMost, std::ceil(100 * part) / 100)));
  command.notes.push_back(
      part > kMost
          ? std::string("the plan fills the device: the engine may hold fewer sequences")
          : fmt::format("the plan takes more than the {:.0f} % of the device that is the default",
                        100 * share.by_default));
}

PlanMemory memory_of(const PlanQuestion& question, const PlanChoice& choice) {
  Planner planner(question.model.spec, question.query, question.rates);
  return planner.evaluate(choice, question.load).memory;
}

/// The command, with the settings that no engine here has an option for.
EngineCommand finished(const CommandWords& words, const PlanQuestion& question,
                       const PlanChoice& choice, EngineCommand command) {
  if (auto note = note_on_path(question)) command.notes.push_back(std::move(*note));
  note_cache(question, command);
  note_context_parallelism(choice, command);
  command.text = words.text();
  return command;
}

bool overlaps(const ParallelPlan& plan) { return plan.batch_overlap == BatchOverlap::two_batches; }

/// DeepEP's kernels as the engine names them: those that forward inside a node, or those that send
/// each copy by itself, which two batches need. Otherwise the engine chooses.
template <class Add>
void add_exchange(const ParallelPlan& plan, Add add) {
  if (plan.expert == 1) return;
  const bool by_node = plan.expert_exchange == ExpertExchange::by_node;
  if (by_node || overlaps(plan)) add(plan.expert_exchange);
}

/// True if experts are spread over replicas, which are then replicas of attention alone.
bool shares_experts(const ParallelPlan& plan) { return plan.expert > 1 && plan.data > 1; }

void note_replicas(const ParallelPlan& plan, EngineCommand& command) {
  if (shares_experts(plan)) {
    command.notes.emplace_back(
        "replicas of attention are set in the file of --extra_llm_api_options: "
        "enable_attention_dp: true");
    if (plan.tensor > 1) {
      command.notes.emplace_back("attention is then not divided: no option keeps both degrees");
    }
  } else if (plan.data > 1) {
    command.notes.push_back(
        fmt::format("start {} servers, one for each replica of the plan", plan.data));
  }
}

}  // namespace

void require_text(const PlanQuestion& question, Engine engine) {
  const ModelSpec& spec = question.model.spec;
  if (!spec.denoiser && spec.embedding.vocab_size > 0) return;
  throw_invalid_input(
      fmt::format("{} serves models of text, and {} is none", info(engine).name, spec.name),
      "leave out --engine");
}

EngineCommand vllm_command(const PlanQuestion& question, const PlanChoice& choice) {
  const ParallelPlan& plan = choice.parallel;
  require_text(question, Engine::vllm);
  EngineCommand command{Engine::vllm, {}, {}};
  CommandWords words(fmt::format("vllm serve {}", model_argument(question)));
  words.add("--dtype", name_of_activations(question.query.dtype));
  words.add_degree("--tensor-parallel-size", plan.tensor);
  words.add_degree("--pipeline-parallel-size", plan.pipeline);
  words.add_degree("--data-parallel-size", plan.data);
  if (plan.expert > 1) words.add("--enable-expert-parallel");
  // docs.vllm.ai, serving/expert_parallel_deployment and design/dbo (v0.14).
  add_exchange(plan, [&words](ExpertExchange exchange) {
    const bool by_node = exchange == ExpertExchange::by_node;
    words.add("--all2all-backend", by_node ? "deepep_high_throughput" : "deepep_low_latency");
  });
  if (overlaps(plan)) words.add("--enable-dbo");
  // Experts are spread over all ranks of a stage.
  if (plan.expert > 1 && plan.expert != plan.tensor * plan.data) {
    command.notes.push_back(
        fmt::format("vLLM spreads experts over tp · dp = {} ranks", plan.tensor * plan.data));
  }
  words.add("--max-model-len", question.load.seq_len);
  words.add("--max-num-seqs", sequences_per_replica(question, choice));
  add_memory_share(question, memory_of(question, choice).total(), kVllmShare, words, command);
  add_weights(question, words, command);
  add_vllm_adapters(question, words, command);
  if (caches_in_float8(question)) words.add("--kv-cache-dtype", "fp8");
  add_vllm_cache(question.query, sequences_per_replica(question, choice), words, command);
  note_context(question, "VLLM_ALLOW_LONG_MAX_MODEL_LEN", command);
  note_nodes(question, choice,
             "start it on each with --nnodes, --node-rank and --master-addr, or use Ray", command);
  return finished(words, question, choice, std::move(command));
}

EngineCommand sglang_command(const PlanQuestion& question, const PlanChoice& choice) {
  const ParallelPlan& plan = choice.parallel;
  require_text(question, Engine::sglang);
  EngineCommand command{Engine::sglang, {}, {}};
  CommandWords words("python -m sglang.launch_server");
  words.add("--model-path", model_argument(question));
  words.add("--dtype", name_of_activations(question.query.dtype));
  // The replicas of attention are among the tensor-parallel ranks (docs.sglang.io,
  // advanced_features/dp_dpa_smg_guide).
  words.add_degree("--tp-size", shares_experts(plan) ? plan.tensor * plan.data : plan.tensor);
  words.add_degree("--pp-size", plan.pipeline);
  words.add_degree("--dp-size", plan.data);
  if (shares_experts(plan)) words.add("--enable-dp-attention");
  words.add_degree("--ep-size", plan.expert);
  // docs.sglang.io, advanced_features/expert_parallelism.
  add_exchange(plan, [&words](ExpertExchange exchange) {
    words.add("--moe-a2a-backend", "deepep");
    words.add("--deepep-mode", exchange == ExpertExchange::by_node ? "normal" : "low_latency");
  });
  if (overlaps(plan)) words.add("--enable-two-batch-overlap");
  words.add("--context-length", question.load.seq_len);
  words.add("--max-running-requests", question.load.batch_size);
  const PlanMemory memory = memory_of(question, choice);
  add_memory_share(question, memory.weights + memory.kv_cache, kSglangShare, words, command);
  add_weights(question, words, command);
  add_sglang_adapters(question, words, command);
  if (caches_in_float8(question)) words.add("--kv-cache-dtype", "fp8_e4m3");
  add_sglang_cache(question.query, words);
  note_context(question, "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN", command);
  note_nodes(question, choice, "start it on each with --nnodes, --node-rank and --dist-init-addr",
             command);
  return finished(words, question, choice, std::move(command));
}

EngineCommand tensorrt_llm_command(const PlanQuestion& question, const PlanChoice& choice) {
  const ParallelPlan& plan = choice.parallel;
  require_text(question, Engine::tensorrt_llm);
  EngineCommand command{Engine::tensorrt_llm, {}, {}};
  CommandWords words(fmt::format("trtllm-serve {}", model_argument(question)));
  // Its tensor-parallel ranks hold the experts (tensorrt_llm/mapping.py).
  words.add_degree("--tp_size", shares_experts(plan) ? plan.tensor * plan.data : plan.tensor);
  words.add_degree("--pp_size", plan.pipeline);
  words.add_degree("--ep_size", plan.expert);
  if (overlaps(plan)) command.notes.emplace_back("two-batch overlap has no option here");
  if (plan.expert > 1 && plan.expert_exchange == ExpertExchange::by_node) {
    command.notes.emplace_back("the route of tokens between nodes has no option here");
  }
  words.add("--max_seq_len", question.load.seq_len);
  words.add("--max_batch_size", sequences_per_replica(question, choice));
  add_tensorrt_llm_cache(question.query, words, command);
  note_replicas(plan, command);
  note_tensorrt_llm_weights(question.query.weights, command);
  if (has_adapters(question)) {
    const Adapter& adapter = question.query.adapter;
    command.notes.push_back(
        fmt::format("adapters are set in the file of --extra_llm_api_options: lora_config: "
                    "{{max_lora_rank: {}, max_loras: {}}}",
                    adapter.rank, adapter.held));
  }
  if (caches_in_float8(question)) {
    command.notes.emplace_back(
        "a float8 KV-cache is set in the file of --extra_llm_api_options: kv_cache_config: {dtype: "
        "fp8}");
  }
  note_nodes(question, choice, "start it with trtllm-llmapi-launch under mpirun or Slurm", command);
  return finished(words, question, choice, std::move(command));
}

}  // namespace headroom::detail
