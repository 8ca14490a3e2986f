#include "headroom/compare.h"

namespace headroom {

std::string_view name_of(Quantity quantity) noexcept {
  switch (quantity) {
    case Quantity::parameters:
      return "parameters";
    case Quantity::matrix_flops:
      return "matrix_flops";
    case Quantity::weight_bytes:
      return "weight_bytes";
    case Quantity::kv_cache_bytes:
      return "kv_cache_bytes";
    case Quantity::peak_activation_bytes:
      return "peak_activation_bytes";
    case Quantity::rss_peak_bytes:
      return "rss_peak_bytes";
    case Quantity::time_s:
      return "time_s";
    case Quantity::ttft_s:
      return "ttft_s";
    case Quantity::tpot_s:
      break;
  }
  return "tpot_s";
}

std::vector<Quantity> all_quantities() {
  return {Quantity::parameters,
          Quantity::matrix_flops,
          Quantity::weight_bytes,
          Quantity::kv_cache_bytes,
          Quantity::peak_activation_bytes,
          Quantity::rss_peak_bytes,
          Quantity::time_s,
          Quantity::ttft_s,
          Quantity::tpot_s};
}

double default_tolerance(Quantity quantity) noexcept {
  constexpr double kExact = 0;
  constexpr double kResident = 0.03;
  constexpr double kTime = 0.15;
  switch (quantity) {
    case Quantity::parameters:
    case Quantity::matrix_flops:
    case Quantity::weight_bytes:
    case Quantity::kv_cache_bytes:
    case Quantity::peak_activation_bytes:
      return kExact;
    case Quantity::rss_peak_bytes:
      return kResident;
    case Quantity::time_s:
    case Quantity::ttft_s:
    case Quantity::tpot_s:
      break;
  }
  return kTime;
}

std::string_view name_of(RowResult result) noexcept {
  switch (result) {
    case RowResult::pass:
      return "pass";
    case RowResult::fail:
      return "fail";
    case RowResult::skip:
      break;
  }
  return "skip";
}

}  // namespace headroom
