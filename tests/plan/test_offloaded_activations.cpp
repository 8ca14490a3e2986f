// Activations that wait for the backward pass on the host (--cpu-offloading-num-layers).
#include <algorithm>
#include <optional>

#include "headroom/error.h"
#include "training_plans.h"

namespace headroom::test {
namespace {

constexpr std::int64_t kLayers = 24;

/// Bytes that a layer of `spec` saves of a sequence of 1,024 tokens.
Integer saved_by_layer(const ModelSpec& spec) {
  const Graph graph = training_graph(spec, AttentionImplementation::fused);
  Integer bytes = 0;
  for (const SavedTensor& saved : analyze(graph, fused_kernels()).saved) {
    if (saved.repeat.constant()) continue;
    bytes += saved.bytes.evaluate(
        values_on(graph, training(1, 1024, AttentionImplementation::fused), {}));
  }
  return bytes;
}

/// A forward pass as AsyncDoubleBufferGroupOffloadHandler of Transformer Engine runs it
/// (transformer_engine/pytorch/cpu_offload.py): offloaded layer i leaves the device once its copy
/// and the layers of window i are done, then the copy of the next one starts.
struct OffloadedPass {
  std::int64_t most_held = 0;  ///< layers with tensors on the device
  double end_s = 0;
};

OffloadedPass offloaded_pass(std::int64_t offloaded, double layer_s, double copy_s) {
  const auto last_of_window = [&](std::int64_t i) {
    return kLayers / offloaded * (i + 1) - 1 + std::min(i + 1, kLayers % offloaded);
  };
  OffloadedPass pass;
  std::int64_t left = 0;
  double copied_s = layer_s + copy_s;
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    pass.end_s += layer_s;
    pass.most_held = std::max(pass.most_held, layer + 1 - left);
    if (left == offloaded || last_of_window(left) != layer) continue;
    ++left;
    pass.end_s = std::max(pass.end_s, copied_s);
    copied_s = pass.end_s + copy_s;
  }
  return pass;
}

}  // namespace

TEST_CASE("activations on the host leave at most one layer more than Transformer Engine does") {
  const ModelSpec spec = gpt(1024, 16, kLayers);
  Planner planner = h100_trainer(spec);
  const Load load{1, 1024};
  const Integer layer = saved_by_layer(spec);
  PlanChoice choice;
  CHECK(memory_of(planner, choice, load).activations == kLayers * layer);
  for (const std::int64_t offloaded : {1, 2, 6, 10, 12, 23}) {
    CAPTURE(offloaded);
    choice.step.offload_layers = offloaded;
    const Integer held = memory_of(planner, choice, load).activations;
    const Integer simulated = layer * offloaded_pass(offloaded, 1, 0).most_held;
    CHECK(held >= simulated);
    CHECK(held <= simulated + layer);
  }
}

TEST_CASE("a pass takes as long as its copies in Transformer Engine's windows, to one layer") {
  const ModelSpec spec = gpt(1024, 16, kLayers, 1024, 1);  // no time outside the layers
  Planner planner = h100_trainer(spec);
  const Load load{1, 1024};
  const double layer_s = micro_batch_of(planner, {}, load).forward_s / kLayers;
  const auto bytes = static_cast<double>(saved_by_layer(spec));
  PlanChoice choice;
  for (const std::int64_t offloaded : {1, 2, 6, 12}) {
    choice.step.offload_layers = offloaded;
    for (const double rate : {1e9, 16e9, 64e9, 1e18}) {
      CAPTURE(offloaded);
      CAPTURE(rate);
      DeviceRates rates = planner.rates();
      rates.host_bytes_per_s = rate;
      planner.set_rates(rates);
      const MicroBatchTime host = micro_batch_of(planner, choice, load);
      const double pass_s = host.forward_s + host.forward_communication_s + host.forward_copies_s;
      const double end_s = offloaded_pass(offloaded, layer_s, bytes / rate).end_s;
      CHECK(pass_s <= end_s * (1 + 1e-9));
      CHECK(pass_s >= (end_s - layer_s) * (1 - 1e-9));
    }
  }
}

TEST_CASE("copies to the host are no communication, in the report and in the timeline") {
  Planner planner = h100_trainer(gpt(1024, 16, kLayers));
  DeviceRates rates = planner.rates();
  rates.host_bytes_per_s = 1e9;
  planner.set_rates(rates);
  PlanChoice choice;
  choice.step.offload_layers = 12;
  const Load load{4, 1024};
  const PlanTime time = planner.evaluate(choice, load).time;
  CHECK(time.communication_s == 0);
  CHECK(time.host_copies_s > 0);
  CHECK(time.iteration_s ==
        doctest::Approx(time.compute_s + time.host_copies_s + time.optimizer_s));
  double copies_s = 0;
  const StepTimeline timeline = timeline_of(planner.step_times(choice, load));
  for (const TimelineEvent& event : timeline.stages.front().events) {
    const bool copies =
        event.work == StepWork::copy_to_host || event.work == StepWork::copy_from_host;
    CHECK(event.work != StepWork::forward_collectives);
    CHECK(event.work != StepWork::backward_collectives);
    if (copies) copies_s += event.duration_s;
  }
  CHECK(copies_s == doctest::Approx(time.host_copies_s));
}

// torchtitan's published gains (reports/published.md) and copies of 295 GB/s over a link of 450.
TEST_CASE("overlap and offloading widen the range of a step") {
  Planner planner = h100_trainer(load_model("llama-3-8b").spec);
  const auto range_of = [&](PlanChoice choice) {
    const PlanTime time = planner.evaluate(choice, {2, 8192}).time;
    return time.high_s / time.iteration_s - 1;
  };
  const double serial = range_of(tensor_parallel(8, TensorOverlap::off));
  CHECK(range_of(tensor_parallel(8, TensorOverlap::on)) ==
        doctest::Approx(std::hypot(serial, 0.07)));
  PlanChoice choice;
  choice.step.offload_layers = 4;
  CHECK(range_of(choice) >= 450.0 / 295.47 - 1 - 0.005);
}

// NVIDIA's datasheets: 128 GB/s of PCIe 5.0 for H100 and 64 of PCIe 4.0 for A100, both directions
// together; GH200's NVLink-C2C has 900, which two devices of GB200 share.
TEST_CASE("a machine file states the link to its host") {
  const auto rate_of = [](const MachineProfile& machine) {
    return device_rates(machine, Purpose::train, DType::bfloat16).host_bytes_per_s;
  };
  CHECK(rate_of(find_machine("h100-80gb")) == 128e9 / 2);
  CHECK(rate_of(find_machine("a100-80gb")) == 64e9 / 2);
  CHECK(rate_of(find_machine("gh200-96gb")) == 900e9 / 2);
  CHECK(rate_of(find_machine("gb200")) == 900e9 / 2 / 2);
  CHECK(rate_of(find_machine("rtx-4060-ti-16gb")) == 64e9 / 2 / 2);  // 8 of 16 lanes
  CHECK(rate_of(find_machine("mi210")) == 64e9 / 2);
  MachineProfile machine = find_machine("h100-80gb");
  CHECK(device_rates(machine, Purpose::train, DType::bfloat16).host_link_is_assumed);
  machine.host = HostLink{"NVLink-C2C", 900e9 / 2, "datasheet"};
  const MachineProfile read = profile_from_json(profile_to_json(machine), "file");
  CHECK(rate_of(read) == 900e9 / 2);
  CHECK(read.host->kind == "NVLink-C2C");
  CHECK(read.host->source == "datasheet");
  CHECK_FALSE(device_rates(read, Purpose::train, DType::bfloat16).host_link_is_assumed);
}

TEST_CASE("processors and devices with unified memory compute in the host's memory") {
  const auto shares = [](const char* machine) {
    return device_rates(find_machine(machine), Purpose::train, DType::bfloat16).in_host_memory;
  };
  for (const char* const machine : {"mi300a", "dgx-spark", "jetson-thor", "jetson-agx-orin-64gb",
                                    "ryzen-ai-max-395", "apple-m4-max", "epyc-9654"}) {
    CAPTURE(std::string(machine));
    CHECK(shares(machine));
  }
  for (const char* const machine : {"h100-80gb", "gh200-96gb", "mi300x", "rtx-4090"}) {
    CAPTURE(std::string(machine));
    CHECK_FALSE(shares(machine));
  }
}

}  // namespace headroom::test
