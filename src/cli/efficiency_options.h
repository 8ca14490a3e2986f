// Options that replace the efficiencies of a machine, alike in every command that predicts times.
#pragma once

#include <string>

#include "headroom/machine_profile.h"
#include "kernels/gemm.h"
#include "options.h"

namespace headroom::cli {

/// Adds --matrix-efficiency and --memory-efficiency.
void add_device_efficiencies(Command command, GivenEfficiency& given, const char* group);
/// Adds --network-efficiency.
void add_network_efficiency(Command command, GivenEfficiency& given, const char* group);

/// Replaces the efficiencies of a datasheet; a calibrated machine keeps its curves.
void replace_efficiencies(const GivenEfficiency& given, MachineProfile& machine);

/// The machine of that name, or none for an empty name, with the given efficiencies. Throws
/// Error{invalid_input} if efficiencies are given without a machine, or for a calibrated one.
[[nodiscard]] std::optional<MachineProfile> machine_with(const std::string& name,
                                                         measured::Backend backend,
                                                         const GivenEfficiency& given);

/// The attention that runs on `machine` unless another is asked for: engines on devices of the
/// catalogue run it fused. Empty for a calibrated machine, and for attention in chunks with global
/// tokens (Longformer), which they do not run.
[[nodiscard]] std::optional<AttentionImplementation> attention_on(
    const std::optional<MachineProfile>& machine, const ModelSpec& spec);

}  // namespace headroom::cli
