// Efficiencies by architecture, purpose and type. Each row of published runs was fitted with the
// planner's own step, to the figures that its source names; tests hold the fit.
#include "enum_table.h"
#include "headroom/machine_profile.h"

namespace headroom {
namespace {

struct OriginName {
  EfficiencyOrigin origin;
  std::string_view name;
};
constexpr OriginName kOrigins[] = {{EfficiencyOrigin::measured, "measured"},
                                   {EfficiencyOrigin::published, "published runs"},
                                   {EfficiencyOrigin::given, "given"},
                                   {EfficiencyOrigin::assumed, "assumed"}};
static_assert(detail::lists_every<kOrigins>(&OriginName::origin));

constexpr auto kPublished = EfficiencyOrigin::published;
constexpr auto kAssumed = EfficiencyOrigin::assumed;

/// All eight iteration times of Table 5.
constexpr SourcedEfficiency kAmpereTraining{
    {0.74, 0.80, 0.65}, kPublished, "GPT training on A100: arXiv 2205.05198, Table 5"};
/// Matrix: the 43 % MFU of 8,192 devices; the rest as on A100.
constexpr SourcedEfficiency kHopperTraining{
    {0.65, 0.80, 0.65}, kPublished, "Llama 3 405B on H100: arXiv 2407.21783, Table 4"};
/// Eight steps, three constants. Megatron's element-wise kernels move about as many bytes per
/// second as on A100.
constexpr SourcedEfficiency kBlackwellTraining{
    {0.50, 0.215, 0.28}, kPublished, "Megatron-LM on 8 B200: eight steps in SimuMax's table"};
/// 20 offline throughputs of Llama 3 8B, 70B and 405B.
constexpr SourcedEfficiency kHopperServing{
    {0.54, 0.83, 0.35}, kPublished, "TensorRT-LLM v1.0 in float8 on H100 and H200"};

/// Architectures without published runs: between Ampere and Blackwell.
constexpr SourcedEfficiency kOther{{0.50, 0.75, 0.50}, kAssumed, "no published runs"};

SourcedEfficiency lent(const SourcedEfficiency& from, std::string_view lender) {
  return {from.fractions, kAssumed, lender};
}

SourcedEfficiency training(Architecture architecture) {
  switch (architecture) {
    case Architecture::ampere:
      return kAmpereTraining;
    case Architecture::hopper:
      return kHopperTraining;
    case Architecture::blackwell:
      return kBlackwellTraining;
    case Architecture::volta:
    case Architecture::turing:
    case Architecture::ada:
      return lent(kAmpereTraining, "as Ampere");
    case Architecture::cdna:
    case Architecture::rdna:
    case Architecture::gaudi:
    case Architecture::tpu:
    case Architecture::trainium:
    case Architecture::apple:
    case Architecture::cpu:
    case Architecture::other:
      break;
  }
  return kOther;
}

/// Memory and network as Hopper serves; GEMMs of other types than 8-bit ones as this architecture
/// trains.
SourcedEfficiency serving(Architecture architecture, DType dtype) {
  const bool hopper = architecture == Architecture::hopper;
  switch (dtype) {
    case DType::float8:
    case DType::int8:
      if (hopper) return kHopperServing;
      break;
    case DType::float32:
    case DType::float16:
    case DType::bfloat16:
    case DType::float4:
    case DType::int4:
      break;
  }
  SourcedEfficiency result = training(architecture);
  const bool known = result.origin == kPublished;
  result.fractions.memory = kHopperServing.fractions.memory;
  result.fractions.network = kHopperServing.fractions.network;
  if (hopper)
    return {result.fractions, kPublished, "GEMMs by training, the rest by float8 serving"};
  result.origin = kAssumed;
  result.source = known ? "GEMMs by training, the rest as Hopper" : "as Hopper; GEMMs assumed";
  return result;
}

}  // namespace

std::string_view name_of(EfficiencyOrigin origin) noexcept {
  return kOrigins[static_cast<std::size_t>(origin)].name;
}

SourcedEfficiency known_efficiency(Architecture architecture, Purpose purpose,
                                   DType dtype) noexcept {
  switch (purpose) {
    case Purpose::train:
      return training(architecture);
    case Purpose::serve:
      break;
  }
  return serving(architecture, dtype);
}

}  // namespace headroom
