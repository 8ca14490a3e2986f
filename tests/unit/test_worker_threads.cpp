// Work on several threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <stdexcept>
#include <thread>

#include "worker_threads.h"

using namespace headroom::detail;

TEST_CASE("every thread has its number, and the calling one has 0") {
  std::array<std::atomic<int>, 5> calls{};
  std::thread::id first;
  run_on_threads(calls.size(), [&](std::size_t number) {
    ++calls.at(number);
    if (number == 0) first = std::this_thread::get_id();
  });
  CHECK(std::ranges::all_of(calls, [](const std::atomic<int>& count) { return count == 1; }));
  CHECK(first == std::this_thread::get_id());
}

TEST_CASE("what a thread throws arrives after the others have ended") {
  for (const std::size_t thrower : {0U, 2U}) {
    CAPTURE(thrower);
    std::atomic<int> ended{0};
    const auto work = [&](std::size_t number) {
      if (number == thrower) throw std::runtime_error("work");
      std::this_thread::yield();
      ++ended;
    };
    CHECK_THROWS_AS(run_on_threads(4, work), std::runtime_error);
    CHECK(ended == 3);
  }
}

TEST_CASE("there is at least one processor") { CHECK(processor_count() >= 1); }
