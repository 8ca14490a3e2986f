// MachinesReport and MachineProfile -> Document and JSON.
#include <fmt/format.h>

#include <algorithm>

#include "describe.h"
#include "writers.h"

namespace headroom::detail {
namespace {

constexpr double kGiga = 1e9;
constexpr double kTera = 1e12;

/// The most operations a second of any product, and bytes a second from memory.
struct Peaks {
  double flops_per_s = 0;
  double bytes_per_s = 0;
};

Peaks peaks_of(const ThreadProfile& profile) {
  const auto table = std::ranges::find(profile.tables, KernelKind::linear_warm, &KernelTable::kind);
  Peaks peaks{0, profile.read.back().bytes_per_s};
  std::size_t number = 0;
  for (const double rows : table->axes[0]) {
    for (const double in : table->axes[1]) {
      for (const double out : table->axes[2]) {
        const auto seconds = table->seconds[number++];
        if (seconds)
          peaks.flops_per_s = std::max(peaks.flops_per_s, 2 * rows * in * out / *seconds);
      }
    }
  }
  return peaks;
}

std::string axes_text(const KernelTable& table, const KernelSizes& sizes) {
  const KernelInfo& info = info_of(table.kind);
  std::string text;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    text += fmt::format("{}{} {:.0f}", axis == 0 ? "" : ", ", info.axes[axis], sizes[axis]);
  }
  return text;
}

/// The point in the middle of a grid.
KernelSizes middle_of(const KernelTable& table) {
  KernelSizes sizes;
  for (const auto& axis : table.axes) sizes.push_back(axis[axis.size() / 2]);
  return sizes;
}

Table kernel_table(const ThreadProfile& profile) {
  Table table;
  table.columns = {
      {"kernel", "Kernel", "", Alignment::left, 1, 0, Importance::essential},
      {"sizes", "For example at", "", Alignment::left, 1, 0, Importance::essential},
      {"time_us", "Time", "[µs]", Alignment::right, 1, 1, Importance::essential},
      {"spread_percent", "Spread", "[%]", Alignment::right, 1, 1, Importance::essential},
      {"points", "Points", "", Alignment::right, 1, 0, Importance::optional}};
  for (const KernelTable& kernel : profile.tables) {
    const KernelSizes sizes = middle_of(kernel);
    const KernelTime time = time_of(kernel, sizes);
    const auto points = std::ranges::count_if(kernel.seconds, [](const auto& s) { return !!s; });
    table.rows.push_back({std::string(info_of(kernel.kind).name), axes_text(kernel, sizes),
                          time.seconds * 1e6, 100 * time.spread, Integer{points}});
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
  const auto add = [&](std::string label, std::string text) {
    document.blocks.push_back(Line{std::move(label), std::move(text)});
  };
  for (const ThreadProfile& profile : rates.by_threads) {
    document.blocks.push_back(
        Heading{fmt::format("{} thread{}", profile.threads, profile.threads == 1 ? "" : "s")});
    add("products",
        fmt::format("{:.1f} GFLOP/s at the most", peaks_of(profile).flops_per_s / kGiga));
    add("reading", bandwidth_text(profile.read));
    add("writing", bandwidth_text(profile.write));
    document.blocks.push_back(kernel_table(profile));
  }
}

void add_rates(const DatasheetRates& rates, Document& document) {
  const auto add = [&](std::string label, std::string text) {
    document.blocks.push_back(Line{std::move(label), std::move(text)});
  };
  add("float32", fmt::format("{:.1f} TFLOP/s", rates.float32_flops_per_s / kTera));
  add("float16",
      fmt::format("{:.1f} TFLOP/s, bfloat16 as well", rates.float16_flops_per_s / kTera));
  add("memory", fmt::format("{} at {:.0f} GB/s", describe_bytes(rates.memory_bytes),
                            rates.memory_bytes_per_s / kGiga));
  add("assumed", fmt::format("{:.0f} % of the arithmetic and {:.0f} % of the bandwidth are reached",
                             100 * rates.compute_efficiency, 100 * rates.memory_efficiency));
  add("source", rates.source);
}

std::vector<Cell> summary_row(const MachineProfile& profile) {
  if (const auto* sheet = std::get_if<DatasheetRates>(&profile.rates)) {
    return {profile.name,
            std::string("assumed"),
            sheet->float32_flops_per_s / kGiga,
            sheet->float16_flops_per_s / kGiga,
            sheet->memory_bytes_per_s / kGiga,
            Integer{sheet->memory_bytes}};
  }
  const auto& profiles = std::get<MeasuredRates>(profile.rates).by_threads;
  const Peaks peaks = peaks_of(*std::ranges::max_element(profiles, {}, &ThreadProfile::threads));
  return {fmt::format("here: {} ({})", profile.name, profile.context.backend),
          std::string("measured"),
          peaks.flops_per_s / kGiga,
          Cell{},
          peaks.bytes_per_s / kGiga,
          Cell{}};
}

}  // namespace

Document to_document(const MachinesReport& report) {
  Table table;
  table.columns = {
      {"machine", "Machine", "", Alignment::left, 1, 0, Importance::essential},
      {"basis", "Basis", "", Alignment::left, 1, 0, Importance::essential},
      {"float32_gflop_per_s", "float32", "[GFLOP/s]", Alignment::right, 1, 0,
       Importance::essential},
      {"float16_gflop_per_s", "float16", "[GFLOP/s]", Alignment::right, 1, 0, Importance::optional},
      {"memory_gb_per_s", "Bandwidth", "[GB/s]", Alignment::right, 1, 0, Importance::essential},
      {"memory_bytes", "Memory", "[GB]", Alignment::right, 1'000'000'000, 0, Importance::optional}};
  for (const MachineProfile& profile : report.own) table.rows.push_back(summary_row(profile));
  for (const MachineProfile& profile : report.catalogue) {
    table.rows.push_back(summary_row(profile));
  }
  Document document;
  document.blocks.emplace_back(std::move(table));
  return document;
}

Json to_json(const MachinesReport& report) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["machines"] = Json::array();
  const auto add = [&](const MachineProfile& profile) {
    const bool measured = std::holds_alternative<MeasuredRates>(profile.rates);
    json["machines"].push_back({{"name", measured ? "here" : profile.name},
                                {"description", profile.name},
                                {"source", measured ? "measured" : "datasheet"},
                                {"date", profile.date}});
  };
  for (const MachineProfile& profile : report.own) add(profile);
  for (const MachineProfile& profile : report.catalogue) add(profile);
  return json;
}

Document to_document(const MachineProfile& profile) {
  Document document;
  document.blocks.push_back(Line{profile.name, profile.date});
  std::visit([&](const auto& rates) { add_rates(rates, document); }, profile.rates);
  return document;
}

}  // namespace headroom::detail
