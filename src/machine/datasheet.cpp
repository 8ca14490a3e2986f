// Peak of a datasheet by type.
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

}  // namespace headroom
