#include "collective_calibration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <sstream>

#include "headroom/measurement.h"

namespace headroom::distributed {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t kFloatBytes = 4;

/// Payloads from a decode step's of a small model to a prefill's of a large one, each four times
/// the one before. 11·2^k is the hidden state of no preset: the tables must predict, not remember.
constexpr std::int64_t kSmallestBytes = 352;
constexpr std::int64_t kPayloads = 9;
/// Of the buffers of one process; larger payloads of many ranks are extrapolated.
constexpr std::int64_t kMostBufferBytes = std::int64_t{256} << 20;

struct Effort {
  std::int64_t step = 1;  ///< of the payloads
  int samples = 0;
  double sample_s = 0;  ///< calls are repeated for about this long
  double point_s = 0;   ///< samples of a payload end after this long, for want of processors
};

Effort effort_of(CalibrationEffort effort) {
  return effort == CalibrationEffort::quick ? Effort{2, 9, 0.0005, 0.1} : Effort{1, 21, 0.001, 0.5};
}

/// Buffers of a payload: `shard` has its bytes, `whole` those of all ranks.
struct Buffers {
  std::vector<float> shard;
  std::vector<float> whole;
};

/// One call of a collective, for all ranks of a group; a message there and back counts as two.
struct TimedCall {
  std::function<void(Buffers&)> run;
  double calls = 1;
};

/// Sends an equal part of the shard to every rank; the parts that come fill as much.
void send_to_all(measured::Communicator& group, Buffers& buffers) {
  const std::int64_t ranks = group.size();
  const std::int64_t floats = std::ssize(buffers.shard);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(ranks), floats / ranks);
  counts.front() += floats % ranks;
  // The first rank receives the rest of every division.
  std::vector<std::int64_t> received(counts.size(),
                                     floats / ranks + (group.rank() == 0 ? floats % ranks : 0));
  group.all_to_all(buffers.shard, counts, buffers.whole, received);
}

TimedCall call_of(CollectiveKind kind, measured::Communicator& tensor,
                  measured::Communicator& pipeline) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return {[&](Buffers& buffers) { tensor.all_reduce(buffers.shard); }};
    case CollectiveKind::all_gather:
      return {[&](Buffers& buffers) { tensor.all_gather(buffers.shard, buffers.whole); }};
    case CollectiveKind::reduce_scatter:
      return {[&](Buffers& buffers) { tensor.reduce_scatter(buffers.whole, buffers.shard); }};
    case CollectiveKind::all_to_all:
      return {[&](Buffers& buffers) { send_to_all(tensor, buffers); }};
    case CollectiveKind::send:
    case CollectiveKind::none:
      break;
  }
  // There and back between the first two stages; further ones wait.
  return {[&](Buffers& buffers) {
            if (pipeline.rank() == 0) {
              pipeline.send(buffers.shard, 1);
              pipeline.receive(buffers.shard, 1);
            } else if (pipeline.rank() == 1) {
              pipeline.receive(buffers.shard, 0);
              pipeline.send(buffers.shard, 0);
            }
          },
          2};
}

class Sampler {
 public:
  Sampler(Processes& processes, const Effort& effort)
      : world_(processes.world()), effort_(effort) {}

  /// Time at one payload.
  [[nodiscard]] CollectivePoint time(const TimedCall& call, std::int64_t bytes, Buffers& buffers) {
    const std::int64_t repeats = repeats_of(call, buffers);
    std::vector<double> samples;
    const Clock::time_point start = Clock::now();
    do {
      samples.push_back(sample(call, buffers, repeats) / call.calls);
    } while (wants_more(std::ssize(samples), start));
    const TimeStatistics all = summarize(slowest(samples));
    return {bytes, all.median_s, all.mad_s / all.median_s};
  }

 private:
  /// Seconds of one of `repeats` calls on this process.
  double sample(const TimedCall& call, Buffers& buffers, std::int64_t repeats) {
    world_.barrier();
    const Clock::time_point start = Clock::now();
    for (std::int64_t i = 0; i < repeats; ++i) call.run(buffers);
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    return elapsed.count() / static_cast<double>(repeats);
  }

  /// Returns whether to take another sample, by the first process's clock.
  bool wants_more(std::int64_t samples, Clock::time_point start) {
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    std::int64_t more = samples < effort_.samples && elapsed.count() < effort_.point_s ? 1 : 0;
    world_.broadcast({&more, 1}, 0);
    return more == 1;
  }

  /// Calls of one sample, by the first process's clock. The first calls of all are not counted:
  /// they open connections and touch pages.
  std::int64_t repeats_of(const TimedCall& call, Buffers& buffers) {
    (void)sample(call, buffers, 2);
    constexpr std::int64_t kMost = 100;
    const double once = sample(call, buffers, 4);
    std::int64_t repeats =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(effort_.sample_s / once), 1, kMost);
    world_.broadcast({&repeats, 1}, 0);
    return repeats;
  }

  /// Sample by sample, the time of the slowest process.
  std::vector<double> slowest(std::vector<double> samples) {
    for (const std::string& text : world_.exchange(fmt::format("{}", fmt::join(samples, " ")))) {
      std::istringstream stream(text);
      for (double& most : samples) {
        double other = 0;
        stream >> other;
        most = std::max(most, other);
      }
    }
    return samples;
  }

  measured::Coordinator& world_;
  Effort effort_;
};

CollectiveTable measure(Sampler& sampler, CollectiveKind kind, const TimedCall& call,
                        const CollectiveGroups& groups, std::int64_t step) {
  CollectiveTable table{kind, groups, {}};
  for (std::int64_t i = 0; i < kPayloads; i += step) {
    const std::int64_t bytes = kSmallestBytes << (2 * i);
    if (bytes * groups.ranks > kMostBufferBytes) break;
    const auto floats = static_cast<std::size_t>(bytes / kFloatBytes);
    Buffers buffers{std::vector<float>(floats),
                    std::vector<float>(floats * static_cast<std::size_t>(groups.ranks))};
    table.points.push_back(sampler.time(call, bytes, buffers));
  }
  return table;
}

}  // namespace

Hosts hosts_of(Processes& processes) {
  const std::string own = processes.host();
  const std::vector<std::string> all = processes.world().exchange(own);
  return {std::ssize(std::set(all.begin(), all.end())), std::ranges::count(all, own)};
}

CollectiveRates measure_collectives(Processes& processes, CalibrationEffort effort) {
  const Effort limits = effort_of(effort);
  const std::int64_t all = processes.world().size();
  const std::int64_t rank = processes.world().rank();
  const std::int64_t hosts = hosts_of(processes).count;
  Sampler sampler(processes, limits);
  CollectiveRates rates;
  rates.library = processes.library();
  for (std::int64_t ranks = 2; ranks <= all; ++ranks) {
    if (all % ranks != 0) continue;
    const auto tensor = processes.split(RankGroup::tensor, rank / ranks);
    const auto pipeline = processes.split(RankGroup::pipeline, rank % (all / ranks));
    for (const CollectiveKind kind : measured_collectives()) {
      rates.tables.push_back(measure(sampler, kind, call_of(kind, *tensor, *pipeline),
                                     {all, ranks, hosts}, limits.step));
    }
  }
  return rates;
}

}  // namespace headroom::distributed
