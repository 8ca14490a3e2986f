// JSON -> the measured parts of a machine: curves of kernels, bandwidths and collectives. Functions
// throw Error{invalid_input} that names the place. Internal to src/machine.
#pragma once

#include <optional>

#include "headroom/machine_profile.h"
#include "profile_object.h"

namespace headroom::detail {

/// Architecture::other where the object names none.
[[nodiscard]] Architecture read_architecture(const Reader& reader);
/// The type `dtype`, of 16 or 32 bits.
[[nodiscard]] DType read_activation_type(const Reader& reader);
/// Effort of a calibration; empty in files of earlier versions.
[[nodiscard]] std::optional<CalibrationEffort> read_effort(const Reader& reader);
[[nodiscard]] MeasuredRates read_measured(const Reader& reader);
/// Tables of equal groups may occur once only, since each stands for a prediction.
[[nodiscard]] std::optional<CollectiveRates> read_collectives(const Reader& reader);

}  // namespace headroom::detail
