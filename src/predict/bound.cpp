#include <fmt/format.h>

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

// Single kernels in CUDA graphs (tests/data/kernels): beyond the bytes of their weights, GEMMs of
// few rows take 3 µs on H100, 4 on H200 and B200 and 6 on A100, attention of few keys 10 and 14. A
// layer of Llama has 6 operators with weights. In float8 GEMMs take 3 µs longer on H100, 2 on H200
// and 4.5 on B200; integers and 4 bits are assumed to take as long as float8.
double serving_kernel_seconds(Architecture architecture, DType dtype) noexcept {
  constexpr double kHopper = 6e-6;
  constexpr double kAmpere = 9e-6;
  constexpr double kNarrow = 3e-6;
  const bool narrow = bytes_of(dtype) == 1;
  switch (architecture) {
    case Architecture::hopper:
    case Architecture::ada:  // assumed, as the next three
    case Architecture::blackwell:
    case Architecture::cdna:
    case Architecture::rdna:
      return narrow ? kHopper + kNarrow : kHopper;
    case Architecture::ampere:
    case Architecture::volta:  // assumed, as the next
    case Architecture::turing:
      return kAmpere;
    case Architecture::gaudi:
    case Architecture::tpu:
    case Architecture::trainium:
    case Architecture::apple:
    case Architecture::cpu:
    case Architecture::other:
      break;
  }
  return 0;
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
