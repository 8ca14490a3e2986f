// Runs reference models over several processes under a plan, and compares with one process: outputs
// and generated tokens by value; FLOPs, weights, KV-cache, arena and traffic of every rank with the
// counts that the analytic module derives from the rank's graph. Each process also runs the whole
// model. Started by mpirun (tests/distributed/CMakeLists.txt):
//   mpirun -n 4 headroom_check_ranks TP PP on|off DP EP[/1] LEAST FOLDER…
// EP/1 leaves experts whole on tensor ranks. With replicas, each rank compares its own sequences.
// Experts run on the tokens that chose them, and a plan assumes that all are chosen as often: their
// FLOPs and the bytes of their all-to-alls are compared as the sums of all ranks. Each folder holds
// folders of models. Prints one line a model; exit status 1 if one differs, or if fewer than LEAST
// run under the plan.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint.h"
#include "headroom/analysis.h"
#include "headroom/error.h"
#include "images.h"
#include "inputs.h"
#include "planned_ranks.h"
#include "rank_checks.h"
#include "replicas.h"
#include "session.h"

namespace {

using namespace headroom;
using namespace headroom::measured;
using namespace headroom::rank_checks;
namespace fs = std::filesystem;

struct Model {
  ModelSpec spec;
  InputFile inputs;
};

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
  // Layers that attend to images read the keys of those of the prompt.
  if (prompt.enc_seq_len == 0) step.images.totals = {};
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
  const PlannedPass pass =
      planned_pass(session.spec(), *session.rank(), workload_of(lengths), plan);
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
  const PlannedPass pass =
      planned_pass(session.spec(), *session.rank(), step_after(whole, whole.capacity - 1), plan);
  check_pass(session, *program, cache, pass, problems);
  compare_traffic(after, before, planned_traffic(pass.graph, pass.values), rank, problems);
}

/// Calls and bytes of a generation: its prefill, and every decode step.
std::vector<WireTraffic> planned_generation(const Session& session, const GeneratePrompt& prompt,
                                            const ParallelPlan& plan) {
  const Lengths whole = lengths_of(session.spec(), inputs_of(prompt), prompt.max_new_tokens);
  const PlannedPass prefill =
      planned_pass(session.spec(), *session.rank(), workload_of(whole), plan);
  std::vector<WireTraffic> rows = planned_traffic(prefill.graph, prefill.values);
  for (std::int64_t step = 1; step < prompt.max_new_tokens; ++step) {
    const PlannedPass pass = planned_pass(session.spec(), *session.rank(),
                                          step_after(whole, whole.seq_len + step - 1), plan);
    add_rows(planned_traffic(pass.graph, pass.values), 1, rows);
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
    model.spec = loaded_model(folder);
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
  return outcome_of(folder.filename().string(), problems, compared, *rank.world);
}

int check_all(const std::vector<std::string>& arguments) {
  ParallelPlan plan;
  plan.tensor = std::stoll(arguments.at(0));
  plan.pipeline = std::stoll(arguments.at(1));
  if (arguments.at(2) == "on") plan.sequence = SequenceParallel::on;
  plan.data = std::stoll(arguments.at(3));
  plan.expert = std::stoll(arguments.at(4));
  if (arguments.at(4).ends_with("/1")) plan.expert_tensor = ExpertTensor::whole;
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
