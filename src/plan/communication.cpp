// What the slowest rank sends in one iteration, by group and kind of exchange.
#include <algorithm>

#include "data_exchange.h"
#include "planner.h"

namespace headroom {
namespace {

using detail::RankProgram;
using detail::Section;

/// How often one iteration runs an exchange of a section.
struct Runs {
  std::vector<double> layers;  ///< the stage's share of each kind
  double passes = 1;
  bool again = false;  ///< full recompute runs the forward exchanges of layers a second time
};

class CommunicationTable {
 public:
  void add(RankGroup group, CollectiveKind kind, double count, double wire, double seconds) {
    if (count == 0 || wire == 0) return;
    const auto same = [&](const Communication& row) {
      return row.group == group && row.kind == kind;
    };
    auto found = std::ranges::find_if(rows_, same);
    if (found == rows_.end()) found = rows_.insert(rows_.end(), {group, kind, 0, 0, 0});
    found->count += count;
    found->wire_bytes += wire;
    found->seconds += seconds;
  }

  [[nodiscard]] std::vector<Communication> finish() && { return std::move(rows_); }

 private:
  std::vector<Communication> rows_;
};

void add_exchange(const RankProgram::ExchangeBytes& exchange, const detail::RankSpeed& speed,
                  const Runs& runs, CommunicationTable& table) {
  const bool in_layers = exchange.section.kind == Section::Kind::layers;
  const double again = runs.again && in_layers && !exchange.backward ? 2 : 1;
  const double share = in_layers ? runs.layers[exchange.section.layer_kind] : 1;
  const double count = exchange.count * runs.passes * again * share;
  table.add(exchange.group, exchange.kind, count,
            count * detail::exchange_bytes(exchange.kind, exchange.bytes, exchange.group, speed),
            count * detail::exchange_seconds(exchange.kind, exchange.bytes, exchange.group, speed));
}

}  // namespace

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
  const StageShare& first = stages(plan).front();
  Runs runs{{}, passes, choice.recompute.kind == Recompute::full};
  // A decode step runs no encoder, whose layers stand before the decoder's.
  const std::size_t skipped = kinds.size() - costs(pass, plan, workload).layers.size();
  for (std::size_t i = skipped; i < kinds.size(); ++i) {
    runs.layers.push_back(static_cast<double>(first.layers_of_kind[i]) /
                          static_cast<double>(kinds[i].count));
  }
  CommunicationTable table;
  for (const auto& exchange : program(pass, plan).exchanges(values_of(plan, workload))) {
    // The first stage has the embedding, the last one the head; shown is what one of them sends.
    const Section::Kind section = exchange.section.kind;
    const bool here = section == Section::Kind::layers || first.runs(section);
    if (here) add_exchange(exchange, speed, runs, table);
  }
  if (plan.pipeline > 1) {
    const Integer hidden = costs(pass, plan, workload).hidden;
    const double sends = (trains ? 2 * static_cast<double>(plan.interleave) : 1) * passes;
    const std::int64_t parts = plan.sequence == SequenceParallel::on ? 1 : plan.tensor;
    table.add(RankGroup::pipeline, CollectiveKind::send, sends,
              sends * static_cast<double>(hidden) / static_cast<double>(parts),
              sends * send_seconds(choice, hidden));
  }
  if (!trains) return std::move(table).finish();
  const RankStates& held = states(plan);
  const StageCosts own = stage_costs(costs(pass, plan, workload), held, kinds, first);
  const SectionStates stage = detail::all_states(own, held, first);
  const double rate = rate_among(plan.tensor * plan.replicas());
  for (const detail::DataExchange& exchange : detail::data_exchanges(stage, choice, passes)) {
    const double wire = wire_bytes(exchange.kind, exchange.bytes, exchange.ranks);
    table.add(RankGroup::data, exchange.kind, exchange.times, exchange.times * wire,
              exchange.times * (wire / rate + rates.exchange_latency_s));
  }
  return std::move(table).finish();
}

}  // namespace headroom
