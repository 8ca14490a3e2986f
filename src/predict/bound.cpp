#include <fmt/format.h>

#include "architecture_rates.h"
#include "enum_table.h"
#include "headroom/error.h"
#include "headroom/predict.h"
#include "setting_format.h"

namespace headroom {
namespace {

struct BoundName {
  Bound bound;
  std::string_view name;
};
constexpr BoundName kBounds[] = {{Bound::compute, "compute"},
                                 {Bound::cache, "cache"},
                                 {Bound::memory, "memory"},
                                 {Bound::overhead, "overhead"}};
static_assert(detail::lists_every<kBounds>(&BoundName::bound));

struct BasisName {
  TimeBasis basis;
  std::string_view name;
};
constexpr BasisName kBases[] = {{TimeBasis::modelled, "modelled"}, {TimeBasis::assumed, "assumed"}};
static_assert(detail::lists_every<kBases>(&BasisName::basis));

}  // namespace

std::string_view name_of(Bound bound) noexcept {
  return kBounds[static_cast<std::size_t>(bound)].name;
}

std::string_view name_of(TimeBasis basis) noexcept {
  return kBases[static_cast<std::size_t>(basis)].name;
}

std::int64_t tiling_processors(const DatasheetRates& rates, Purpose purpose, DType dtype) noexcept {
  if (dtype == DType::float32) return 0;
  switch (purpose) {
    case Purpose::serve:
      return rates.processors ? rates.processors->count : 0;
    case Purpose::train:
      break;
  }
  return 0;
}

double serving_kernel_seconds(Architecture architecture, DType dtype) noexcept {
  const detail::ServingKernelSeconds& seconds =
      detail::architecture_rates(architecture).serving_kernel;
  return bytes_of(dtype) == 1 ? seconds.narrow : seconds.wide;
}

EffectiveRates effective_rates(const DatasheetRates& rates, Purpose purpose, DType dtype) {
  const std::optional<double> peak = peak_flops_per_s(rates, dtype);
  if (!peak) {
    throw Error(ErrorCode::invalid_input, fmt::format("no rate for {}", name_of(dtype)),
                rates.source,
                fmt::format("choose a type of the datasheet, such as {} bfloat16", Setting::dtype));
  }
  const Efficiency reached = efficiency_of(rates, purpose, dtype).fractions;
  const bool serves = purpose == Purpose::serve;
  const double kernel_s =
      serves
          ? reached.fixed * serving_kernel_seconds(rates.architecture, computed_type(rates, dtype))
          : 0;
  return {*peak,
          *peak * reached.matrix,
          rates.memory_bytes_per_s * reached.memory,
          tiling_processors(rates, purpose, dtype),
          kernel_s,
          rates.memory_bytes_per_s * reached.memory * reached.cache};
}

}  // namespace headroom
