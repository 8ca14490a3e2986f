// Converted weights in the commands of serving engines: options where an engine converts, else
// notes on the checkpoint that it needs, or on a type that it lacks. Internal to src/plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command_words.h"
#include "headroom/engine_command.h"
#include "headroom/workload.h"

namespace headroom::detail {

/// Of vLLM and SGLang, which convert some types while they load them, by `--quantization`.
void add_weights(const PlanQuestion& question, CommandWords& words, EngineCommand& command);

/// TensorRT-LLM's checkpoints are converted beforehand.
void note_tensorrt_llm_weights(const std::optional<WeightForm>& weights, EngineCommand& command);

/// So are llama.cpp's files, by llama-quantize.
void note_llama_cpp_weights(const std::optional<WeightForm>& weights,
                            std::vector<std::string>& notes);

}  // namespace headroom::detail
