// Options of engines and frameworks, as the options of headroom with the same meaning.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace headroom::cli {

/// "did you mean --seq?" for "--max-model-len": the counterpart of an option of vLLM, SGLang,
/// TensorRT-LLM, llama.cpp, Megatron-LM or PEFT. Empty if `option` is none of theirs, or if
/// `known`, the options of the command, lacks its counterpart.
[[nodiscard]] std::string hint_for_foreign_option(std::string_view option,
                                                  std::span<const std::string> known);

}  // namespace headroom::cli
