// Requests per minute of one core that a simulation of continuous batching answers:
// headroom_bench_serve [REQUESTS]. Each figure is the best of several runs, the planner's step
// times included, by the time that the process computes.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>

#include "headroom/headroom.h"

namespace headroom {
namespace {

constexpr int kRuns = 3;

struct BenchedLoad {
  const char* name;
  const char* model;
  std::int64_t tensor;
  std::int64_t input;
  std::int64_t output;
  Arrivals arrivals;
};

ServeQuestion question_of(const BenchedLoad& load, std::int64_t requests) {
  ServeQuestion question;
  question.plan.model = load_model(load.model);
  question.plan.devices = load.tensor;
  question.plan.rates = device_rates(find_machine("h100-80gb"), Purpose::serve, DType::bfloat16);
  question.traffic = {load.arrivals, load.input, load.output, requests, 1};
  return question;
}

void bench(const BenchedLoad& load, std::int64_t requests) {
  const ServeQuestion question = question_of(load, requests);
  PlanChoice choice;
  choice.parallel.tensor = load.tensor;
  double best_s = 1e300;
  ServedPlan served;
  for (int i = 0; i < kRuns; ++i) {
    const std::clock_t start = std::clock();
    served = simulate(question, choice);
    best_s = std::min(best_s, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  constexpr double kSecondsPerMinute = 60;
  const auto count = static_cast<double>(requests);
  fmt::print("{:<48} {:>6} in {:>6} out  {:>6.1f} running  {:>8.2f} M requests per minute\n",
             load.name, load.input, load.output, served.figures.load.mean_running,
             count / best_s * kSecondsPerMinute / 1e6);
}

}  // namespace
}  // namespace headroom

int main(int argc, char** argv) {
  using namespace headroom;
  const std::int64_t requests = argc > 1 ? std::max(1, std::atoi(argv[1])) : 100'000;
  const BenchedLoad loads[] = {
      {"llama-3-8b, 5 requests/s", "llama-3-8b", 1, 2000, 300, PoissonArrivals{5}},
      {"llama-3-8b, 10 requests/s", "llama-3-8b", 1, 2000, 300, PoissonArrivals{10}},
      {"llama-3-8b, 64 users", "llama-3-8b", 1, 2000, 300, UserArrivals{64}},
      {"llama-3-8b, 200 users", "llama-3-8b", 1, 2000, 300, UserArrivals{200}},
      {"llama-3-70b, tp 8, 100 users", "llama-3-70b", 8, 2000, 300, UserArrivals{100}},
      {"llama-3-8b, one user, long answers", "llama-3-8b", 1, 1000, 4000, UserArrivals{1}},
      {"llama-3-8b, 16 users, long answers", "llama-3-8b", 1, 1000, 4000, UserArrivals{16}},
      {"llama-3-8b, 64 users, long answers", "llama-3-8b", 1, 1000, 4000, UserArrivals{64}},
      {"llama-3-8b, 0.5 requests/s, longer answers", "llama-3-8b", 1, 1000, 7000,
       PoissonArrivals{0.5}},
  };
  for (const BenchedLoad& load : loads) bench(load, requests);
}
