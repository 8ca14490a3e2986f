#include "run_options.h"

#include <fmt/format.h>

#include "headroom/error.h"
#include "headroom/predict.h"
#include "own_machine.h"
#include "progress.h"

namespace headroom::cli {

Option add_backend_option(Command command, measured::Backend& backend) {
  backend = default_backend();
  const Choices<measured::Backend> backends{{"eigen", measured::Backend::eigen},
                                            {"onednn", measured::Backend::onednn}};
  return add_choice(command, "--backend", backend, backends,
                    "GEMM library (onednn if this build has it)");
}

void add_measured_phase_option(Command command, MeasuredPhase& phase) {
  const Choices<MeasuredPhase> phases{{"prefill", MeasuredPhase::prefill},
                                      {"decode", MeasuredPhase::decode},
                                      {"generate", MeasuredPhase::generate}};
  add_choice(command, "--phase", phase, phases, "Forward pass, or a whole generation (prefill)")
      .group("Workload");
}

void add_run_options(Command command, measured::MeasureOptions& options) {
  constexpr CountRange kRuns{1, 1'000'000};
  const auto add = [&](const char* name, CountRange range, SetCount set, const char* description) {
    add_count(command, name, range, std::move(set), description).group("Run");
  };
  add(
      "--threads", kThreads, [&](std::int64_t n) { options.threads = static_cast<int>(n); },
      "Threads (all processors)");
  add(
      "--runs", kRuns, [&](std::int64_t n) { options.runs = static_cast<int>(n); },
      "Timed runs (until the median is steady)");
  add(
      "--new-tokens", kNewTokens, [&](std::int64_t n) { options.new_tokens = n; },
      "Tokens to generate (32)");
  add_backend_option(command, options.backend).group("Run");
}

Workload workload_of_run(WorkloadRequest request, MeasuredPhase phase, const ModelSpec& spec) {
  if (phase == MeasuredPhase::generate) require_generates(spec);
  if (request.dtype != DType::float32 && request.dtype != DType::bfloat16) {
    throw_invalid_input("the kernels compute in float32",
                        "use --dtype float32, or bfloat16 to store weights in 2 bytes");
  }
  request.phase = first_pass(phase);
  return resolve(request, spec);
}

measured::WeightStorage storage_of(const Workload& workload) {
  return workload.dtype == DType::bfloat16 ? measured::WeightStorage::bfloat16
                                           : measured::WeightStorage::float32;
}

bool show_run(int done, int at_most) {
  return show_progress(static_cast<double>(done) / at_most, fmt::format("run {}", done));
}

}  // namespace headroom::cli
