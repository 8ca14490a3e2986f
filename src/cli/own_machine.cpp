#include "own_machine.h"

#include <fmt/format.h>

#include "headroom/error.h"
#include "progress.h"
#include "system.h"

namespace headroom::cli {

using measured::Backend;

Backend default_backend() noexcept {
  return measured::is_available(Backend::onednn) ? Backend::onednn : Backend::eigen;
}

std::string_view name_of(Backend backend) noexcept {
  switch (backend) {
    case Backend::eigen:
      return "eigen";
    case Backend::onednn:
      break;
  }
  return "onednn";
}

StoredProfile calibrate_here(const measured::CalibrateOptions& options) {
  prepare_profile_folder();
  catch_interrupt();
  MachineProfile profile = measured::calibrate(options, [](double fraction) {
    return show_progress(fraction, fmt::format("calibrating {:.0f} %", 100 * fraction));
  });
  clear_progress();
  const auto file = store_own_profile(profile, name_of(options.backend));
  std::vector<std::string> warnings;
  if (const std::string why = disturbance_of(profile.context); !why.empty()) {
    warnings.push_back(why +
                       " during the calibration: predicted ranges are wider for it; calibrate "
                       "again on an idle machine");
  }
  return {std::move(profile), file, warnings};
}

std::string mismatch(const MachineProfile& profile, Backend backend) {
  const MachineContext here = measured::machine_context(1, backend);
  const MachineContext& then = profile.context;
  if (then.cpu != here.cpu || then.logical_cpus != here.logical_cpus) {
    return fmt::format("was measured on {} × {}", then.logical_cpus, then.cpu);
  }
  if (then.backend != here.backend) return fmt::format("was measured with {}", then.backend);
  if (then.compiler != here.compiler) return fmt::format("was measured with {}", then.compiler);
  return {};
}

MachineProfile own_machine(Backend backend) {
  auto profile = load_own_profile(name_of(backend));
  if (!profile) {
    throw Error(ErrorCode::invalid_input, "this machine is not calibrated", {},
                fmt::format("run `headroom calibrate --backend {}`, which takes under a minute",
                            name_of(backend)));
  }
  const std::string why = mismatch(*profile, backend);
  if (!why.empty()) {
    throw Error(ErrorCode::invalid_input, fmt::format("the stored profile {}", why), {},
                "run `headroom calibrate` again");
  }
  return *std::move(profile);
}

MachineProfile machine_named(const std::string& name, Backend backend) {
  return name == "here" ? own_machine(backend) : find_machine(name);
}

}  // namespace headroom::cli
