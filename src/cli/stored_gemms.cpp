#include "stored_gemms.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "interruption.h"
#include "options.h"
#include "progress.h"
#include "quantization/group_format.h"
#include "similar.h"
#include "weight_words.h"

namespace headroom::cli {
namespace {

measured::GemmWeights type_named(const std::string& name) {
  for (const checkpoint::GgmlTypeInfo& type : checkpoint::ggml_types()) {
    const bool is_named = detail::lower_case(type.name) == detail::lower_case(name);
    if (is_named && measured::has_block_kernels(type.type)) return type.type;
  }
  if (const auto groups = detail::group_format_named(name)) return *groups;
  const std::string formats = fmt::format("{}, or a form of groups such as 4bit-1x128-s16",
                                          fmt::join(block_formats(), ", "));
  if (detail::weight_form_named(name)) {
    throw_invalid_input(
        fmt::format("{} is a type of whole models, and formats of single matrices are measured",
                    name),
        fmt::format("`headroom compare MODEL --weights {}` measures those that it has; or name "
                    "them: {}",
                    name, formats));
  }
  throw_invalid_input(fmt::format("no kernel reads {} weights as they are stored", name),
                      fmt::format("choose of {}", formats));
}

/// The formats of which `is_wanted` holds with any number of threads.
template <class IsWanted>
std::vector<std::string> formats_where(const MachineProfile& machine,
                                       std::span<const std::string> formats,
                                       const IsWanted& is_wanted) {
  const auto& profiles = std::get<MeasuredRates>(machine.rates).by_threads;
  std::vector<std::string> wanted;
  std::ranges::copy_if(formats, std::back_inserter(wanted), [&](const std::string& format) {
    return std::ranges::any_of(profiles, [&](const ThreadProfile& profile) {
      return is_wanted(find_stored_gemm(profile, format));
    });
  });
  return wanted;
}

}  // namespace

std::vector<measured::GemmWeights> types_named(std::span<const std::string> formats) {
  std::vector<measured::GemmWeights> types;
  for (const std::string& format : formats) {
    const measured::GemmWeights type = type_named(format);
    if (std::ranges::find(types, type) == types.end()) types.push_back(type);
  }
  return types;
}

std::vector<std::string> missing_gemms(const MachineProfile& machine,
                                       std::span<const std::string> formats) {
  return formats_where(machine, formats, [](const StoredGemm* gemm) { return gemm == nullptr; });
}

std::vector<std::string> quick_gemms(const MachineProfile& machine,
                                     std::span<const std::string> formats) {
  return formats_where(machine, formats, [](const StoredGemm* gemm) {
    return gemm != nullptr && gemm->effort == CalibrationEffort::quick;
  });
}

void measure_stored_gemms(MachineProfile& machine, std::span<const std::string> formats,
                          const measured::CalibrateOptions& options) {
  const std::vector<measured::GemmWeights> types = types_named(formats);
  detail::end_at_next_step();
  ProgressBar bar;
  measured::calibrate_stored_gemms(machine, types, options, [&bar](double fraction) {
    return bar.show(fraction, fmt::format("calibrating {:.0f} %", 100 * fraction));
  });
}

}  // namespace headroom::cli
