// Machine files of PyTorch: a measured one is read, written back, and predicts with its own types.
#include <doctest/doctest.h>

#include <cmath>

#include "headroom/machine_profile.h"
#include "headroom/plan.h"
#include "headroom/predict.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

/// Of tests/bench/torch_calibrate.py --effort check on one thread of a processor.
MachineProfile torch_machine() {
  return find_machine((data_folder() / "machines/pytorch_cpu.json").string());
}

MeasuredRates& rates_of(MachineProfile& machine) { return std::get<MeasuredRates>(machine.rates); }

/// Sets all times of a kernel to `seconds_per_work` times the work.
void set_times(MachineProfile& machine, KernelKind kind, double seconds_per_work) {
  for (KernelTable& table : rates_of(machine).by_threads.front().tables) {
    if (table.kind != kind) continue;
    for (std::size_t point = 0; point < table.seconds.size(); ++point) {
      table.seconds[point] = seconds_per_work * work_of(kind, point_of(table.axes, point));
    }
  }
}

double seconds_of(const MachineProfile& machine, const char* model, std::int64_t rows,
                  DType dtype = DType::float32) {
  const ModelSpec spec = load_model(model).spec;
  WorkloadRequest request;
  request.seq_len = rows;
  request.dtype = dtype;
  return predict_time(spec, resolve(request, spec), machine, {}).total_s;
}

}  // namespace

TEST_CASE("a machine file of PyTorch names its engine, device and types") {
  MachineProfile machine = torch_machine();
  const MeasuredRates& rates = rates_of(machine);
  CHECK(rates.engine == MeasuredEngine::pytorch);
  REQUIRE(rates.device);
  CHECK(rates.device->architecture == Architecture::cpu);
  CHECK_FALSE(rates.device->runs_behind_host);
  CHECK(rates.by_threads.front().dtype == DType::float32);
  CHECK_FALSE(has_own_kernels(machine));
  CHECK(usable_memory(machine) == rates.device->memory_bytes);
  const std::string text = profile_to_json(machine);
  CHECK(profile_to_json(profile_from_json(text, "copy")) == text);
}

TEST_CASE("kernels that PyTorch's file lacks are errors only where a model runs them") {
  MachineProfile machine = torch_machine();
  CHECK(seconds_of(machine, "bert-base", 16) > 0);
  CHECK(refusal_of([&] {
          (void)seconds_of(machine, "linear-transformer", 16);
        }).find("no times of the kernel linear_attention") != std::string::npos);
  rates_of(machine).engine = MeasuredEngine::headroom;
  CHECK(refusal_of([&] {
          (void)profile_from_json(profile_to_json(machine), "copy");
        }).find("\"device\" is only of the engine \"pytorch\"") != std::string::npos);
  rates_of(machine).device.reset();
  CHECK(refusal_of([&] {
          (void)profile_from_json(profile_to_json(machine), "copy");
        }).find("must occur exactly once") != std::string::npos);
}

TEST_CASE("PyTorch's curves hold for the type that they were measured in") {
  const MachineProfile machine = torch_machine();
  CHECK(refusal_of([&] {
          (void)seconds_of(machine, "gpt2", 16, DType::float16);
        }).find("was not measured in float16") != std::string::npos);
  CHECK(refusal_of([&] {
          (void)device_rates(machine, Purpose::serve, DType::float16);
        }).find("was not measured in float16") != std::string::npos);
  MachineProfile two = machine;
  ThreadProfile half = rates_of(two).by_threads.front();
  half.dtype = DType::float16;
  for (KernelTable& table : half.tables) {
    for (std::optional<double>& seconds : table.seconds) {
      if (seconds) *seconds /= 2;
    }
  }
  half.step_overhead_s /= 2;
  rates_of(two).by_threads.push_back(half);
  CHECK(seconds_of(two, "gpt2", 16, DType::float16) ==
        doctest::Approx(seconds_of(two, "gpt2", 16) / 2));
}

// 12 layers of 768·768·4 + 768·3072·2 weights and the tied head's 768·50257, two rows each.
TEST_CASE("with one time per multiply-add, GEMMs take it for every weight and row") {
  MachineProfile machine = torch_machine();
  const double before = seconds_of(machine, "gpt2", 2);
  set_times(machine, KernelKind::linear_cold, 1e-10);
  set_times(machine, KernelKind::linear_warm, 1e-10);
  const double once = seconds_of(machine, "gpt2", 2);
  set_times(machine, KernelKind::linear_cold, 2e-10);
  set_times(machine, KernelKind::linear_warm, 2e-10);
  const double weights = 12.0 * (768 * 768 * 4 + 768 * 3072 * 2) + 768.0 * 50257;
  CHECK(seconds_of(machine, "gpt2", 2) - once == doctest::Approx(2 * weights * 1e-10));
  CHECK(before > 0);
}

TEST_CASE("behind the host, an operator takes the longer of the host's and its kernels' time") {
  MachineProfile machine = torch_machine();
  ThreadProfile& curves = rates_of(machine).by_threads.front();
  curves.step_overhead_s = 1;  // longer than any kernel
  const double one_after_the_other = seconds_of(machine, "gpt2", 16);
  rates_of(machine).device->runs_behind_host = true;
  const double behind = seconds_of(machine, "gpt2", 16);
  CHECK(behind < one_after_the_other);
  CHECK(behind == doctest::Approx(std::round(behind)).epsilon(1e-12));  // one second per operator
}

TEST_CASE("plans take the fastest GEMM, the reads and the memory of PyTorch's file") {
  const MachineProfile machine = torch_machine();
  const DeviceRates rates = device_rates(machine, Purpose::serve, DType::float32);
  const ThreadProfile& curves = *curves_of(machine, 0);
  CHECK(rates.flops_per_s == peak_flops_per_s(curves));
  CHECK(rates.memory_bytes_per_s == curves.read.back().bytes_per_s);
  CHECK(rates.memory_bytes == *usable_memory(machine));
  CHECK(rates.efficiency_origin == EfficiencyOrigin::measured);
  REQUIRE_FALSE(machine.interconnect);
  CHECK(rates.efficiency_source == "PyTorch's fastest GEMM and reads; the network assumed");
}

TEST_CASE("steps on PyTorch's devices have the fixed times of kernels by their architecture") {
  MachineProfile machine = torch_machine();
  rates_of(machine).device->architecture = Architecture::hopper;
  for (const Purpose purpose : {Purpose::train, Purpose::serve}) {
    const double of_datasheet =
        device_rates(find_machine("h100-80gb"), purpose, DType::float32).kernel_s;
    CHECK(of_datasheet > 0);
    CHECK(device_rates(machine, purpose, DType::float32).kernel_s == of_datasheet);
  }
}

TEST_CASE(
    "PyTorch converts arithmetic of 8 and 4 bits to the activations' type, and plans say so") {
  const MachineProfile machine = torch_machine();
  for (const DType type : {DType::float8, DType::int4}) {
    const DeviceRates rates = device_rates(machine, Purpose::serve, DType::float32, type);
    CHECK(rates.layer_gemm_flops_per_s == doctest::Approx(rates.flops_per_s));
    REQUIRE(rates.conversion);
    CHECK(rates.conversion->find("convert to the activations' type") != std::string::npos);
  }
}

TEST_CASE("PyTorch's curves do not predict packed weights, nor two types at once") {
  const auto refusal = [](const char* model, const WorkloadRequest& request) {
    const ModelSpec spec = load_model(model).spec;
    return refusal_of(
        [&] { (void)predict_time(spec, resolve(request, spec), torch_machine(), {}); });
  };
  WorkloadRequest request;
  request.dtype = DType::float32;
  CHECK(
      refusal("gpt-oss-20b", request).find("weights in the type of the activations, not packed") !=
      std::string::npos);
  request.arithmetic = DType::float8;
  CHECK(refusal("gpt2", request).find("arithmetic in the type of the activations, not float8") !=
        std::string::npos);
  request.arithmetic.reset();
  request.kv_dtype = DType::float16;
  CHECK(refusal("gpt2", request).find("a KV-cache in the type of the activations, not float16") !=
        std::string::npos);
}
