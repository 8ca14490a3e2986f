#include <fmt/format.h>

#include "headroom/measurement.h"
#include "with_noun.h"

namespace headroom {
namespace {

/// Fraction of the processors that other programs may use before times say more about them than
/// about the model. An idle desktop uses 1–3 %.
constexpr double kMostUsedByOthers = 0.1;
/// Where only the load average is known. It counts this program's last minute, too.
constexpr double kBusyLoadPerCpu = 1.0;

}  // namespace

std::string disturbance_of(const MachineContext& context) {
  const double cpus = context.logical_cpus;
  if (context.other_programs_cpus) {
    if (*context.other_programs_cpus <= kMostUsedByOthers * cpus) return {};
    return fmt::format("other programs used {:.1f} of {}", *context.other_programs_cpus,
                       detail::with_noun(context.logical_cpus, "processor"));
  }
  if (context.load_average <= kBusyLoadPerCpu * cpus) return {};
  return fmt::format("the load average was {:.1f} on {}", context.load_average,
                     detail::with_noun(context.logical_cpus, "processor"));
}

}  // namespace headroom
