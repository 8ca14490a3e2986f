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
                                   {EfficiencyOrigin::fitted, "measured runs"},
                                   {EfficiencyOrigin::published, "published runs"},
                                   {EfficiencyOrigin::given, "given"},
                                   {EfficiencyOrigin::assumed, "assumed"}};
static_assert(detail::lists_every<kOrigins>(&OriginName::origin));

constexpr auto kPublished = EfficiencyOrigin::published;
constexpr auto kAssumed = EfficiencyOrigin::assumed;

// Ranges: nine of ten of the runs named, and of those held out, lie within.

/// All eight iteration times of Table 5, and the ten of arXiv 2104.04473, Table 1.
constexpr SourcedEfficiency kAmpereTraining{
    {0.80, 0.78, 0.62}, kPublished, "GPT training on A100: arXiv 2205.05198, Table 5", 0.08};
/// Matrix: the 43 % MFU of 8,192 devices. Memory between A100 and B200, whose bandwidths lie on
/// either side; network as on A100.
constexpr SourcedEfficiency kHopperTraining{
    {0.67, 0.60, 0.62}, kPublished, "Llama 3 405B on H100: arXiv 2407.21783, Table 4", 0.2};
/// Eight steps, three constants. Megatron's element-wise kernels move about as many bytes per
/// second as on A100.
constexpr SourcedEfficiency kBlackwellTraining{
    {0.54, 0.34, 0.46}, kPublished, "Megatron-LM on 8 B200: eight steps in SimuMax's table", 0.15};
/// 20 offline throughputs of Llama 3 8B, 70B and 405B, by simulation (reports/published.md), with
/// the latencies of collective_time.cpp and tiles in waves (docs/device-time.md). NVLink's protocol
/// leaves some 370 of 450 GB/s, without NVLink SHARP (github.com/NVIDIA/nccl-tests, issue 212).
constexpr SourcedEfficiency kHopperServing{
    {0.62, 0.83, 0.80}, kPublished, "TensorRT-LLM v1.0 in float8 on H100 and H200", 0.2};

/// Architectures without published training runs: a factor of two.
constexpr double kAssumedRange = 1;
/// Serving by assumed efficiencies: nine of ten of llama.cpp's 134 results on eleven devices took
/// less than three times the predicted time (reports/published.md).
constexpr double kAssumedServingRange = 2.2;
/// Architectures without published runs: between Ampere and Blackwell.
constexpr SourcedEfficiency kOther{
    {0.60, 0.60, 0.50}, kAssumed, "no published runs", kAssumedRange};

SourcedEfficiency lent(const SourcedEfficiency& from, std::string_view lender) {
  return {from.fractions, kAssumed, lender, kAssumedRange};
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

/// Fraction of peak that GEMMs reach with the traffic of their weights, which training counts
/// apart: large ones in 16 bit take 0.75 on A100 and 0.49 on B200 (SimuMax's configs/system).
double serving_matrix(Architecture architecture) {
  switch (architecture) {
    case Architecture::ampere:
    case Architecture::volta:
    case Architecture::turing:
    case Architecture::ada:
      return 0.74;
    case Architecture::hopper:
      return 0.65;
    case Architecture::blackwell:
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
  return 0.50;
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
  result.fractions.matrix = serving_matrix(architecture);
  result.range = kAssumedServingRange;
  const bool known = result.origin == kPublished;
  result.fractions.memory = kHopperServing.fractions.memory;
  result.fractions.network = kHopperServing.fractions.network;
  if (hopper)
    return {result.fractions, kPublished, "GEMMs by training, the rest by float8 serving",
            kAssumedServingRange};
  result.origin = kAssumed;
  result.source = known ? "GEMMs by training, the rest as Hopper" : "as Hopper; GEMMs assumed";
  return result;
}

}  // namespace

std::string_view name_of(EfficiencyOrigin origin) noexcept {
  return kOrigins[static_cast<std::size_t>(origin)].name;
}

std::string_view name_of(Purpose purpose) noexcept {
  switch (purpose) {
    case Purpose::serve:
      return "serve";
    case Purpose::train:
      break;
  }
  return "train";
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
