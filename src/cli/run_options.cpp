#include "run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headroom/analysis.h"
#include "headroom/error.h"
#include "headroom/predict.h"
#include "headroom/storage.h"
#include "own_machine.h"
#include "progress.h"

namespace headroom::cli {
namespace {

/// Types that kernels read value by value.
bool is_plain(const WeightForm& form) {
  return form == WeightForm(WeightType::float32) || form == WeightForm(WeightType::bfloat16);
}

/// Shows the fraction of the parameters that are loaded.
class ShownWeights : public measured::WeightSource {
 public:
  ShownWeights(std::unique_ptr<measured::WeightSource> source, double parameters)
      : source_(std::move(source)), parameters_(parameters) {}

  measured::AlignedVector<float> load(const Weight& weight, const std::vector<std::int64_t>& shape,
                                      std::int64_t layer) override {
    show(shape);
    return source_->load(weight, shape, layer);
  }
  [[nodiscard]] measured::SourceType type_of(const Weight& weight,
                                             const std::vector<std::int64_t>& shape,
                                             std::int64_t layer) const override {
    return source_->type_of(weight, shape, layer);
  }
  measured::StoredBlocks load_blocks(const Weight& weight, const std::vector<std::int64_t>& shape,
                                     std::int64_t layer) override {
    show(shape);
    return source_->load_blocks(weight, shape, layer);
  }
  measured::StoredGroups load_groups(const Weight& weight, const std::vector<std::int64_t>& shape,
                                     std::int64_t layer) override {
    show(shape);
    return source_->load_groups(weight, shape, layer);
  }
  std::optional<std::int64_t> count_file_bytes(const Weight& weight, std::int64_t layer) override {
    return source_->count_file_bytes(weight, layer);
  }
  void finish() override {
    source_->finish();
    show_progress(0, "first run, not timed");
  }

 private:
  /// Before the weight is loaded.
  void show(const std::vector<std::int64_t>& shape) {
    bar_.show(std::min(1.0, loaded_ / parameters_),
              fmt::format("weights {:.0f} %", 100 * std::min(1.0, loaded_ / parameters_)));
    double elements = 1;
    for (const std::int64_t size : shape) elements *= static_cast<double>(size);
    loaded_ += elements;
  }

  std::unique_ptr<measured::WeightSource> source_;
  double parameters_;
  double loaded_ = 0;
  ProgressBar bar_;
};

}  // namespace

std::unique_ptr<measured::WeightSource> with_progress(
    std::unique_ptr<measured::WeightSource> source, const ModelSpec& spec) {
  const Graph graph = build_graph(spec, {});
  const Integer parameters = count_parameters(graph).total.evaluate(graph.sizes);
  return std::make_unique<ShownWeights>(std::move(source), static_cast<double>(parameters));
}

Option add_measured_phase_option(Command command, MeasuredPhase& phase) {
  const Choices<MeasuredPhase> phases{{"prefill", MeasuredPhase::prefill},
                                      {"decode", MeasuredPhase::decode},
                                      {"generate", MeasuredPhase::generate}};
  return add_choice(command, "--phase", phase, phases,
                    "Forward pass, or a whole generation (prefill)")
      .group("Workload");
}

RunOptions add_run_options(Command command, measured::MeasureOptions& options,
                           Variations& variations) {
  constexpr CountRange kRuns{1, 1'000'000};
  const auto add = [&](const char* name, CountRange range, SetCount set, const char* description) {
    return add_count(command, name, range, std::move(set), description).group("Run");
  };
  RunOptions added;
  added.others = {add_measured_phase_option(command, options.phase),
                  add_counts(
                      command, "--threads", kThreads, variations,
                      [&](std::int64_t n) { options.threads = static_cast<int>(n); },
                      "Threads (all processors); 1,2,4 reports each")
                      .group("Run"),
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
  refuse_given(options.generate_only, "applies only to a generation",
               "leave it out, or add --phase generate");
}

void require_runs(const std::optional<WeightForm>& weights) {
  if (weights != WeightForm(WeightType::float16)) return;
  throw_invalid_input("no kernel runs float16 weights",
                      "use float32, bfloat16, or a type of fewer bits such as q8_0 or int8");
}

void require_plain(const std::optional<WeightForm>& weights) {
  if (!weights || is_plain(*weights)) return;
  throw_invalid_input(fmt::format("{} weights are compared on one process only", name_of(*weights)),
                      "use --weights float32 or bfloat16, or one process");
}

Workload workload_of_run(WorkloadRequest request, MeasuredPhase phase, const ModelSpec& spec) {
  if (phase == MeasuredPhase::generate) {
    require_generates(spec);
    request = prompt_request(request);
  }
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
  if (workload.weights == WeightForm(WeightType::bfloat16)) return measured::HeldType::bfloat16;
  const bool stored = workload.weights && !is_plain(*workload.weights);
  return stored ? measured::HeldType::stored : measured::HeldType::float32;
}

bool show_run(int done, int at_most) {
  return show_progress(static_cast<double>(done) / at_most, fmt::format("run {}", done));
}

}  // namespace headroom::cli
