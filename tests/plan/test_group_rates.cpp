// Rates of collectives between nodes: the ports that a group's rings use.
#include <algorithm>

#include "gpt_models.h"
#include "headroom/plan.h"

namespace headroom::test {
namespace {

PlanQuery training_query() {
  PlanQuery query;
  query.purpose = Purpose::train;
  query.attention = AttentionImplementation::fused;
  return query;
}

/// The slowest collective of this kind among replicas.
Communication among_replicas(const PlanChoice& choice, const char* machine, CollectiveKind kind) {
  Planner planner(load_model("llama-3-8b").spec, training_query(),
                  device_rates(find_machine(machine), Purpose::train, DType::bfloat16));
  Communication found;
  for (const Communication& row : planner.communication(choice, {choice.parallel.data, 4096})) {
    if (row.group == RankGroup::data && row.kind == kind) found = row;
  }
  return found;
}

PlanChoice sharded(std::int64_t replicas, std::int64_t shards, std::int64_t tensor = 1) {
  PlanChoice choice;
  choice.parallel.data = replicas;
  choice.parallel.tensor = tensor;
  choice.zero = Zero::weights;
  choice.step.zero_ranks = shards;
  return choice;
}

/// Bytes per second that a rank sends.
double rate_of(const Communication& row) { return row.wire_bytes / row.seconds; }

}  // namespace

TEST_CASE("shards within a node travel within it, however many nodes repeat them") {
  const Communication node =
      among_replicas(sharded(8, 8), "h100-80gb", CollectiveKind::reduce_scatter);
  const Communication nodes =
      among_replicas(sharded(16, 8), "h100-80gb", CollectiveKind::reduce_scatter);
  CHECK(nodes.wire_bytes == doctest::Approx(node.wire_bytes));
  CHECK(nodes.seconds == doctest::Approx(node.seconds));
  // Copies of a shard are one per node: a port each.
  const Communication copies =
      among_replicas(sharded(16, 8), "h100-80gb", CollectiveKind::all_reduce);
  CHECK(rate_of(copies) < 50e9);
}

TEST_CASE("whole nodes use the ports of all their devices, up to the rate inside") {
  // Eight ports of 50 GB/s against 0.62 of NVLink's 450, eight of 25 against 0.62 of 300.
  CHECK(rate_of(among_replicas(sharded(64, 0), "h100-80gb", CollectiveKind::all_gather)) ==
        doctest::Approx(0.62 * 450e9).epsilon(0.05));
  CHECK(rate_of(among_replicas(sharded(64, 0), "a100-80gb", CollectiveKind::all_gather)) ==
        doctest::Approx(0.85 * 200e9).epsilon(0.05));
  // Four replicas of two tensor-parallel ranks to a node, then one.
  CHECK(rate_of(among_replicas(sharded(64, 0, 2), "h100-80gb", CollectiveKind::all_gather)) ==
        doctest::Approx(0.85 * 200e9).epsilon(0.05));
  CHECK(rate_of(among_replicas(sharded(64, 0, 8), "h100-80gb", CollectiveKind::all_gather)) ==
        doctest::Approx(0.85 * 50e9).epsilon(0.05));
}

TEST_CASE("the node with the fewest ranks bounds the ports of a group") {
  const auto gathered = [](std::int64_t replicas) {
    return rate_of(among_replicas(sharded(replicas, 0), "h100-80gb", CollectiveKind::all_gather));
  };
  CHECK(gathered(12) == doctest::Approx(0.85 * 200e9).epsilon(0.05));
  CHECK(gathered(9) == doctest::Approx(0.85 * 50e9).epsilon(0.05));
}

TEST_CASE("ports keep their share unless that of the network is given") {
  const auto rate = [](const GivenEfficiency& given) {
    MachineProfile machine = find_machine("h100-80gb");
    std::get<DatasheetRates>(machine.rates).given = given;
    return device_rates(machine, Purpose::train, DType::bfloat16).port_fraction;
  };
  CHECK(rate({}) == doctest::Approx(0.85));
  CHECK(rate({.matrix = 0.5, .memory = 0.5, .network = {}}) == doctest::Approx(0.85));
  CHECK(rate({.matrix = {}, .memory = {}, .network = 0.5}) == 0.5);
}

}  // namespace headroom::test
