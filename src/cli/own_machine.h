// This machine: its default backend, its stored profile, and its calibration.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/calibrate.h"
#include "headroom/machine_profile.h"

namespace headroom::cli {

/// oneDNN if this build has it, else Eigen.
[[nodiscard]] measured::Backend default_backend() noexcept;
[[nodiscard]] std::string_view name_of(measured::Backend backend) noexcept;

/// A new profile and its file. `file` is empty if there is no folder for it.
struct StoredProfile {
  MachineProfile profile;
  StoredFile stored;
  std::vector<std::string> warnings;  ///< reasons to distrust it
};

/// A profile that cannot be stored is an error, or is used without.
enum class Storing { required, if_possible };

/// Calibrates with a progress bar and stores the profile. Throws Interrupted if a
/// signal ends it; Error{missing_resource}, before it measures, if the profile could not be stored
/// and is required to be.
[[nodiscard]] StoredProfile calibrate_here(const measured::CalibrateOptions& options,
                                           Storing storing);

/// The profile stored for this machine and build, if there is one; see load_own_profile.
[[nodiscard]] std::optional<MachineProfile> stored_profile(measured::Backend backend);

/// The stored profile, if it is valid on this machine.
[[nodiscard]] std::optional<MachineProfile> valid_profile(measured::Backend backend);

/// The stored profile of this machine. Throws Error{invalid_input} if there is none, or if it was
/// measured on another processor or with another build of the backend.
[[nodiscard]] MachineProfile own_machine(measured::Backend backend);

/// Physical memory of this machine, which its profile does not state; 0 if unknown.
[[nodiscard]] Integer own_memory();

/// Why a stored profile is not valid on this machine; empty if it is.
[[nodiscard]] std::string mismatch(const MachineProfile& profile, measured::Backend backend);

/// The profile of a catalogue name or a file. A note says which machine another name was taken as.
[[nodiscard]] MachineProfile catalogue_machine(const std::string& name);
/// The profile of "here", or of a catalogue name or a file.
[[nodiscard]] MachineProfile machine_named(const std::string& name, measured::Backend backend);

}  // namespace headroom::cli
