#include "system.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "kernels/backend_version.h"

namespace headroom::measured {
namespace {

/// Reads the line "key: N kB" of `file`; returns N in bytes, empty if there is no such line.
std::optional<std::int64_t> read_kb_field(const char* file, const std::string& key) {
  std::ifstream stream(file);
  std::string line;
  while (std::getline(stream, line)) {
    if (!line.starts_with(key + ":")) continue;
    std::istringstream rest(line.substr(key.size() + 1));
    std::int64_t value = 0;
    if (rest >> value) return value * 1024;
  }
  return std::nullopt;
}

std::string first_line(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::string cpu_name() {
  std::ifstream stream("/proc/cpuinfo");
  std::string line;
  while (std::getline(stream, line)) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::vector<std::string> cache_sizes() {
  std::vector<std::string> caches;
  for (int i = 0; i < 8; ++i) {
    const std::filesystem::path folder =
        fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}", i);
    const std::string size = first_line(folder / "size");
    if (size.empty()) continue;
    const std::string type = first_line(folder / "type");
    const std::string suffix = type == "Data" ? "d" : type == "Instruction" ? "i" : "";
    caches.push_back(fmt::format("L{}{} {}", first_line(folder / "level"), suffix, size));
  }
  return caches;
}

std::string compiler_version() {
#if defined(__clang__)
  return fmt::format("clang {}", __clang_version__);
#else
  return fmt::format("gcc {}", __VERSION__);
#endif
}

}  // namespace

std::optional<std::int64_t> resident_bytes() { return read_kb_field("/proc/self/status", "VmRSS"); }

std::optional<std::int64_t> peak_resident_bytes() {
  return read_kb_field("/proc/self/status", "VmHWM");
}

void reset_peak_resident() {
  // Writing 5 resets the high-water mark (Linux, proc(5)). If it is not allowed, the mark stays.
  std::ofstream("/proc/self/clear_refs") << "5";
}

MachineContext machine_context(int threads, Backend backend) {
  MachineContext context;
  context.cpu = cpu_name();
  context.logical_cpus = static_cast<int>(std::thread::hardware_concurrency());
  context.threads = threads;
  context.caches = cache_sizes();
  context.frequency_governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  context.compiler = compiler_version();
  context.backend = backend_version(backend);
  double load[1] = {0};
  if (getloadavg(load, 1) == 1) context.load_average = load[0];
  return context;
}

std::string utc_timestamp() {
  const std::time_t now = std::time(nullptr);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

}  // namespace headroom::measured
