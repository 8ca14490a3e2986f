#include "enum_table.h"
#include "headroom/compare.h"

namespace headroom {
namespace {

constexpr QuantityInfo kQuantities[] = {
    {Quantity::parameters, QuantityKind::count, "parameters", "parameters"},
    {Quantity::matrix_flops, QuantityKind::count, "matrix_flops", "matrix FLOPs"},
    {Quantity::weight_bytes, QuantityKind::count, "weight_bytes", "weights [B]"},
    {Quantity::kv_cache_bytes, QuantityKind::count, "kv_cache_bytes", "KV-cache [B]"},
    {Quantity::peak_activation_bytes, QuantityKind::count, "peak_activation_bytes",
     "peak activations [B]"},
    {Quantity::rss_peak_bytes, QuantityKind::resident_memory, "rss_peak_bytes",
     "resident peak [B]"},
    {Quantity::time_s, QuantityKind::time, "time_s", "time [ms]"},
    {Quantity::ttft_s, QuantityKind::time, "ttft_s", "TTFT [ms]"},
    {Quantity::tpot_s, QuantityKind::time, "tpot_s", "TPOT [ms]"},
    {Quantity::kv_cache_tokens, QuantityKind::printed, "kv_cache_tokens", "KV-cache [tokens]"},
    {Quantity::kv_cache_blocks, QuantityKind::printed, "kv_cache_blocks", "KV-cache [blocks]"},
    {Quantity::kv_cache_available_bytes, QuantityKind::modelled, "kv_cache_available_bytes",
     "memory for the KV-cache [B]"},
    {Quantity::max_concurrency, QuantityKind::printed, "max_concurrency", "concurrency"},
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
  constexpr double kModelled = 0.05;
  switch (info_of(quantity).kind) {
    case QuantityKind::count:
      return kExact;
    case QuantityKind::resident_memory:
      return kResident;
    case QuantityKind::printed:
      return kPrintedTolerance;
    case QuantityKind::modelled:
      return kModelled;
    case QuantityKind::time:
      break;
  }
  return kTime;
}

std::string_view name_of(RowResult result) noexcept {
  return kResults[static_cast<std::size_t>(result)].name;
}

}  // namespace headroom
