#include "enum_table.h"
#include "headroom/compare.h"

namespace headroom {
namespace {

constexpr QuantityInfo kQuantities[] = {
    {Quantity::parameters, "parameters", "parameters", QuantityKind::count},
    {Quantity::matrix_flops, "matrix_flops", "matrix FLOPs", QuantityKind::count},
    {Quantity::weight_bytes, "weight_bytes", "weights [B]", QuantityKind::count},
    {Quantity::kv_cache_bytes, "kv_cache_bytes", "KV-cache [B]", QuantityKind::count},
    {Quantity::peak_activation_bytes, "peak_activation_bytes", "peak activations [B]",
     QuantityKind::count},
    {Quantity::rss_peak_bytes, "rss_peak_bytes", "resident peak [B]",
     QuantityKind::resident_memory},
    {Quantity::time_s, "time_s", "time [ms]", QuantityKind::time},
    {Quantity::ttft_s, "ttft_s", "TTFT [ms]", QuantityKind::time},
    {Quantity::tpot_s, "tpot_s", "TPOT [ms]", QuantityKind::time},
};
static_assert(detail::lists_every<kQuantities>(&QuantityInfo::quantity));

struct ResultName {
  RowResult result;
  std::string_view name;
};
constexpr ResultName kResults[] = {
    {RowResult::pass, "pass"}, {RowResult::fail, "fail"}, {RowResult::skip, "skip"}};
static_assert(detail::lists_every<kResults>(&ResultName::result));

}  // namespace

std::span<const QuantityInfo> quantities() noexcept { return kQuantities; }

const QuantityInfo& info_of(Quantity quantity) noexcept {
  return kQuantities[static_cast<std::size_t>(quantity)];
}

std::string_view name_of(Quantity quantity) noexcept { return info_of(quantity).name; }

double default_tolerance(Quantity quantity) noexcept {
  constexpr double kExact = 0;
  constexpr double kResident = 0.03;
  constexpr double kTime = 0.15;
  switch (info_of(quantity).kind) {
    case QuantityKind::count:
      return kExact;
    case QuantityKind::resident_memory:
      return kResident;
    case QuantityKind::time:
      break;
  }
  return kTime;
}

std::string_view name_of(RowResult result) noexcept {
  return kResults[static_cast<std::size_t>(result)].name;
}

}  // namespace headroom
