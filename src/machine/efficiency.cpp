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
constexpr TimeRanges alike(double range) { return {range, range}; }

/// All eight iteration times of Table 5, and the ten of arXiv 2104.04473, Table 1.
constexpr SourcedEfficiency kAmpereTraining{
    {0.80, 0.78, 0.62}, kPublished, "GPT training on A100: arXiv 2205.05198, Table 5", alike(0.08)};
/// Matrix: the 43 % MFU of 8,192 devices. Memory between A100 and B200, whose bandwidths lie on
/// either side; network as on A100.
constexpr SourcedEfficiency kHopperTraining{
    {0.67, 0.60, 0.62}, kPublished, "Llama 3 405B on H100: arXiv 2407.21783, Table 4", alike(0.2)};
/// Eight steps, three constants. Megatron's element-wise kernels move about as many bytes per
/// second as on A100.
constexpr SourcedEfficiency kBlackwellTraining{
    {0.54, 0.34, 0.46},
    kPublished,
    "Megatron-LM on 8 B200: eight steps in SimuMax's table",
    alike(0.15)};
/// 20 offline throughputs of Llama 3 8B, 70B and 405B, by simulation (reports/published.md), with
/// the latencies of collective_time.cpp and tiles in waves (docs/device-time.md). NVLink's protocol
/// leaves some 370 of 450 GB/s, without NVLink SHARP (github.com/NVIDIA/nccl-tests, issue 212).
/// Nine of ten of NIM's decode steps in float8 took less than 2.1 times the predicted time.
constexpr SourcedEfficiency kHopperServing{
    {0.62, 0.83, 0.80}, kPublished, "TensorRT-LLM v1.0 in float8 on H100 and H200", {0.2, 1.1}};

/// Architectures without published training runs: a factor of two.
constexpr double kAssumedRange = 1;
/// Serving by assumed efficiencies: by them, nine of ten of llama.cpp's steps on eleven devices,
/// and of NIM's in 16 bit, took less than twice the predicted time. Of llama.cpp's prompts,
/// arithmetic bounds nine tenths of the time, and nine of ten lie within the mean of 3.3 and 2 by
/// time (docs/device-time.md). llama_cpp_rates.cpp has its own rates.
constexpr TimeRanges kAssumedServingRange{2.3, 1};
/// Architectures without published runs: between Ampere and Blackwell.
constexpr SourcedEfficiency kOther{
    {0.60, 0.60, 0.50}, kAssumed, "no published runs", alike(kAssumedRange)};

SourcedEfficiency lent(const SourcedEfficiency& from, std::string_view lender) {
  return {from.fractions, kAssumed, lender, alike(kAssumedRange)};
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

/// Fractions of peak that GEMMs of a serving step reach, in whole tiles.
struct ServingMatrix {
  double bits16;
  double bits8;
  double bits4;
};

/// Ampere and Hopper: GEMMs with the traffic of their weights, which training counts apart; large
/// ones in 16 bit take 0.75 on A100 and 0.49 on B200 (SimuMax's configs/system). Single kernels of
/// engines, in the tiles of gemm_tiles.h, reach 0.87 on H100 and 0.80 on B200 in 16 bit, 0.67 and
/// 0.56 in 8 (tests/data/kernels, without any in 4 bit: B200's 0.49 is assumed). Whole runs on
/// Hopper reach three quarters of that in 16 bit and nine tenths in 8, and Blackwell is taken to do
/// so too. Ada's kernels reach 0.71 and 0.53 on L40S, but more of the half rates of GeForce.
ServingMatrix serving_matrix(Architecture architecture) {
  switch (architecture) {
    case Architecture::ampere:
    case Architecture::volta:
    case Architecture::turing:
    case Architecture::ada:
      return {0.74, 0.74, 0.74};
    case Architecture::hopper:
      return {0.65, kHopperServing.fractions.matrix, 0.65};
    case Architecture::blackwell:
      return {0.60, 0.52, 0.45};
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
  return {0.50, 0.50, 0.50};
}

double serving_matrix(Architecture architecture, DType dtype) {
  const ServingMatrix reached = serving_matrix(architecture);
  switch (dtype) {
    case DType::float8:
    case DType::int8:
      return reached.bits8;
    case DType::float4:
    case DType::int4:
      return reached.bits4;
    case DType::float32:
    case DType::float16:
    case DType::bfloat16:
      break;
  }
  return reached.bits16;
}

std::string_view serving_source(Architecture architecture) {
  switch (architecture) {
    case Architecture::ampere:
      return "GEMMs by training, the rest as Hopper";
    case Architecture::hopper:
      return "GEMMs by training, the rest by float8 serving";
    case Architecture::blackwell:
      return "GEMMs by kernels of engines, the rest as Hopper";
    case Architecture::volta:
    case Architecture::turing:
    case Architecture::ada:
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
  return "as Hopper; GEMMs assumed";
}

/// Memory and network as Hopper serves.
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
  const Efficiency known = kHopperServing.fractions;
  return {{serving_matrix(architecture, dtype), known.memory, known.network},
          hopper ? kPublished : kAssumed,
          serving_source(architecture),
          kAssumedServingRange};
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
