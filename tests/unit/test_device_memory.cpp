// The catalogue's memory against what drivers, engines and frameworks printed on these devices:
// tests/data/machines/devices.csv, 112 readings as published.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "headroom/machine_profile.h"
#include "support/data.h"

using namespace headroom;

namespace {

constexpr double kMib = 1024.0 * 1024.0;

/// The catalogue's name of a device that was read.
const std::map<std::string, std::string>& catalogue_names() {
  static const std::map<std::string, std::string> names{
      {"AMD Instinct MI300X", "mi300x"},
      {"AMD Instinct MI300X VF", "mi300x"},
      {"AMD Instinct MI355X", "mi355x"},
      {"Apple M1 16GB", "apple-m1"},
      {"Apple M1 Max 64GB", "apple-m1-max"},
      {"Apple M2 Max 96GB", "apple-m2-max"},
      {"Apple M2 Ultra 192GB", "apple-m2-ultra"},
      {"NVIDIA A10", "a10"},
      {"NVIDIA A100 40GB (Modal)", "a100-40gb"},
      {"NVIDIA A100 80GB (Modal)", "a100-80gb"},
      {"NVIDIA A100 80GB PCIe", "a100-80gb-pcie"},
      {"NVIDIA A100-SXM4-40GB", "a100-40gb"},
      {"NVIDIA A100-SXM4-80GB", "a100-80gb"},
      {"NVIDIA A40", "a40"},
      {"NVIDIA B200", "b200"},
      {"NVIDIA B300 SXM6 AC", "b300"},
      {"NVIDIA GB200", "gb200"},
      {"NVIDIA GB300", "gb300"},
      {"NVIDIA GeForce RTX 5070", "rtx-5070"},
      {"NVIDIA GeForce RTX 5070 Ti", "rtx-5070-ti"},
      {"NVIDIA H20", "h20-96gb"},
      {"NVIDIA RTX PRO 6000 Blackwell Max-Q", "rtx-pro-6000-blackwell"},
      {"NVIDIA GeForce RTX 3080", "rtx-3080"},
      {"NVIDIA GeForce RTX 3090", "rtx-3090"},
      {"NVIDIA GeForce RTX 4070 Ti", "rtx-4070-ti"},
      {"NVIDIA GeForce RTX 4080", "rtx-4080"},
      {"NVIDIA GeForce RTX 4090", "rtx-4090"},
      {"NVIDIA GeForce RTX 5090", "rtx-5090"},
      {"NVIDIA H100 80GB (Modal)", "h100-80gb"},
      {"NVIDIA H100 80GB HBM3", "h100-80gb"},
      {"NVIDIA H100 NVL", "h100-nvl-94gb"},
      {"NVIDIA H100 PCIe", "h100-80gb-pcie"},
      {"NVIDIA H200", "h200-141gb"},
      {"NVIDIA L4", "l4"},
      {"NVIDIA L40S", "l40s"},
      {"NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"},
      {"NVIDIA RTX A6000", "rtx-a6000"},
      {"Tesla T4", "t4"},
      {"Tesla V100 32GB", "v100-32gb"},
      {"Tesla V100-PCIE (name cut off; 16 GB)", "v100-16gb"},
      {"Tesla V100-SXM2-16GB (name cut off in the table)", "v100-16gb"},
      {"Tesla V100-SXM2-32GB", "v100-32gb"},
  };
  return names;
}

/// Devices that were read and are not in the catalogue, or are with another size of memory.
const std::set<std::string>& other_devices() {
  static const std::set<std::string> names{"AMD Instinct MI100",
                                           "AMD Instinct MI50 32GB",
                                           "AMD Radeon 8060S (Strix Halo, 128 GB unified)",
                                           "AMD Radeon RX 9070 XT",
                                           "Apple M1 8GB",
                                           "Apple M1 8GB (memory size by its limit)",
                                           "Apple M1 Max 32GB",
                                           "Apple M2 Max 32GB",
                                           "Apple M3 16GB",
                                           "Apple M3 Max 48GB",
                                           "Apple M3 Max 64GB",
                                           "Apple M5 Max (memory size not stated)",
                                           "Intel Arc A770",
                                           "Intel Arc B580",
                                           "Intel Data Center GPU Max 1100",
                                           "Intel(R) Arc(TM) B580",
                                           "NVIDIA A10G",
                                           "NVIDIA GB10 (DGX Spark)",
                                           "NVIDIA GeForce RTX 2080",
                                           "NVIDIA GeForce RTX 2080 SUPER",
                                           "NVIDIA GeForce RTX 2080 Ti",
                                           "NVIDIA GeForce RTX 3060",
                                           "NVIDIA GeForce RTX 3070",
                                           "NVIDIA GeForce RTX 3080 Ti",
                                           "NVIDIA GeForce RTX 4080 SUPER",
                                           "NVIDIA GeForce RTX 4090 D",
                                           "NVIDIA RTX 4000 Ada Generation",
                                           "NVIDIA RTX 4000 SFF Ada Generation",
                                           "NVIDIA RTX 5000 Ada Generation",
                                           "NVIDIA RTX A4000",
                                           "NVIDIA RTX A5000",
                                           "Quadro RTX 4000",
                                           "Tesla P100-PCIE-16GB"};
  return names;
}

DeviceMemory memory_of(const std::string& name) {
  return std::get<DatasheetRates>(find_machine(name).rates).memory;
}

double mib(const MemoryFigure& figure) { return static_cast<double>(figure.bytes) / kMib; }

/// Readings in MiB by catalogue name.
std::map<std::string, std::vector<double>> readings() {
  std::map<std::string, std::vector<double>> by_name;
  for (const test::CsvRow& row : test::read_csv(test::data_folder() / "machines/devices.csv")) {
    const auto name = catalogue_names().find(row.at("device"));
    const std::string& text = row.at("total_mib_as_reported");
    if (name != catalogue_names().end() && !text.empty()) {
      by_name[name->second].push_back(std::strtod(text.c_str(), nullptr));
    }
  }
  return by_name;
}

}  // namespace

TEST_CASE("every device that was read is in the catalogue, or named as missing") {
  const auto rows = test::read_csv(test::data_folder() / "machines/devices.csv");
  CHECK(rows.size() == 112);
  for (const test::CsvRow& row : rows) {
    const std::string& device = row.at("device");
    CAPTURE(device);
    CHECK(catalogue_names().contains(device) != other_devices().contains(device));
  }
}

// A driver's total counts what it keeps for itself, and ECC takes a part where it is on; frameworks
// print what is left. Readings of one device therefore spread, and the catalogue stays within.
TEST_CASE("total and usable memory are within the readings of each device") {
  const auto all = readings();
  CHECK(all.size() >= 30);
  for (const auto& reading : all) {
    const std::string& name = reading.first;
    const std::vector<double>& values = reading.second;
    CAPTURE(name);
    const double least = std::ranges::min(values);
    const double most = std::ranges::max(values);
    const DeviceMemory memory = memory_of(name);
    CHECK(mib(memory.usable) <= least + 0.5);
    if (name.starts_with("apple")) {  // Metal prints what a process gets, not the total.
      CHECK(mib(memory.usable) >= least - 0.5);
      continue;
    }
    CHECK(mib(memory.total) <= most + 0.5);
    CHECK(mib(memory.total) >= least - 0.5);
    // Where only the driver was read, the rest is assumed to be at most 3 % less.
    CHECK(mib(memory.usable) >= 0.97 * least);
  }
}

// ECC: off by default on RTX A6000 and on for the others; a T4 lost 251 MiB more by an older
// driver, a V100 of 16 GB 223 MiB in its SXM2 form.
TEST_CASE("the driver's total is a reading of the device wherever a driver was read") {
  const auto all = readings();
  for (const auto& reading : all) {
    const std::string& name = reading.first;
    const std::vector<double>& values = reading.second;
    CAPTURE(name);
    const DeviceMemory memory = memory_of(name);
    if (memory.total.basis != MemoryBasis::reading) continue;
    const bool read = std::ranges::any_of(
        values, [&](double value) { return std::abs(value - mib(memory.total)) < 0.5; });
    CHECK(read);
  }
}

TEST_CASE("Metal gives two thirds of the memory up to 32 GB and three quarters above") {
  int rows = 0;
  for (const test::CsvRow& row : test::read_csv(test::data_folder() / "machines/devices.csv")) {
    const std::string& device = row.at("device");
    const std::size_t size_end = device.find("GB");
    if (!device.starts_with("Apple") || size_end == std::string::npos) continue;
    const std::size_t begin = device.rfind(' ', size_end) + 1;
    const double gib = std::strtod(device.c_str() + begin, nullptr);
    const double limit = std::strtod(row.at("total_mib_as_reported").c_str(), nullptr);
    const DeviceMemory like = memory_of(gib <= 32 ? "apple-m1" : "apple-m1-max");
    CAPTURE(device);
    CHECK(limit / (1024 * gib) ==
          doctest::Approx(mib(like.usable) / mib(like.total)).epsilon(1e-5));
    ++rows;
  }
  CHECK(rows == 11);
}

TEST_CASE("memory figures say where they are from, and usable memory is not above the total") {
  for (const MachineProfile& machine : catalogue_machines()) {
    CAPTURE(machine.name);
    const auto& sheet = std::get<DatasheetRates>(machine.rates);
    const DeviceMemory& memory = sheet.memory;
    CHECK(memory.usable.bytes <= memory.total.bytes);
    CHECK(memory.usable.bytes > 0);
    CHECK_FALSE(memory.total.source.empty());
    CHECK_FALSE(memory.usable.source.empty());
    CHECK(sheet.architecture != Architecture::other);
    // A datasheet's GB are between GB and GiB; ECC in GDDR takes a sixteenth of the GiB.
    const double of_datasheet =
        static_cast<double>(memory.total.bytes) / static_cast<double>(sheet.memory_bytes);
    CHECK(of_datasheet > 0.98);
    CHECK(of_datasheet < 1.10);
  }
}
