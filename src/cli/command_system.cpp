// headroom system: what headroom finds on this machine, and what predictions here rest on.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "commands.h"
#include "headroom/error.h"
#include "headroom/report.h"
#include "headroom/system.h"
#include "memory_limit.h"
#include "output.h"
#include "own_machine.h"
#include "processors.h"
#include "system.h"
#include "user_settings.h"

namespace headroom::cli {
namespace {

Integer installed_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long size = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && size > 0 ? checked_multiply(pages, size) : 0;
}

std::optional<OwnProfile> own_profile(measured::Backend backend, std::vector<std::string>& notes) {
  try {
    const std::optional<MachineProfile> profile = stored_profile(backend);
    if (!profile) return std::nullopt;
    OwnProfile own{profile->date, {}, {}, mismatch(*profile, backend)};
    if (profile->effort) own.effort = name_of(*profile->effort);
    if (const auto* rates = std::get_if<MeasuredRates>(&profile->rates)) {
      for (const ThreadProfile& one : rates->by_threads) own.threads.push_back(one.threads);
    }
    return own;
  } catch (const Error& error) {
    notes.push_back(fmt::format("{}: run `headroom calibrate` to replace it", error.what()));
    return std::nullopt;
  }
}

SystemReport system_report() {
  SystemReport report;
  const measured::Backend backend = default_backend();
  report.context = measured::machine_context(0, backend);
  report.usable_cpus = measured::usable_processors();
  report.memory_bytes = installed_memory();
  const measured::MemoryLimit limit = measured::memory_limit();
  report.available_bytes = limit.bytes;
  report.available_source = limit.source;
  report.devices = local_devices();
  report.engines = local_engines();
  report.configuration = configuration_in_force();
  report.profile = own_profile(backend, report.notes);
  if (!report.profile && report.notes.empty()) {
    report.notes.emplace_back(
        "this machine is not calibrated: `headroom calibrate` takes under a minute, and times "
        "can then be predicted with --machine here");
  }
  return report;
}

}  // namespace

void add_system(Command root) {
  auto output = std::make_shared<OutputOptions>();
  Command command = root.add_command(
      "system", "Show this machine: processor, memory, graphics devices, engines, calibration");
  add_output_options(command, *output);
  command.set_footer(
      "Examples:\n"
      "  headroom system\n"
      "  headroom system --json");
  command.on_run([output] {
    const SystemReport report = system_report();
    write_output(render(report, render_options(*output, Detail::summary)), report.notes, *output);
  });
}

}  // namespace headroom::cli
