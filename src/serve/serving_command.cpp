// The command line of an engine that serves a simulated plan: the plan's, with the scheduler's
// limits.
#include <fmt/format.h>

#include "headroom/serve.h"

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
      return fmt::format(" --ubatch-size {}", tokens);
    case Engine::megatron:
    case Engine::torchtitan:
      break;
  }
  return {};
}

}  // namespace

EngineCommand serving_command(Engine engine, const ServeQuestion& question,
                              const PlanChoice& choice) {
  PlanQuestion served = question.plan;
  served.load.batch_size = question.limits.max_sequences * choice.parallel.data;
  EngineCommand command = engine_command(engine, served, choice);
  command.text += step_limit(engine, question.limits.batched_tokens);
  if (question.speculation) {
    command.notes.emplace_back("speculative decoding is not in the command");
  }
  if (question.limits.prefill_replicas > 0) {
    command.notes.emplace_back("replicas that prefill are servers of their own");
  }
  return command;
}

}  // namespace headroom
