// Rates by architecture: efficiencies by purpose and type, fixed times of kernels, links to the
// host. Each row of published runs was fitted with the planner's own step, to the figures that its
// source names; tests hold the fit.
#include "architecture_rates.h"
#include "enum_table.h"

namespace headroom {
namespace {

using detail::ArchitectureRates;
using detail::LlamaCppDevices;
using detail::ServingKernelSeconds;
using detail::ServingMatrix;

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

constexpr SourcedEfficiency kLentByAmpere{kAmpereTraining.fractions, kAssumed, "as on Ampere",
                                          alike(kAssumedRange)};

// Fixed times of kernels in a training step that no other work hides: launch, ramp and tail.
// SimuMax fits 30 µs to single kernels on B200 (configs/system); a step queues kernels ahead, by
// more on a slower device. Of Ampere (the default) and Blackwell they are fitted with their
// efficiencies, of Hopper between them; CDNA, Gaudi, TPU and Trainium are assumed as Hopper.
constexpr double kHopperTrainingKernel = 10e-6;
constexpr double kBlackwellTrainingKernel = 20e-6;

// Ampere and Hopper: GEMMs with the traffic of their weights, which training counts apart; large
// ones in 16 bit take 0.75 on A100 and 0.49 on B200 (SimuMax's configs/system). Single kernels of
// engines, in the tiles of gemm_tiles.h, reach 0.87 on H100 and 0.80 on B200 in 16 bit, 0.67 and
// 0.56 in 8 (tests/data/kernels, without any in 4 bit: B200's 0.49 is assumed). Whole runs on
// Hopper reach three quarters of that in 16 bit and nine tenths in 8, and Blackwell is taken to do
// so too. Ada's kernels reach 0.71 and 0.53 on L40S, but more of the half rates of GeForce.
constexpr ServingMatrix kAmpereMatrix{0.74, 0.74, 0.74};
constexpr ServingMatrix kHopperMatrix{0.65, kHopperServing.fractions.matrix, 0.65};
constexpr ServingMatrix kBlackwellMatrix{0.60, 0.52, 0.45};
constexpr std::string_view kServingLentByAmpere =
    "arithmetic as on Ampere, memory and network as on Hopper";

// Single kernels in CUDA graphs (tests/data/kernels): beyond the bytes of their weights, GEMMs of
// few rows take 3 µs on H100, 4 on H200 and B200 and 6 on A100, attention of few keys 10 and 14. A
// layer of Llama has 6 operators with weights. In float8 GEMMs take 3 µs longer on H100, 2 on H200
// and 4.5 on B200; integers and 4 bits are assumed to take as long as float8. Volta and Turing are
// assumed to be like Ampere, all others like Hopper: without fixed times, a device without known
// results would be the fastest at small batches.
constexpr ServingKernelSeconds kHopperKernel{6e-6, 6e-6 + 3e-6};
constexpr ServingKernelSeconds kAmpereKernel{9e-6, 9e-6};

// Links to the host: PCIe 5.0 x16 by the datasheets of H100, B200 and MI300X, 4.0 (the default) by
// that of A100, 3.0 by that of V100. Assumed for other machines of the architecture that do not
// state theirs.
constexpr double kPcie3 = 16e9;
constexpr double kPcie5 = 64e9;

constexpr ArchitectureRates kArchitectureRates[] = {
    {.architecture = Architecture::volta,
     .training = kLentByAmpere,
     .serving_matrix = kAmpereMatrix,
     .serving_source = kServingLentByAmpere,
     .serving_kernel = kAmpereKernel,
     .host_bytes_per_s = kPcie3,
     .llama_cpp = LlamaCppDevices::nvidia},
    {.architecture = Architecture::turing,
     .training = kLentByAmpere,
     .serving_matrix = kAmpereMatrix,
     .serving_source = kServingLentByAmpere,
     .serving_kernel = kAmpereKernel,
     .host_bytes_per_s = kPcie3,
     .llama_cpp = LlamaCppDevices::nvidia},
    {.architecture = Architecture::ampere,
     .training = kAmpereTraining,
     .serving_matrix = kAmpereMatrix,
     .serving_source = "arithmetic from training on A100, memory and network as on Hopper",
     .serving_kernel = kAmpereKernel,
     .llama_cpp = LlamaCppDevices::nvidia},
    {.architecture = Architecture::ada,
     .training = kLentByAmpere,
     .serving_matrix = kAmpereMatrix,
     .serving_source = kServingLentByAmpere,
     .serving_kernel = kHopperKernel,
     .llama_cpp = LlamaCppDevices::nvidia},
    {.architecture = Architecture::hopper,
     .training = kHopperTraining,
     .training_kernel_s = kHopperTrainingKernel,
     .serving_matrix = kHopperMatrix,
     .serving_source = "arithmetic from training on H100, memory and network from TensorRT-LLM "
                       "in float8",
     .serving_origin = kPublished,
     .serving_8_bits = kHopperServing,
     .serving_kernel = kHopperKernel,
     .host_bytes_per_s = kPcie5,
     .llama_cpp = LlamaCppDevices::hopper},
    {.architecture = Architecture::blackwell,
     .training = kBlackwellTraining,
     .training_kernel_s = kBlackwellTrainingKernel,
     .serving_matrix = kBlackwellMatrix,
     .serving_source = "arithmetic from single kernels of engines, memory and network as on "
                       "Hopper",
     .serving_kernel = kHopperKernel,
     .host_bytes_per_s = kPcie5,
     .llama_cpp = LlamaCppDevices::nvidia},
    {.architecture = Architecture::cdna,
     .training = kOther,
     .training_kernel_s = kHopperTrainingKernel,
     .serving_kernel = kHopperKernel,
     .host_bytes_per_s = kPcie5},
    {.architecture = Architecture::rdna,
     .training = kOther,
     .serving_kernel = kHopperKernel,
     .llama_cpp = LlamaCppDevices::rdna},
    {.architecture = Architecture::gaudi,
     .training = kOther,
     .training_kernel_s = kHopperTrainingKernel,
     .serving_kernel = kHopperKernel},
    {.architecture = Architecture::tpu,
     .training = kOther,
     .training_kernel_s = kHopperTrainingKernel,
     .serving_kernel = kHopperKernel},
    {.architecture = Architecture::trainium,
     .training = kOther,
     .training_kernel_s = kHopperTrainingKernel,
     .serving_kernel = kHopperKernel},
    {.architecture = Architecture::apple,
     .training = kOther,
     .serving_kernel = kHopperKernel,
     .in_host_memory = true,
     .llama_cpp = LlamaCppDevices::apple},
    {.architecture = Architecture::cpu,
     .training = kOther,
     .serving_kernel = kHopperKernel,
     .in_host_memory = true},
    {.architecture = Architecture::other, .training = kOther, .serving_kernel = kHopperKernel}};
static_assert(detail::lists_every<kArchitectureRates>(&ArchitectureRates::architecture));

/// Memory and network as Hopper serves.
SourcedEfficiency serving_efficiency(const ArchitectureRates& rates, DType dtype) {
  const bool is_8_bits = dtype == DType::float8 || dtype == DType::int8;
  if (is_8_bits && rates.serving_8_bits) return *rates.serving_8_bits;
  const Efficiency known = kHopperServing.fractions;
  return {{rates.serving_matrix.of(dtype), known.memory, known.network},
          rates.serving_origin,
          rates.serving_source,
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

double detail::ServingMatrix::of(DType dtype) const noexcept {
  switch (dtype) {
    case DType::float8:
    case DType::int8:
      return bits8;
    case DType::float4:
    case DType::int4:
      return bits4;
    case DType::float32:
    case DType::float16:
    case DType::bfloat16:
      break;
  }
  return bits16;
}

const ArchitectureRates& detail::architecture_rates(Architecture architecture) noexcept {
  return kArchitectureRates[static_cast<std::size_t>(architecture)];
}

SourcedEfficiency known_efficiency(Architecture architecture, Purpose purpose,
                                   DType dtype) noexcept {
  const ArchitectureRates& rates = detail::architecture_rates(architecture);
  switch (purpose) {
    case Purpose::train:
      return rates.training;
    case Purpose::serve:
      break;
  }
  return serving_efficiency(rates, dtype);
}

}  // namespace headroom
