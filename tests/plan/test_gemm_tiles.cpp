// GEMMs in whole tiles and waves: shares counted by hand, and equal times of all commands.
#include <algorithm>

#include "gpt_models.h"
#include "headroom/plan.h"
#include "headroom/predict.h"

namespace headroom::test {
namespace {

/// An A100 of `processors`, with so much bandwidth that arithmetic bounds every GEMM, and so slow
/// that a kernel's fixed time counts nothing.
MachineProfile machine_of(std::optional<std::int64_t> processors) {
  MachineProfile machine = find_machine("a100-80gb");
  auto& sheet = std::get<DatasheetRates>(machine.rates);
  sheet.memory_bytes_per_s = 1e20;
  sheet.float16_flops_per_s /= 1e8;
  sheet.processors.reset();
  if (processors) sheet.processors = Processors{*processors, "a test"};
  return machine;
}

/// 27 heads of 128: an FFN of 13824 = 108 · 128 features, a hidden size of 3456 = 27 · 128.
ModelSpec model() { return gpt(3456, 27, 1); }

double seconds_of(const std::string& path, std::int64_t rows, const MachineProfile& machine) {
  Workload workload;
  workload.seq_len = rows;
  workload.dtype = workload.kv_dtype = DType::bfloat16;
  const TimePrediction time = predict_time(model(), workload, machine, {});
  const auto found = std::ranges::find(time.operators, path, &OperatorTime::path);
  REQUIRE(found != time.operators.end());
  return found->time_s;
}

/// Time on the 108 processors of an A100 over that of as many as there are tiles.
double share_of(const std::string& path, std::int64_t rows) {
  return seconds_of(path, rows, machine_of(108)) / seconds_of(path, rows, machine_of({}));
}

constexpr const char* kUp = "decoder.layers.mlp.up";
constexpr const char* kDown = "decoder.layers.mlp.down";

}  // namespace

// 256 rows are 108 tiles of 256 × 128: one wave of an A100 (NVIDIA, Matrix Multiplication
// Background User's Guide, section 3.2). One row more needs 324 tiles of 128 × 128: three waves,
// with the arithmetic of 384 rows.
TEST_CASE("a GEMM of one wave takes its arithmetic, and one row more the next wave") {
  CHECK(share_of(kUp, 256) == doctest::Approx(1));
  CHECK(share_of(kUp, 257) == doctest::Approx(384.0 / 257));
}

// The output of 128 × 3456 is 27 tiles, a fourth of 108: split-K by four.
TEST_CASE("a GEMM of few tiles divides its inner dimension between the processors") {
  CHECK(share_of(kDown, 128) == doctest::Approx(1));
}

TEST_CASE("few rows take the arithmetic of the next multiple of 16") {
  CHECK(share_of(kUp, 8) == doctest::Approx(2));
  CHECK(share_of(kUp, 48) == doctest::Approx(1));
}

// 128 × 384 on 108 processors: three tiles of 128 × 128 use 3 of them, too few inputs for split-K;
// twelve of 64 × 64 at half the rate use 12.
TEST_CASE("small tiles at half the rate serve GEMMs of few large ones") {
  const auto seconds = [](const MachineProfile& machine) {
    Workload workload;
    workload.seq_len = 128;
    workload.dtype = workload.kv_dtype = DType::bfloat16;
    const TimePrediction time = predict_time(gpt(384, 3, 1), workload, machine, {});
    const auto found =
        std::ranges::find(time.operators, "decoder.layers.attention.out", &OperatorTime::path);
    REQUIRE(found != time.operators.end());
    return found->time_s;
  };
  CHECK(seconds(machine_of(108)) / seconds(machine_of({})) == doctest::Approx(2 * 108.0 / 12));
}

TEST_CASE("training's GEMMs are not counted in waves") {
  PlanQuery query;
  query.purpose = Purpose::train;
  const auto step = [&](const MachineProfile& machine) {
    Planner planner(model(), query, device_rates(machine, Purpose::train, DType::bfloat16));
    return planner.evaluate(PlanChoice{}, Load{1, 257}).time.iteration_s;
  };
  CHECK(step(machine_of(108)) == step(machine_of({})));
}

}  // namespace headroom::test
