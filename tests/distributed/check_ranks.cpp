// Runs reference models over several processes under a plan, and compares with one process: outputs
// and generated tokens by value; FLOPs, weights, KV-cache, arena and traffic of every rank with the
// counts that the analytic module derives from the rank's graph. Each process also runs the whole
// model. Started by mpirun (tests/distributed/CMakeLists.txt):
//   mpirun -n 4 headroom_check_ranks TP PP on|off DP EP LEAST FOLDER…
// With replicas, each rank compares its own sequences. Experts run on the tokens that chose them,
// and a plan assumes that all are chosen as often: their FLOPs and the bytes of their all-to-alls
// are compared as the sums of all ranks. Each folder holds folders of models. Prints one line a
// model; exit status 1 if one differs, or if fewer than LEAST run under the plan.
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
#include "images.h"
#include "inputs.h"
#include "planned_ranks.h"
#include "replicas.h"
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

Integer sum_over(Coordinator& world, Integer value) {
  Integer sum = 0;
  for (const std::string& text : world.exchange(std::to_string(static_cast<std::int64_t>(value)))) {
    sum += std::stoll(text);
  }
  return sum;
}

/// Replaces the bytes that depend on the choice of experts by the sum of all ranks.
void add_over_ranks(std::vector<WireTraffic>& rows, const RankContext& rank) {
  const auto row = std::ranges::find(rows, CollectiveKind::all_to_all, &WireTraffic::kind);
  const Integer bytes = sum_over(*rank.world, row == rows.end() ? 0 : row->bytes);
  if (row != rows.end()) row->bytes = static_cast<std::int64_t>(bytes);
}

void compare_traffic(std::vector<WireTraffic> counted, const std::vector<WireTraffic>& before,
                     std::vector<WireTraffic> planned, const RankContext& rank,
                     Problems& problems) {
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
  add_over_ranks(counted, rank);
  add_over_ranks(planned, rank);
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

/// A pass of this rank by the analytic module: its graph, and all symbols.
struct PlannedPass {
  Graph graph;
  Bindings values;
};

PlannedPass planned_pass(const Session& session, const Workload& workload, ParallelPlan plan) {
  // One token per sequence is not shared.
  if (workload.phase == Phase::decode) plan.sequence = SequenceParallel::off;
  PlannedPass pass;
  pass.graph = session.rank()->shard(build_graph(session.spec(), graph_options(workload)));
  pass.values = rank_bindings(workload, pass.graph.traits, plan);
  for (const SymbolInfo& symbol : symbols()) {
    if (const auto size = pass.graph.sizes.get(symbol.symbol)) {
      pass.values.set(symbol.symbol, *size);
    }
  }
  return pass;
}

Workload workload_of(const Lengths& lengths) {
  Workload workload;
  workload.batch_size = lengths.batch;
  workload.seq_len = lengths.seq_len;
  workload.enc_seq_len = std::max<std::int64_t>(1, lengths.enc_seq_len);
  workload.dtype = DType::float32;
  workload.images.totals = lengths.images;
  workload.audio.totals = lengths.audio;
  workload.global_tokens = lengths.global_tokens;
  return workload;
}

/// The decode step of one sequence after `past` tokens.
Workload step_after(const Lengths& prompt, std::int64_t past) {
  Workload step = workload_of(prompt);
  step.phase = Phase::decode;
  step.seq_len = 1;
  step.past_len = past;
  step.images.totals = {};
  step.audio.totals = {};
  return step;
}

/// FLOPs of routed experts, and of all other operators.
struct PassFlops {
  Integer experts = 0;
  Integer others = 0;

  void add(const Node& node, Integer flops) {
    (std::holds_alternative<ExpertLinear>(node.op) ? experts : others) += flops;
  }
};

PassFlops counted_flops(const Program& program) {
  PassFlops flops;
  for (const ProgramBlock& block : program.blocks()) {
    for (std::size_t i = 0; i < block.steps.size(); ++i) {
      flops.add(*block.steps[i].node, block.counts[i].matrix_flops);
    }
  }
  return flops;
}

PassFlops planned_flops(const Analysis& analysis, const PlannedPass& pass) {
  PassFlops flops;
  auto row = analysis.nodes.begin();
  for (const Block& block : pass.graph.blocks) {
    for (const Node& node : block.nodes) {
      flops.add(node, (row++)->cost.forward.matrix_flops.evaluate(pass.values));
    }
  }
  return flops;
}

/// Counts the last run of `program`, `pass`, against the analysis of its graph.
void check_pass(const Session& session, const Program& program, const KvCache& cache,
                const PlannedPass& pass, Problems& problems) {
  const auto& [graph, values] = pass;
  const Analysis analysis = analyze(graph);
  Integer peak = 0;
  for (const LiveBytes& live : analysis.live) peak = std::max(peak, live.bytes.evaluate(values));
  const std::string phase = std::string(name_of(graph.options.phase)) + " ";
  const auto require = [&](const char* what, Integer counted, Integer planned) {
    require_equal((phase + what).c_str(), counted, planned, problems);
  };
  const PassFlops counted = counted_flops(program);
  const PassFlops planned = planned_flops(analysis, pass);
  require("FLOPs outside of experts", counted.others, planned.others);
  const RankContext& rank = *session.rank();
  if (rank.expert.ranks == 1) {
    require("FLOPs of experts", counted.experts, planned.experts);
  } else {
    require("FLOPs of all ranks' experts", sum_over(*rank.world, counted.experts),
            sum_over(*rank.world, planned.experts));
  }
  require("KV-cache", cache.bytes(), kv_cache_bytes(analysis).evaluate(values));
  require("arena", program.arena_peak_bytes(), peak);
  if (graph.options.phase == Phase::prefill) {
    require("weights", session.weights().bytes(), analysis.weight_bytes.evaluate(values));
  }
}

void check_prefill(const Session& session, const Model& model, const ParallelPlan& plan,
                   Problems& problems) {
  const RankContext& rank = *session.rank();
  const ModelInputs inputs = inputs_of_replica(model.inputs.inputs, rank.data);
  const Lengths lengths = lengths_of(session.spec(), inputs);
  KvCache cache = session.make_cache(lengths);
  const auto program = session.program(Phase::prefill, inputs, lengths, cache);
  const std::vector<WireTraffic> before = rank.traffic();
  program->run();
  const std::vector<WireTraffic> after = rank.traffic();
  const PlannedPass pass = planned_pass(session, workload_of(lengths), plan);
  check_pass(session, *program, cache, pass, problems);
  compare_traffic(after, before, planned_traffic(pass.graph, pass.values), rank, problems);
}

ModelInputs inputs_of(const GeneratePrompt& prompt) {
  ModelInputs inputs{prompt.prompt, prompt.encoder};
  inputs.audio_features = prompt.audio_features;
  inputs.images = prompt.images;
  inputs.audio = prompt.audio;
  return inputs;
}

/// Counts one decode step, that which fills the cache.
void check_step(const Session& session, const GeneratePrompt& prompt, const ParallelPlan& plan,
                Problems& problems) {
  const RankContext& rank = *session.rank();
  const ModelInputs inputs = inputs_of(prompt);
  const Lengths whole = lengths_of(session.spec(), inputs, prompt.max_new_tokens);
  KvCache cache = session.make_cache(whole);
  ModelInputs step_inputs{{1, 1, {0}, {}, {}}, prompt.encoder};
  step_inputs.main.position_shifts = shifts_after(session.spec(), inputs);
  Lengths lengths = whole;
  lengths.seq_len = 1;
  lengths.images = {};
  lengths.audio = {};
  const auto program = session.program(Phase::decode, step_inputs, lengths, cache);
  program->set_past(whole.capacity - 1);
  const std::vector<WireTraffic> before = rank.traffic();
  program->run();
  const std::vector<WireTraffic> after = rank.traffic();
  const PlannedPass pass = planned_pass(session, step_after(whole, whole.capacity - 1), plan);
  check_pass(session, *program, cache, pass, problems);
  compare_traffic(after, before, planned_traffic(pass.graph, pass.values), rank, problems);
}

void add_rows(const std::vector<WireTraffic>& more, std::vector<WireTraffic>& rows) {
  for (const WireTraffic& one : more) {
    auto row = std::ranges::find_if(rows, [&](const WireTraffic& other) {
      return other.group == one.group && other.kind == one.kind;
    });
    if (row == rows.end()) row = rows.insert(row, {one.group, one.kind, 0, 0});
    row->calls += one.calls;
    row->bytes += one.bytes;
  }
}

/// Calls and bytes of a generation: its prefill, and every decode step.
std::vector<WireTraffic> planned_generation(const Session& session, const GeneratePrompt& prompt,
                                            const ParallelPlan& plan) {
  const Lengths whole = lengths_of(session.spec(), inputs_of(prompt), prompt.max_new_tokens);
  const PlannedPass prefill = planned_pass(session, workload_of(whole), plan);
  std::vector<WireTraffic> rows = planned_traffic(prefill.graph, prefill.values);
  for (std::int64_t step = 1; step < prompt.max_new_tokens; ++step) {
    const PlannedPass pass =
        planned_pass(session, step_after(whole, whole.seq_len + step - 1), plan);
    add_rows(planned_traffic(pass.graph, pass.values), rows);
  }
  return rows;
}

/// Compares a generation on all ranks with that of one process, and its traffic with the plan's.
void check_generation(Session& whole, Session& session, const GeneratePrompt& prompt,
                      const ParallelPlan& plan, Problems& problems) {
  const RankContext& rank = *session.rank();
  const Generation one = whole.generate(prompt);
  const std::vector<WireTraffic> before = rank.traffic();
  const Generation all = session.generate(prompt);
  compare_traffic(rank.traffic(), before, planned_generation(session, prompt, plan), rank,
                  problems);
  if (one.ids != all.ids) problems.emplace_back("other tokens are generated");
  if (rank.pipeline.is_last()) compare(all.logits, one.logits, problems);
  check_step(session, prompt, plan, problems);
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
  const ModelInputs own = inputs_of_replica(model.inputs.inputs, rank.data);
  for (const NamedTensor& tensor : session.forward(own)) {
    const auto found = std::ranges::find(expected, tensor.name, &NamedTensor::name);
    if (found == expected.end()) {
      problems.push_back(tensor.name + " is no output of one process");
      continue;
    }
    compare(tensor, output_of_replica(*found, rank.data), problems);
    ++compared;
  }
  check_prefill(session, model, plan, problems);
  if (!model.inputs.generate || !model.spec.head.language_model) return;
  check_generation(whole, session, *model.inputs.generate, plan, problems);
}

std::string joined(const Problems& problems) {
  std::string text;
  for (const std::string& problem : problems) text += (text.empty() ? "" : "; ") + problem;
  return text;
}

enum class Outcome { equal, refused, differs };

/// A length that 2 and 4 ranks divide.
Workload sharded_workload(const ModelSpec& spec, std::int64_t batch) {
  WorkloadRequest request;
  request.batch_size = batch;
  request.seq_len = 8;
  return resolve(request, spec);
}

GeneratePrompt random_prompt(const ModelSpec& spec, std::int64_t replica) {
  const auto seed = static_cast<std::uint64_t>(2 + replica);
  ModelInputs inputs = random_inputs(spec, sharded_workload(spec, 1), seed);
  GeneratePrompt prompt{std::move(inputs.main), std::move(inputs.encoder), 3};
  prompt.audio_features = std::move(inputs.audio_features);
  prompt.images = std::move(inputs.images);
  prompt.audio = std::move(inputs.audio);
  return prompt;
}

/// Returns whether the ranks divide these inputs: their tokens, and their sequences.
bool divides(const ParallelPlan& plan, const ModelInputs& inputs) {
  if (plan.sequence == SequenceParallel::on) return false;
  return plan.data == 1 || (inputs.main.batch % plan.data == 0 && !inputs.images && !inputs.audio);
}

/// Checks the model of `folder`, and prints the outcome on rank 0.
Outcome check_folder(const fs::path& folder, const ParallelPlan& plan, const RankContext& rank) {
  Problems problems;
  std::size_t compared = 0;
  try {
    Model model;
    model.spec = load_model(folder.string()).spec;
    model.inputs = read_inputs(folder / "inputs.json", model.spec);
    Workload workload;
    const bool generates = model.inputs.generate.has_value();
    if (!divides(plan, model.inputs.inputs)) {
      workload = sharded_workload(model.spec, 2 * plan.data);
      model.inputs = {random_inputs(model.spec, workload, 1), std::nullopt};
    }
    const bool other_prompts = plan.sequence == SequenceParallel::on || plan.data > 1;
    if (generates && other_prompts) {
      model.inputs.generate = random_prompt(model.spec, rank.data.rank);
    }
    workload.batch_size = model.inputs.inputs.main.batch;
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
  plan.data = std::stoll(arguments.at(3));
  plan.expert = std::stoll(arguments.at(4));
  const std::size_t least_equal = std::stoull(arguments.at(5));
  const auto processes = distributed::Processes::join();
  const distributed::PlannedRank rank(*processes, plan);
  std::size_t equal = 0;
  std::size_t differing = 0;
  try {
    for (const fs::path& folder : models_in({arguments.begin() + 6, arguments.end()})) {
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
