// Tensors of --save-output, and the generation that an input file asks for.
#pragma once

#include <vector>

#include "measure.h"
#include "safetensors_writer.h"

namespace headroom::cli {

/// Throws Error{missing_resource} if the generation that the input file asks for does not fit.
void require_generation_fits(const measured::MeasureOptions& asked, const ModelSpec& spec,
                             const measured::GeneratePrompt& prompt, const Workload& workload);

/// Runs the generation that the input file asks for.
void add_generation(const measured::MeasureOptions& asked, const ModelSpec& spec,
                    measured::WeightSource& source, const measured::GeneratePrompt& prompt,
                    const Workload& workload, std::vector<checkpoint::TensorToWrite>& tensors);

/// The outputs as tensors to write.
[[nodiscard]] std::vector<checkpoint::TensorToWrite> tensors_of(
    const measured::RunOutputs& outputs);

}  // namespace headroom::cli
