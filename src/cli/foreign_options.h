// Options of engines and frameworks, as the options of headroom with the same meaning.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace headroom::cli {

/// What a user of vLLM, SGLang, TensorRT-LLM, llama.cpp, Megatron-LM or PEFT may have meant by
/// `option`: "did you mean --seq?" for "--max-model-len". Empty if the option is none of theirs, or
/// if `known`, the options of the command, lacks its counterpart.
[[nodiscard]] std::string hint_for_foreign_option(std::string_view option,
                                                  std::span<const std::string> known);

}  // namespace headroom::cli
