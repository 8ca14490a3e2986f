// Weights on machines with several memory nodes. Few have them: QEMU does with `-numa node`.
#include <doctest/doctest.h>
#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "aligned.h"
#include "kernel_data.h"
#include "memory_nodes.h"
#include "pages.h"
#include "parallel.h"
#include "weight_stream.h"

#if defined(__linux__)
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

using namespace headroom::measured;
using namespace headroom::measured::testing;

namespace {

constexpr std::int64_t kRows = 4096;
constexpr std::int64_t kGranule = 16;

/// 64 MiB, of which no page is in use.
UnfilledVector<std::byte> unused_memory() {
  UnfilledVector<std::byte> memory;
  memory.resize(std::size_t{64} << 20);
  return memory;
}

#if defined(__linux__)

/// Node of the page at `address`; negative where the system does not tell.
int node_of(const std::byte* address) {
  constexpr std::uintptr_t kPage = 4096;
  const auto page = reinterpret_cast<std::uintptr_t>(address) / kPage * kPage;
  int node = -1;
  return syscall(SYS_move_pages, 0, 1UL, &page, nullptr, &node, 0) == 0 ? node : -1;
}

int node_of_thread() {
  unsigned processor = 0;
  unsigned node = 0;
  return getcpu(&processor, &node) == 0 ? static_cast<int>(node) : -1;
}

/// Nodes of the threads, without repetition.
std::vector<int> nodes_of_threads() {
  std::vector<int> nodes;
#pragma omp parallel
  {
#pragma omp critical
    nodes.push_back(node_of_thread());
  }
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

/// Pages of `rows` rows that lie on another node than the thread that reads them. A huge page with
/// rows of two threads may lie on either's.
std::int64_t misplaced_pages(std::span<const std::byte> memory, std::int64_t rows,
                             std::int64_t granule) {
  const std::size_t row_bytes = memory.size() / static_cast<std::size_t>(rows);
  std::int64_t misplaced = 0;
#pragma omp parallel reduction(+ : misplaced)
  {
    const Range own = thread_range(rows, granule);
    const std::size_t end = static_cast<std::size_t>(own.end) * row_bytes;
    for (std::size_t at = static_cast<std::size_t>(own.begin) * row_bytes + kHugePage;
         at + kHugePage < end; at += kHugePage / 4) {
      if (node_of(memory.data() + at) != node_of_thread()) ++misplaced;
    }
  }
  return misplaced;
}

#endif

}  // namespace

TEST_CASE("rows that are placed keep their values") {
  auto memory = unused_memory();
  std::ranges::fill(memory, std::byte{7});
  place_rows(memory, kRows, kGranule);
  place_rows({memory.data(), 100}, 10, 1);
  place_rows({}, 0, 1);
  CHECK(std::ranges::count(memory, std::byte{7}) == std::ssize(memory));
}

#if defined(__linux__)

TEST_CASE("weights lie on the nodes of the threads that read them, whoever writes them") {
  const bool bound = omp_get_proc_bind() != omp_proc_bind_false;
  if (!bound || nodes_of_threads().size() < 2) {
    MESSAGE("not tested: threads are not bound to processors of several memory nodes");
    return;
  }
  auto memory = unused_memory();
  place_rows(memory, kRows, kGranule);
  std::ranges::fill(memory, std::byte{7});
  CHECK(misplaced_pages(memory, kRows, kGranule) == 0);
  auto elsewhere = unused_memory();
  std::ranges::fill(elsewhere, std::byte{7});
  CHECK(misplaced_pages(elsewhere, kRows, kGranule) > 0);

  constexpr std::int64_t kIn = 4096;
  constexpr std::int64_t kOut = 8192;
  const std::vector<float> weight = random_floats(kIn * kOut, 1);
  const std::vector<LinearPart> parts{{weight, {}}};
  const WeightStream stream = make_stream({kIn, kOut, parts, HeldType::float32, {}}, Epilogue::none,
                                          StreamSlices::short_ones);
  for (std::int64_t begin = 0; begin < stream.padded_in; begin += stream.slice_in) {
    const Range slice = stream.slice(begin);
    const auto outputs = std::span(stream.weight)
                             .subspan(static_cast<std::size_t>(stream.offset(slice, 0)),
                                      static_cast<std::size_t>(slice.size() * stream.out));
    CHECK(misplaced_pages(std::as_bytes(outputs), kOut,
                          stream_granule(kOut, omp_get_max_threads())) == 0);
  }
}

#endif
