#include "weight_commands.h"

#include <fmt/format.h>

#include <variant>

#include "headroom/storage.h"
#include "visit.h"

namespace headroom::detail {
namespace {

/// Checkpoints that hold weights of a type.
enum class Checkpoint {
  plain,         ///< of 16 bits, which --dtype converts
  packed,        ///< safetensors of compressed-tensors, GPTQ, AWQ, DeepSeek-V3 or Model Optimizer
  bitsandbytes,  ///< safetensors of bitsandbytes
  gguf,          ///< blocks of ggml, by llama-quantize
  none,          ///< of no published format
};

Checkpoint checkpoint_of(WeightType type) {
  switch (type) {
    case WeightType::bfloat16:
    case WeightType::float16:
      return Checkpoint::plain;
    case WeightType::float32:
    case WeightType::float8:
    case WeightType::int8:
    case WeightType::int4:
    case WeightType::mxfp4:
    case WeightType::nvfp4:
      return Checkpoint::packed;
    case WeightType::nf4:
      return Checkpoint::bitsandbytes;
    case WeightType::q8_0:
    case WeightType::q6_k:
    case WeightType::q5_k_m:
    case WeightType::q4_k_m:
    case WeightType::q4_0:
    case WeightType::q4_1:
    case WeightType::q5_0:
    case WeightType::q5_1:
    case WeightType::q2_k:
    case WeightType::q3_k_m:
    case WeightType::iq4_nl:
    case WeightType::iq4_xs:
      break;
  }
  return Checkpoint::gguf;
}

/// A scale of 16 or 32 bits per tensor, row, group of a row's values, or block of 128 × 128 values
/// in FP8 (DeepSeek-V3); one of 8 bits per 16 (NVFP4) or 32 values (MXFP4, MXFP8); nested ones per
/// 64 values (NF4).
Checkpoint checkpoint_of(const GroupFormat& groups) {
  constexpr BlockShape kTensor{0, 0};
  constexpr BlockShape kDeepSeek{128, 128};
  const BlockShape& grain = groups.grain;
  const auto packed_if = [](bool is_packed) {
    return is_packed ? Checkpoint::packed : Checkpoint::none;
  };
  switch (groups.scales) {
    case GroupScales::bits16:
    case GroupScales::bits32:
      return packed_if(grain.out == 1 || grain == kTensor ||
                       (groups.codes == GroupCodes::float8 && grain == kDeepSeek));
    case GroupScales::bits8:
      return packed_if(grain == BlockShape{1, 16} || grain == BlockShape{1, 32});
    case GroupScales::nested:
      return grain == BlockShape{1, 64} ? Checkpoint::bitsandbytes : Checkpoint::none;
    case GroupScales::none:
      break;
  }
  return Checkpoint::none;
}

Checkpoint checkpoint_of(const WeightForm& form) {
  return std::visit([](const auto& one) { return checkpoint_of(one); }, form);
}

void note_unknown(const WeightForm& form, EngineCommand& command) {
  command.notes.push_back(fmt::format("the engine has no weights of type {}", name_of(form)));
}

/// vLLM left GGUF to a plugin, vllm-gguf-plugin (docs.vllm.ai, features/quantization/gguf).
void note_gguf(const WeightForm& form, EngineCommand& command) {
  const char* const plugin = command.engine == Engine::vllm ? "vLLM's plugin for GGUF and " : "";
  command.notes.push_back(
      fmt::format("{} weights need {}a GGUF file that stores them so", name_of(form), plugin));
}

/// vLLM left bitsandbytes to a plugin.
void add_bitsandbytes(const WeightForm& form, CommandWords& words, EngineCommand& command) {
  if (command.engine == Engine::sglang) return words.add("--quantization", "bitsandbytes");
  command.notes.push_back(fmt::format(
      "{} weights need vLLM's plugin for bitsandbytes, and then --quantization bitsandbytes",
      name_of(form)));
}

/// llama-quantize's name of a type (QUANT_OPTIONS in llama.cpp's tools/quantize/quantize.cpp), in
/// lower case; empty if it writes none.
std::string_view quantize_name(WeightType type) {
  if (checkpoint_of(type) == Checkpoint::gguf) return name_of(type);
  if (type == WeightType::mxfp4) return "mxfp4_moe";
  if (type == WeightType::float32) return "f32";
  if (type == WeightType::bfloat16) return "bf16";
  return type == WeightType::float16 ? "f16" : std::string_view{};
}

}  // namespace

void add_weights(const std::optional<WeightForm>& weights, CommandWords& words,
                 EngineCommand& command) {
  if (!weights) return;
  if (*weights == WeightForm(WeightType::float8)) return words.add("--quantization", "fp8");
  switch (checkpoint_of(*weights)) {
    case Checkpoint::plain:
      return;
    case Checkpoint::packed:
      command.notes.push_back(
          fmt::format("no option converts weights to {}: name a repository that stores them so",
                      name_of(*weights)));
      return;
    case Checkpoint::bitsandbytes:
      return add_bitsandbytes(*weights, words, command);
    case Checkpoint::gguf:
      return note_gguf(*weights, command);
    case Checkpoint::none:
      return note_unknown(*weights, command);
  }
}

void note_tensorrt_llm_weights(const std::optional<WeightForm>& weights, EngineCommand& command) {
  if (!weights) return;
  switch (checkpoint_of(*weights)) {
    case Checkpoint::plain:
    case Checkpoint::packed:
      command.notes.emplace_back(
          "weights are converted beforehand: name a checkpoint that stores them so");
      return;
    // Its quantization_config names neither (QuantAlgo in tensorrt_llm/quantization/mode.py).
    case Checkpoint::bitsandbytes:
    case Checkpoint::gguf:
    case Checkpoint::none:
      return note_unknown(*weights, command);
  }
}

void note_llama_cpp_weights(const std::optional<WeightForm>& weights,
                            std::vector<std::string>& notes) {
  if (!weights) return;
  const auto* const type = std::get_if<WeightType>(&*weights);
  const std::string_view name = type == nullptr ? std::string_view{} : quantize_name(*type);
  notes.push_back(
      name.empty()
          ? fmt::format("llama-quantize writes no weights of type {}", name_of(*weights))
          : fmt::format("weights are converted beforehand, by llama-quantize to {}", name));
}

}  // namespace headroom::detail
