#include "run_options.h"

#include <fmt/format.h>

#include "headroom/error.h"
#include "headroom/predict.h"
#include "headroom/storage.h"
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

Option add_measured_phase_option(Command command, MeasuredPhase& phase) {
  const Choices<MeasuredPhase> phases{{"prefill", MeasuredPhase::prefill},
                                      {"decode", MeasuredPhase::decode},
                                      {"generate", MeasuredPhase::generate}};
  return add_choice(command, "--phase", phase, phases,
                    "Forward pass, or a whole generation (prefill)")
      .group("Workload");
}

RunOptions add_run_options(Command command, measured::MeasureOptions& options) {
  constexpr CountRange kRuns{1, 1'000'000};
  const auto add = [&](const char* name, CountRange range, SetCount set, const char* description) {
    return add_count(command, name, range, std::move(set), description).group("Run");
  };
  RunOptions added;
  added.others = {
      add_measured_phase_option(command, options.phase),
      add(
          "--threads", kThreads, [&](std::int64_t n) { options.threads = static_cast<int>(n); },
          "Threads (all processors)"),
      add(
          "--runs", kRuns, [&](std::int64_t n) { options.runs = static_cast<int>(n); },
          "Timed runs (until the median is steady)"),
      add_backend_option(command, options.backend).group("Run")};
  added.generate_only = {add(
      "--new-tokens", kNewTokens, [&](std::int64_t n) { options.new_tokens = n; },
      "Tokens to generate (32)")};
  return added;
}

void refuse_ignored_options(const RunOptions& options, MeasuredPhase phase) {
  if (phase == MeasuredPhase::generate) return;
  refuse_given(options.generate_only, "applies to a generation only",
               "leave it out, or add --phase generate");
}

void require_runs(std::optional<WeightType> weights) {
  const bool runs = !weights || *weights == WeightType::float32 || *weights == WeightType::bfloat16;
  if (runs) return;
  throw_invalid_input(
      fmt::format("the kernels run float32 and bfloat16 weights, not {}", name_of(*weights)),
      "use --weights float32 or bfloat16; a GGUF file runs its own weights, dequantised");
}

Workload workload_of_run(WorkloadRequest request, MeasuredPhase phase, const ModelSpec& spec) {
  if (phase == MeasuredPhase::generate) require_generates(spec);
  if (request.dtype.value_or(DType::float32) != DType::float32) {
    throw_invalid_input("the kernels compute in float32",
                        "leave out --dtype; --weights bfloat16 stores the weights in 2 bytes");
  }
  require_runs(request.weights);
  request.dtype = DType::float32;
  request.phase = first_pass(phase);
  return resolve(request, spec);
}

measured::HeldType storage_of(const Workload& workload) {
  return workload.weights == WeightType::bfloat16 ? measured::HeldType::bfloat16
                                                  : measured::HeldType::float32;
}

bool show_run(int done, int at_most) {
  return show_progress(static_cast<double>(done) / at_most, fmt::format("run {}", done));
}

}  // namespace headroom::cli
