// A plan as the command line of an engine that runs it.
#pragma once

#include <string>
#include <vector>

#include "headroom/engine_info.h"
#include "headroom/plan_report.h"

namespace headroom {

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
