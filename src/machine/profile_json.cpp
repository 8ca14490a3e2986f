// MachineProfile -> JSON.
#include <nlohmann/json.hpp>

#include "headroom/machine_profile.h"
#include "headroom/op.h"
#include "invocation_json.h"
#include "schema_version.h"

namespace headroom {
namespace {

using Json = nlohmann::ordered_json;

Json bandwidth_json(const std::vector<BandwidthPoint>& points) {
  Json json = Json::array();
  for (const BandwidthPoint& point : points) {
    json.push_back(
        {{"working_set_bytes", point.working_set_bytes}, {"bytes_per_s", point.bytes_per_s}});
  }
  return json;
}

Json table_json(const KernelTable& table) {
  const KernelInfo& info = info_of(table.kind);
  Json json;
  json["kernel"] = info.name;
  for (std::size_t axis = 0; axis < table.axes.size(); ++axis) {
    json["axes"].push_back({{"name", info.axes[axis]}, {"sizes", table.axes[axis]}});
  }
  json["seconds"] = Json::array();
  for (const std::optional<double>& seconds : table.seconds) {
    json["seconds"].push_back(seconds ? Json(*seconds) : Json(nullptr));
  }
  json["spread"] = table.spread;
  return json;
}

Json threads_json(const ThreadProfile& profile, MeasuredEngine engine) {
  Json json;
  json["threads"] = profile.threads;
  if (engine == MeasuredEngine::pytorch) json["dtype"] = name_of(profile.dtype);
  json["step_overhead_s"] = profile.step_overhead_s;
  json["cold_step_overhead_s"] = profile.cold_step_overhead_s;
  json["probe"] = {{"compute_s", profile.probe_compute_s},
                   {"memory_s", profile.probe_memory_s},
                   {"memory_bytes", profile.probe_memory_bytes}};
  if (profile.usual_compute_s > 0) json["probe"]["usual_compute_s"] = profile.usual_compute_s;
  if (profile.usual_memory_s > 0) json["probe"]["usual_memory_s"] = profile.usual_memory_s;
  json["read"] = bandwidth_json(profile.read);
  json["write"] = bandwidth_json(profile.write);
  json["kernels"] = Json::array();
  for (const KernelTable& table : profile.tables) json["kernels"].push_back(table_json(table));
  for (const StoredGemm& gemm : profile.stored_gemms) {
    json["stored_gemms"].push_back({{"format", gemm.format},
                                    {"effort", name_of(gemm.effort)},
                                    {"cold", table_json(gemm.cold)},
                                    {"warm", table_json(gemm.warm)}});
  }
  return json;
}

void add_rates(const MeasuredRates& rates, Json& json) {
  json["source"] = "measured";
  if (rates.engine == MeasuredEngine::pytorch) json["engine"] = name_of(rates.engine);
  if (rates.device) {
    json["device"] = {{"architecture", name_of(rates.device->architecture)},
                      {"memory_bytes", static_cast<std::int64_t>(rates.device->memory_bytes)},
                      {"runs_behind_host", rates.device->runs_behind_host}};
  }
  json["by_threads"] = Json::array();
  for (const ThreadProfile& profile : rates.by_threads) {
    json["by_threads"].push_back(threads_json(profile, rates.engine));
  }
}

Json number_or_null(const std::optional<double>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json figure_json(const MemoryFigure& figure) {
  return {{"bytes", static_cast<std::int64_t>(figure.bytes)},
          {"basis", name_of(figure.basis)},
          {"source", figure.source},
          {"url", text_or_null(figure.url)}};
}

Json interconnect_json(const Interconnect& link) {
  return {{"devices_per_node", link.devices_per_node},
          {"intra_node_kind", text_or_null(link.intra_node_kind)},
          {"intra_node_bytes_per_s", link.intra_node_bytes_per_s},
          {"inter_node_kind", text_or_null(link.inter_node_kind)},
          {"inter_node_bytes_per_s", number_or_null(link.inter_node_bytes_per_s)},
          {"source", link.source}};
}

Json host_json(const HostLink& host) {
  return {{"kind", host.kind},
          {"bytes_per_s", number_or_null(host.bytes_per_s)},
          {"source", host.source}};
}

Json efficiency_json(const Efficiency& efficiency) {
  return {{"matrix", efficiency.matrix},
          {"memory", efficiency.memory},
          {"network", efficiency.network},
          {"cache", efficiency.cache},
          {"fixed", efficiency.fixed}};
}

Json fitted_json(const std::vector<FittedEfficiency>& fitted) {
  Json json = Json::array();
  for (const FittedEfficiency& one : fitted) {
    Json runs = Json::array();
    for (const FittingRun& run : one.fitted_to) {
      runs.push_back({{"model", run.model}, {"plan", run.plan}, {"time_s", run.time_s}});
    }
    json.push_back({{"purpose", name_of(one.purpose)},
                    {"dtype", name_of(one.dtype)},
                    {"fractions", efficiency_json(one.fractions)},
                    {"deviations", efficiency_json(one.deviations)},
                    {"range", one.range},
                    {"runs", one.runs},
                    {"fitted_to", std::move(runs)}});
  }
  return json;
}

void add_rates(const DatasheetRates& rates, Json& json) {
  json["architecture"] = name_of(rates.architecture);
  json["source"] = "datasheet";
  json["datasheet"] = rates.source;
  json["url"] = text_or_null(rates.url);
  json["float32_flops_per_s"] = number_or_null(rates.float32_flops_per_s);
  json["tensor_float32_flops_per_s"] = number_or_null(rates.tensor_float32_flops_per_s);
  json["float16_flops_per_s"] = rates.float16_flops_per_s;
  json["float8_flops_per_s"] = number_or_null(rates.float8_flops_per_s);
  json["int8_ops_per_s"] = number_or_null(rates.int8_ops_per_s);
  json["float4_flops_per_s"] = number_or_null(rates.float4_flops_per_s);
  json["int4_ops_per_s"] = number_or_null(rates.int4_ops_per_s);
  json["memory_bytes_per_s"] = rates.memory_bytes_per_s;
  json["memory_bytes"] = rates.memory_bytes;
  json["memory"] = {{"total", figure_json(rates.memory.total)},
                    {"usable", figure_json(rates.memory.usable)}};
  json["power_w"] = number_or_null(rates.power_w);
  json["processors"] = nullptr;
  if (const auto& processors = rates.processors) {
    json["processors"] = {{"count", processors->count}, {"source", processors->source}};
  }
  json["compute_efficiency"] = number_or_null(rates.given.matrix);
  json["memory_efficiency"] = number_or_null(rates.given.memory);
  json["network_efficiency"] = number_or_null(rates.given.network);
  if (!rates.fitted.empty()) json["fitted"] = fitted_json(rates.fitted);
}

Json points_json(const CollectiveTable& table) {
  Json json = Json::array();
  for (const CollectivePoint& point : table.points) {
    json.push_back({{"bytes", point.bytes}, {"seconds", point.seconds}, {"spread", point.spread}});
  }
  return json;
}

Json collectives_json(const CollectiveRates& rates) {
  Json json{{"date", rates.date}, {"library", rates.library}, {"tables", Json::array()}};
  for (const CollectiveTable& table : rates.tables) {
    json["tables"].push_back({{"collective", name_of(table.kind)},
                              {"processes", table.groups.processes},
                              {"ranks", table.groups.ranks},
                              {"hosts", table.groups.hosts},
                              {"points", points_json(table)}});
  }
  return json;
}

}  // namespace

std::string profile_to_json(const MachineProfile& profile) {
  Json json;
  json["schema_version"] = kMachineVersion;
  if (profile.produced_by) json["produced_by"] = detail::to_json(*profile.produced_by);
  json["name"] = profile.name;
  json["date"] = profile.date;
  if (profile.effort) json["effort"] = name_of(*profile.effort);
  json["last_level_cache_bytes"] = profile.last_level_cache_bytes;
  const MachineContext& context = profile.context;
  json["context"] = {{"cpu", context.cpu},
                     {"logical_cpus", context.logical_cpus},
                     {"compiler", context.compiler},
                     {"backend", context.backend},
                     {"other_programs_cpus", number_or_null(context.other_programs_cpus)}};
  std::visit([&](const auto& rates) { add_rates(rates, json); }, profile.rates);
  json["interconnect"] =
      profile.interconnect ? interconnect_json(*profile.interconnect) : Json(nullptr);
  if (profile.host) json["host"] = host_json(*profile.host);
  if (profile.collectives) json["collectives"] = collectives_json(*profile.collectives);
  return json.dump(1) + "\n";
}

}  // namespace headroom
