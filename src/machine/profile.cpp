// Queries on a profile.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "headroom/error.h"
#include "headroom/machine_profile.h"
#include "with_noun.h"

namespace headroom {

std::string_view name_of(CalibrationEffort effort) noexcept {
  switch (effort) {
    case CalibrationEffort::quick:
      return "quick";
    case CalibrationEffort::full:
      break;
  }
  return "full";
}

std::string_view name_of(MeasuredEngine engine) noexcept {
  switch (engine) {
    case MeasuredEngine::headroom:
      return "headroom";
    case MeasuredEngine::pytorch:
      break;
  }
  return "pytorch";
}

bool has_own_kernels(const MachineProfile& machine) noexcept {
  const auto* const rates = std::get_if<MeasuredRates>(&machine.rates);
  return rates != nullptr && rates->engine == MeasuredEngine::headroom;
}

std::optional<Integer> usable_memory(const MachineProfile& machine) noexcept {
  if (const auto* const sheet = std::get_if<DatasheetRates>(&machine.rates)) {
    return sheet->memory.usable.bytes;
  }
  const auto& device = std::get<MeasuredRates>(machine.rates).device;
  return device ? std::optional(device->memory_bytes) : std::nullopt;
}

namespace {

/// Returns whether the kernels of `profile` compute in `dtype`.
bool computes_in(const MeasuredRates& rates, const ThreadProfile& profile, DType dtype) noexcept {
  return rates.engine == MeasuredEngine::headroom || profile.dtype == dtype;
}

/// "1, 2 and 4 threads": those of a calibration that adds `threads`, since it replaces the others.
std::string threads_to_calibrate(const MeasuredRates& rates, int threads) {
  std::set<int> numbers{1, threads};
  for (const ThreadProfile& profile : rates.by_threads) numbers.insert(profile.threads);
  const int last = *numbers.rbegin();
  numbers.erase(last);
  if (numbers.empty()) return detail::with_noun(last, "thread");
  return fmt::format("{} and {}", fmt::join(numbers, ", "), detail::with_noun(last, "thread"));
}

[[noreturn]] void throw_not_measured(const MachineProfile& machine, const MeasuredRates& rates,
                                     int threads, DType dtype) {
  const bool has_type = std::ranges::any_of(rates.by_threads, [&](const ThreadProfile& profile) {
    return computes_in(rates, profile, dtype);
  });
  if (has_type) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("{} was not calibrated with {}", machine.name,
                            detail::with_noun(threads, "thread")),
                {}, fmt::format("calibrate it with {}", threads_to_calibrate(rates, threads)));
  }
  throw Error(ErrorCode::invalid_input,
              fmt::format("{} was not measured in {}", machine.name, name_of(dtype)), {},
              fmt::format("measure it in that type, or predict in {}",
                          name_of(rates.by_threads.front().dtype)));
}

}  // namespace

const ThreadProfile* curves_of(const MachineProfile& machine, int threads, DType dtype) {
  const auto* rates = std::get_if<MeasuredRates>(&machine.rates);
  if (rates == nullptr) return nullptr;
  const ThreadProfile* found = nullptr;
  for (const ThreadProfile& profile : rates->by_threads) {
    if (!computes_in(*rates, profile, dtype)) continue;
    const bool wanted = threads == 0 ? found == nullptr || profile.threads > found->threads
                                     : profile.threads == threads;
    if (wanted) found = &profile;
  }
  if (found == nullptr) throw_not_measured(machine, *rates, threads, dtype);
  return found;
}

const KernelTable& table_of(const ThreadProfile& profile, KernelKind kind) {
  const auto found = std::ranges::find(profile.tables, kind, &KernelTable::kind);
  if (found != profile.tables.end()) return *found;
  throw Error(ErrorCode::invalid_input,
              fmt::format("the machine's file has no times of the kernel {}", info_of(kind).name),
              {}, "choose a machine whose file has them, or a datasheet");
}

const StoredGemm* find_stored_gemm(const ThreadProfile& profile, std::string_view format) noexcept {
  const auto found = std::ranges::find(profile.stored_gemms, format, &StoredGemm::format);
  return found == profile.stored_gemms.end() ? nullptr : &*found;
}

Drift usual_drift(const ThreadProfile& profile) noexcept {
  const auto ratio = [](double usual, double best) { return usual > 0 ? usual / best : 1; };
  return {ratio(profile.usual_compute_s, profile.probe_compute_s),
          ratio(profile.usual_memory_s, profile.probe_memory_s)};
}

double peak_flops_per_s(const ThreadProfile& profile) {
  const KernelTable& table = table_of(profile, KernelKind::linear_warm);
  double most = 0;
  for (std::size_t number = 0; number < table.seconds.size(); ++number) {
    const std::optional<double>& seconds = table.seconds[number];
    if (!seconds) continue;
    most = std::max(most, 2 * work_of(table.kind, point_of(table.axes, number)) / *seconds);
  }
  return most;
}

}  // namespace headroom
