// Peak of a datasheet by type, and the fractions of it that runs reach.
#include "headroom/machine_profile.h"

namespace headroom {

std::optional<double> peak_flops_per_s(const DatasheetRates& rates, DType dtype) noexcept {
  switch (dtype) {
    case DType::float32:
      return rates.float32_flops_per_s;
    case DType::float16:
    case DType::bfloat16:
      return rates.float16_flops_per_s;
    case DType::float8:
      return rates.float8_flops_per_s.value_or(rates.float16_flops_per_s);
    case DType::int8:
      return rates.int8_ops_per_s.value_or(rates.float16_flops_per_s);
  }
  return std::nullopt;
}

SourcedEfficiency efficiency_of(const DatasheetRates& rates, Purpose purpose,
                                DType dtype) noexcept {
  SourcedEfficiency result = known_efficiency(rates.architecture, purpose, dtype);
  const GivenEfficiency& given = rates.given;
  if (!given.matrix && !given.memory && !given.network) return result;
  Efficiency& fractions = result.fractions;
  fractions.matrix = given.matrix.value_or(fractions.matrix);
  fractions.memory = given.memory.value_or(fractions.memory);
  fractions.network = given.network.value_or(fractions.network);
  return {fractions, EfficiencyOrigin::given, "options or the machine's file"};
}

}  // namespace headroom
