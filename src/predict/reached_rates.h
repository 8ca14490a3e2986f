// Rates of a datasheet that a run reaches, by the engine whose kernels it runs. Internal to
// src/predict and src/plan.
#pragma once

#include <optional>

#include "headroom/llama_cpp_rates.h"
#include "headroom/predict.h"

namespace headroom::detail {

/// Rates of one type, with their origin and the ranges of times predicted with them.
struct ReachedRates {
  EffectiveRates rates;
  SourcedEfficiency reached;
  double memory_bytes_per_s = 0;  ///< by the datasheet
};

/// Those of llama.cpp for `spec`, as it is stored, where `engine` is llama.cpp, or none is named
/// and the weights are in ggml's blocks; no other arithmetic is asked for, and the device's rates
/// are known.
[[nodiscard]] std::optional<SourcedEfficiency> llama_cpp_efficiency_of(
    const DatasheetRates& sheet, const ModelSpec& spec, const Workload& workload,
    std::optional<Engine> engine = {});

/// The datasheet's rates for serving in `dtype`, or those of `llama_cpp`, which multiplies in one
/// type. Throws Error{invalid_input} if the datasheet has no rate for `dtype`.
[[nodiscard]] ReachedRates reached_rates(const DatasheetRates& sheet, DType dtype,
                                         const std::optional<SourcedEfficiency>& llama_cpp);

}  // namespace headroom::detail
