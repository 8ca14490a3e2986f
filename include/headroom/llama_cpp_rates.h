// Rates of llama.cpp, whose kernels are not those of serving engines: fractions of peaks by class
// of devices and by what its kernels tell apart, fitted to results of llama-bench.
#pragma once

#include <optional>
#include <string>

#include "headroom/machine_profile.h"
#include "headroom/model_spec.h"
#include "headroom/workload.h"

namespace headroom {

/// Weights of the GEMMs of a prompt: plain 16 bits, which go to the vendor's library, or blocks of
/// ggml's types, which llama.cpp multiplies itself or converts first.
enum class LlamaCppWeights { bits16, blocks };

/// Layers without, or with routed experts, whose few rows each llama.cpp's kernels multiply at a
/// smaller fraction of the peak.
enum class LlamaCppLayers { dense, experts };

/// Kernels that llama.cpp runs a model by.
struct LlamaCppKernels {
  LlamaCppWeights weights = LlamaCppWeights::blocks;
  LlamaCppLayers layers = LlamaCppLayers::dense;
  AttentionImplementation attention = AttentionImplementation::fused;
};

/// Returns whether weights of `spec` are in blocks of ggml's types, as those of a GGUF file.
[[nodiscard]] bool has_ggml_blocks(const ModelSpec& spec);

/// Kernels for `spec` as it is stored.
[[nodiscard]] LlamaCppKernels llama_cpp_kernels(const ModelSpec& spec,
                                                AttentionImplementation attention);

/// Fractions of `sheet`'s peaks that llama.cpp reaches; GEMMs of its types all have the 16-bit one.
/// Empty without published results of the architecture, and for a machine with rates that were
/// fitted to its own runs.
[[nodiscard]] std::optional<SourcedEfficiency> llama_cpp_efficiency(
    const DatasheetRates& sheet, const LlamaCppKernels& kernels) noexcept;

/// Note that times on `sheet` are llama.cpp's, or are not because none of its are known; empty for
/// a machine with rates of its own.
[[nodiscard]] std::optional<std::string> note_on_llama_cpp(const DatasheetRates& sheet,
                                                           const LlamaCppKernels& kernels);

}  // namespace headroom
