// Devices that multiply MXFP8, and others.
#pragma once

#include <optional>
#include <string>

#include "headroom/machine_profile.h"
#include "headroom/model_spec.h"

namespace headroom {

/// Returns whether the GEMMs of `machine` scale blocks of 32 values: matrix units that do have
/// 4-bit types, too (tcgen05.mma with .block_scale on Blackwell, v_mfma_scale_f32 on CDNA 4). True
/// for measured machines, whose rates are what they are.
[[nodiscard]] bool multiplies_mxfp8(const MachineProfile& machine) noexcept;

/// Note that GEMMs of `spec` on `machine` take longer than in `arithmetic`, FP8: where no GEMM
/// scales blocks of 32 values, engines convert MXFP8 weights. Empty for other weights and
/// arithmetic, for devices without FP8, and for measured machines.
[[nodiscard]] std::optional<std::string> note_on_mxfp8(const MachineProfile& machine,
                                                       const ModelSpec& spec, DType arithmetic);

}  // namespace headroom
