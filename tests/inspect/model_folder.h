// Model folders made for tests: every tensor that a config asks for, which a test may then change.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/weight_files.h"
#include "headroom/inspect.h"
#include "safetensors_writer.h"

namespace headroom::test {

using checkpoint::StoredType;
using checkpoint::TensorToWrite;

/// A tensor of zeros.
[[nodiscard]] TensorToWrite zeros(std::string name, std::vector<std::int64_t> shape,
                                  StoredType type = StoredType::float32);

/// All tensors of the model of `config`, by the names that its family prefers, as zeros.
[[nodiscard]] std::vector<TensorToWrite> tensors_of(const nlohmann::json& config);

/// A Llama of two layers: hidden 64, 4 query heads on 2 key-value heads, FFN 96, vocabulary 128.
[[nodiscard]] nlohmann::json small_llama();

/// Takes the tensor of this name out; fails the test when it is not there.
TensorToWrite take(std::vector<TensorToWrite>& tensors, const std::string& name);

/// What inspect says of a folder with these files.
[[nodiscard]] Inspection inspect_folder(const nlohmann::json& config,
                                        const std::vector<TensorToWrite>& tensors);
/// Without a config.
[[nodiscard]] Inspection inspect_folder(const std::vector<TensorToWrite>& tensors);

/// "kind: tensor" of every problem.
[[nodiscard]] std::vector<std::string> problems_of(const Inspection& inspection);
/// "kind: tensors" of every extra.
[[nodiscard]] std::vector<std::string> extras_of(const Inspection& inspection);

}  // namespace headroom::test
