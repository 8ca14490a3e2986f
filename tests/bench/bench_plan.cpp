// Plans and workloads per second: headroom_bench_plan [THREADS]. Each figure is the best of several
// runs, everything included: sharding, compiling, evaluating, keeping the best.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>

#include "headroom/headroom.h"

namespace headroom {
namespace {

constexpr int kRuns = 7;

template <class Run>
double best_seconds(Run run) {
  double best = 1e300;
  for (int i = 0; i < kRuns; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count());
  }
  return best;
}

void bench_search(const std::string& model, std::int64_t devices, std::int64_t batch, int threads) {
  PlanQuery query;
  query.purpose = Purpose::train;
  const Planner planner(load_model(model).spec, query,
                        device_rates(find_machine("h100-80gb"), query.purpose, DType::bfloat16));
  SearchSpace space;
  space.devices = devices;
  space.load = {batch, 8192};
  space.threads = threads;
  PlanSearch search;
  const double seconds = best_seconds([&] { search = search_plans(planner, space); });
  fmt::print("plans of {} on {} devices: {} in {:.1f} ms = {:.2f} M per second and thread\n", model,
             devices, search.evaluated, 1e3 * seconds,
             static_cast<double>(search.evaluated) / seconds / threads / 1e6);
}

void bench_sweep(const char* name, const SweepGrid& grid,
                 const std::optional<MachineProfile>& machine) {
  const ModelSpec spec = load_model("llama-3-8b").spec;
  std::size_t bytes = 0;
  const double seconds = best_seconds([&] {
    SweepWriter writer(SweepFormat::csv, spec);
    std::string text;
    sweep(spec, grid, machine, [&](const SweepRow& row) {
      writer.append_row(row, text);
      if (text.size() > std::size_t{1} << 16U) {
        bytes += text.size();
        text.clear();
      }
      return true;
    });
  });
  fmt::print("sweep, {}: {} rows in {:.1f} ms = {:.2f} M per second\n", name,
             to_string(size_of(grid)), 1e3 * seconds,
             static_cast<double>(size_of(grid)) / seconds / 1e6);
}

std::vector<std::int64_t> counting_to(std::int64_t last) {
  std::vector<std::int64_t> values;
  for (std::int64_t value = 1; value <= last; ++value) values.push_back(value);
  return values;
}

}  // namespace
}  // namespace headroom

int main(int argc, char** argv) {
  using namespace headroom;
  const int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  bench_search("llama-3-8b", 64, 512, threads);
  bench_search("llama-3-70b", 1024, 2048, threads);
  bench_search("llama-3.1-405b", 16384, 4096, threads);
  SweepGrid wide;
  wide.batch_size = counting_to(1000);
  wide.seq_len = counting_to(1000);
  bench_sweep("1000 batches × 1000 lengths", wide, std::nullopt);
  bench_sweep("the same with times", wide, find_machine("h100-80gb"));
  SweepGrid narrow;
  narrow.batch_size = {1, 2, 4, 8, 16, 32, 64};
  narrow.seq_len = counting_to(2000);
  narrow.dtype = {DType::float32, DType::bfloat16};
  bench_sweep("7 batches × 2000 lengths × 2 types", narrow, std::nullopt);
  bench_sweep("the same with times", narrow, find_machine("h100-80gb"));
}
