// The machine that something was measured on, as JSON. Internal to src/report.
#pragma once

#include "headroom/measurement.h"
#include "json_writer.h"

namespace headroom::detail {

[[nodiscard]] Json context_json(const MachineContext& context);

}  // namespace headroom::detail
