// SplitReport -> Document and JSON: bytes in both memories, the time of a decode step by place, and
// other splits.
#include <fmt/format.h>

#include <algorithm>

#include "describe.h"
#include "headroom/memory_split.h"
#include "plan_words.h"
#include "storage_report.h"
#include "units.h"
#include "writers.h"

namespace headroom::detail {
namespace {

std::string words_of(const MemorySplit& split, const SplitReport& report) {
  std::string text;
  if (split.gpu_layers > report.layers) {
    text = fmt::format("all {} layers and the head on the device", report.layers);
  } else if (split.gpu_layers == 0) {
    text = "all layers and the head on the host";
  } else {
    text = fmt::format("the head and {} of {} layers on the device", split.gpu_layers - 1,
                       report.layers);
  }
  if (split.cpu_moe_layers == 0) return text;
  return text + fmt::format(" · routed experts of the first {} on the host", split.cpu_moe_layers);
}

/// "9.61 GiB free" or "1.20 GiB over".
std::string room_of(Integer capacity, Integer taken) {
  const Integer free = capacity - taken;
  return free >= 0 ? fmt::format("{} free", describe_bytes(free))
                   : fmt::format("{} over", describe_bytes(-free));
}

std::string verdict_of(const SplitReport& report) {
  const SplitFigures& result = report.result;
  return fmt::format("{} — device {} · host {}", result.fits ? "FITS" : "DOES NOT FIT",
                     room_of(report.question.rates.memory_bytes, result.device.total()),
                     room_of(report.host.memory_bytes, result.host.total()));
}

Table memory_table(const SplitReport& report) {
  const SplitMemory& device = report.result.device;
  const SplitMemory& host = report.result.host;
  const Integer capacity = report.question.rates.memory_bytes;
  const Unit unit = byte_unit(std::max({device.total(), host.total(), capacity}));
  Table table;
  table.columns = {words_column("category", "Memory"),
                   number_column("device_bytes", "Device", in_unit(unit, 2)),
                   number_column("host_bytes", "Host", in_unit(unit, 2))};
  const auto add = [&](const char* name, Integer SplitMemory::*member) {
    table.rows.push_back({std::string(name), device.*member, host.*member});
  };
  add("weights", &SplitMemory::weights);
  add("KV-cache", &SplitMemory::kv_cache);
  add("activations", &SplitMemory::activations);
  add("runtime", &SplitMemory::runtime);
  table.rows.push_back({std::string("total"), device.total(), host.total()});
  table.rows.push_back({std::string("capacity"), capacity, report.host.memory_bytes});
  table.total_rows = 2;
  return table;
}

Table split_table(const SplitReport& report) {
  Integer largest = 1;
  for (const SplitFigures& one : report.others) {
    largest = std::max({largest, one.device.total(), one.host.total()});
  }
  const Unit unit = byte_unit(largest);
  Table table;
  table.columns = {number_column("gpu_layers", "gpu-layers"),
                   number_column("n_cpu_moe", "n-cpu-moe"),
                   number_column("device_bytes", "Device", in_unit(unit, 2)),
                   number_column("host_bytes", "Host", in_unit(unit, 2)),
                   words_column("fits", "Fits"),
                   milliseconds_column("decode_s", "Decode"),
                   number_column("tokens_per_s", "Throughput", {"[tokens/s]", 1}),
                   number_column("ttft_s", "TTFT", {"[s]", 2}, Importance::optional)};
  for (const SplitFigures& one : report.others) {
    table.rows.push_back({Integer{one.split.gpu_layers}, Integer{one.split.cpu_moe_layers},
                          one.device.total(), one.host.total(), yes_or_no(one.fits),
                          one.time.decode_s, one.time.tokens_per_s, one.time.ttft_s});
  }
  return table;
}

std::string describe_host(const HostRates& host) {
  return fmt::format("{} · {:.1f} GB/s reached · {:.1f} GB/s to the device ({})",
                     describe_bytes(host.memory_bytes), host.memory_bytes_per_s / 1e9,
                     host.link_bytes_per_s / 1e9, host.source);
}

Json json_of(const SplitMemory& memory, Integer capacity) {
  return {{"weight_bytes", json_integer(memory.weights)},
          {"kv_cache_bytes", json_integer(memory.kv_cache)},
          {"activation_bytes", json_integer(memory.activations)},
          {"runtime_bytes", json_integer(memory.runtime)},
          {"total_bytes", json_integer(memory.total())},
          {"capacity_bytes", json_integer(capacity)}};
}

Json json_of(const SplitFigures& figures, const SplitReport& report) {
  return {{"gpu_layers", figures.split.gpu_layers},
          {"n_cpu_moe", figures.split.cpu_moe_layers},
          {"fits", figures.fits},
          {"device", json_of(figures.device, report.question.rates.memory_bytes)},
          {"host", json_of(figures.host, report.host.memory_bytes)},
          {"decode_s", figures.time.decode_s},
          {"low_s", figures.time.low_s},
          {"high_s", figures.time.high_s},
          {"device_s", figures.time.device_s},
          {"host_s", figures.time.host_s},
          {"transfer_s", figures.time.transfer_s},
          {"ttft_s", figures.time.ttft_s},
          {"tokens_per_s", figures.time.tokens_per_s}};
}

Json json_of(const HostRates& host) {
  return {{"name", host.name},
          {"memory_bytes", json_integer(host.memory_bytes)},
          {"memory_bytes_per_s", host.memory_bytes_per_s},
          {"flops_per_s", json_or_null(host.flops_per_s)},
          {"link_bytes_per_s", host.link_bytes_per_s},
          {"source", host.source}};
}

}  // namespace

Document to_document(const SplitReport& report) {
  Document document = document_of(report.question);
  document.add_line("storage", describe_storage(report.storage, report.storage.bytes));
  add_device(report.question, document);
  document.add_line("host", describe_host(report.host));
  document.add_verdict("verdict", verdict_of(report), outcome_of(report.result.fits));
  document.add_line("split", words_of(report.result.split, report));
  const SplitTime& time = report.result.time;
  document.add_line("decode step", fmt::format("{} = device {} · host {} · link {}",
                                               duration(time.decode_s), duration(time.device_s),
                                               duration(time.host_s), duration(time.transfer_s)));
  document.add_line("range", fmt::format("{} to {}, for nine of ten runs", duration(time.low_s),
                                         duration(time.high_s)));
  document.add_line("TTFT", fmt::format("{} for one prompt", duration(time.ttft_s)));
  document.add_line("throughput", grouped(time.tokens_per_s, 1) + " tokens/s");
  add_engine(report.command, Engine::llama_cpp, document);
  document.blocks.push_back(memory_table(report));
  document.blocks.push_back(Heading{"Other splits"});
  document.blocks.push_back(split_table(report));
  return document;
}

Json to_json(const SplitReport& report) {
  Json json = question_json(report.question, "fit_split.schema.json");
  json["verdict"] = verdict_json(report.result.fits, verdict_of(report));
  json["storage"] = to_json(report.storage, report.storage.bytes);
  json["host"] = json_of(report.host);
  json["layers"] = report.layers;
  json["split"] = json_of(report.result, report);
  json["others"] = Json::array();
  for (const SplitFigures& one : report.others) json["others"].push_back(json_of(one, report));
  add_engine(report.command, Engine::llama_cpp, json);
  return json;
}

}  // namespace headroom::detail
