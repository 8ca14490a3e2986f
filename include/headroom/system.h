// This machine as headroom finds it: processor, memory, graphics devices, engines, calibration.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/machine_profile.h"
#include "headroom/measurement.h"
#include "headroom/user_setting.h"

namespace headroom {

/// An accelerator of this machine.
struct LocalDevice {
  std::string name;                     ///< by its driver
  std::optional<Integer> memory_bytes;  ///< by its driver
  std::optional<Integer> used_bytes;
  std::string driver;   ///< its version; empty if unknown
  std::string source;   ///< "nvidia-smi", "rocm-smi" or "/sys"
  std::string machine;  ///< its name in the catalogue; empty if it has none
};

/// Another inference engine that can be run here.
struct LocalEngine {
  std::string name;  ///< "vllm"
  std::string path;
};

/// The stored calibration that predictions use.
struct OwnProfile {
  std::string date;  ///< of the calibration
  std::string effort;
  std::vector<int> threads;
  std::string invalid_because;  ///< empty if it is valid here
};

/// The user's configuration file, and the settings of it and of the environment.
struct Configuration {
  std::string file;  ///< empty: none is looked for
  bool exists = false;
  std::vector<UserSetting> settings;
};

/// `headroom system`.
struct SystemReport {
  MachineContext context;
  int usable_cpus = 0;           ///< that this process may run on
  Integer memory_bytes = 0;      ///< installed; 0 if unknown
  Integer available_bytes = 0;   ///< that a run may still allocate
  std::string available_source;  ///< the limit that sets it
  std::vector<LocalDevice> devices;
  std::vector<LocalEngine> engines;
  std::optional<OwnProfile> profile;
  Configuration configuration;
  std::vector<std::string> notes;
};

/// The devices in the output of `nvidia-smi --query-gpu=name,memory.total,memory.used,
/// driver_version --format=csv,noheader,nounits` (MiB). Lines of another form are left out.
[[nodiscard]] std::vector<LocalDevice> parse_nvidia_smi(std::string_view text);
/// The devices in the output of `rocm-smi --showproductname --showmeminfo vram
/// --showdriverversion --json` (bytes). Empty if it is no such JSON.
[[nodiscard]] std::vector<LocalDevice> parse_rocm_smi(std::string_view text);
/// Graphics cards of the amdgpu driver under `root`/sys/class/drm, which need no tool.
[[nodiscard]] std::vector<LocalDevice> drm_devices(const std::filesystem::path& root = "/");

/// The machine of the catalogue that a driver's `name` means, with its memory where sizes differ;
/// empty if none does.
[[nodiscard]] std::string catalogue_name(std::string_view name,
                                         const std::optional<Integer>& memory_bytes);

/// All devices: of nvidia-smi and rocm-smi where these are installed, else of /sys.
[[nodiscard]] std::vector<LocalDevice> local_devices();
/// Engines whose programs are on the PATH.
[[nodiscard]] std::vector<LocalEngine> local_engines();

}  // namespace headroom
