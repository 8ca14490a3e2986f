// Model folders for tests: all tensors of a config, which a test may change.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/weight_files.h"
#include "headroom/model_source.h"
#include "safetensors_writer.h"

namespace headroom::test {

using checkpoint::StoredType;
using checkpoint::TensorToWrite;

/// A tensor of zeros.
[[nodiscard]] TensorToWrite zeros(std::string name, std::vector<std::int64_t> shape,
                                  StoredType type = StoredType::float32);

/// All tensors of the model of `config` as zeros, under the family's preferred names.
[[nodiscard]] std::vector<TensorToWrite> tensors_of(const nlohmann::json& config);

/// A Llama with two layers: hidden 64, 4 query heads on 2 KV heads, FFN 96, vocabulary 128.
[[nodiscard]] nlohmann::json small_llama();
/// A Llama whose rows fill blocks of 256, with grouped queries and its own head.
[[nodiscard]] nlohmann::json llama_of_blocks();
/// Such a Llama whose table is its head.
[[nodiscard]] nlohmann::json tied_llama();
/// Such a model with 4 experts, of which a token takes 2.
[[nodiscard]] nlohmann::json mixture_of_experts();

/// Removes and returns the tensor `name`; fails the test if it is missing.
TensorToWrite take(std::vector<TensorToWrite>& tensors, const std::string& name);

/// Inspects a folder with these files.
[[nodiscard]] Inspection inspect_folder(const nlohmann::json& config,
                                        const std::vector<TensorToWrite>& tensors);
/// Inspects a folder without a config.
[[nodiscard]] Inspection inspect_folder(const std::vector<TensorToWrite>& tensors);

/// "kind: tensor" of every problem.
[[nodiscard]] std::vector<std::string> problems_of(const Inspection& inspection);
/// "kind: tensors" of every extra.
[[nodiscard]] std::vector<std::string> extras_of(const Inspection& inspection);

}  // namespace headroom::test
