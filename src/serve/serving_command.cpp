// The command line of an engine that serves a simulated plan: the plan's, with the scheduler's
// limits.
#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "headroom/serve.h"
#include "visit.h"

namespace headroom {
namespace {

/// Tokens of one step, by the engine's option.
std::string step_limit(Engine engine, std::int64_t tokens) {
  switch (engine) {
    case Engine::vllm:
      return fmt::format(" --max-num-batched-tokens {}", tokens);
    case Engine::sglang:
      return fmt::format(" --chunked-prefill-size {}", tokens);
    case Engine::tensorrt_llm:
      return fmt::format(" --max_num_tokens {}", tokens);
    case Engine::llama_cpp:
      return fmt::format(" --batch-size {} --ubatch-size {}", tokens, tokens);
    case Engine::megatron:
    case Engine::torchtitan:
      break;
  }
  return {};
}

/// Tokens of a block of the cache, by the engine's option; empty where it has none.
std::string block_size(Engine engine, std::int64_t tokens) {
  if (engine == Engine::vllm) return fmt::format(" --block-size {}", tokens);
  return engine == Engine::sglang ? fmt::format(" --page-size {}", tokens) : std::string();
}

/// Requests that fit into a cache in which none shares a prefix with others.
std::int64_t unshared_requests(const ServeQuestion& question, const CacheCapacity& cache) {
  if (question.limits.prefix_hit == 0) return cache.requests;
  const std::int64_t longest = std::max<std::int64_t>(1, question.plan.load.seq_len);
  return std::min(cache.requests, cache.tokens / longest);
}

/// Sequences at once on a replica. vLLM refuses more than the tokens of a step (SchedulerConfig),
/// and llama.cpp allocates the cache of all of them when it starts, each with the whole prompt.
std::int64_t sequences_of(Engine engine, const ServeQuestion& question,
                          const CacheCapacity& cache) {
  const SchedulerLimits& limits = question.limits;
  if (engine == Engine::vllm) return std::min(limits.max_sequences, limits.batched_tokens);
  if (engine != Engine::llama_cpp) return limits.max_sequences;
  return std::clamp<std::int64_t>(unshared_requests(question, cache), 1, limits.max_sequences);
}

/// docs.vllm.ai, features/speculative_decoding (method of vllm/config/speculative.py); empty for a
/// draft model, whose repository the question does not name.
std::string vllm_drafter(const Speculation& speculation) {
  const auto by_method = [&](std::string_view method) {
    return fmt::format(
        R"( --speculative-config '{{"method": "{}", "num_speculative_tokens": {}}}')", method,
        speculation.tokens);
  };
  return std::visit(Overloaded{[&](const PredictionModule&) { return by_method("mtp"); },
                               [&](const NgramLookup&) { return by_method("ngram"); },
                               [](const DraftModel&) { return std::string(); }},
                    speculation.drafter);
}

/// docs.sglang.io, advanced_features/speculative_decoding (Multi Token Prediction): a chain of
/// drafts, which is checked together with the token before it.
std::string sglang_drafter(const Speculation& speculation) {
  if (!std::holds_alternative<PredictionModule>(speculation.drafter)) return {};
  return fmt::format(
      " --speculative-algorithm EAGLE --speculative-num-steps {} --speculative-eagle-topk 1 "
      "--speculative-num-draft-tokens {}",
      speculation.tokens, speculation.tokens + 1);
}

/// Options of the drafter; empty where none are known.
std::string drafter_options(Engine engine, const Speculation& speculation) {
  if (engine == Engine::vllm) return vllm_drafter(speculation);
  return engine == Engine::sglang ? sglang_drafter(speculation) : std::string();
}

}  // namespace

EngineCommand serving_command(Engine engine, const ServeQuestion& question,
                              const ServedPlan& plan) {
  const SchedulerLimits& limits = question.limits;
  PlanQuestion served = question.plan;
  served.load.batch_size = sequences_of(engine, question, plan.cache) * plan.choice.parallel.data;
  // The scheduler's limits stand below, in place of those of the cache.
  served.query.prefill_tokens = PlanQuery{}.prefill_tokens;
  served.query.kv_cache.batched_tokens.reset();
  served.query.kv_cache.block.reset();
  EngineCommand command = engine_command(engine, served, plan.choice);
  command.text += step_limit(engine, limits.batched_tokens);
  if (limits.block_tokens != SchedulerLimits{}.block_tokens) {
    const std::string size = block_size(engine, limits.block_tokens);
    command.text += size;
    if (size.empty()) command.notes.emplace_back("the size of a block is not in the command");
  }
  if (question.speculation) {
    const std::string drafter = drafter_options(engine, *question.speculation);
    command.text += drafter;
    if (drafter.empty()) {
      command.notes.emplace_back("speculative decoding is not in the command");
    }
  }
  if (question.limits.prefill_replicas > 0) {
    command.notes.emplace_back("replicas that prefill are servers of their own");
  }
  return command;
}

}  // namespace headroom
