// The weights of a run on this machine: their files, and whether they run as they are stored.
#pragma once

#include <filesystem>
#include <memory>

#include "headroom/workload.h"
#include "measure.h"
#include "weights.h"

namespace headroom::cli {

/// Weights that run as they are stored: random ones in fewer bits, the blocks of a GGUF file, or
/// packed in quantised safetensors.
enum class StoredWeights { none, random, gguf, packed };

/// Returns whether `files` have weights that run as they are stored unless another type is asked
/// for. False for no files.
[[nodiscard]] bool is_quantised(const std::filesystem::path& files);

/// How the weights of `workload` from `files`, empty for random ones, are stored in the run.
[[nodiscard]] StoredWeights stored_weights_of(const Workload& workload,
                                              const std::filesystem::path& files);

/// Opens `files`, or draws weights if there are none. Throws Error{invalid_input}.
[[nodiscard]] std::unique_ptr<measured::WeightSource> open_weights(
    const std::filesystem::path& files, const measured::MeasureOptions& options,
    const ModelSpec& spec);

}  // namespace headroom::cli
