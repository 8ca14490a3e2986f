#include "waiting_threads.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "interruption.h"
#include "processes.h"
#include "processors.h"

namespace headroom::cli {
namespace {

char** g_arguments = nullptr;

/// Threads that run or could run now, on the whole machine, this one included; 0 if unknown.
long runnable_threads() {
  std::ifstream file("/proc/stat");
  std::string line;
  constexpr std::string_view kName = "procs_running ";  // proc(5)
  while (std::getline(file, line)) {
    if (line.starts_with(kName)) return std::strtol(line.c_str() + kName.size(), nullptr, 10);
  }
  return 0;
}

/// True if other programs stay busy on the processors that `threads` need. One look that finds them
/// idle suffices: programs that start beside this one, as in a pipeline, are soon done.
bool is_crowded(int threads) {
  constexpr int kLooks = 20;
  constexpr std::chrono::milliseconds kPause{10};
  const long own = threads > 0 ? threads : measured::usable_processors();
  const long idle = sysconf(_SC_NPROCESSORS_ONLN) - own;
  for (int look = 0; look < kLooks; ++look) {
    if (look > 0) std::this_thread::sleep_for(kPause);
    if (runnable_threads() - 1 <= idle) return false;
  }
  return true;
}

void sleep_on_busy_machine(int threads) {
  // Processes of one run are not each other's busy programs.
  if (g_arguments == nullptr || distributed::launched_processes() > 1) return;
  for (const char* const chosen : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"}) {
    if (std::getenv(chosen) != nullptr) return;  // NOLINT(concurrency-mt-unsafe): one thread so far
  }
  if (!is_crowded(threads)) return;
  detail::throw_if_interrupted();  // which a restart would forget
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  if (error || setenv("OMP_WAIT_POLICY", "passive", 0) != 0) return;
  execv(program.c_str(), g_arguments);  // returns only on failure
}

}  // namespace

void allow_restart(char** arguments) { g_arguments = arguments; }

void prepare_threads(int threads) {
  measured::use_usable_processors();
  sleep_on_busy_machine(threads);
}

}  // namespace headroom::cli
