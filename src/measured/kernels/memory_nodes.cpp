#include "memory_nodes.h"

#include <omp.h>

#include <algorithm>

#include "pages.h"
#include "parallel.h"

#if defined(__linux__)
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <fstream>
#include <string>
#endif

namespace headroom::measured {

#if defined(__linux__)
namespace {

constexpr unsigned kWordBits = CHAR_BIT * sizeof(unsigned long);
/// Nodes that Linux knows at most (MAX_NUMNODES).
constexpr unsigned kMostNodes = 1024;

/// Numbers of nodes are separated by commas, and spans written with a hyphen.
bool has_several_nodes() {
  static const bool several = [] {
    std::ifstream file("/sys/devices/system/node/has_memory");
    std::string nodes;
    std::getline(file, nodes);
    return nodes.find_first_of(",-") != std::string::npos;
  }();
  return several;
}

/// Asks for the pages of [begin, end) on the node of the calling thread.
void place_here(std::uintptr_t begin, std::uintptr_t end) noexcept {
  unsigned processor = 0;
  unsigned node = 0;
  if (begin >= end || getcpu(&processor, &node) != 0 || node >= kMostNodes) return;
  std::array<unsigned long, kMostNodes / kWordBits> nodes = {};
  nodes[node / kWordBits] = 1UL << node % kWordBits;
  // The call takes one bit more than it reads (mbind(2), "Bugs" of set_mempolicy(2)).
  (void)syscall(SYS_mbind, begin, end - begin, MPOL_PREFERRED, nodes.data(), kMostNodes + 1, 0U);
}

}  // namespace

void place_rows(std::span<const std::byte> memory, std::int64_t rows,
                std::int64_t granule) noexcept {
  if (rows == 0 || omp_get_proc_bind() == omp_proc_bind_false || !has_several_nodes()) return;
  const auto first = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::size_t row_bytes = memory.size() / static_cast<std::size_t>(rows);
  // Whole huge pages of the memory; the others have neighbours, and go to who writes them first.
  const std::uintptr_t least = (first + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t most = (first + memory.size()) / kHugePage * kHugePage;
  const auto boundary = [&](std::int64_t row) {
    const std::uintptr_t at = first + static_cast<std::size_t>(row) * row_bytes;
    return std::clamp((at + kHugePage / 2) / kHugePage * kHugePage, least, std::max(least, most));
  };
#pragma omp parallel
  {
    const Range own = thread_range(rows, granule);
    place_here(boundary(own.begin), boundary(own.end));
  }
}

#else

void place_rows(std::span<const std::byte> /*memory*/, std::int64_t /*rows*/,
                std::int64_t /*granule*/) noexcept {}

#endif

}  // namespace headroom::measured
