// Commands by engine. Internal to src/plan.
#pragma once

#include <optional>

#include "command_words.h"
#include "headroom/engine_command.h"

namespace headroom::detail {

/// Name or path by which engines load the question's model; PATH for a config without weights.
[[nodiscard]] std::string model_argument(const PlanQuestion& question);
/// Says what PATH stands for; empty if the model has a name or files.
[[nodiscard]] std::optional<std::string> note_on_path(const PlanQuestion& question);

/// The number of sequences that run at once on each replica, rounded up.
[[nodiscard]] std::int64_t sequences_per_replica(const PlanQuestion& question,
                                                 const PlanChoice& choice) noexcept;

/// Throws Error{invalid_input} for models that no serving engine of text runs.
void require_text(const PlanQuestion& question, Engine engine);

/// "llama-server -m FILE", with a file's name in its place where the model is not read from GGUF.
[[nodiscard]] CommandWords llama_server(const PlanQuestion& question);
/// Adds lengths, sequences, attention and types of the cache.
void add_llama_cpp_load(const PlanQuestion& question, std::int64_t sequences, CommandWords& words);
/// Says that llama.cpp needs a GGUF file; empty if the model is one.
[[nodiscard]] std::optional<std::string> note_on_gguf(const PlanQuestion& question);

[[nodiscard]] EngineCommand vllm_command(const PlanQuestion& question, const PlanChoice& choice);
[[nodiscard]] EngineCommand sglang_command(const PlanQuestion& question, const PlanChoice& choice);
[[nodiscard]] EngineCommand tensorrt_llm_command(const PlanQuestion& question,
                                                 const PlanChoice& choice);
[[nodiscard]] EngineCommand llama_cpp_command(const PlanQuestion& question,
                                              const PlanChoice& choice);
[[nodiscard]] EngineCommand megatron_command(const PlanQuestion& question,
                                             const PlanChoice& choice);
/// Adds the options that build a decoder in Megatron-LM, for sequences of `seq_len` tokens, and
/// notes the parts that no option builds.
void add_megatron_model(const ModelSpec& spec, std::int64_t seq_len, const ParallelPlan& plan,
                        CommandWords& words, EngineCommand& command);
[[nodiscard]] EngineCommand torchtitan_command(const PlanQuestion& question,
                                               const PlanChoice& choice);

}  // namespace headroom::detail
