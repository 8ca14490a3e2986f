// JSON -> MachineProfile. Validates every figure that a prediction divides by or interpolates;
// those that were measured are in measured_rates_reader.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headroom/error.h"
#include "headroom/machine_profile.h"
#include "json_text.h"
#include "measured_rates_reader.h"
#include "profile_object.h"
#include "schema_version.h"

namespace headroom {
namespace {

using detail::Bounds;
using detail::kFraction;
using detail::Reader;

MemoryFigure read_figure(const Reader& reader) {
  MemoryFigure figure;
  figure.bytes = reader.count("bytes");
  const std::string basis = reader.text("basis");
  const bool read = basis == name_of(MemoryBasis::reading);
  if (!read && basis != name_of(MemoryBasis::assumed)) {
    reader.fail("\"basis\" is neither \"reading\" nor \"assumed\"");
  }
  figure.basis = read ? MemoryBasis::reading : MemoryBasis::assumed;
  figure.source = reader.text("source");
  figure.url = reader.text_or_empty("url");
  return figure;
}

/// A machine's file may give one figure; then all of it is usable.
DeviceMemory read_memory(const Reader& reader, std::int64_t datasheet_bytes) {
  if (!reader.has("memory")) {
    const MemoryFigure given{datasheet_bytes, MemoryBasis::assumed, "memory_bytes as given", {}};
    return {given, given};
  }
  const Reader memory = reader.object("memory");
  DeviceMemory result{read_figure(memory.object("total")), read_figure(memory.object("usable"))};
  if (result.usable.bytes > result.total.bytes) memory.fail("\"usable\" is above \"total\"");
  return result;
}

/// Files of earlier versions have neither of the last two, which were not fitted.
Efficiency read_efficiency(const Reader& reader, const Bounds& bounds, double not_fitted) {
  constexpr Bounds kFactor{0, 100};
  return {reader.within(bounds, "matrix"), reader.within(bounds, "memory"),
          reader.within(bounds, "network"),
          reader.optional_within(kFactor, "cache").value_or(not_fitted),
          reader.optional_within(kFactor, "fixed").value_or(not_fitted)};
}

FittedEfficiency read_fitted(const Reader& reader) {
  constexpr Bounds kDeviation{0, 10};
  constexpr Bounds kRunSeconds{0, 1e9};
  FittedEfficiency fitted;
  const std::string purpose = reader.text("purpose");
  const bool trains = purpose == name_of(Purpose::train);
  if (!trains && purpose != name_of(Purpose::serve)) {
    reader.fail("\"purpose\" is neither \"train\" nor \"serve\"");
  }
  fitted.purpose = trains ? Purpose::train : Purpose::serve;
  fitted.dtype = detail::read_activation_type(reader);
  fitted.fractions = read_efficiency(reader.object("fractions"), kFraction, 1);
  fitted.deviations = read_efficiency(reader.object("deviations"), kDeviation, 0);
  fitted.range = reader.within(kDeviation, "range");
  fitted.runs = reader.count("runs");
  if (!reader.has("fitted_to")) return fitted;
  for (const Reader& run : reader.objects("fitted_to")) {
    fitted.fitted_to.push_back(
        {run.text("model"), run.text("plan"), run.within(kRunSeconds, "time_s")});
  }
  if (static_cast<std::int64_t>(fitted.fitted_to.size()) != fitted.runs) {
    reader.fail("\"fitted_to\" has not as many runs as \"runs\" says");
  }
  return fitted;
}

DatasheetRates read_datasheet(const Reader& reader) {
  DatasheetRates rates;
  rates.architecture = detail::read_architecture(reader);
  rates.float32_flops_per_s = reader.optional_rate("float32_flops_per_s");
  rates.tensor_float32_flops_per_s = reader.optional_rate("tensor_float32_flops_per_s");
  rates.float16_flops_per_s = reader.rate("float16_flops_per_s");
  rates.float8_flops_per_s = reader.optional_rate("float8_flops_per_s");
  rates.int8_ops_per_s = reader.optional_rate("int8_ops_per_s");
  rates.float4_flops_per_s = reader.optional_rate("float4_flops_per_s");
  rates.int4_ops_per_s = reader.optional_rate("int4_ops_per_s");
  rates.memory_bytes_per_s = reader.rate("memory_bytes_per_s");
  rates.memory_bytes = reader.count("memory_bytes");
  rates.memory = read_memory(reader, rates.memory_bytes);
  rates.power_w = reader.optional_rate("power_w");
  if (reader.has("processors")) {
    const Reader processors = reader.object("processors");
    rates.processors = {processors.processors("count"), processors.text("source")};
    if (rates.processors->count == 0) processors.fail("\"count\" is 0: leave out \"processors\"");
  }
  rates.given = {reader.optional_within(kFraction, "compute_efficiency"),
                 reader.optional_within(kFraction, "memory_efficiency"),
                 reader.optional_within(kFraction, "network_efficiency")};
  if (reader.has("fitted")) {
    for (const Reader& one : reader.objects("fitted")) rates.fitted.push_back(read_fitted(one));
  }
  rates.source = reader.text("datasheet");
  rates.url = reader.text_or_empty("url");
  return rates;
}

std::variant<MeasuredRates, DatasheetRates> read_rates(const Reader& reader) {
  const std::string source = reader.text("source");
  if (source == "measured") return detail::read_measured(reader);
  if (source != "datasheet") reader.fail("\"source\" is neither \"measured\" nor \"datasheet\"");
  return read_datasheet(reader);
}

std::optional<Interconnect> read_interconnect(const Reader& reader) {
  if (!reader.has("interconnect")) return std::nullopt;
  const Reader link = reader.object("interconnect");
  Interconnect interconnect;
  interconnect.devices_per_node = link.count("devices_per_node");
  if (interconnect.devices_per_node < 1) link.fail("\"devices_per_node\" is below 1");
  interconnect.intra_node_bytes_per_s = link.rate("intra_node_bytes_per_s");
  interconnect.inter_node_bytes_per_s = link.optional_rate("inter_node_bytes_per_s");
  interconnect.source = link.text("source");
  interconnect.intra_node_kind = link.text_or_empty("intra_node_kind");
  interconnect.inter_node_kind = link.text_or_empty("inter_node_kind");
  return interconnect;
}

std::optional<HostLink> read_host(const Reader& reader) {
  if (!reader.has("host")) return std::nullopt;
  const Reader host = reader.object("host");
  (void)host.member("bytes_per_s");  // null is a statement
  return HostLink{host.text("kind"), host.optional_rate("bytes_per_s"), host.text("source")};
}

/// Texts of the list; throws Error{invalid_input} for another value.
std::vector<std::string> read_texts(const Reader& reader, const char* key) {
  const nlohmann::json& list = reader.member(key);
  const auto is_text = [](const nlohmann::json& value) { return value.is_string(); };
  if (!list.is_array() || list.empty() || !std::ranges::all_of(list, is_text)) {
    reader.fail(fmt::format("\"{}\" is not a list of texts", key));
  }
  return list.get<std::vector<std::string>>();
}

/// Empty for a machine that a person described. Settings are not kept: a calibration takes none.
std::optional<Invocation> read_origin(const Reader& reader) {
  if (!reader.has("produced_by")) return std::nullopt;
  const Reader origin = reader.object("produced_by");
  return Invocation{origin.text("headroom"), origin.text_or_empty("commit"),
                    read_texts(origin, "arguments")};
}

/// Throws Error{invalid_input} for a key of `given` that `known` lacks, which was read from it and
/// written again: mistyped, an optional rate would be missing. Empty values state nothing.
void refuse_unknown_keys(const nlohmann::json& given, const nlohmann::json& known,
                         const std::string& where) {
  if (given.is_array() && known.is_array()) {
    for (std::size_t i = 0; i < std::min(given.size(), known.size()); ++i) {
      refuse_unknown_keys(given[i], known[i], fmt::format("{}/{}", where, i));
    }
  }
  if (!given.is_object() || !known.is_object()) return;
  for (const auto& [key, value] : given.items()) {
    if (value.empty()) continue;
    const auto found = known.find(key);
    if (found == known.end()) {
      throw Error(
          ErrorCode::invalid_input, fmt::format("unknown key \"{}\"", key), where,
          "remove it, or correct its name: the JSON of `headroom machines show h100-80gb` has "
          "the known ones");
    }
    refuse_unknown_keys(value, *found, fmt::format("{}/{}", where, key));
  }
}

/// As above, for a whole profile. Its origin is not read back in full, nor is the usual engine.
void refuse_unknown_keys(nlohmann::json given, const MachineProfile& profile,
                         const std::string& where) {
  given.erase("produced_by");
  given.erase("engine");
  refuse_unknown_keys(given, nlohmann::json::parse(profile_to_json(profile)), where);
}

}  // namespace

MachineProfile profile_from_json(std::string_view text, const std::string& where) {
  const nlohmann::json json = detail::parse_json(text, where);
  const Reader reader(json, where);
  if (reader.count("schema_version") != kMachineVersion) {
    reader.fail(fmt::format("\"schema_version\" is not {}", kMachineVersion));
  }
  MachineProfile profile;
  profile.name = reader.text("name");
  profile.date = reader.text("date");
  profile.last_level_cache_bytes = reader.count("last_level_cache_bytes");
  const Reader context = reader.object("context");
  profile.context.cpu = context.text("cpu");
  profile.context.logical_cpus = context.processors("logical_cpus");
  profile.context.compiler = context.text("compiler");
  profile.context.backend = context.text("backend");
  if (context.has("other_programs_cpus")) {
    const double others = context.number("other_programs_cpus");
    if (others < 0 || others > profile.context.logical_cpus) {
      context.fail("\"other_programs_cpus\" is not a number of processors");
    }
    profile.context.other_programs_cpus = others;
  }
  profile.effort = detail::read_effort(reader);
  profile.produced_by = read_origin(reader);
  profile.rates = read_rates(reader);
  profile.interconnect = read_interconnect(reader);
  profile.host = read_host(reader);
  profile.collectives = detail::read_collectives(reader);
  refuse_unknown_keys(json, profile, where);
  return profile;
}

}  // namespace headroom
