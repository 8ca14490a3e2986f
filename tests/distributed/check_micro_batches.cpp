// Measures reference models over several processes, with micro-batches that flow through a
// pipeline, and compares with one process: outputs and generated tokens by value; FLOPs, weights,
// KV-cache, arena and traffic of every rank with those of the plan: one pass over a micro-batch, as
// often as there are micro-batches. Started by mpirun (tests/distributed/CMakeLists.txt):
//   mpirun -n 4 headroom_check_micro_batches TP PP on|off DP EP[/1] BATCH MICRO_BATCH LEAST FOLDER…
// Prints one line a model; exit status 1 if one differs, or if fewer than LEAST run under the plan.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint.h"
#include "headroom/analysis.h"
#include "headroom/error.h"
#include "measure.h"
#include "planned_ranks.h"
#include "rank_checks.h"
#include "replicas.h"

namespace {

using namespace headroom;
using namespace headroom::measured;
using namespace headroom::rank_checks;
namespace fs = std::filesystem;

constexpr std::int64_t kNewTokens = 4;
constexpr std::int64_t kPast = 5;

struct Division {
  ParallelPlan plan;
  std::int64_t batch = 1;
  std::int64_t micro_batch = 1;

  [[nodiscard]] std::int64_t micro_batches() const { return batch / plan.data / micro_batch; }
};

struct Run {
  Measurement measurement;
  RunOutputs outputs;
};

class ModelCheck {
 public:
  ModelCheck(fs::path folder, const Division& division, const RankContext& rank)
      : folder_(std::move(folder)), division_(division), rank_(rank) {
    model_.spec = loaded_model(folder_);
  }

  Outcome check() {
    try {
      const Workload workload = sharded_workload(model_.spec, division_.batch);
      distributed::require_runs(division_.plan, model_.spec, workload);
      distributed::require_micro_batches_run(division_.micro_batch, division_.plan, workload);
      check_phase(MeasuredPhase::prefill, workload);
      if (model_.spec.main_stack().causal() && model_.spec.head.language_model) {
        check_phase(MeasuredPhase::decode, step_of(workload, kPast));
        check_phase(MeasuredPhase::generate, workload);
      }
    } catch (const Error& error) {  // the same one on every rank
      if (rank_.world->rank() == 0) {
        fmt::print("{}: refused: {}\n", folder_.filename().string(), error.what());
      }
      return error.code() == ErrorCode::invalid_input ? Outcome::refused : Outcome::differs;
    }
    return outcome_of(folder_.filename().string(), problems_, compared_, *rank_.world);
  }

 private:
  static Workload step_of(Workload workload, std::int64_t past) {
    workload.phase = Phase::decode;
    workload.seq_len = 1;
    workload.past_len = past;
    return workload;
  }

  Run run(MeasuredPhase phase, const Workload& workload, const RankContext* rank) const {
    MeasureOptions options;
    options.phase = phase;
    options.threads = 1;
    options.warmup = 0;
    options.runs = 1;
    options.new_tokens = kNewTokens;
    options.outputs = KeptOutputs::all;
    options.rank = rank;
    if (rank != nullptr) options.micro_batch = division_.micro_batch;
    const auto source = checkpoint_weights(model_.spec, checkpoint::Checkpoint(folder_));
    Run result;
    result.measurement = measure(
        model_, workload, *source, std::nullopt, options, [](int, int) { return true; },
        [&](RunOutputs outputs) { result.outputs = std::move(outputs); });
    return result;
  }

  void check_phase(MeasuredPhase phase, const Workload& workload) {
    const Run all = run(phase, workload, &rank_);
    check_counts(phase, workload, all.measurement);
    // The keys of earlier tokens are random numbers, which differ between ranks.
    if (phase != MeasuredPhase::decode) check_outputs(all, run(phase, workload, nullptr));
  }

  void check_outputs(const Run& all, const Run& one) {
    for (const NamedTensor& tensor : all.outputs.tensors) {
      const auto found = std::ranges::find(one.outputs.tensors, tensor.name, &NamedTensor::name);
      if (found == one.outputs.tensors.end()) {
        problems_.push_back(tensor.name + " is no output of one process");
        continue;
      }
      compare(tensor, output_of_replica(*found, rank_.data), problems_);
      ++compared_;
    }
    const auto& ids = one.outputs.generated_ids;
    const auto share = std::ssize(ids) / rank_.data.ranks;
    const auto begin = ids.begin() + rank_.data.rank * share;
    if (!std::ranges::equal(all.outputs.generated_ids, std::span(begin, begin + share))) {
      problems_.emplace_back("other tokens are generated");
    }
  }

  /// One pass of a micro-batch.
  [[nodiscard]] PlannedPass pass_of(Workload workload) const {
    workload.batch_size = division_.micro_batch;
    workload.dtype = DType::float32;
    return planned_pass(model_.spec, rank_, workload, division_.plan);
  }

  struct Planned {
    Integer flops = 0;
    Integer weights = 0;
    Integer kv_cache = 0;
    Integer arena = 0;
    std::vector<WireTraffic> traffic;
  };

  void add_pass(const PlannedPass& pass, Planned& sum) const {
    const Analysis analysis = analyze(pass.graph);
    for (const NodeAnalysis& node : analysis.nodes) {
      sum.flops += division_.micro_batches() * node.cost.forward.matrix_flops.evaluate(pass.values);
    }
    sum.weights = analysis.weight_bytes.evaluate(pass.values);
    sum.kv_cache = division_.micro_batches() * kv_cache_bytes(analysis).evaluate(pass.values);
    for (const LiveBytes& live : analysis.live) {
      sum.arena = std::max(sum.arena, live.bytes.evaluate(pass.values));
    }
    add_rows(planned_traffic(pass.graph, pass.values), division_.micro_batches(), sum.traffic);
  }

  [[nodiscard]] Planned planned(MeasuredPhase phase, const Workload& workload) const {
    Planned sum;
    add_pass(pass_of(workload), sum);
    if (phase != MeasuredPhase::generate) return sum;
    for (std::int64_t step = 1; step < kNewTokens; ++step) {
      add_pass(pass_of(step_of(workload, workload.seq_len + step - 1)), sum);
    }
    return sum;
  }

  void check_counts(MeasuredPhase phase, const Workload& workload, const Measurement& measurement) {
    const RankMeasurement& own = measurement.ranks.value().ranks.front();
    const Planned plan = planned(phase, workload);
    const auto require = [&](const char* what, Integer counted, Integer expected) {
      const std::string name = fmt::format("{} {}", name_of(phase), what);
      require_equal(name.c_str(), counted, expected, problems_);
    };
    const bool shares_experts = rank_.expert.ranks > 1;  // chosen by tokens, not by the plan
    Coordinator& world = *rank_.world;
    require("FLOPs",
            shares_experts ? sum_over(world, own.counted.matrix_flops)
                           : Integer{own.counted.matrix_flops},
            shares_experts ? sum_over(world, plan.flops) : plan.flops);
    require("weights", own.counted.weight_bytes, plan.weights);
    require("KV-cache", own.counted.kv_cache_bytes, plan.kv_cache);
    // A generation's arena has room for all keys from its first pass on.
    if (phase != MeasuredPhase::generate) {
      require("arena", own.memory.arena_peak_bytes, plan.arena);
    }
    compare_traffic(own.traffic, {}, plan.traffic, rank_, problems_);
  }

  fs::path folder_;
  const Division& division_;
  const RankContext& rank_;
  headroom::Model model_;
  Problems problems_;
  std::size_t compared_ = 0;
};

int check_all(const std::vector<std::string>& arguments) {
  Division division;
  division.plan.tensor = std::stoll(arguments.at(0));
  division.plan.pipeline = std::stoll(arguments.at(1));
  if (arguments.at(2) == "on") division.plan.sequence = SequenceParallel::on;
  division.plan.data = std::stoll(arguments.at(3));
  division.plan.expert = std::stoll(arguments.at(4));
  if (arguments.at(4).ends_with("/1")) division.plan.expert_tensor = ExpertTensor::whole;
  division.batch = std::stoll(arguments.at(5));
  division.micro_batch = std::stoll(arguments.at(6));
  const std::size_t least_equal = std::stoull(arguments.at(7));
  const auto processes = distributed::Processes::join();
  const distributed::PlannedRank rank(*processes, division.plan);
  std::size_t equal = 0;
  std::size_t differing = 0;
  try {
    for (const fs::path& folder : models_in({arguments.begin() + 8, arguments.end()})) {
      const Outcome outcome = ModelCheck(folder, division, rank.context()).check();
      equal += outcome == Outcome::equal ? 1 : 0;
      differing += outcome == Outcome::differs ? 1 : 0;
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {}: {}\n", processes->world().rank(), error.what());
    processes->abort(4);
  }
  if (processes->world().rank() == 0) {
    fmt::print("{} · micro-batch {}: {} models equal, {} differ\n", describe(division.plan),
               division.micro_batch, equal, differing);
  }
  return differing > 0 || equal < least_equal ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return check_all({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
