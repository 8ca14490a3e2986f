#include "run_options.h"

#include <fmt/format.h>

#include "headroom/error.h"
#include "headroom/predict.h"
#include "own_machine.h"
#include "progress.h"

namespace headroom::cli {

CLI::Option* add_backend_option(CLI::App& app, measured::Backend& backend) {
  backend = default_backend();
  return add_choice<measured::Backend>(
      app, "--backend", backend,
      {{"eigen", measured::Backend::eigen}, {"onednn", measured::Backend::onednn}},
      "Library of matrix products (onednn where it is there)");
}

void add_measured_phase_option(CLI::App& app, MeasuredPhase& phase) {
  add_choice<MeasuredPhase>(app, "--phase", phase,
                            {{"prefill", MeasuredPhase::prefill},
                             {"decode", MeasuredPhase::decode},
                             {"generate", MeasuredPhase::generate}},
                            "What the model does (prefill)")
      ->group("Workload");
}

void add_run_options(CLI::App& app, measured::MeasureOptions& options) {
  const auto count = [&](const char* name, CountRange range, auto set, const char* description) {
    add_count(app, name, range, set, description)->group("Run");
  };
  constexpr CountRange kRuns{1, 1'000'000};
  count(
      "--threads", kThreads, [&](std::int64_t n) { options.threads = static_cast<int>(n); },
      "Threads (the most there are)");
  count(
      "--runs", kRuns, [&](std::int64_t n) { options.runs = static_cast<int>(n); },
      "Runs that count (until the median is steady)");
  count(
      "--new-tokens", kNewTokens, [&](std::int64_t n) { options.new_tokens = n; },
      "Tokens to generate (32)");
  add_backend_option(app, options.backend)->group("Run");
}

Workload workload_of_run(WorkloadRequest request, MeasuredPhase phase, const ModelSpec& spec) {
  if (phase == MeasuredPhase::generate) require_generates(spec);
  if (request.dtype != DType::float32 && request.dtype != DType::bfloat16) {
    throw Error(ErrorCode::invalid_input, "kernels compute in float32", {},
                "use --dtype float32, or bfloat16 for weights stored in half the bytes");
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
