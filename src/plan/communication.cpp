// Traffic of a rank of the first stage in one iteration, by group and collective.
#include <algorithm>

#include "batch_overlap.h"
#include "collective_time.h"
#include "planner.h"

namespace headroom {
namespace {

using detail::PipelineStage;
using detail::RankProgram;
using detail::Section;

/// How often one iteration runs a section's collectives.
struct Runs {
  std::vector<double> layer_fractions;  ///< the stage's fraction of each kind of layers
  double passes = 1;
  Recomputation recompute;

  /// True if the backward pass repeats this forward collective of a layer.
  [[nodiscard]] bool repeat(LayerPart part) const {
    switch (recompute.kind) {
      case Recompute::none:
        return false;
      case Recompute::selective:
        return recompute.modules.recompute(part);
      case Recompute::full:
        break;
    }
    return true;
  }
};

class CommunicationTable {
 public:
  void add(RankGroup group, CollectiveKind kind, double count, double wire, double seconds) {
    if (count == 0 || wire == 0) return;
    auto found = std::ranges::find_if(
        rows_, [&](const Communication& row) { return row.group == group && row.kind == kind; });
    if (found == rows_.end()) found = rows_.insert(rows_.end(), {group, kind, 0, 0, 0});
    found->count += count;
    found->wire_bytes += wire;
    found->seconds += seconds;
  }

  [[nodiscard]] std::vector<Communication> finish() && { return std::move(rows_); }

 private:
  std::vector<Communication> rows_;
};

void add_collective(const RankProgram::RepeatedCollective& call, const detail::RankSpeed& speed,
                    const Runs& runs, CommunicationTable& table) {
  const bool in_layers = call.section.kind == Section::Kind::layers;
  const bool again = in_layers && !call.backward && runs.repeat(call.part);
  const double repeats = again ? 2 : 1;
  const double fraction = in_layers ? runs.layer_fractions[call.section.layer_kind] : 1;
  const double count = call.count * runs.passes * repeats * fraction;
  table.add(call.message.group, call.message.kind, count,
            count * detail::collective_wire_bytes(call.message, speed),
            count * detail::collective_seconds(call.message, speed));
}

}  // namespace

double Planner::Implementation::data_parallel_seconds(
    const detail::DataParallelCollective& call) const {
  return wire_bytes(call.kind, call.bytes, call.ranks) / rate_among(call.ranks, call.apart) +
         detail::collective_latency(
             detail::span_of(call.ranks, call.apart, rates.link.devices_per_node),
             detail::latencies_of(rates));
}

std::vector<RankProgram::RepeatedCollective> Planner::Implementation::pass_collectives(
    Pass pass, const ParallelPlan& plan, const Workload& workload) {
  const detail::RankSpeed speed = speed_of(plan);
  RankProgram& compiled = program(pass, plan);
  const auto of = [&](const Workload& batch) {
    return compiled.collectives(values_of(plan, batch), speed);
  };
  std::vector<RankProgram::RepeatedCollective> calls = of(workload);
  const bool splits = plan.batch_overlap == BatchOverlap::two_batches;
  const auto halves = splits ? detail::halves_of(workload) : std::nullopt;
  if (!halves) return calls;
  std::erase_if(calls, [](const RankProgram::RepeatedCollective& call) {
    return call.section.kind == Section::Kind::layers;
  });
  for (const Workload& half : {halves->first, halves->second}) {
    for (const RankProgram::RepeatedCollective& call : of(half)) {
      if (call.section.kind == Section::Kind::layers) calls.push_back(call);
    }
  }
  return calls;
}

double Planner::Implementation::send_seconds(const PlanChoice& choice, Integer bytes) const {
  const ParallelPlan& plan = choice.parallel;
  const double sent = detail::sent_by_rank(static_cast<double>(bytes), plan);
  const std::int64_t apart = plan.tensor * plan.context * plan.data;
  const detail::GroupSpan pair = detail::span_of(2, apart, rates.link.devices_per_node);
  const double between_nodes = pair.nodes > 1 ? rates.collective_node_step_s : 0;
  return sent / send_rate(apart) + rates.collective_latency_s + between_nodes;
}

std::vector<bool> Planner::Implementation::chunks_with_choice(const ParallelPlan& plan,
                                                              std::int64_t stage) const {
  std::vector<bool> send;
  if (choosing_layers.empty()) return send;
  for (const LayerRange& chunk : layers_of_stage(detail::layers_of(graph), plan, stage))
    send.push_back(std::ranges::binary_search(choosing_layers, chunk.end));
  return send;
}

std::int64_t Planner::Implementation::choices_sent(const ParallelPlan& plan,
                                                   std::int64_t stage) const {
  return std::ranges::count(chunks_with_choice(plan, stage), true);
}

double Planner::Implementation::sends_seconds(const PlanChoice& choice,
                                              const detail::RankCosts& pass) const {
  const ParallelPlan& plan = choice.parallel;
  std::int64_t choices = 0;
  for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) choices += choices_sent(plan, stage);
  return static_cast<double>(plan.pipeline - 1) * send_seconds(choice, pass.hidden) +
         (choices == 0 ? 0 : static_cast<double>(choices) * send_seconds(choice, pass.key_choice));
}

std::vector<Communication> Planner::Implementation::communication(const PlanChoice& choice,
                                                                  const Load& load) {
  const ParallelPlan& plan = choice.parallel;
  const bool trains = query.purpose == Purpose::train;
  const Pass pass = trains ? Pass::train : decode ? Pass::decode : Pass::prefill;
  const std::int64_t batch = trains ? choice.micro_batch : ceil_div(load.batch_size, plan.data);
  const Workload workload = pass == Pass::decode ? workload_of(pass, batch, 1, load.seq_len - 1)
                                                 : workload_of(pass, batch, load.seq_len, 0);
  const detail::RankSpeed speed = speed_of(plan);
  const double passes = trains ? static_cast<double>(micro_batches(choice, load)) : 1;
  const PipelineStage& first = stages(plan).front();
  Runs runs{{}, passes, choice.recompute};
  // A decode step runs no encoder, whose kinds come before the decoder's.
  const std::size_t skipped = kinds.size() - costs(pass, plan, workload).layers.size();
  for (std::size_t i = skipped; i < kinds.size(); ++i) {
    runs.layer_fractions.push_back(static_cast<double>(first.layers_of_kind[i]) /
                                   static_cast<double>(kinds[i].count));
  }
  CommunicationTable table;
  for (const RankProgram::RepeatedCollective& call : pass_collectives(pass, plan, workload)) {
    const Section::Kind section = call.section.kind;
    const bool in_first_stage = section == Section::Kind::layers || first.runs(section);
    if (in_first_stage) add_collective(call, speed, runs, table);
  }
  if (plan.pipeline > 1) {
    const Integer hidden = costs(pass, plan, workload).hidden;
    const double sends = (trains ? 2 * static_cast<double>(plan.interleave) : 1) * passes;
    table.add(RankGroup::pipeline, CollectiveKind::send, sends,
              sends * detail::sent_by_rank(static_cast<double>(hidden), plan),
              sends * send_seconds(choice, hidden));
    const double choices = static_cast<double>(choices_sent(plan, 0)) * passes;
    const Integer chosen = costs(pass, plan, workload).key_choice;
    if (choices > 0) {
      table.add(RankGroup::pipeline, CollectiveKind::send, choices,
                choices * detail::sent_by_rank(static_cast<double>(chosen), plan),
                choices * send_seconds(choice, chosen));
    }
  }
  if (!trains) return std::move(table).finish();
  const detail::RankStates& rank_states = states(plan);
  const detail::HeldStates held = detail::held_states(costs(pass, plan, workload), rank_states,
                                                      kinds, all_stages(plan), first, choice);
  for (const auto& call : detail::data_parallel_collectives(held.all, choice, passes)) {
    table.add(RankGroup::data, call.kind, call.count,
              call.count * wire_bytes(call.kind, call.bytes, call.ranks),
              call.count * data_parallel_seconds(call));
  }
  return std::move(table).finish();
}

}  // namespace headroom
