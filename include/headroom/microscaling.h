// Devices that multiply MXFP8, and others.
#pragma once

#include <optional>
#include <string>

#include "headroom/machine_profile.h"
#include "headroom/model_spec.h"

namespace headroom {

/// Note that GEMMs of `spec` on `machine` take longer than in `arithmetic`, FP8: a matrix unit that
/// scales blocks of 32 values has 4-bit types, too (tcgen05.mma with .block_scale on Blackwell,
/// v_mfma_scale_f32 on CDNA 4); others have FP8 without such scales, and engines convert. Empty for
/// other weights and arithmetic, and for measured machines.
[[nodiscard]] std::optional<std::string> note_on_mxfp8(const MachineProfile& machine,
                                                       const ModelSpec& spec, DType arithmetic);

}  // namespace headroom
