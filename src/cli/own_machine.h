// This machine: its default backend, its profile, and calibration with a progress bar.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate.h"
#include "headroom/machine_profile.h"

namespace headroom::cli {

/// oneDNN where this build has it.
[[nodiscard]] measured::Backend default_backend() noexcept;
[[nodiscard]] std::string_view name_of(measured::Backend backend) noexcept;

/// A profile and the file that it is kept in.
struct StoredProfile {
  MachineProfile profile;
  std::filesystem::path file;
  std::vector<std::string> warnings;  ///< what speaks against trusting it
};

/// Calibrates, with a bar on the terminal, and keeps the profile. Throws Error{invalid_input} when
/// interrupted, Error{missing_resource} at once where it could not be kept.
[[nodiscard]] StoredProfile calibrate_here(const measured::CalibrateOptions& options);

/// The stored profile of this machine. Throws Error{invalid_input} when there is none, or when it
/// was measured on another processor or with another build of the backend.
[[nodiscard]] MachineProfile own_machine(measured::Backend backend);

/// Why a stored profile does not hold here any more; empty when it does.
[[nodiscard]] std::string mismatch(const MachineProfile& profile, measured::Backend backend);

/// "here", or a machine by its name or file.
[[nodiscard]] MachineProfile machine_named(const std::string& name, measured::Backend backend);

}  // namespace headroom::cli
