// llama.cpp: a serving plan as the options of llama-server.
#include <utility>

#include "engine_commands.h"
#include "weight_commands.h"

namespace headroom::detail {
namespace {

bool is_gguf(const std::string& file) { return file.ends_with(".gguf"); }

/// llama.cpp's name of a type of its caches; empty if it has none.
std::string_view llama_cpp_name(KvType type) {
  switch (type) {
    case KvType::float32:
      return "f32";
    case KvType::float16:
      return "f16";
    case KvType::bfloat16:
      return "bf16";
    case KvType::q8_0:
    case KvType::q5_1:
    case KvType::q5_0:
    case KvType::q4_1:
    case KvType::q4_0:
    case KvType::iq4_nl:
      return headroom::info(type).name;
    case KvType::float8:
    case KvType::int8:
    case KvType::int4:
    case KvType::int2:
      break;
  }
  return {};
}

void add_cache_type(const char* option, const std::optional<KvType>& type, CommandWords& words) {
  if (!type) return;
  const std::string_view name = llama_cpp_name(*type);
  if (!name.empty()) words.add(option, name);
}

bool has_no_name(const std::optional<KvType>& type) {
  return type && llama_cpp_name(*type).empty();
}

void note_types(const PlanQuestion& question, EngineCommand& command) {
  if (auto note = note_on_gguf(question)) command.notes.push_back(std::move(*note));
  note_llama_cpp_weights(question.query.weights, command.notes);
  const KvCacheRequest& cache = question.query.kv_cache;
  if (has_no_name(cache.key_type) || has_no_name(cache.value_type)) {
    command.notes.emplace_back("no option stores the KV-cache in this type");
  }
}

/// Tensor parallelism needs fused attention and a plain cache.
void add_split_mode(const PlanQuestion& question, const ParallelPlan& plan, CommandWords& words,
                    EngineCommand& command) {
  if (plan.pipeline > 1) words.add("--split-mode", "layer");
  if (plan.tensor == 1) return;
  if (plan.pipeline > 1) {
    command.notes.emplace_back("tensor and pipeline parallelism cannot be combined");
    return;
  }
  words.add("--split-mode", "tensor");
  command.notes.emplace_back(
      "--split-mode tensor is experimental, and some architectures do not support it");
  const auto& type = question.query.kv_cache.key_type;
  if (type && is_block_type(*type)) {
    command.notes.emplace_back("--split-mode tensor takes no quantised KV-cache");
  }
}

void note_replicas(const ParallelPlan& plan, EngineCommand& command) {
  if (plan.data > 1) {
    command.notes.push_back(
        fmt::format("start {} servers, one for each replica of the plan", plan.data));
  }
  if (plan.expert > 1) command.notes.emplace_back("expert parallelism has no option");
  if (plan.context > 1) command.notes.emplace_back("context parallelism has no option");
}

}  // namespace

std::optional<std::string> note_on_gguf(const PlanQuestion& question) {
  if (is_gguf(question.model.weight_files)) return std::nullopt;
  return "llama.cpp reads GGUF: convert the model, or name its GGUF file";
}

CommandWords llama_server(const PlanQuestion& question) {
  const Model& model = question.model;
  CommandWords words("llama-server");
  words.add("-m", shell_word(is_gguf(model.weight_files) ? model.weight_files
                                                         : model.spec.name + ".gguf"));
  return words;
}

void add_llama_cpp_load(const PlanQuestion& question, std::int64_t sequences, CommandWords& words) {
  words.add("--ctx-size", Integer{sequences} * question.load.seq_len);
  words.add("--parallel", sequences);
  const bool fused = question.query.attention == AttentionImplementation::fused;
  words.add("--flash-attn", fused ? "on" : "off");
  add_cache_type("--cache-type-k", question.query.kv_cache.key_type, words);
  add_cache_type("--cache-type-v", question.query.kv_cache.value_type, words);
  const KvCacheRequest& cache = question.query.kv_cache;
  if (cache.policy == KvPolicy::llama_cpp_swa_full) words.add("--swa-full");
  if (!cache.batched_tokens) return;
  words.add("--batch-size", *cache.batched_tokens);  // bounds --ubatch-size (src/llama-context.cpp)
  words.add("--ubatch-size", *cache.batched_tokens);
}

EngineCommand llama_cpp_command(const PlanQuestion& question, const PlanChoice& choice) {
  require_text(question, Engine::llama_cpp);
  EngineCommand command{Engine::llama_cpp, {}, {}};
  CommandWords words = llama_server(question);
  words.add("--gpu-layers", "all");
  add_split_mode(question, choice.parallel, words, command);
  add_llama_cpp_load(question, sequences_per_replica(question, choice), words);
  note_types(question, command);
  note_replicas(choice.parallel, command);
  command.text = words.text();
  return command;
}

}  // namespace headroom::detail
