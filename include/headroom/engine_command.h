// A plan as the command line of an engine that runs it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/plan_report.h"

namespace headroom {

/// The first four serve, the others train.
enum class Engine { vllm, sglang, tensorrt_llm, llama_cpp, megatron, torchtitan };

/// An engine and where its options were read.
struct EngineInfo {
  std::string_view name;
  std::string_view source;
  Engine engine;
  Purpose purpose;
};

[[nodiscard]] std::span<const EngineInfo> engines() noexcept;
[[nodiscard]] const EngineInfo& info(Engine engine) noexcept;

struct EngineCommand {
  Engine engine = Engine::vllm;
  std::string text;                ///< for a POSIX shell
  std::vector<std::string> notes;  ///< settings of the plan that no option states
};

/// The command that runs `choice` for the question's model, types and load. Throws
/// Error{invalid_input} if the engine is for the other purpose.
[[nodiscard]] EngineCommand engine_command(Engine engine, const PlanQuestion& question,
                                           const PlanChoice& choice);

}  // namespace headroom
