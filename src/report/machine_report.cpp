// MachinesReport and MachineProfile -> Document and JSON.
#include <fmt/format.h>

#include <algorithm>

#include "describe.h"
#include "schema_version.h"
#include "units.h"
#include "with_noun.h"
#include "writers.h"

namespace headroom::detail {
namespace {

constexpr Integer kGigaUnit = 1'000'000'000;
constexpr Integer kTeraUnit = kGigaUnit * 1000;
constexpr Integer kGibUnit = Integer{1} << 30U;
constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;

std::string sizes_text(const KernelTable& table, const KernelSizes& sizes) {
  const KernelInfo& info = info_of(table.kind);
  std::string text;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    text += fmt::format("{}{} {:.0f}", axis == 0 ? "" : ", ", info.axes[axis], sizes[axis]);
  }
  return text;
}

/// The middle point of a grid.
KernelSizes middle_of(const KernelTable& table) {
  KernelSizes sizes;
  for (const auto& axis : table.axes) sizes.push_back(axis[axis.size() / 2]);
  return sizes;
}

Table kernel_table(const ThreadProfile& profile) {
  Table table;
  table.columns = {words_column("kernel", "Kernel"), words_column("sizes", "Example sizes"),
                   number_column("time_s", "Time", {"[µs]", 1, 1, 1'000'000}),
                   number_column("spread_percent", "Spread", {"[%]", 1}),
                   number_column("points", "Points", {}, Importance::optional)};
  const auto add = [&](const KernelTable& kernel, std::string name) {
    const KernelSizes sizes = middle_of(kernel);
    const KernelTime time = time_of(kernel, sizes);
    const auto points = std::ranges::count_if(kernel.seconds, [](const auto& s) { return !!s; });
    table.rows.push_back({std::move(name), sizes_text(kernel, sizes), time.seconds,
                          100 * time.spread, Integer{points}});
  };
  for (const KernelTable& kernel : profile.tables) {
    add(kernel, std::string(info_of(kernel.kind).name));
  }
  for (const StoredGemm& gemm : profile.stored_gemms) {
    for (const KernelTable* const kernel : {&gemm.cold, &gemm.warm}) {
      add(*kernel, fmt::format("{} {}", info_of(kernel->kind).name, gemm.format));
    }
  }
  return table;
}

std::string bandwidth_text(const std::vector<BandwidthPoint>& points) {
  std::string text;
  for (const BandwidthPoint& point : points) {
    text += fmt::format("{}{:.1f} at {}", text.empty() ? "" : " · ", point.bytes_per_s / kGiga,
                        describe_bytes(point.working_set_bytes));
  }
  return text + " [GB/s]";
}

void add_rates(const MeasuredRates& rates, Document& document) {
  for (const ThreadProfile& profile : rates.by_threads) {
    const bool own = rates.engine == MeasuredEngine::headroom;
    document.blocks.push_back(
        Heading{own ? describe_threads(profile.threads)
                    : fmt::format("PyTorch · {} · {}", describe_threads(profile.threads),
                                  name_of(profile.dtype))});
    document.add_line("GEMM peak",
                      fmt::format("{:.1f} GFLOP/s", peak_flops_per_s(profile) / kGiga));
    document.add_line("read bandwidth", bandwidth_text(profile.read));
    document.add_line("write bandwidth", bandwidth_text(profile.write));
    document.blocks.push_back(kernel_table(profile));
  }
}

void add_memory(const char* label, const MemoryFigure& figure, Document& document) {
  document.add_line(label, fmt::format("{} ({}: {})", describe_bytes(figure.bytes),
                                       name_of(figure.basis), figure.source));
}

void add_efficiency(const char* label, const DatasheetRates& rates, Purpose purpose, DType dtype,
                    Document& document) {
  const SourcedEfficiency reached = efficiency_of(rates, purpose, dtype);
  const Efficiency& fractions = reached.fractions;
  document.add_line(
      label, fmt::format("{:.0f} % of arithmetic, {:.0f} % of memory and {:.0f} % of "
                         "network bandwidth ({}: {})",
                         100 * fractions.matrix, 100 * fractions.memory, 100 * fractions.network,
                         name_of(reached.origin), efficiency_source_of(rates, purpose, dtype)));
}

void add_rates(const DatasheetRates& rates, Document& document) {
  const auto add_peak = [&](std::string label, const std::optional<double>& per_s,
                            std::string_view unit) {
    if (per_s)
      document.add_line(std::move(label), fmt::format("{} {}", grouped(*per_s / kTera, 1), unit));
  };
  add_peak("float32", rates.float32_flops_per_s, "TFLOP/s");
  add_peak("tensor float32", rates.tensor_float32_flops_per_s, "TFLOP/s");
  add_peak("float16", rates.float16_flops_per_s, "TFLOP/s, also bfloat16");
  add_peak("float8", rates.float8_flops_per_s, "TFLOP/s");
  add_peak("int8", rates.int8_ops_per_s, "TOP/s");
  // CDNA 4 multiplies OCP's blocks of 32 alone (AMD, CDNA 4 instruction set architecture).
  const bool multiplies_nvfp4 = rates.architecture != Architecture::cdna;
  add_peak("float4", rates.float4_flops_per_s,
           multiplies_nvfp4 ? "TFLOP/s, MXFP4 and NVFP4" : "TFLOP/s, MXFP4");
  add_peak("int4", rates.int4_ops_per_s, "TOP/s");
  document.add_line("memory", fmt::format("{:.0f} GB at {} GB/s from the datasheet",
                                          static_cast<double>(rates.memory_bytes) / kGiga,
                                          grouped(rates.memory_bytes_per_s / kGiga, 0)));
  add_memory("driver's total", rates.memory.total, document);
  add_memory("usable by a process", rates.memory.usable, document);
  if (rates.power_w) document.add_line("power", grouped(*rates.power_w, 0) + " W");
  if (rates.processors) {
    document.add_line("processors",
                      fmt::format("{} ({})", rates.processors->count, rates.processors->source));
  }
  add_efficiency("serving 16 bit", rates, Purpose::serve, DType::bfloat16, document);
  add_efficiency("serving 8 bit", rates, Purpose::serve, DType::float8, document);
  add_efficiency("training", rates, Purpose::train, DType::bfloat16, document);
  document.add_line("source", rates.source);
  if (!rates.url.empty()) document.add_line("", rates.url);
}

void add_interconnect(const Interconnect& link, Document& document) {
  document.blocks.push_back(
      Line{"node", fmt::format("{}, {:.1f} GB/s sent by each over {}",
                               with_noun(link.devices_per_node, "device"),
                               link.intra_node_bytes_per_s / kGiga, link.intra_node_kind)});
  if (link.inter_node_bytes_per_s) {
    document.blocks.push_back(
        Line{"network", fmt::format("{:.1f} GB/s sent by each device over {}",
                                    *link.inter_node_bytes_per_s / kGiga, link.inter_node_kind)});
  }
  document.blocks.push_back(Line{"link source", link.source});
}

void add_host(const HostLink& host, Document& document) {
  const std::string link =
      host.bytes_per_s ? fmt::format("{:.1f} GB/s in one direction over {}",
                                     *host.bytes_per_s / kGiga, host.kind)
                       : fmt::format("the device computes in the host's memory, {}", host.kind);
  document.add_line("host", fmt::format("{} ({})", link, host.source));
}

/// A row per collective and group, with its times at the smallest and the largest payload.
Table collective_table(const CollectiveRates& rates) {
  const NumberFormat microseconds{"[µs]", 1, 1, 1'000'000};
  Table table;
  table.columns = {words_column("collective", "Collective"),
                   number_column("processes", "Processes"),
                   number_column("ranks", "Ranks of a group"),
                   number_column("hosts", "Hosts", {}, Importance::optional),
                   number_column("smallest_s", "Smallest", microseconds),
                   number_column("largest_s", "Largest", microseconds),
                   words_column("payloads", "Payloads"),
                   number_column("spread_percent", "Spread", {"[%]", 1})};
  for (const CollectiveTable& one : rates.tables) {
    const CollectivePoint& first = one.points.front();
    const CollectivePoint& last = one.points.back();
    const CollectivePoint& widest =
        *std::ranges::max_element(one.points, {}, &CollectivePoint::spread);
    table.rows.push_back(
        {std::string(name_of(one.kind)), Integer{one.groups.processes}, Integer{one.groups.ranks},
         Integer{one.groups.hosts}, first.seconds, last.seconds,
         fmt::format("{} – {}", describe_bytes(first.bytes), describe_bytes(last.bytes)),
         100 * widest.spread});
  }
  return table;
}

void add_collectives(const CollectiveRates& rates, Document& document) {
  document.blocks.push_back(Heading{"Collectives between processes"});
  document.add_line("measured", fmt::format("{}, {}", rates.date, rates.library));
  document.blocks.push_back(collective_table(rates));
}

/// Figures of a machine in the list. Peaks in FLOP/s, the bandwidth in bytes per second.
struct MachineFigures {
  std::optional<double> float32;
  std::optional<double> float16;
  double bandwidth = 0;
  std::optional<Integer> memory;  ///< bytes
};

/// The fastest GEMMs of each type.
MachineFigures figures_of_pytorch(const MeasuredRates& rates) {
  MachineFigures figures;
  for (const ThreadProfile& curves : rates.by_threads) {
    auto& peak = curves.dtype == DType::float32 ? figures.float32 : figures.float16;
    peak = std::max(peak.value_or(0), peak_flops_per_s(curves));
    figures.bandwidth = std::max(figures.bandwidth, curves.read.back().bytes_per_s);
  }
  if (rates.device) figures.memory = rates.device->memory_bytes;
  return figures;
}

MachineFigures figures_of(const MachineProfile& profile) {
  if (const auto* sheet = std::get_if<DatasheetRates>(&profile.rates)) {
    return {sheet->float32_flops_per_s, sheet->float16_flops_per_s, sheet->memory_bytes_per_s,
            sheet->memory.total.bytes};
  }
  const auto& measured = std::get<MeasuredRates>(profile.rates);
  if (measured.engine == MeasuredEngine::pytorch) return figures_of_pytorch(measured);
  const ThreadProfile& curves = *curves_of(profile, 0);
  return {peak_flops_per_s(curves), std::nullopt, curves.read.back().bytes_per_s, std::nullopt};
}

/// Whose a profile is: that of --machine here, or one of the catalogue's and the user's files.
enum class Origin { here, file };

bool is_measured(const MachineProfile& profile) {
  return std::holds_alternative<MeasuredRates>(profile.rates);
}

std::vector<Cell> summary_row(const MachineProfile& profile, Origin origin) {
  const std::string name = origin == Origin::here
                               ? fmt::format("here: {} ({})", profile.name, profile.context.backend)
                               : profile.name;
  const MachineFigures figures = figures_of(profile);
  return {name,
          std::string(is_measured(profile) ? "measured" : "assumed"),
          cell_or_none(figures.float32),
          cell_or_none(figures.float16),
          figures.bandwidth,
          cell_or_none(figures.memory)};
}

Json bytes_or_none(const std::optional<Integer>& value) {
  return value ? json_integer(*value) : Json(nullptr);
}

/// A datasheet's figures as one row.
Table rate_table(const std::string& name, const DatasheetRates& rates,
                 const std::optional<Interconnect>& link) {
  Table table;
  table.columns.push_back(words_column("machine", "Machine"));
  table.rows.push_back({name});
  const auto add = [&](const char* key, Cell cell) {
    table.columns.push_back(number_column(key, key));
    table.rows.front().push_back(std::move(cell));
  };
  add("float32_flops_per_s", cell_or_none(rates.float32_flops_per_s));
  add("tensor_float32_flops_per_s", cell_or_none(rates.tensor_float32_flops_per_s));
  add("float16_flops_per_s", rates.float16_flops_per_s);
  add("float8_flops_per_s", cell_or_none(rates.float8_flops_per_s));
  add("int8_ops_per_s", cell_or_none(rates.int8_ops_per_s));
  add("float4_flops_per_s", cell_or_none(rates.float4_flops_per_s));
  add("int4_ops_per_s", cell_or_none(rates.int4_ops_per_s));
  add("memory_bytes_per_s", rates.memory_bytes_per_s);
  add("memory_bytes", rates.memory.total.bytes);
  add("usable_memory_bytes", rates.memory.usable.bytes);
  add("power_w", cell_or_none(rates.power_w));
  add("devices_per_node", link ? Cell{Integer{link->devices_per_node}} : Cell{});
  add("intra_node_bytes_per_s", link ? Cell{link->intra_node_bytes_per_s} : Cell{});
  add("inter_node_bytes_per_s", link ? cell_or_none(link->inter_node_bytes_per_s) : Cell{});
  return table;
}

}  // namespace

Document to_document(const MachinesReport& report) {
  Table table;
  const NumberFormat tflop_per_s{"[TFLOP/s]", 1, kTeraUnit};
  table.columns = {
      words_column("machine", "Machine"),
      words_column("basis", "Basis"),
      number_column("float32_flops_per_s", "float32", tflop_per_s, Importance::optional),
      number_column("float16_flops_per_s", "float16", tflop_per_s),
      number_column("memory_bytes_per_s", "Bandwidth", {"[GB/s]", 0, kGigaUnit}),
      number_column("memory_bytes", "Memory", {"[GiB]", 1, kGibUnit})};
  const auto add = [&table](const std::vector<MachineProfile>& profiles, Origin origin) {
    for (const MachineProfile& profile : profiles) {
      table.rows.push_back(summary_row(profile, origin));
    }
  };
  add(report.own, Origin::here);
  add(report.catalogue, Origin::file);
  Document document;
  document.blocks.emplace_back(std::move(table));
  return document;
}

Json to_json(const MachinesReport& report) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["schema"] = "machines.schema.json";
  json["machines"] = Json::array();
  const auto add = [&](const MachineProfile& profile, Origin origin) {
    const MachineFigures figures = figures_of(profile);
    json["machines"].push_back({{"name", origin == Origin::here ? "here" : profile.name},
                                {"description", profile.name},
                                {"source", is_measured(profile) ? "measured" : "datasheet"},
                                {"date", profile.date},
                                {"float32_flops_per_s", json_or_null(figures.float32)},
                                {"float16_flops_per_s", json_or_null(figures.float16)},
                                {"memory_bytes_per_s", figures.bandwidth},
                                {"memory_bytes", bytes_or_none(figures.memory)}});
  };
  for (const MachineProfile& profile : report.own) add(profile, Origin::here);
  for (const MachineProfile& profile : report.catalogue) add(profile, Origin::file);
  return json;
}

Document to_figure_table(const MachineProfile& profile) {
  if (const auto* sheet = std::get_if<DatasheetRates>(&profile.rates)) {
    return {{rate_table(profile.name, *sheet, profile.interconnect)}};
  }
  return to_document(profile);
}

Document to_document(const MachineProfile& profile) {
  Document document;
  document.add_line(profile.name, profile.date);
  std::visit([&](const auto& rates) { add_rates(rates, document); }, profile.rates);
  if (profile.interconnect) add_interconnect(*profile.interconnect, document);
  if (profile.host) add_host(*profile.host, document);
  if (profile.collectives) add_collectives(*profile.collectives, document);
  return document;
}

}  // namespace headroom::detail
