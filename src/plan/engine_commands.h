// Commands by engine. Internal to src/plan.
#pragma once

#include "headroom/engine_command.h"

namespace headroom::detail {

/// Name or path by which engines load the question's model.
[[nodiscard]] std::string model_argument(const PlanQuestion& question);

/// The number of sequences that run at once on each replica, rounded up.
[[nodiscard]] std::int64_t sequences_per_replica(const PlanQuestion& question,
                                                 const PlanChoice& choice) noexcept;

[[nodiscard]] EngineCommand vllm_command(const PlanQuestion& question, const PlanChoice& choice);
[[nodiscard]] EngineCommand sglang_command(const PlanQuestion& question, const PlanChoice& choice);
[[nodiscard]] EngineCommand tensorrt_llm_command(const PlanQuestion& question,
                                                 const PlanChoice& choice);
[[nodiscard]] EngineCommand megatron_command(const PlanQuestion& question,
                                             const PlanChoice& choice);
[[nodiscard]] EngineCommand torchtitan_command(const PlanQuestion& question,
                                               const PlanChoice& choice);

}  // namespace headroom::detail
