#include "measured_rates_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "quantization/group_format.h"
#include "timed_kernels.h"

namespace headroom::detail {
namespace {

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

}  // namespace

Architecture read_architecture(const Reader& reader) {
  if (!reader.has("architecture")) return Architecture::other;
  const std::string name = reader.text("architecture");
  const std::optional<Architecture> architecture = architecture_named(name);
  if (!architecture) reader.fail(fmt::format("there is no architecture \"{}\"", name));
  return *architecture;
}

DType read_activation_type(const Reader& reader) {
  const std::string name = reader.text("dtype");
  for (const DType type : {DType::float32, DType::float16, DType::bfloat16}) {
    if (name == name_of(type)) return type;
  }
  reader.fail("\"dtype\" is none of float32, float16 and bfloat16");
}

std::optional<CalibrationEffort> read_effort(const Reader& reader) {
  if (!reader.has("effort")) return std::nullopt;
  const std::string name = reader.text("effort");
  for (const CalibrationEffort effort : {CalibrationEffort::quick, CalibrationEffort::full}) {
    if (name == name_of(effort)) return effort;
  }
  reader.fail("\"effort\" is neither \"quick\" nor \"full\"");
}

namespace {

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
  // Earlier profiles, and PyTorch's, have no usual speed beside the best one.
  if (probe.has("usual_compute_s")) {
    profile.usual_compute_s = probe.within(kSeconds, "usual_compute_s");
  }
  if (probe.has("usual_memory_s")) {
    profile.usual_memory_s = probe.within(kSeconds, "usual_memory_s");
  }
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
    if (times == 1 || (times == 0 && (is_pytorch || !is_timed(info.kind)))) continue;
    reader.fail(fmt::format("the kernel {} must occur exactly once", info.name));
  }
  profile.stored_gemms = read_stored_gemms(reader);
  return profile;
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

}  // namespace

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

}  // namespace headroom::detail
