// More ranks than a machine runs: their agreement on one build, and their reports on the way to the
// first.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "handshake.h"
#include "headroom/error.h"
#include "rank_context.h"
#include "rank_reports.h"
#include "simulated_ranks.h"
#include "writers.h"

using namespace headroom;
using test::SimulatedRank;

namespace {

constexpr std::size_t kRanks = 1000;

/// A rank of tp 8 · pp 25 · dp 5 whose figures differ from those of all others.
RankMeasurement measured_by(std::size_t rank) {
  const auto number = static_cast<std::int64_t>(rank);
  RankMeasurement own;
  own.rank = number;
  own.tensor_rank = number % 8;
  own.data_rank = number / 8 % 5;
  own.stage = number / 40;
  own.host = fmt::format("node-{:03}.cluster.example.org", number / 8);
  own.time_s = 1.0 / static_cast<double>(3 + number);
  own.communication_s = own.time_s / 3;
  own.counted = {405'853'388'800 + number, 3'000'000'000'000'000 + number, 811'706'777'600 - number,
                 17'179'869'184 + number};
  own.memory.arena_peak_bytes = 4'294'967'296 + number;
  own.memory.weights_held_bytes = 6'442'450'944 + number;
  if (rank % 2 == 0) own.memory.rss_peak_bytes = 70'000'000'000 + number;
  own.traffic = {{RankGroup::tensor, CollectiveKind::all_reduce, 252, 17'179'869'184 + number},
                 {RankGroup::tensor, CollectiveKind::all_gather, 1, 1'000'000 + number},
                 {RankGroup::pipeline, CollectiveKind::send, 16, 8'589'934'592}};
  return own;
}

bool equal(const RankMeasurement& a, const RankMeasurement& b) {
  const auto counts = [](const RankMeasurement& rank) {
    return std::array{rank.rank,
                      rank.stage,
                      rank.data_rank,
                      rank.tensor_rank,
                      rank.counted.parameters,
                      rank.counted.matrix_flops,
                      rank.counted.weight_bytes,
                      rank.counted.kv_cache_bytes,
                      rank.memory.arena_peak_bytes,
                      rank.memory.weights_held_bytes,
                      rank.memory.rss_peak_bytes.value_or(-1)};
  };
  return counts(a) == counts(b) && a.host == b.host && a.time_s == b.time_s &&
         a.communication_s == b.communication_s && a.traffic == b.traffic;
}

}  // namespace

TEST_CASE("the measurements of 1,000 ranks reach the first one complete and in their order") {
  std::vector<std::string> wire(kRanks);
  for (std::size_t rank = kRanks - 1; rank > 0; --rank) {
    SimulatedRank world(wire, rank);
    CHECK(cli::gathered(measured_by(rank), world).empty());
  }
  SimulatedRank first(wire, 0);
  const std::vector<RankMeasurement> ranks = cli::gathered(measured_by(0), first);
  REQUIRE(ranks.size() == kRanks);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    CHECK(equal(ranks[rank], measured_by(rank)));
  }
  // docs/distributed.md counts on less than a kibibyte from each.
  CHECK(std::ranges::max(wire, {}, &std::string::size).size() < 1024);

  const detail::Json report = detail::ranks_json({"tp 8 · pp 25 · dp 5", ranks});
  CHECK(report["ranks"].size() == kRanks);
  CHECK(report["ranks"][999]["host"] == "node-124.cluster.example.org");
  CHECK(report["slowest_rank"] == 0);  // 1/3 s, the longest of 1/(3 + rank)
}

TEST_CASE("every rank refuses a run in which one has another build, and names it") {
  std::vector<std::string> builds(kRanks, "1.4.0 0123456789ab");
  builds[617] = "1.3.2 ba9876543210";
  for (const std::size_t rank : {std::size_t{0}, std::size_t{617}, kRanks - 1}) {
    SimulatedRank world(builds, rank);
    try {
      distributed::require_one_build(world, std::string(builds[rank]));
      FAIL("accepted");
    } catch (const measured::AgreedError& error) {
      CHECK(error.code() == ErrorCode::invalid_input);
      CHECK(error.message() ==
            "runs another build of headroom than rank 0: 1.3.2 ba9876543210 instead of "
            "1.4.0 0123456789ab");
      CHECK(error.where() == "rank 617 of 1000");
    }
  }
  builds[617] = builds[0];
  SimulatedRank world(builds, 0);
  CHECK_NOTHROW(distributed::require_one_build(world, std::string(builds[0])));
}
