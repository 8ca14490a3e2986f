#include "rank_reports.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace headroom::cli {
namespace {

using nlohmann::json;

json to_json(const WireTraffic& row) {
  return {static_cast<int>(row.group), static_cast<int>(row.kind), row.calls, row.bytes};
}

json to_json(const OperatorMeasurement& one) {
  return {one.path, one.time_s, one.matrix_flops, one.bytes, static_cast<int>(one.role)};
}

OperatorMeasurement operator_of(const json& row) {
  return {row.at(0), row.at(1), row.at(2), row.at(3),
          static_cast<OperatorRole>(row.at(4).get<int>())};
}

json optional_json(const std::optional<std::int64_t>& value) {
  return value ? json(*value) : json(nullptr);
}

std::optional<std::int64_t> optional_of(const json& value) {
  if (value.is_null()) return std::nullopt;
  return value.get<std::int64_t>();
}

/// A rank's part as ranks send it to each other.
json to_json(const RankMeasurement& rank) {
  json traffic = json::array();
  for (const WireTraffic& row : rank.traffic) traffic.push_back(to_json(row));
  json operators = json::array();
  for (const OperatorMeasurement& one : rank.operators) operators.push_back(to_json(one));
  return {{"rank", rank.rank},
          {"stage", rank.stage},
          {"data_rank", rank.data_rank},
          {"tensor_rank", rank.tensor_rank},
          {"host", rank.host},
          {"time_s", rank.time_s},
          {"communication_s", rank.communication_s},
          {"counted",
           {rank.counted.parameters, rank.counted.matrix_flops, rank.counted.weight_bytes,
            rank.counted.kv_cache_bytes}},
          {"arena_peak_bytes", rank.memory.arena_peak_bytes},
          {"weights_held_bytes", rank.memory.weights_held_bytes},
          {"rss_peak_bytes", optional_json(rank.memory.rss_peak_bytes)},
          {"traffic", traffic},
          {"operators", operators}};
}

RankMeasurement rank_of(const json& text) {
  RankMeasurement rank;
  rank.rank = text.at("rank");
  rank.stage = text.at("stage");
  rank.data_rank = text.at("data_rank");
  rank.tensor_rank = text.at("tensor_rank");
  rank.host = text.at("host");
  rank.time_s = text.at("time_s");
  rank.communication_s = text.at("communication_s");
  const json& counted = text.at("counted");
  rank.counted = {counted.at(0), counted.at(1), counted.at(2), counted.at(3)};
  rank.memory.arena_peak_bytes = text.at("arena_peak_bytes");
  rank.memory.weights_held_bytes = text.at("weights_held_bytes");
  rank.memory.rss_peak_bytes = optional_of(text.at("rss_peak_bytes"));
  for (const json& row : text.at("traffic")) {
    rank.traffic.push_back({static_cast<RankGroup>(row.at(0).get<int>()),
                            static_cast<CollectiveKind>(row.at(1).get<int>()), row.at(2),
                            row.at(3)});
  }
  for (const json& row : text.at("operators")) rank.operators.push_back(operator_of(row));
  return rank;
}

}  // namespace

std::vector<RankMeasurement> gathered(const RankMeasurement& own, measured::Coordinator& world) {
  std::vector<RankMeasurement> ranks;
  for (const std::string& text : world.gather(to_json(own).dump())) {
    ranks.push_back(rank_of(json::parse(text)));
  }
  return ranks;
}

}  // namespace headroom::cli
