#include "worker_threads.h"

#include <algorithm>
#include <future>
#include <system_error>
#include <thread>
#include <vector>

namespace headroom::detail {

std::size_t processor_count() noexcept { return std::max(1U, std::thread::hardware_concurrency()); }

void run_on_threads(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::future<void>> others;
  try {
    for (std::size_t i = 1; i < count; ++i) {
      others.push_back(std::async(std::launch::async, work, i));
    }
  } catch (const std::system_error&) {
    // The system has no thread left: those that run share the work.
  }
  work(0);
  for (std::future<void>& other : others) other.get();
}

}  // namespace headroom::detail
