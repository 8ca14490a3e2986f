#include "float_counters.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <string_view>
#include <system_error>

#if defined(__linux__)
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace headroom::measured {
namespace {

std::uint64_t raw_event(std::uint64_t event, std::uint64_t mask) { return mask << 8U | event; }

/// FP_ARITH_INST_RETIRED of single precision, scalar and of 128, 256 and 512 bits, since Broadwell.
/// An FMA counts twice (Intel's event lists, in Linux's tools/perf/pmu-events/arch/x86).
std::vector<FloatEvent> intel_events() {
  constexpr std::uint64_t kEvent = 0xc7;
  return {{raw_event(kEvent, 0x02), 1},
          {raw_event(kEvent, 0x08), 4},
          {raw_event(kEvent, 0x20), 8},
          {raw_event(kEvent, 0x80), 16}};
}

/// fp_ret_sse_avx_ops of all kinds and precisions, from Zen on, one count an operation. An FMA
/// counts twice (AMD's event lists, ibidem).
std::vector<FloatEvent> amd_events() { return {{raw_event(0x03, 0x1f), 1}}; }

/// The value of the first line of /proc/cpuinfo with this name; empty if there is none.
std::string value_of(std::string_view name, const std::string& cpuinfo) {
  std::istringstream lines(cpuinfo);
  std::string line;
  while (std::getline(lines, line)) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with(name) && colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

bool has_flag(std::string_view flag, const std::string& cpuinfo) {
  std::istringstream flags(value_of("flags", cpuinfo));
  std::string one;
  while (flags >> one) {
    if (one == flag) return true;
  }
  return false;
}

std::string text_of(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::vector<FloatEvent> float_events(const std::string& cpuinfo) {
  const std::string vendor = value_of("vendor_id", cpuinfo);
  const std::string family = value_of("cpu family", cpuinfo);
  // RDSEED came with Broadwell, as did the events.
  if (vendor == "GenuineIntel" && family == "6" && has_flag("rdseed", cpuinfo)) {
    return intel_events();
  }
  constexpr std::array<std::string_view, 3> kZen{"23", "25", "26"};
  const bool is_zen = std::ranges::find(kZen, family) != kZen.end();
  return vendor == "AuthenticAMD" && is_zen ? amd_events() : std::vector<FloatEvent>{};
}

#if defined(__linux__)

namespace {

/// Opens a counter of this thread and its later ones in user mode; -1 and errno if the kernel
/// refuses.
int open_counter(std::uint64_t config) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_RAW;
  attributes.config = config;
  attributes.inherit = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(
      syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

std::string reason_of(int error) {
  if (error == EACCES || error == EPERM) {
    return "the system permits no counters: set kernel.perf_event_paranoid to 2 or less, or grant "
           "CAP_PERFMON";
  }
  if (error == ENOENT || error == ENODEV || error == EOPNOTSUPP || error == ENXIO) {
    return "the processor's counters are not available, as in most virtual machines";
  }
  return "the system opens no counter: " + std::generic_category().message(error);
}

}  // namespace

FloatCounters::FloatCounters() {
  const std::vector<FloatEvent> events = float_events(text_of("/proc/cpuinfo"));
  if (events.empty()) {
    refusal_ = "no events of floating-point operations are known for this processor";
    return;
  }
  open(events);
}

void FloatCounters::open(const std::vector<FloatEvent>& events) {
  for (const FloatEvent& event : events) {
    const int file = open_counter(event.config);
    if (file < 0) {
      refusal_ = reason_of(errno);
      return;
    }
    counters_.push_back({file, event.operations});
  }
}

FloatCounters::~FloatCounters() {
  for (const Counter& counter : counters_) (void)close(counter.file);
}

std::optional<double> FloatCounters::operations() const {
  if (!refusal_.empty()) return std::nullopt;
  double sum = 0;
  for (const Counter& counter : counters_) {
    struct {
      std::uint64_t count;
      std::uint64_t enabled_ns;
      std::uint64_t running_ns;
    } reading{};
    if (read(counter.file, &reading, sizeof reading) != sizeof reading) return std::nullopt;
    if (reading.running_ns == 0) continue;
    // Where counters are shared in turns, the time without one counts in proportion.
    const double scale =
        static_cast<double>(reading.enabled_ns) / static_cast<double>(reading.running_ns);
    sum += counter.operations * scale * static_cast<double>(reading.count);
  }
  return sum;
}

#else

FloatCounters::FloatCounters() : refusal_("this system has no interface to its counters") {}
FloatCounters::~FloatCounters() = default;
void FloatCounters::open(const std::vector<FloatEvent>& /*events*/) {}
std::optional<double> FloatCounters::operations() const { return std::nullopt; }

#endif

}  // namespace headroom::measured
