#include "weight_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "headroom/storage.h"
#include "visit.h"

namespace headroom::detail {
namespace {

/// Checkpoints that hold weights of a type.
enum class Checkpoint {
  plain,         ///< of 16 or 32 bits, which --dtype converts
  packed,        ///< safetensors of compressed-tensors, GPTQ, AWQ, DeepSeek-V3 or Model Optimizer
  bitsandbytes,  ///< safetensors of bitsandbytes
  gguf,          ///< blocks of ggml, by llama-quantize
  none,          ///< of no published format
};

Checkpoint checkpoint_of(WeightType type) {
  switch (type) {
    case WeightType::float32:
    case WeightType::bfloat16:
    case WeightType::float16:
      return Checkpoint::plain;
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

constexpr BlockShape kTensor{0, 0};
constexpr BlockShape kRow{1, 0};
constexpr BlockShape kDeepSeek{128, 128};
constexpr BlockShape kMicroscaled{1, 32};  // MXFP4 and MXFP8
constexpr BlockShape kNvfp4{1, 16};

/// A scale of 8 bits per 16 (NVFP4) or 32 values (MXFP4, MXFP8), without zero points.
bool is_microscaled(const GroupFormat& groups) {
  if (groups.has_zeros) return false;
  switch (groups.codes) {
    case GroupCodes::four_bits:
      return groups.grain == kNvfp4 || groups.grain == kMicroscaled;
    case GroupCodes::float8:
      return groups.grain == kMicroscaled;
    case GroupCodes::int8:
    case GroupCodes::float16:
    case GroupCodes::bfloat16:
      break;
  }
  return false;
}

/// A scale of 16 or 32 bits per tensor, row, group of a row's values, or block of 128 × 128 values
/// in FP8 (DeepSeek-V3); one of 8 bits as is_microscaled; nested ones per 64 values (NF4).
Checkpoint checkpoint_of(const GroupFormat& groups) {
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
      return packed_if(is_microscaled(groups));
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

/// vLLM's names of types that it converts the layers' matrices to while it loads weights of 16
/// bits: _ONLINE_SHORTHANDS of vllm/config/quantization.py and docs.vllm.ai,
/// features/quantization/online (0.29.0); 0.32.0 (2026-10-20) lists the names. Empty: none;
/// int8_per_channel_weight_only and nvfp4_per_token convert experts only. `fp8` is left out:
/// pull request 53585 (2026-08) moves its conversion to these names.
std::string_view vllm_conversion(WeightType type) {
  if (type == WeightType::float8) return "fp8_per_channel";
  return type == WeightType::mxfp4 ? "mxfp4" : std::string_view{};
}

struct Conversion {
  GroupFormat groups;
  std::string_view name;
};

std::string_view vllm_conversion(const GroupFormat& groups) {
  static constexpr std::array<Conversion, 5> kConversions{
      {{{GroupCodes::float8, kTensor, GroupScales::bits32, false}, "fp8_per_tensor"},
       {{GroupCodes::float8, kRow, GroupScales::bits32, false}, "fp8_per_channel"},
       {{GroupCodes::float8, kDeepSeek, GroupScales::bits32, false}, "fp8_per_block"},
       {kMxfp8, "mxfp8"},
       {{GroupCodes::four_bits, kMicroscaled, GroupScales::bits8, false}, "mxfp4"}}};
  const auto* const found = std::ranges::find(kConversions, groups, &Conversion::groups);
  return found == kConversions.end() ? std::string_view{} : found->name;
}

/// SGLang's: QUANTIZATION_CHOICES of python/sglang/srt/arg_groups/choices.py (d9a2188, as in
/// 0.5.23, 2026-10-30), whose comments say which of them convert, and docs.sglang.io,
/// advanced_features/quantization. `nvfp4_online` converts experts only, `quark_mxfp4` on AMD only.
std::string_view sglang_conversion(WeightType type) {
  if (type == WeightType::float8) return "fp8";
  return type == WeightType::int8 ? "auto-round-int8" : std::string_view{};
}

std::string_view sglang_conversion(const GroupFormat& groups) {
  return groups == kMxfp8 ? "mxfp8" : std::string_view{};
}

std::string_view conversion_of(Engine engine, const WeightForm& form) {
  return std::visit(
      [engine](const auto& one) {
        return engine == Engine::vllm ? vllm_conversion(one) : sglang_conversion(one);
      },
      form);
}

/// True if TensorRT-LLM's PyTorch backend reads checkpoints of the type: load_hf_quant_config of
/// tensorrt_llm/_torch/model_config.py (fp8 in blocks of 128 × 128, mxfp4, mxfp8, nvfp4),
/// tensorrt_llm/models/quant_config_utils.py (compressed-tensors: FP8 per row or block, MXFP4 and
/// NVFP4), and of Model Optimizer's hf_quant_config.json those of QuantAlgo in quantization/mode.py
/// that get_quant_method of _torch/modules/linear.py has: FP8 per tensor or row, INT8 and INT4
/// per row, and INT4 in groups (AWQ). NVIDIA/TensorRT-LLM in 1.4.0rc4's time, read 2026-11-28.
bool tensorrt_llm_reads(WeightType type) { return checkpoint_of(type) == Checkpoint::packed; }

bool tensorrt_llm_reads(const GroupFormat& groups) {
  if (groups.scales == GroupScales::bits8) return is_microscaled(groups);
  if (groups.scales != GroupScales::bits16 && groups.scales != GroupScales::bits32) return false;
  switch (groups.codes) {
    case GroupCodes::four_bits:
      return groups.grain.out == 1;
    case GroupCodes::int8:
      return groups.grain == kRow;
    case GroupCodes::float8:
      return groups.grain == kRow || groups.grain == kTensor || groups.grain == kDeepSeek;
    case GroupCodes::float16:
    case GroupCodes::bfloat16:
      break;
  }
  return false;
}

bool tensorrt_llm_reads(const WeightForm& form) {
  return std::visit([](const auto& one) { return tensorrt_llm_reads(one); }, form);
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

/// vLLM left bitsandbytes to a plugin, vllm-bnb-plugin (pypi.org). SGLang's loader of bitsandbytes
/// converts weights of 16 bits to NF4, and is chosen by --load-format
/// (python/sglang/srt/model_loader/loader.py; docs.sglang.io, advanced_features/model_loading).
void add_bitsandbytes(const WeightForm& form, CommandWords& words, EngineCommand& command) {
  constexpr std::string_view kOptions = "--load-format bitsandbytes --quantization bitsandbytes";
  if (command.engine == Engine::sglang) return words.add(kOptions);
  command.notes.push_back(fmt::format("{} weights need vLLM's plugin for bitsandbytes, and then {}",
                                      name_of(form), kOptions));
}

/// --dtype is the type of weights and of activations (vllm/engine/arg_utils.py and SGLang's
/// server_args.py: "Data type for model weights and activations").
void note_plain(const PlanQuestion& question, EngineCommand& command) {
  const bool is_wide = *question.query.weights == WeightForm(WeightType::float32);
  if (is_wide == (question.query.dtype == DType::float32)) return;
  command.notes.push_back(
      fmt::format("--dtype is the type of weights and activations: none are held as {}",
                  name_of(*question.query.weights)));
}

/// Both engines multiply converted FP8 weights by activations in FP8 on devices with such units
/// (Ada, Hopper, Blackwell, MI300), and by those of 16 bits, with Marlin's kernels, on older ones:
/// docs.vllm.ai/en/v0.32.0, features/quantization/llm_compressor/fp8; sgl-project/sglang#31340.
void note_float8_arithmetic(const PlanQuery& query, EngineCommand& command) {
  const DType predicted = query.arithmetic.value_or(query.dtype);
  if (predicted == DType::float8) return;
  command.notes.push_back(fmt::format(
      "a device with FP8 units multiplies these weights in float8, which --recipe w8a8-fp8 "
      "predicts; this prediction, with {} arithmetic, is of devices without them",
      name_of(predicted)));
}

/// vLLM converts to MXFP4 more than gpt-oss, which stores only its experts so.
void add_conversion(std::string_view name, const PlanQuery& query, CommandWords& words,
                    EngineCommand& command) {
  words.add("--quantization", name);
  if (name.starts_with("fp8")) note_float8_arithmetic(query, command);
  if (name != "mxfp4") return;
  command.notes.emplace_back("--quantization mxfp4 converts every matrix of the layers");
}

constexpr std::string_view kMxfp4Moe = "mxfp4_moe";

/// llama-quantize's name of a type, in lower case; empty if it writes none. QUANT_OPTIONS of
/// tools/quantize/quantize.cpp, ggml-org/llama.cpp, read 2026-11-28. It has no NVFP4, which
/// convert_hf_to_gguf.py writes.
std::string_view quantize_name(WeightType type) {
  if (checkpoint_of(type) == Checkpoint::gguf) return name_of(type);
  if (type == WeightType::mxfp4) return kMxfp4Moe;
  if (type == WeightType::float32) return "f32";
  if (type == WeightType::bfloat16) return "bf16";
  return type == WeightType::float16 ? "f16" : std::string_view{};
}

}  // namespace

void add_weights(const PlanQuestion& question, CommandWords& words, EngineCommand& command) {
  const std::optional<WeightForm>& weights = question.query.weights;
  if (!weights) return;
  const std::string_view conversion = conversion_of(command.engine, *weights);
  if (!conversion.empty()) {
    return add_conversion(conversion, question.query, words, command);
  }
  switch (checkpoint_of(*weights)) {
    case Checkpoint::plain:
      return note_plain(question, command);
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
  const bool is_plain = checkpoint_of(*weights) == Checkpoint::plain;
  if (!is_plain && !tensorrt_llm_reads(*weights)) return note_unknown(*weights, command);
  command.notes.emplace_back(
      "weights are converted beforehand: name a checkpoint that stores them so");
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
  // src/llama-quant.cpp: "MoE tensors -> MXFP4, other tensors -> Q8_0".
  if (name == kMxfp4Moe) notes.emplace_back("mxfp4_moe stores all matrices but experts' in q8_0");
}

}  // namespace headroom::detail
