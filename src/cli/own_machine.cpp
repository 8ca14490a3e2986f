#include "own_machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include "headroom/error.h"
#include "interruption.h"
#include "output.h"
#include "progress.h"
#include "system.h"

namespace headroom::cli {

using measured::Backend;

Backend default_backend() noexcept {
  return measured::is_available(Backend::onednn) ? Backend::onednn : Backend::eigen;
}

namespace {

/// Returns whether the folder of profiles is usable; throws unless that is optional.
bool can_store(Storing storing, std::vector<std::string>& warnings) {
  try {
    prepare_profile_folder();
  } catch (const Error& error) {
    if (storing == Storing::required) throw;
    warnings.push_back(fmt::format("the calibration is not stored: {}", error.what()));
    return false;
  }
  return true;
}

}  // namespace

StoredProfile calibrate_here(const measured::CalibrateOptions& options, Storing storing) {
  StoredProfile result;
  const bool stores = can_store(storing, result.warnings);
  detail::end_at_next_step();
  {
    ProgressBar bar;
    result.profile = measured::calibrate(options, [&bar](double fraction) {
      return bar.show(fraction, fmt::format("calibrating {:.0f} %", 100 * fraction));
    });
  }
  result.profile.produced_by = current_invocation();
  if (stores) result.stored = store_own_profile(result.profile, name_of(options.backend));
  if (const std::string why = disturbance_of(result.profile.context); !why.empty()) {
    result.warnings.push_back(
        why + " during calibration, so predicted ranges are wider; recalibrate on an idle machine");
  }
  return result;
}

std::optional<MachineProfile> stored_profile(Backend backend) {
  return load_own_profile(name_of(backend), measured::machine_context(1, backend));
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

std::optional<MachineProfile> valid_profile(Backend backend) {
  auto profile = stored_profile(backend);
  if (profile && !mismatch(*profile, backend).empty()) profile.reset();
  return profile;
}

MachineProfile own_machine(Backend backend) {
  auto profile = stored_profile(backend);
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

Integer own_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long size = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && size > 0 ? checked_multiply(pages, size) : 0;
}

}  // namespace headroom::cli
