// Published steps of plans that shard weights: torchtitan's and MosaicML's, in PyTorch.
#include <algorithm>
#include <cmath>

#include "gpt_models.h"
#include "headroom/plan.h"
#include "headroom/timeline.h"

namespace headroom::test {
namespace {

/// Predicted over measured seconds, less 1.
double error_of(const CsvRow& row, const ModelSpec& spec, Zero zero) {
  PlanQuery query;
  query.purpose = Purpose::train;
  Planner planner(spec, query,
                  device_rates(find_machine(row.at("machine")), query.purpose, DType::bfloat16));
  PlanChoice choice;
  choice.parallel.data = number(row, "devices");
  choice.zero = zero;
  choice.step.overlap = DataOverlap::on;
  choice.micro_batch = number(row, "micro_batch");
  choice.recompute.kind = row.at("recompute") == "full" ? Recompute::full : Recompute::none;
  const Load load{number(row, "global_batch"), number(row, "seq")};
  const double tokens =
      static_cast<double>(load.batch_size * load.seq_len / number(row, "devices"));
  const double measured_s = tokens / std::stod(row.at("tokens_per_s_per_device"));
  return planner.evaluate(choice, load).time.iteration_s / measured_s - 1;
}

}  // namespace

// Nothing is fitted to these rows.
TEST_CASE("torchtitan's steps on 64 A100 are within 10 %") {
  for (const CsvRow& row : read_csv(data_folder() / "training" / "torchtitan.csv")) {
    CAPTURE(row.at("model"));
    const double error = error_of(row, load_model(row.at("model")).spec, Zero::weights);
    CHECK(std::abs(error) < 0.1);
  }
}

// The backward pass was fitted to A100's rows; these are H100's.
TEST_CASE("MosaicML's steps of 7 to 70 billion parameters on H100 are within 10 % in the median") {
  struct Size {
    const char* name;
    std::int64_t hidden, heads, layers;
  };
  constexpr Size kSizes[] = {
      {"7b", 4096, 32, 32}, {"13b", 5120, 40, 40}, {"30b", 7168, 56, 48}, {"70b", 8192, 64, 80}};
  std::vector<double> errors;
  for (const CsvRow& row : read_csv(data_folder() / "training" / "mosaicml.csv")) {
    const auto size = std::ranges::find(kSizes, row.at("model"), &Size::name);
    if (row.at("machine") != "h100-80gb" || size == std::end(kSizes)) continue;
    const ModelSpec spec = gpt(size->hidden, size->heads, size->layers, number(row, "seq"), 50368);
    const Zero zero = row.at("sharding") == "FULL_SHARD" ? Zero::weights : Zero::gradients;
    errors.push_back(std::abs(error_of(row, spec, zero)));
  }
  REQUIRE(errors.size() == 28);
  std::ranges::sort(errors);
  CHECK(errors[errors.size() / 2] < 0.1);
}

TEST_CASE("a backward pass of PyTorch's takes 1.35 times Megatron-LM's") {
  Planner planner = h100_trainer(load_model("llama-3-8b").spec);
  const Load load{8, 4096};
  PlanChoice choice;
  choice.parallel.data = 8;
  const auto times = [&](Zero zero) {
    choice.zero = zero;
    return planner.step_times(choice, load).stages.front().front();
  };
  const MicroBatchTime megatron = times(Zero::optimizer);
  for (const Zero zero : {Zero::gradients, Zero::weights}) {
    CHECK(times(zero).forward_s == megatron.forward_s);
    CHECK(times(zero).backward_s == doctest::Approx(1.35 * megatron.backward_s));
  }
}

TEST_CASE("a plan without replicas has Megatron-LM's backward pass, whatever would be sharded") {
  Planner planner = h100_trainer(load_model("llama-3-8b").spec);
  PlanChoice choice;
  choice.parallel.tensor = 8;
  const auto backward_s = [&](Zero zero) {
    choice.zero = zero;
    return planner.step_times(choice, {8, 4096}).stages.front().front().backward_s;
  };
  CHECK(backward_s(Zero::weights) == backward_s(Zero::none));
}

}  // namespace headroom::test
