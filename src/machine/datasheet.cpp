// Peak of a datasheet by type, and the fractions of it that runs reach.
#include <fmt/format.h>

#include <algorithm>

#include "headroom/machine_profile.h"
#include "with_noun.h"

namespace headroom {

namespace {

/// The datasheet's figure of the units for `dtype`.
std::optional<double> own_peak(const DatasheetRates& rates, DType dtype) noexcept {
  switch (dtype) {
    case DType::float32:
      return rates.float32_flops_per_s;
    case DType::float16:
    case DType::bfloat16:
      return rates.float16_flops_per_s;
    case DType::float8:
      return rates.float8_flops_per_s;
    case DType::int8:
      return rates.int8_ops_per_s;
    case DType::float4:
      return rates.float4_flops_per_s;
    case DType::int4:
      break;
  }
  return rates.int4_ops_per_s;
}

}  // namespace

DType computed_type(const DatasheetRates& rates, DType dtype) noexcept {
  const bool wide = bytes_of(dtype) > 1;
  return wide || own_peak(rates, dtype) ? dtype : DType::bfloat16;
}

std::optional<double> peak_flops_per_s(const DatasheetRates& rates, DType dtype) noexcept {
  return own_peak(rates, computed_type(rates, dtype));
}

namespace {

/// Of a machine whose curves are those of headroom's own kernels.
std::optional<std::string> computes_in_float32_note(const MachineProfile& machine,
                                                    DType arithmetic) {
  if (arithmetic == DType::float32) return std::nullopt;
  return fmt::format(
      "headroom's kernels compute in float32, and with int8 activations on weights in blocks: "
      "times on {} are of that arithmetic, not of {}",
      machine.name, name_of(arithmetic));
}

}  // namespace

std::optional<std::string> conversion_note(const MachineProfile& machine, DType arithmetic) {
  if (const auto* const measured = std::get_if<MeasuredRates>(&machine.rates)) {
    if (measured->engine == MeasuredEngine::headroom) {
      return computes_in_float32_note(machine, arithmetic);
    }
    if (bytes_of(arithmetic) > 1) return {};
    return fmt::format(
        "{} was not measured in {}: the layers' GEMMs convert to the activations' type and run at "
        "its rate",
        machine.name, name_of(arithmetic));
  }
  const auto& rates = std::get<DatasheetRates>(machine.rates);
  if (computed_type(rates, arithmetic) == arithmetic) return {};
  return fmt::format(
      "the datasheet of {} gives no rate for {}: the layers' GEMMs convert to 16 bits and run at "
      "that rate",
      machine.name, name_of(arithmetic));
}

SourcedEfficiency with_given(SourcedEfficiency known, const GivenEfficiency& given) noexcept {
  if (!given.matrix && !given.memory && !given.network) return known;
  Efficiency& fractions = known.fractions;
  fractions.matrix = given.matrix.value_or(fractions.matrix);
  fractions.memory = given.memory.value_or(fractions.memory);
  fractions.network = given.network.value_or(fractions.network);
  known.origin = EfficiencyOrigin::given;
  known.source = "options or the machine's file";
  return known;
}

SourcedEfficiency efficiency_of(const DatasheetRates& rates, Purpose purpose,
                                DType dtype) noexcept {
  SourcedEfficiency result =
      known_efficiency(rates.architecture, purpose, computed_type(rates, dtype));
  const auto fitted = std::ranges::find(rates.fitted, purpose, &FittedEfficiency::purpose);
  if (fitted != rates.fitted.end()) {
    const Efficiency known =
        known_efficiency(rates.architecture, purpose, computed_type(rates, fitted->dtype))
            .fractions;
    const double ratio = result.fractions.matrix / known.matrix;
    result = {fitted->fractions,
              EfficiencyOrigin::fitted,
              "those that the machine's file was fitted to",
              {fitted->range, fitted->range}};
    result.fractions.matrix = std::min(1.0, ratio * fitted->fractions.matrix);
  }
  return with_given(result, rates.given);
}

std::string efficiency_source_of(const DatasheetRates& rates, Purpose purpose, DType dtype) {
  constexpr std::size_t kNamed = 3;
  const SourcedEfficiency reached = efficiency_of(rates, purpose, dtype);
  if (reached.origin != EfficiencyOrigin::fitted) return std::string(reached.source);
  const FittedEfficiency& fitted =
      *std::ranges::find(rates.fitted, purpose, &FittedEfficiency::purpose);
  std::string text = fmt::format("fitted to {}", detail::with_noun(fitted.runs, "run"));
  const std::size_t named = std::min(kNamed, fitted.fitted_to.size());
  for (std::size_t i = 0; i < named; ++i) {
    const FittingRun& run = fitted.fitted_to[i];
    text +=
        fmt::format("{}{} {} in {:.3g} s", i == 0 ? ": " : ", ", run.model, run.plan, run.time_s);
  }
  const std::size_t more = fitted.fitted_to.size() - named;
  return more == 0 ? text : text + fmt::format(" and {} more", more);
}

}  // namespace headroom
