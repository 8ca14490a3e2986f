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
#include <vector>
#endif

namespace headroom::measured {

#if defined(__linux__)
namespace {

constexpr unsigned kWordBits = CHAR_BIT * sizeof(unsigned long);
/// Nodes that Linux knows at most (MAX_NUMNODES).
constexpr unsigned kMostNodes = 1024;

/// Ranges on nodes of their own are mappings, of which Linux allows a process 65,530
/// (vm.max_map_count): with shares of 4 MiB, 256 GiB of weights.
constexpr std::size_t kLeastShare = std::size_t{4} << 20U;

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

/// Asks for the pages of [begin, end) on `node`.
void place(std::uintptr_t begin, std::uintptr_t end, unsigned node) {
  if (begin >= end || node >= kMostNodes) return;
  std::array<unsigned long, kMostNodes / kWordBits> nodes = {};
  nodes[node / kWordBits] = 1UL << node % kWordBits;
  // The call takes one bit more than it reads (mbind(2), "Bugs" of set_mempolicy(2)).
  (void)syscall(SYS_mbind, begin, end - begin, MPOL_PREFERRED, nodes.data(), kMostNodes + 1, 0U);
}

/// Node of each thread's processor.
std::vector<unsigned> nodes_of_threads() {
  std::vector<unsigned> nodes(static_cast<std::size_t>(omp_get_max_threads()));
#pragma omp parallel
  {
    unsigned processor = 0;
    unsigned node = 0;
    if (getcpu(&processor, &node) == 0) {
      nodes[static_cast<std::size_t>(omp_get_thread_num())] = node;
    }
  }
  return nodes;
}

/// Neighbouring threads on one node.
struct ThreadsOfNode {
  unsigned node = 0;
  std::int64_t first = 0;
  std::int64_t last = 0;
};

std::vector<ThreadsOfNode> threads_by_node() {
  std::vector<ThreadsOfNode> runs;
  std::int64_t thread = 0;
  for (const unsigned node : nodes_of_threads()) {
    if (runs.empty() || runs.back().node != node) runs.push_back({node, thread, thread});
    runs.back().last = thread++;
  }
  return runs;
}

}  // namespace

void place_rows(std::span<const std::byte> memory, std::int64_t rows, std::int64_t granule) {
  if (rows == 0 || omp_get_proc_bind() == omp_proc_bind_false || !has_several_nodes()) return;
  const std::vector<ThreadsOfNode> runs = threads_by_node();
  if (memory.size() < runs.size() * kLeastShare) return;
  const auto first = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::size_t row_bytes = memory.size() / static_cast<std::size_t>(rows);
  // Whole huge pages of the memory; the others have neighbours, and go to who writes them first.
  const std::uintptr_t least = (first + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t most = std::max(least, (first + memory.size()) / kHugePage * kHugePage);
  const auto boundary = [&](std::int64_t row) {
    const std::uintptr_t at = first + static_cast<std::size_t>(row) * row_bytes;
    return std::clamp((at + kHugePage / 2) / kHugePage * kHugePage, least, most);
  };
  const std::int64_t threads = omp_get_max_threads();
  for (const ThreadsOfNode& run : runs) {
    const std::int64_t begin = partition(rows, threads, run.first, granule).begin;
    const std::int64_t end = partition(rows, threads, run.last, granule).end;
    place(boundary(begin), boundary(end), run.node);
  }
}

#else

void place_rows(std::span<const std::byte> /*memory*/, std::int64_t /*rows*/,
                std::int64_t /*granule*/) {}

#endif

}  // namespace headroom::measured
