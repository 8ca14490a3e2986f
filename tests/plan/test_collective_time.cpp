// All-reduces of serving plans, beside published times.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "headroom/model_source.h"
#include "headroom/plan.h"
#include "support/data.h"

using namespace headroom;

namespace {

DeviceRates serving_rates(const char* machine) {
  return device_rates(find_machine(machine), Purpose::serve, DType::bfloat16);
}

/// Microseconds of an all-reduce of `tokens` tokens of Llama 3 70B, 16 KiB each, in a decode step
/// among `ranks` devices.
double all_reduce_us(std::int64_t tokens, std::int64_t ranks, const DeviceRates& rates) {
  Planner planner(load_model("llama-3-70b").spec, PlanQuery{}, rates);
  PlanChoice choice;
  choice.parallel.tensor = ranks;
  for (const Communication& row : planner.communication(choice, {tokens, 1024})) {
    if (row.kind == CollectiveKind::all_reduce) return 1e6 * row.seconds / row.count;
  }
  return 0;
}

double all_reduce_us(std::int64_t tokens, std::int64_t ranks) {
  return all_reduce_us(tokens, ranks, serving_rates("h100-80gb"));
}

/// NCCL's latency: 24 µs, and 8 µs for each of the n − 1 steps of a ring or the 2·log2(n) of a
/// tree.
double nccl_latency_us(double ranks) { return 24 + 8 * std::min(ranks - 1, 2 * std::log2(ranks)); }

/// NCCL's time for one token: the latency, and 2·(n − 1)/n of the bytes on 80 % of the link.
double nccl_us(double ranks, const DeviceRates& rates) {
  const double bytes = 2 * (ranks - 1) / ranks * (16 << 10);
  return nccl_latency_us(ranks) + 1e6 * bytes / (0.8 * rates.link.intra_node_bytes_per_s);
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

// tests/data/kernels/all_reduces.csv: single kernels. Ranks of a running engine wait for each
// other, so that only what larger buffers add is compared: 8 MiB are 512 tokens, 1 KiB hardly any.
TEST_CASE("bytes of all-reduces take as long as in single kernels of engines") {
  std::vector<double> errors;
  double smallest_us = 0;
  for (const test::CsvRow& row : test::read_csv(test::data_folder() / "kernels/all_reduces.csv")) {
    const std::string& machine = row.at("machine");
    const bool by_nvlink = machine != "l40s" && machine != "rtx-pro-6000-blackwell";
    if (row.at("bytes") == "1024") smallest_us = std::stod(row.at("microseconds"));
    if (row.at("bytes") != "8388608" || !by_nvlink) continue;
    const double measured_us = std::stod(row.at("microseconds")) - smallest_us;
    const DeviceRates rates = serving_rates(machine.c_str());
    const std::int64_t ranks = test::number(row, "ranks");
    const double added_us = all_reduce_us(512, ranks, rates) - all_reduce_us(1, ranks, rates);
    CAPTURE(machine);
    CAPTURE(ranks);
    CHECK(added_us == doctest::Approx(measured_us).epsilon(0.25));
    errors.push_back(std::abs(added_us / measured_us - 1));
  }
  REQUIRE(errors.size() == 17);
  std::ranges::sort(errors);
  CHECK(errors[8] < 0.15);
}

TEST_CASE("all-reduces beyond an engine's buffer of 8 MiB take NCCL's time") {
  // 16 MiB among two devices: 24 µs, one step of 8 µs, and the bytes on 80 % of NVLink's 450 GB/s.
  CHECK(all_reduce_us(1024, 2) == doctest::Approx(24 + 8 + 1e6 * (16 << 20) / (0.8 * 450e9)));
}

// github.com/NVIDIA/nccl-tests, issue 212: some 275 GB/s of a large buffer among 8 H100, a bus
// bandwidth of 480; github.com/NVIDIA/nccl, issue 1374: a bus bandwidth of 215 GB/s among 8 H800.
TEST_CASE("switches reduce large buffers at the bandwidth that NCCL's tests publish") {
  const auto gb_per_s = [](const char* machine) {
    const std::int64_t tokens = 1 << 20;  // 16 GiB, so that latency hardly counts
    const double bytes = static_cast<double>(tokens) * (16 << 10);
    return bytes / (1e3 * all_reduce_us(tokens, 8, serving_rates(machine)));
  };
  CHECK(gb_per_s("h100-80gb") == doctest::Approx(275).epsilon(0.01));
  CHECK(gb_per_s("h800-80gb") * 2 * 7 / 8 == doctest::Approx(215).epsilon(0.01));
  // A100's NVLink 3 has no such switches: 80 % of 300 GB/s, for 2·7/8 of the bytes.
  CHECK(gb_per_s("a100-80gb") * 2 * 7 / 8 == doctest::Approx(240).epsilon(0.01));
}

// NCCL's src/graph/tuning.cc: a step of a ring takes 14.0 µs between nodes and 3.4 inside.
TEST_CASE("a group over two nodes takes a step between nodes") {
  const DeviceRates rates = serving_rates("a100-80gb");
  DeviceRates alike = rates;
  alike.collective_node_step_s = 0;
  CHECK(all_reduce_us(1, 16, rates) - all_reduce_us(1, 16, alike) ==
        doctest::Approx(14.0 - 3.4).epsilon(1e-6));
  CHECK(all_reduce_us(2048, 8, rates) == all_reduce_us(2048, 8, alike));
}

// vLLM's kernel takes 2, 4, 6 or 8 GPUs of one node, and more than two only if NVLink or Infinity
// Fabric joins each to each (custom_all_reduce.py of vllm/distributed/device_communicators).
TEST_CASE("GPUs that vLLM's kernel does not take reduce by NCCL") {
  const DeviceRates pcie = serving_rates("l40s");
  REQUIRE(pcie.link.intra_node_kind.starts_with("PCIe"));
  CHECK(all_reduce_us(1, 4, pcie) == doctest::Approx(nccl_us(4, pcie)));
  CHECK(all_reduce_us(1, 8, pcie) == doctest::Approx(nccl_us(8, pcie)));
  CHECK(all_reduce_us(1, 2, pcie) < nccl_us(2, pcie) / 2);
  const DeviceRates rack = serving_rates("gb200");
  CHECK(all_reduce_us(1, 8, rack) < nccl_us(8, rack) / 2);
  // 16 KiB at 61 % of NVLink 5's 900 GB/s, by its switches.
  CHECK(all_reduce_us(1, 16, rack) ==
        doctest::Approx(nccl_latency_us(16) + 1e6 * (16 << 10) / (0.61 * 900e9)));
}

TEST_CASE("links that are assumed or join no GPUs reduce by their library") {
  DeviceRates rates = serving_rates("h100-80gb");
  rates.link_is_assumed = true;
  CHECK(all_reduce_us(1, 4, rates) == doctest::Approx(nccl_us(4, rates)));
  rates.link_is_assumed = false;
  rates.link.intra_node_kind = "gloo";
  CHECK(all_reduce_us(1, 4, rates) == doctest::Approx(nccl_us(4, rates)));
}
