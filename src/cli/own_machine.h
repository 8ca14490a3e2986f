// This machine: its default backend, its stored profile, and its calibration.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/calibrate.h"
#include "headroom/machine_profile.h"

namespace headroom::cli {

/// oneDNN if this build has it, else Eigen.
[[nodiscard]] measured::Backend default_backend() noexcept;
[[nodiscard]] std::string_view name_of(measured::Backend backend) noexcept;

/// A profile and the file that stores it.
struct StoredProfile {
  MachineProfile profile;
  std::filesystem::path file;
  std::vector<std::string> warnings;  ///< reasons to distrust it
};

/// Calibrates with a progress bar and stores the profile. Throws Error{invalid_input} if
/// interrupted; Error{missing_resource}, before it measures, if the profile could not be stored.
[[nodiscard]] StoredProfile calibrate_here(const measured::CalibrateOptions& options);

/// The stored profile of this machine. Throws Error{invalid_input} if there is none, or if it was
/// measured on another processor or with another build of the backend.
[[nodiscard]] MachineProfile own_machine(measured::Backend backend);

/// Why a stored profile is not valid on this machine; empty if it is.
[[nodiscard]] std::string mismatch(const MachineProfile& profile, measured::Backend backend);

/// The profile of "here", of a catalogue name, or of a file.
[[nodiscard]] MachineProfile machine_named(const std::string& name, measured::Backend backend);

}  // namespace headroom::cli
