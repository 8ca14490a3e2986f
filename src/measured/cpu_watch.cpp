#include "cpu_watch.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <thread>

namespace headroom::measured {
namespace {

double seconds(const timeval& time) {
  constexpr double kMicro = 1e-6;
  return static_cast<double>(time.tv_sec) + kMicro * static_cast<double>(time.tv_usec);
}

}  // namespace

CpuWatch::CpuWatch() : start_(read()) {}

std::optional<CpuWatch::Reading> CpuWatch::read() {
  // "cpu user nice system idle iowait irq softirq steal …", in ticks (proc(5)).
  std::ifstream file("/proc/stat");
  std::string name;
  std::array<double, 8> ticks{};
  if (!(file >> name) || name != "cpu") return std::nullopt;
  for (double& one : ticks) {
    if (!(file >> one)) return std::nullopt;
  }
  const double per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto& [user, nice, system, idle, iowait, irq, softirq, steal] = ticks;
  rusage own{};
  if (per_second <= 0 || getrusage(RUSAGE_SELF, &own) != 0) return std::nullopt;
  return Reading{(user + nice + system + irq + softirq + steal) / per_second,
                 (idle + iowait) / per_second, seconds(own.ru_utime) + seconds(own.ru_stime)};
}

std::optional<double> CpuWatch::other_programs_cpus(double partners_s) const {
  const auto now = read();
  if (!start_ || !now) return std::nullopt;
  const double busy = now->busy_s - start_->busy_s;
  const double all = busy + now->idle_s - start_->idle_s;
  if (all <= 0) return std::nullopt;
  const double others = busy - (now->own_s - start_->own_s) - partners_s;
  const double cpus = std::max(1U, std::thread::hardware_concurrency());
  return std::clamp(others / all, 0.0, 1.0) * cpus;
}

double CpuWatch::own_s() const {
  const auto now = read();
  return start_ && now ? now->own_s - start_->own_s : 0;
}

}  // namespace headroom::measured
