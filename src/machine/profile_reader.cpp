// JSON -> MachineProfile. Validates every figure that a prediction divides by or interpolates.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "headroom/error.h"
#include "headroom/machine_profile.h"
#include "json_text.h"
#include "profile_object.h"
#include "quantization/group_format.h"
#include "schema_version.h"

namespace headroom {
namespace {

using detail::Bounds;
using detail::kFraction;
using detail::kMostPoints;
using detail::kOverhead;
using detail::kRate;
using detail::kSeconds;
using detail::kSpread;
using detail::Reader;

std::vector<double> read_axis(const Reader& axis, std::string_view name) {
  if (axis.text("name") != name) axis.fail(fmt::format("the axis should be {}", name));
  std::vector<double> sizes = axis.numbers("sizes");
  const bool ascends = std::ranges::adjacent_find(sizes, std::greater_equal<>()) == sizes.end();
  if (sizes.empty() || !ascends || sizes.front() <= 0) {
    axis.fail("\"sizes\" are not positive and ascending");
  }
  return sizes;
}

KernelTable read_table(const Reader& reader) {
  const std::string name = reader.text("kernel");
  const auto info = std::ranges::find(kernel_kinds(), name, &KernelInfo::name);
  if (info == kernel_kinds().end()) reader.fail(fmt::format("there is no kernel \"{}\"", name));
  KernelTable table;
  table.kind = info->kind;
  const std::vector<Reader> axes = reader.objects("axes");
  if (axes.size() != info->axes.size()) reader.fail("has the wrong number of axes for its kernel");
  std::size_t points = 1;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    table.axes.push_back(read_axis(axes[i], info->axes[i]));
    points *= table.axes.back().size();
    if (points > kMostPoints) reader.fail("has too many points");
  }
  const nlohmann::json& seconds = reader.member("seconds");
  if (!seconds.is_array()) reader.fail("\"seconds\" is not a list");
  for (const nlohmann::json& one : seconds) {
    if (!one.is_null() && !one.is_number()) {
      reader.fail("\"seconds\" contains an entry that is not a time above zero");
    }
    if (!one.is_null()) reader.require_within(kSeconds, one.get<double>(), "seconds");
    table.seconds.push_back(one.is_null() ? std::nullopt : std::optional(one.get<double>()));
  }
  table.spread = reader.numbers("spread");
  for (const double spread : table.spread) reader.require_within(kSpread, spread, "spread");
  if (table.seconds.size() != points || table.spread.size() != points) {
    reader.fail(fmt::format("has {} times and {} spreads for {} points", table.seconds.size(),
                            table.spread.size(), points));
  }
  if (!table.seconds.front()) reader.fail("its smallest point was not measured");
  return table;
}

std::optional<CalibrationEffort> read_effort(const Reader& reader) {
  if (!reader.has("effort")) return std::nullopt;
  const std::string name = reader.text("effort");
  for (const CalibrationEffort effort : {CalibrationEffort::quick, CalibrationEffort::full}) {
    if (name == name_of(effort)) return effort;
  }
  reader.fail("\"effort\" is neither \"quick\" nor \"full\"");
}

KernelTable read_gemm_table(const Reader& reader, KernelKind kind) {
  KernelTable table = read_table(reader);
  if (table.kind != kind) {
    reader.fail(fmt::format("the kernel should be {}", info_of(kind).name));
  }
  return table;
}

/// Returns whether GEMMs of headroom read `format` as it is stored, in blocks or in groups.
bool is_stored_format(const std::string& format) {
  if (std::ranges::find(block_formats(), format) != block_formats().end()) return true;
  const auto groups = detail::group_format_named(format);
  return groups && name_of(*groups) == format;
}

std::vector<StoredGemm> read_stored_gemms(const Reader& reader) {
  std::vector<StoredGemm> gemms;
  if (!reader.has("stored_gemms")) return gemms;
  for (const Reader& one : reader.objects("stored_gemms")) {
    StoredGemm gemm{one.text("format"),
                    read_gemm_table(one.object("cold"), KernelKind::linear_cold),
                    read_gemm_table(one.object("warm"), KernelKind::linear_warm),
                    read_effort(one).value_or(CalibrationEffort::full)};
    if (!is_stored_format(gemm.format))
      one.fail(fmt::format("no GEMM reads \"{}\" as it is stored", gemm.format));
    const bool repeats = std::ranges::find(gemms, gemm.format, &StoredGemm::format) != gemms.end();
    if (repeats) one.fail(fmt::format("the format \"{}\" occurs twice", gemm.format));
    gemms.push_back(std::move(gemm));
  }
  return gemms;
}

std::vector<BandwidthPoint> read_bandwidths(const Reader& reader, const char* key) {
  std::vector<BandwidthPoint> points;
  for (const Reader& point : reader.objects(key)) {
    points.push_back({point.count("working_set_bytes"), point.rate("bytes_per_s")});
  }
  const bool ascends =
      std::ranges::adjacent_find(points, std::greater_equal<>(),
                                 &BandwidthPoint::working_set_bytes) == points.end();
  if (points.empty() || !ascends) {
    reader.fail(fmt::format("\"{}\" is empty or its working sets do not ascend", key));
  }
  return points;
}

DType read_activation_type(const Reader& reader);

/// Headroom's own kernels run on processors, in float32.
void require_absent(const Reader& reader, const char* key) {
  if (reader.has(key)) reader.fail(fmt::format("\"{}\" is only of the engine \"pytorch\"", key));
}

ThreadProfile read_threads(const Reader& reader, MeasuredEngine engine) {
  ThreadProfile profile;
  const bool is_pytorch = engine == MeasuredEngine::pytorch;
  if (is_pytorch && reader.has("dtype")) profile.dtype = read_activation_type(reader);
  if (!is_pytorch) require_absent(reader, "dtype");
  profile.threads = reader.processors("threads");
  if (profile.threads == 0) reader.fail("\"threads\" is zero");
  profile.step_overhead_s = reader.within(kOverhead, "step_overhead_s");
  profile.cold_step_overhead_s = reader.within(kOverhead, "cold_step_overhead_s");
  const Reader probe = reader.object("probe");
  profile.probe_compute_s = probe.within(kSeconds, "compute_s");
  profile.probe_memory_s = probe.within(kSeconds, "memory_s");
  profile.probe_memory_bytes = probe.count("memory_bytes");
  // Drift detection rereads this much memory: enough to time, and little enough to fit.
  constexpr std::int64_t kFewest = std::int64_t{1} << 20;
  constexpr std::int64_t kMost = std::int64_t{16} << 30;
  if (profile.probe_memory_bytes < kFewest || profile.probe_memory_bytes > kMost) {
    probe.fail("\"memory_bytes\" is not from 1 MiB to 16 GiB");
  }
  profile.read = read_bandwidths(reader, "read");
  profile.write = read_bandwidths(reader, "write");
  for (const Reader& table : reader.objects("kernels")) profile.tables.push_back(read_table(table));
  for (const KernelInfo& info : kernel_kinds()) {
    const auto times = std::ranges::count(profile.tables, info.kind, &KernelTable::kind);
    if (times == 1 || (times == 0 && is_pytorch)) continue;
    reader.fail(fmt::format("the kernel {} must occur exactly once", info.name));
  }
  profile.stored_gemms = read_stored_gemms(reader);
  return profile;
}

Architecture read_architecture(const Reader& reader) {
  if (!reader.has("architecture")) return Architecture::other;
  const std::string name = reader.text("architecture");
  const std::optional<Architecture> architecture = architecture_named(name);
  if (!architecture) reader.fail(fmt::format("there is no architecture \"{}\"", name));
  return *architecture;
}

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

DType read_activation_type(const Reader& reader) {
  const std::string name = reader.text("dtype");
  for (const DType type : {DType::float32, DType::float16, DType::bfloat16}) {
    if (name == name_of(type)) return type;
  }
  reader.fail("\"dtype\" is none of float32, float16 and bfloat16");
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
  fitted.dtype = read_activation_type(reader);
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
  rates.architecture = read_architecture(reader);
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

MeasuredEngine read_engine(const Reader& reader) {
  if (!reader.has("engine")) return MeasuredEngine::headroom;
  const std::string name = reader.text("engine");
  for (const MeasuredEngine engine : {MeasuredEngine::headroom, MeasuredEngine::pytorch}) {
    if (name == name_of(engine)) return engine;
  }
  reader.fail("\"engine\" is neither \"headroom\" nor \"pytorch\"");
}

std::optional<MeasuredDevice> read_device(const Reader& reader) {
  if (!reader.has("device")) return std::nullopt;
  const Reader device = reader.object("device");
  return MeasuredDevice{read_architecture(device), device.count("memory_bytes"),
                        device.truth("runs_behind_host")};
}

MeasuredRates read_measured(const Reader& reader) {
  MeasuredRates rates;
  rates.engine = read_engine(reader);
  if (rates.engine == MeasuredEngine::headroom) require_absent(reader, "device");
  rates.device = read_device(reader);
  for (const Reader& one : reader.objects("by_threads")) {
    rates.by_threads.push_back(read_threads(one, rates.engine));
  }
  if (rates.by_threads.empty()) reader.fail("\"by_threads\" is empty");
  std::set<std::pair<int, DType>> seen;
  for (const ThreadProfile& one : rates.by_threads) {
    if (!seen.insert({one.threads, one.dtype}).second) {
      reader.fail("\"threads\" repeats a number in one type");
    }
  }
  return rates;
}

std::variant<MeasuredRates, DatasheetRates> read_rates(const Reader& reader) {
  const std::string source = reader.text("source");
  if (source == "measured") return read_measured(reader);
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

CollectiveKind read_collective(const Reader& reader) {
  const std::string name = reader.text("collective");
  for (const CollectiveKind kind : measured_collectives()) {
    if (name == name_of(kind)) return kind;
  }
  reader.fail(fmt::format("there is no measured collective \"{}\"", name));
}

CollectiveGroups read_groups(const Reader& reader) {
  const CollectiveGroups groups{reader.processors("processes"), reader.processors("ranks"),
                                reader.processors("hosts")};
  if (groups.ranks < 2 || groups.processes % groups.ranks != 0) {
    reader.fail("\"ranks\" is not a group of at least 2 that divides \"processes\"");
  }
  if (groups.hosts < 1 || groups.hosts > groups.processes) {
    reader.fail("\"hosts\" is not from 1 to \"processes\"");
  }
  return groups;
}

CollectiveTable read_collective_table(const Reader& reader) {
  CollectiveTable table{read_collective(reader), read_groups(reader), {}};
  for (const Reader& point : reader.objects("points")) {
    table.points.push_back(
        {point.count("bytes"), point.within(kSeconds, "seconds"), point.within(kSpread, "spread")});
  }
  const bool ascends = std::ranges::adjacent_find(table.points, std::greater_equal<>(),
                                                  &CollectivePoint::bytes) == table.points.end();
  if (table.points.empty() || !ascends || table.points.front().bytes < 1) {
    reader.fail("\"points\" is empty or its bytes are not positive and ascending");
  }
  return table;
}

/// Tables of equal groups may occur once only, since each stands for a prediction.
std::optional<CollectiveRates> read_collectives(const Reader& reader) {
  if (!reader.has("collectives")) return std::nullopt;
  const Reader object = reader.object("collectives");
  CollectiveRates rates{object.text("date"), object.text("library"), {}};
  for (const Reader& one : object.objects("tables")) {
    const CollectiveTable table = read_collective_table(one);
    const bool repeats = std::ranges::any_of(rates.tables, [&](const CollectiveTable& other) {
      return other.kind == table.kind && other.groups == table.groups;
    });
    if (repeats) one.fail("repeats a collective of the same groups");
    rates.tables.push_back(table);
  }
  return rates;
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
  profile.effort = read_effort(reader);
  profile.produced_by = read_origin(reader);
  profile.rates = read_rates(reader);
  profile.interconnect = read_interconnect(reader);
  profile.host = read_host(reader);
  profile.collectives = read_collectives(reader);
  refuse_unknown_keys(json, profile, where);
  return profile;
}

}  // namespace headroom
