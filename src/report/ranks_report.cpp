// The ranks of a measurement over several processes: one row per rank, and the traffic between
// them.
#include <fmt/format.h>

#include <algorithm>

#include "describe.h"
#include "headroom/parallel_plan.h"
#include "writers.h"

namespace headroom::detail {
namespace {

template <class Value>
Integer largest(const RanksMeasurement& measured, Value value) {
  Integer most = 0;
  for (const RankMeasurement& rank : measured.ranks) most = std::max(most, Integer{value(rank)});
  return most;
}

template <class Value>
Column bytes_column(const char* key, const char* title, const RanksMeasurement& measured,
                    Value value) {
  return number_column(key, title, in_unit(byte_unit(largest(measured, value)), 2));
}

Table rank_table(const RanksMeasurement& measured) {
  constexpr Integer kBillion = 1'000'000'000;
  const auto weights = [](const RankMeasurement& rank) { return rank.counted.weight_bytes; };
  const auto cache = [](const RankMeasurement& rank) { return rank.counted.kv_cache_bytes; };
  const auto arena = [](const RankMeasurement& rank) { return rank.memory.arena_peak_bytes; };
  Table table;
  table.columns = {number_column("rank", "Rank"),
                   number_column("stage", "Stage"),
                   number_column("data_rank", "DP"),
                   number_column("tensor_rank", "TP"),
                   milliseconds_column("time_s", "Time"),
                   milliseconds_column("communication_s", "Comm."),
                   number_column("matrix_flops", "Matrix", {"[GFLOP]", 3, kBillion}),
                   bytes_column("weight_bytes", "Weights", measured, weights),
                   bytes_column("kv_cache_bytes", "KV-cache", measured, cache),
                   bytes_column("arena_peak_bytes", "Arena", measured, arena),
                   words_column("host", "Host", Importance::optional)};
  for (const RankMeasurement& rank : measured.ranks) {
    table.rows.push_back({Integer{rank.rank}, Integer{rank.stage}, Integer{rank.data_rank},
                          Integer{rank.tensor_rank}, rank.time_s, rank.communication_s,
                          Integer{rank.counted.matrix_flops}, Integer{weights(rank)},
                          Integer{cache(rank)}, Integer{arena(rank)}, rank.host});
  }
  return table;
}

/// Traffic that several ranks have alike.
struct SharedTraffic {
  WireTraffic traffic;
  std::vector<std::int64_t> ranks{};
};

/// "0–3, 6": ascending numbers, neighbours joined.
std::string ranges_text(const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t end = first + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!text.empty()) text += ", ";
    text += end - first == 1 ? fmt::format("{}", numbers[first])
                             : fmt::format("{}–{}", numbers[first], numbers[end - 1]);
    first = end;
  }
  return text;
}

std::vector<SharedTraffic> shared_traffic(const RanksMeasurement& measured) {
  std::vector<SharedTraffic> rows;
  for (const RankMeasurement& rank : measured.ranks) {
    for (const WireTraffic& traffic : rank.traffic) {
      auto row = std::ranges::find(rows, traffic, &SharedTraffic::traffic);
      if (row == rows.end()) row = rows.insert(row, {traffic});
      row->ranks.push_back(rank.rank);
    }
  }
  return rows;
}

Table traffic_table(const std::vector<SharedTraffic>& rows) {
  Integer most = 0;
  for (const SharedTraffic& row : rows) most = std::max(most, Integer{row.traffic.bytes});
  Table table;
  table.columns = {words_column("group", "Group"), words_column("collective", "Collective"),
                   words_column("ranks", "Ranks"), number_column("calls", "Calls of each"),
                   number_column("bytes", "Payload of each", in_unit(byte_unit(most), 2))};
  for (const SharedTraffic& row : rows) {
    table.rows.push_back({std::string(name_of(row.traffic.group)),
                          std::string(name_of(row.traffic.kind)), ranges_text(row.ranks),
                          Integer{row.traffic.calls}, Integer{row.traffic.bytes}});
  }
  return table;
}

Json to_json(const WireTraffic& traffic) {
  return {{"group", name_of(traffic.group)},
          {"collective", name_of(traffic.kind)},
          {"calls", traffic.calls},
          {"bytes", traffic.bytes}};
}

Json bytes_or_null(const std::optional<std::int64_t>& bytes) {
  return bytes ? Json(*bytes) : Json(nullptr);
}

Json to_json(const RankMeasurement& rank) {
  Json json{{"rank", rank.rank},
            {"stage", rank.stage},
            {"data_rank", rank.data_rank},
            {"tensor_rank", rank.tensor_rank},
            {"host", rank.host},
            {"time_s", rank.time_s},
            {"communication_s", rank.communication_s},
            {"parameters", rank.counted.parameters},
            {"matrix_flops", rank.counted.matrix_flops},
            {"weight_bytes", rank.counted.weight_bytes},
            {"kv_cache_bytes", rank.counted.kv_cache_bytes},
            {"arena_peak_bytes", rank.memory.arena_peak_bytes},
            {"weights_held_bytes", rank.memory.weights_held_bytes},
            {"rss_peak_bytes", bytes_or_null(rank.memory.rss_peak_bytes)},
            {"traffic", Json::array()}};
  for (const WireTraffic& traffic : rank.traffic) json["traffic"].push_back(to_json(traffic));
  return json;
}

double computation_s(double whole_s, double communication_s) { return whole_s - communication_s; }

Json to_json(const ComparedRank& rank) {
  return {{"rank", rank.rank},
          {"stage", rank.stage},
          {"tensor_rank", rank.tensor_rank},
          {"predicted_s", rank.predicted_s},
          {"predicted_communication_s", rank.predicted_communication_s},
          {"measured_s", rank.measured_s},
          {"measured_communication_s", rank.measured_communication_s}};
}

}  // namespace

void add_ranks(const RanksMeasurement& measured, Document& document) {
  document.blocks.emplace_back(Heading{fmt::format("Ranks of {}", measured.plan)});
  document.blocks.push_back(rank_table(measured));
  const RankMeasurement& slowest = measured.slowest();
  document.add_line("slowest",
                    fmt::format("rank {}: {}, of which {} in communication", slowest.rank,
                                duration(slowest.time_s), duration(slowest.communication_s)));
  const std::vector<SharedTraffic> traffic = shared_traffic(measured);
  if (!traffic.empty()) document.blocks.push_back(traffic_table(traffic));
}

Json ranks_json(const RanksMeasurement& measured) {
  Json ranks = Json::array();
  for (const RankMeasurement& rank : measured.ranks) ranks.push_back(to_json(rank));
  return {{"plan", measured.plan}, {"slowest_rank", measured.slowest().rank}, {"ranks", ranks}};
}

void add_ranks(const ComparedRanks& compared, Document& document) {
  Table table;
  table.columns = {number_column("rank", "Rank"),
                   number_column("stage", "Stage"),
                   number_column("tensor_rank", "TP"),
                   milliseconds_column("predicted_computation_s", "Predicted"),
                   milliseconds_column("measured_computation_s", "Measured"),
                   milliseconds_column("predicted_communication_s", "Predicted comm."),
                   milliseconds_column("measured_communication_s", "Measured comm.")};
  for (const ComparedRank& rank : compared.ranks) {
    table.rows.push_back({Integer{rank.rank}, Integer{rank.stage}, Integer{rank.tensor_rank},
                          computation_s(rank.predicted_s, rank.predicted_communication_s),
                          computation_s(rank.measured_s, rank.measured_communication_s),
                          rank.predicted_communication_s, rank.measured_communication_s});
  }
  document.blocks.emplace_back(
      Heading{fmt::format("Computation and communication of {}", compared.plan)});
  document.blocks.push_back(std::move(table));
  document.add_line(
      "slowest", fmt::format("rank {}; the prediction's is rank {}",
                             compared.slowest_measured().rank, compared.slowest_predicted().rank));
}

Json ranks_json(const ComparedRanks& compared) {
  Json ranks = Json::array();
  for (const ComparedRank& rank : compared.ranks) ranks.push_back(to_json(rank));
  return {{"plan", compared.plan},
          {"slowest_predicted_rank", compared.slowest_predicted().rank},
          {"slowest_measured_rank", compared.slowest_measured().rank},
          {"ranks", ranks}};
}

}  // namespace headroom::detail
