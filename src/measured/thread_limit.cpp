#include "thread_limit.h"

#include <fmt/format.h>

#include <future>
#include <system_error>
#include <thread>
#include <vector>

#include "headroom/error.h"
#include "with_noun.h"

namespace headroom::measured {
namespace {

/// Most threads, up to `count`, that exist at once, this one included.
int threads_that_start(int count) {
  // `end` is abandoned before the threads are joined, which wakes them if memory ends here.
  std::vector<std::jthread> others;
  std::promise<void> end;
  const std::shared_future<void> ended = end.get_future().share();
  try {
    while (static_cast<int>(others.size()) + 1 < count) {
      others.emplace_back([ended] { ended.wait(); });
    }
  } catch (const std::system_error&) {
    // Those that exist are counted.
  }
  end.set_value();
  return static_cast<int>(others.size()) + 1;
}

}  // namespace

void require_threads(int count) {
  const int started = threads_that_start(count);
  if (started == count) return;
  throw Error(
      ErrorCode::missing_resource,
      fmt::format("the system starts only {} of {}", started, detail::with_noun(count, "thread")),
      {},
      "use fewer threads, or raise the limit: ulimit -u, ulimit -v, or a container's number of "
      "processes");
}

}  // namespace headroom::measured
