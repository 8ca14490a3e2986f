// All-reduces of serving plans, beside published times.
#include <doctest/doctest.h>

#include "headroom/model_source.h"
#include "headroom/plan.h"

using namespace headroom;

namespace {

/// Microseconds of an all-reduce of `tokens` tokens of Llama 3 70B, 16 KiB each, in a decode step
/// among `ranks` H100.
double all_reduce_us(std::int64_t tokens, std::int64_t ranks) {
  PlanQuery query;
  query.purpose = Purpose::serve;
  const MachineProfile machine = find_machine("h100-80gb");
  Planner planner(load_model("llama-3-70b").spec, query,
                  device_rates(machine, query.purpose, query.dtype));
  PlanChoice choice;
  choice.parallel.tensor = ranks;
  for (const Communication& row : planner.communication(choice, {tokens, 1024})) {
    if (row.kind == CollectiveKind::all_reduce) return 1e6 * row.seconds / row.count;
  }
  return 0;
}

}  // namespace

TEST_CASE("small all-reduces take about as long as vLLM's kernel on H100") {
  struct Row {
    std::int64_t tokens;
    std::int64_t ranks;
    double measured_us;
  };
  // Of github.com/sgl-project/sglang, pull request 2904: "vllm", 128 KiB to 4 MiB of float32.
  constexpr Row kRows[] = {{8, 2, 8.7},    {8, 4, 9.2},    {8, 8, 11.8},   {64, 2, 12.9},
                           {64, 4, 20.6},  {64, 8, 24.1},  {128, 2, 17.7}, {128, 4, 26.9},
                           {128, 8, 30.4}, {256, 2, 26.6}, {256, 4, 40.2}, {256, 8, 45.0}};
  for (const Row& row : kRows) {
    CAPTURE(row.tokens);
    CAPTURE(row.ranks);
    CHECK(all_reduce_us(row.tokens, row.ranks) == doctest::Approx(row.measured_us).epsilon(0.3));
  }
}

TEST_CASE("all-reduces beyond an engine's buffer of 8 MiB take NCCL's time") {
  // 16 MiB: 24 µs, 8 µs for each of a tree's 2·log2(8) steps, and 2·7/8 of the bytes on 80 % of
  // NVLink's 450 GB/s.
  const double by_nccl = 24 + 6 * 8 + 1e6 * 1.75 * (16 << 20) / (0.8 * 450e9);
  CHECK(all_reduce_us(1024, 8) == doctest::Approx(by_nccl));
}
