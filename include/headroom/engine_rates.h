// Rates of a machine by the engine whose kernels a plan runs.
#pragma once

#include <optional>
#include <string>

#include "headroom/device_rates.h"
#include "headroom/engine_info.h"
#include "headroom/plan.h"

namespace headroom {

/// Returns whether the times of `query` are llama.cpp's: where `asked` names it, or names no engine
/// and the weights are in ggml's blocks, which no other engine runs at full speed.
[[nodiscard]] bool runs_in_llama_cpp(const ModelSpec& spec, const PlanQuery& query,
                                     std::optional<Engine> asked);

/// As device_rates, for `query` on `spec`. llama.cpp multiplies in one type, without tiles in
/// waves.
[[nodiscard]] DeviceRates engine_rates(const MachineProfile& machine, const ModelSpec& spec,
                                       const PlanQuery& query, std::optional<Engine> asked = {});

/// Note on the engine whose rates `query` has though no engine is asked for, or has not though its
/// kernels run; empty if nothing is to be said.
[[nodiscard]] std::optional<std::string> note_on_engine(const MachineProfile& machine,
                                                        const ModelSpec& spec,
                                                        const PlanQuery& query,
                                                        std::optional<Engine> asked);

}  // namespace headroom
