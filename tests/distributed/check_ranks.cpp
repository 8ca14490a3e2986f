// Runs reference models over several processes under a plan, and compares with one process: outputs
// and generated tokens by value; FLOPs, weights, KV-cache, arena and traffic of every rank with the
// counts that the analytic module derives from the rank's graph. Each process also runs the whole
// model. Started by mpirun (tests/distributed/CMakeLists.txt):
//   mpirun -n 4 headroom_check_ranks TP PP on|off LEAST FOLDER…
// Each folder holds folders of models. Prints one line a model; exit status 1 if one differs, or if
// fewer than LEAST run under the plan.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint.h"
#include "headroom/analysis.h"
#include "headroom/error.h"
#include "headroom/model_source.h"
#include "inputs.h"
#include "planned_ranks.h"
#include "session.h"

namespace {

using namespace headroom;
using namespace headroom::measured;
namespace fs = std::filesystem;

using Problems = std::vector<std::string>;

/// Largest difference over 2e-5 + 2e-5 · the largest expected value, as of golden outputs.
double error_over_tolerance(const std::vector<float>& got, const std::vector<float>& expected) {
  if (got.size() != expected.size()) return HUGE_VAL;
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto wanted = static_cast<double>(expected[i]);
    largest = std::max(largest, std::abs(wanted));
    difference = std::max(difference, std::abs(static_cast<double>(got[i]) - wanted));
  }
  return std::isfinite(difference) ? difference / (2e-5 + 2e-5 * largest) : HUGE_VAL;
}

void compare(const NamedTensor& got, const NamedTensor& expected, Problems& problems) {
  constexpr double kAllowed = 2.5;  // sums over ranks round in another order
  const double error = error_over_tolerance(got.values, expected.values);
  if (error > kAllowed) problems.push_back(fmt::format("{} differs by {:.3g}", got.name, error));
}

void require_equal(const char* what, Integer counted, Integer planned, Problems& problems) {
  if (counted == planned) return;
  problems.push_back(fmt::format("{}: {} counted, {} planned", what, counted, planned));
}

/// Calls and bytes of a pass of `graph`, the rank's, from its collective operators.
std::vector<WireTraffic> planned_traffic(const Graph& graph, const Bindings& values) {
  std::vector<WireTraffic> rows;
  for (const CollectiveCall& call : collectives_of(graph)) {
    if (call.backward) continue;
    const auto calls = static_cast<std::int64_t>(call.repeat.evaluate(values));
    const auto bytes = static_cast<std::int64_t>(call.bytes.evaluate(values));
    auto row = std::ranges::find_if(rows, [&](const WireTraffic& other) {
      return other.group == call.group && other.kind == call.kind;
    });
    if (row == rows.end()) row = rows.insert(row, {call.group, call.kind, 0, 0});
    row->calls += calls;
    row->bytes += calls * bytes;
  }
  return rows;
}

void compare_traffic(std::vector<WireTraffic> counted, const std::vector<WireTraffic>& before,
                     std::vector<WireTraffic> planned, Problems& problems) {
  for (WireTraffic& row : counted) {
    for (const WireTraffic& earlier : before) {
      if (earlier.group != row.group || earlier.kind != row.kind) continue;
      row.calls -= earlier.calls;
      row.bytes -= earlier.bytes;
    }
  }
  std::erase_if(counted, [](const WireTraffic& row) { return row.calls == 0; });
  const auto order = [](const WireTraffic& row) { return std::pair{row.group, row.kind}; };
  std::ranges::sort(counted, {}, order);
  std::ranges::sort(planned, {}, order);
  if (counted == planned) return;
  const auto list = [](const std::vector<WireTraffic>& rows) {
    std::string text;
    for (const WireTraffic& row : rows) {
      text +=
          fmt::format(" {} {} {}×{}", name_of(row.group), name_of(row.kind), row.calls, row.bytes);
    }
    return text;
  };
  problems.push_back(fmt::format("traffic:{} counted,{} planned", list(counted), list(planned)));
}

struct Model {
  ModelSpec spec;
  InputFile inputs;
};

/// Counts one pass of this rank against its graph's analysis.
void check_counts(const Session& session, const Model& model, const ParallelPlan& plan,
                  Problems& problems) {
  const RankContext& rank = *session.rank();
  const Lengths lengths = lengths_of(session.spec(), model.inputs.inputs);
  KvCache cache = session.make_cache(lengths);
  const auto program = session.program(Phase::prefill, model.inputs.inputs, lengths, cache);
  const std::vector<WireTraffic> before = rank.traffic();
  program->run();
  const std::vector<WireTraffic> after = rank.traffic();
  std::int64_t flops = 0;
  for (const ProgramBlock& block : program->blocks()) {
    for (const StepCount& count : block.counts) flops += count.matrix_flops;
  }
  Workload workload;
  workload.batch_size = lengths.batch;
  workload.seq_len = lengths.seq_len;
  workload.enc_seq_len = std::max<std::int64_t>(1, lengths.enc_seq_len);
  workload.dtype = DType::float32;
  workload.images.totals = lengths.images;
  workload.audio.totals = lengths.audio;
  workload.global_tokens = lengths.global_tokens;
  const Graph graph = rank.shard(build_graph(session.spec(), graph_options(workload)));
  Bindings values = rank_bindings(workload, graph.traits, plan);
  for (const SymbolInfo& symbol : symbols()) {
    if (const auto size = graph.sizes.get(symbol.symbol)) values.set(symbol.symbol, *size);
  }
  const Analysis analysis = analyze(graph);
  Integer peak = 0;
  for (const LiveBytes& live : analysis.live) peak = std::max(peak, live.bytes.evaluate(values));
  require_equal("FLOPs", flops, analysis.total.forward.matrix_flops.evaluate(values), problems);
  require_equal("weights", session.weights().bytes(), analysis.weight_bytes.evaluate(values),
                problems);
  require_equal("KV-cache", cache.bytes(), kv_cache_bytes(analysis).evaluate(values), problems);
  require_equal("arena", program->arena_peak_bytes(), peak, problems);
  compare_traffic(after, before, planned_traffic(graph, values), problems);
}

Session session_of(const fs::path& folder, const ModelSpec& spec, const RankContext* rank) {
  const auto source = checkpoint_weights(spec, checkpoint::Checkpoint(folder));
  SessionOptions options;
  options.rank = rank;
  return {spec, *source, options};
}

/// Compares a forward pass and a generation on all ranks with those of one process.
void check_model(const fs::path& folder, const Model& model, const ParallelPlan& plan,
                 const RankContext& rank, Problems& problems, std::size_t& compared) {
  Session whole = session_of(folder, model.spec, nullptr);
  const std::vector<NamedTensor> expected = whole.forward(model.inputs.inputs);
  std::optional<Session> prepared;
  run_together(*rank.world, [&] { prepared.emplace(session_of(folder, model.spec, &rank)); });
  Session& session = *prepared;
  for (const NamedTensor& tensor : session.forward(model.inputs.inputs)) {
    const auto found = std::ranges::find(expected, tensor.name, &NamedTensor::name);
    if (found == expected.end()) {
      problems.push_back(tensor.name + " is no output of one process");
      continue;
    }
    compare(tensor, *found, problems);
    ++compared;
  }
  check_counts(session, model, plan, problems);
  if (!model.inputs.generate || !model.spec.head.language_model) return;
  const Generation one = whole.generate(*model.inputs.generate);
  const Generation all = session.generate(*model.inputs.generate);
  if (one.ids != all.ids) problems.emplace_back("other tokens are generated");
  if (rank.pipeline.is_last()) compare(all.logits, one.logits, problems);
}

std::string joined(const Problems& problems) {
  std::string text;
  for (const std::string& problem : problems) text += (text.empty() ? "" : "; ") + problem;
  return text;
}

enum class Outcome { equal, refused, differs };

/// Checks the model of `folder`, and prints the outcome on rank 0.
Outcome check_folder(const fs::path& folder, const ParallelPlan& plan, const RankContext& rank) {
  Problems problems;
  std::size_t compared = 0;
  try {
    Model model;
    model.spec = load_model(folder.string()).spec;
    model.inputs = read_inputs(folder / "inputs.json", model.spec);
    Workload workload;
    if (plan.sequence == SequenceParallel::on) {  // of a length that the ranks divide
      WorkloadRequest request;
      request.batch_size = 2;
      request.seq_len = 8;
      workload = resolve(request, model.spec);
      model.inputs = {random_inputs(model.spec, workload, 1), std::nullopt};
    }
    workload.seq_len = model.inputs.inputs.main.seq_len;
    distributed::require_runs(plan, model.spec, workload);
    check_model(folder, model, plan, rank, problems, compared);
  } catch (const Error& error) {  // the same one on every rank
    if (rank.world->rank() == 0) {
      fmt::print("{}: refused: {}\n", folder.filename().string(), error.what());
    }
    return error.code() == ErrorCode::invalid_input ? Outcome::refused : Outcome::differs;
  }
  Problems everywhere;
  const std::vector<std::string> all = rank.world->exchange(joined(problems));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].empty()) everywhere.push_back(fmt::format("rank {}: {}", i, all[i]));
  }
  if (rank.world->rank() == 0) {
    fmt::print("{}: {}\n", folder.filename().string(),
               everywhere.empty() ? fmt::format("{} outputs equal", compared) : joined(everywhere));
    (void)std::fflush(stdout);
  }
  return everywhere.empty() ? Outcome::equal : Outcome::differs;
}

std::vector<fs::path> models_in(const std::vector<std::string>& folders) {
  std::vector<fs::path> models;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      const bool is_model =
          fs::exists(entry.path() / "inputs.json") && fs::exists(entry.path() / "config.json");
      if (is_model) models.push_back(entry.path());
    }
  }
  std::ranges::sort(models);
  return models;
}

int check_all(const std::vector<std::string>& arguments) {
  ParallelPlan plan;
  plan.tensor = std::stoll(arguments.at(0));
  plan.pipeline = std::stoll(arguments.at(1));
  if (arguments.at(2) == "on") plan.sequence = SequenceParallel::on;
  const std::size_t least_equal = std::stoull(arguments.at(3));
  const auto processes = distributed::Processes::join();
  const distributed::PlannedRank rank(*processes, plan);
  std::size_t equal = 0;
  std::size_t differing = 0;
  try {
    for (const fs::path& folder : models_in({arguments.begin() + 4, arguments.end()})) {
      const Outcome outcome = check_folder(folder, plan, rank.context());
      equal += outcome == Outcome::equal ? 1 : 0;
      differing += outcome == Outcome::differs ? 1 : 0;
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {}: {}\n", processes->world().rank(), error.what());
    processes->abort(4);
  }
  if (processes->world().rank() == 0) {
    fmt::print("{}: {} models equal, {} differ\n", describe(plan), equal, differing);
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
