// Times of the whole command, of building a graph, and of evaluating a workload on a built graph. A
// benchmark, not a test: prints medians and checks nothing.
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "headroom/analysis.h"
#include "headroom/report.h"

namespace {

using namespace headroom;
using Clock = std::chrono::steady_clock;

/// Keeps a result alive, so that the compiler cannot drop its computation.
volatile std::int64_t g_sink = 0;

struct Timing {
  double median_us;
  double min_us;
};

/// Median and minimum time of one call, over `rounds` rounds of `calls` calls.
Timing time(int rounds, int calls, const std::function<void()>& call) {
  std::vector<double> microseconds;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) call();
    const std::chrono::duration<double, std::micro> taken = Clock::now() - start;
    microseconds.push_back(taken.count() / calls);
  }
  std::ranges::sort(microseconds);
  return {microseconds[microseconds.size() / 2], microseconds.front()};
}

void print(std::string_view name, const Timing& timing) {
  fmt::print("{:<48} {:>12.2f} {:>12.2f}\n", name, timing.median_us, timing.min_us);
}

void run_command(const char* model) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  std::string name(model);
  std::string program("headroom");
  std::string command("analyze");
  std::string quiet("--quiet");
  std::array<char*, 5> arguments{program.data(), command.data(), name.data(), quiet.data(),
                                 nullptr};
  pid_t child = 0;
  int status = posix_spawn(&child, HEADROOM_BINARY, &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (status == 0) waitpid(child, &status, 0);
  if (status == 0) return;
  fmt::print(stderr, "{} analyze {} failed\n", HEADROOM_BINARY, model);
  std::exit(1);
}

void bench_model(const char* name) {
  const Model model = load_model(name);
  Workload workload = resolve({}, model.spec);
  const Graph graph = build_graph(model.spec, graph_options(workload));
  const Analysis analysis = analyze(graph);
  const Evaluator evaluator(graph, analysis, Recompute::none);
  print(fmt::format("{}: whole command", name), time(21, 1, [&] { run_command(name); }));
  print(fmt::format("{}: build and analyze the graph", name), time(11, 20, [&] {
          const Graph built = build_graph(model.spec, graph_options(workload));
          g_sink = static_cast<std::int64_t>(analyze(built).nodes.size());
        }));
  print(fmt::format("{}: evaluate a workload", name), time(21, 2000, [&] {
          workload.seq_len = 1 + workload.seq_len % 4096;
          g_sink = static_cast<std::int64_t>(evaluator.evaluate(workload).peak_activation_bytes);
        }));
}

}  // namespace

int main() {
  fmt::print("{:<48} {:>12} {:>12}\n", "", "median [µs]", "min [µs]");
  for (const char* const name : {"bert-base", "llama-3-8b", "t5-base"}) bench_model(name);
}
