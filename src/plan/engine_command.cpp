#include "headroom/engine_command.h"

#include "command_words.h"
#include "engine_commands.h"
#include "enum_table.h"
#include "headroom/error.h"

namespace headroom {
namespace {

constexpr EngineInfo kEngines[] = {
    {"vllm", "0.32.0", "2026-10-20", "vllm/engine/arg_utils.py, vllm-project/vllm", Engine::vllm,
     Purpose::serve},
    {"sglang", "0.5.23", "2026-10-30", "sglang/srt/server_args.py, sgl-project/sglang",
     Engine::sglang, Purpose::serve},
    {"tensorrt-llm", "00209af", "2026-11-27", "tensorrt_llm/commands/serve.py, NVIDIA/TensorRT-LLM",
     Engine::tensorrt_llm, Purpose::serve},
    {"llama.cpp", "0c1e57098", "2026-10", "tools/server/README.md, ggml-org/llama.cpp",
     Engine::llama_cpp, Purpose::serve},
    {"megatron", "core_v0.19.0", "2026-08-19", "megatron/training/arguments.py, NVIDIA/Megatron-LM",
     Engine::megatron, Purpose::train},
    {"torchtitan", "0.2.2", "2026-02-20", "torchtitan/config/job_config.py, pytorch/torchtitan",
     Engine::torchtitan, Purpose::train},
};
static_assert(detail::lists_every<kEngines>(&EngineInfo::engine));

void require_purpose(Engine engine, Purpose purpose) {
  if (info(engine).purpose == purpose) return;
  std::string others;
  for (const EngineInfo& one : engines()) {
    if (one.purpose != purpose) continue;
    others += fmt::format("{}{}", others.empty() ? "" : ", ", one.name);
  }
  const char* const work = info(engine).purpose == Purpose::serve ? "serves" : "trains";
  throw_invalid_input(fmt::format("{} {} models", info(engine).name, work),
                      fmt::format("choose {}", others));
}

}  // namespace

std::span<const EngineInfo> engines() noexcept { return kEngines; }

const EngineInfo& info(Engine engine) noexcept {
  return kEngines[static_cast<std::size_t>(engine)];
}

std::string release_of(Engine engine) {
  const EngineInfo& about = info(engine);
  return fmt::format("{} {} ({})", about.name, about.version, about.date);
}

EngineCommand engine_command(Engine engine, const PlanQuestion& question,
                             const PlanChoice& choice) {
  require_purpose(engine, question.query.purpose);
  switch (engine) {
    case Engine::vllm:
      return detail::vllm_command(question, choice);
    case Engine::sglang:
      return detail::sglang_command(question, choice);
    case Engine::tensorrt_llm:
      return detail::tensorrt_llm_command(question, choice);
    case Engine::llama_cpp:
      return detail::llama_cpp_command(question, choice);
    case Engine::megatron:
      return detail::megatron_command(question, choice);
    case Engine::torchtitan:
      break;
  }
  return detail::torchtitan_command(question, choice);
}

std::string detail::shell_word(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string detail::model_argument(const PlanQuestion& question) {
  const Model& model = question.model;
  if (!model.weight_files.empty()) return shell_word(model.weight_files);
  const std::optional<Preset> preset = find_preset(model.spec.name);
  if (!preset) return "PATH";
  return shell_word(preset->repository.empty() ? model.spec.name : preset->repository);
}

std::optional<std::string> detail::note_on_path(const PlanQuestion& question) {
  const Model& model = question.model;
  if (!model.weight_files.empty() || find_preset(model.spec.name)) return std::nullopt;
  return "the config has no weights beside it: PATH is the folder or repository that has them";
}

std::int64_t detail::sequences_per_replica(const PlanQuestion& question,
                                           const PlanChoice& choice) noexcept {
  const std::int64_t replicas = choice.parallel.data;
  return (question.load.batch_size + replicas - 1) / replicas;
}

}  // namespace headroom
