// Work on several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace headroom::detail {

/// Threads that the system runs at once.
[[nodiscard]] std::size_t processor_count() noexcept;

/// Calls work(number) on `count` threads, the calling one with number 0, or on as many as the
/// system has left. Returns when all have ended; throws what one of them throws.
void run_on_threads(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace headroom::detail
