#include "headroom/microscaling.h"

#include <fmt/format.h>

#include "headroom/storage.h"

namespace headroom {

bool multiplies_mxfp8(const MachineProfile& machine) noexcept {
  const auto* const sheet = std::get_if<DatasheetRates>(&machine.rates);
  return sheet == nullptr || sheet->float4_flops_per_s.has_value();
}

std::optional<std::string> note_on_mxfp8(const MachineProfile& machine, const ModelSpec& spec,
                                         DType arithmetic) {
  const auto* const sheet = std::get_if<DatasheetRates>(&machine.rates);
  const bool converts = sheet != nullptr && sheet->float8_flops_per_s && !multiplies_mxfp8(machine);
  if (!converts || arithmetic != DType::float8 || !stores_mxfp8(spec)) return std::nullopt;
  return fmt::format(
      "{} multiplies in float8, but without scales per 32 values: engines convert MXFP8 there to "
      "16 bits, as mxfp8 weights without a recipe predict",
      machine.name);
}

}  // namespace headroom
