// Options of a training step: collectives beside GEMMs, activations on the host, a loss in chunks,
// and experts of which some are fuller than others.
#include <algorithm>
#include <cmath>
#include <optional>
#include <random>

#include "collective_time.h"
#include "gpt_models.h"
#include "headroom/error.h"
#include "headroom/plan.h"
#include "headroom/timeline.h"

namespace headroom::test {
namespace {

constexpr double kForever = 1e12;

/// The end of a ring of chunks: the GEMM multiplies one after another, the link carries all but the
/// rank's own, which needs none.
double gathered_end(std::int64_t ranks, double gemm, double chunk) {
  double multiplied = 0;
  double arrived = 0;
  for (std::int64_t i = 0; i < ranks; ++i) {
    if (i > 0) arrived += chunk;
    multiplied = std::max(multiplied, arrived) + gemm;
  }
  return multiplied;
}

/// Likewise of sums that are sent once they are multiplied, the rank's own last.
double scattered_end(std::int64_t ranks, double gemm, double chunk) {
  double multiplied = 0;
  double sent = 0;
  for (std::int64_t i = 0; i < ranks; ++i) {
    multiplied += gemm;
    if (i + 1 < ranks) sent = std::max(sent, multiplied) + chunk;
  }
  return std::max(multiplied, sent);
}

PlanChoice tensor_parallel(std::int64_t ranks, TensorOverlap overlap) {
  PlanChoice choice;
  choice.parallel.tensor = ranks;
  choice.parallel.sequence = SequenceParallel::on;
  choice.tensor_overlap = overlap;
  return choice;
}

MicroBatchTime micro_batch_of(Planner& planner, const PlanChoice& choice, const Load& load) {
  require_legal(choice, load, planner.limits(load.seq_len));
  return planner.step_times(choice, load).stages.front().front();
}

PlanMemory memory_of(Planner& planner, const PlanChoice& choice, const Load& load) {
  require_legal(choice, load, planner.limits(load.seq_len));
  return planner.evaluate(choice, load).memory;
}

}  // namespace

// Megatron-Bridge, training/comm_overlap.py: qkv_fprop and fc1_fprop are RingExchangeOverlapCfg,
// proj_fprop and fc2_fprop PipelineOverlapCfg.
TEST_CASE("GEMMs hide what a simulated ring of chunks hides") {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> seconds(0, 1);
  for (const std::int64_t ranks : {2, 3, 4, 8, 16}) {
    for (int i = 0; i < 50; ++i) {
      const double gemm = seconds(random);
      const double chunk = seconds(random);
      const auto all = static_cast<double>(ranks);
      const double collective = (all - 1) * chunk;
      const double end =
          all * gemm + collective - detail::hidden_by_gemms(collective, all * gemm, ranks);
      CHECK(end == doctest::Approx(gathered_end(ranks, gemm, chunk)));
      CHECK(end == doctest::Approx(scattered_end(ranks, gemm, chunk)));
    }
  }
}

TEST_CASE("overlap hides collectives of the layers only, and none of the work") {
  Planner planner = h100_trainer(load_model("llama-3-8b").spec);
  const Load load{2, 8192};
  const MicroBatchTime serial =
      micro_batch_of(planner, tensor_parallel(8, TensorOverlap::off), load);
  const MicroBatchTime both = micro_batch_of(planner, tensor_parallel(8, TensorOverlap::on), load);
  CHECK(both.forward_s == serial.forward_s);
  CHECK(both.backward_s == serial.backward_s);
  CHECK(both.forward_communication_s < serial.forward_communication_s);
  CHECK(both.backward_communication_s < serial.backward_communication_s);

  // Beside GEMMs that take forever, the layers' two all-gathers and two reduce-scatters (arXiv
  // 2205.05198, section 4.2.2) hide, but not those of embedding and head.
  DeviceRates slow = planner.rates();
  slow.flops_per_s /= kForever;
  planner.set_rates(slow);
  const auto communication_s = [&](TensorOverlap overlap) {
    return micro_batch_of(planner, tensor_parallel(8, overlap), load).forward_communication_s;
  };
  const double all = communication_s(TensorOverlap::off);
  constexpr double kOfLayers = 4 * 32;
  CHECK(all - communication_s(TensorOverlap::on) ==
        doctest::Approx(detail::kHiddenShare * all * kOfLayers / (kOfLayers + 2)).epsilon(0.01));
}

namespace {

/// Of a collective and the GEMM beside it, the seconds that a simulated ring of chunks hides.
double hidden_by_ring(std::int64_t ranks, double gemm_s, double collective_s) {
  const auto all = static_cast<double>(ranks);
  return gemm_s + collective_s - gathered_end(ranks, gemm_s / all, collective_s / (all - 1));
}

/// Seconds of one all-gather of the tensor ranks; a reduce-scatter takes as long.
double gather_seconds(Planner& planner, const PlanChoice& choice, const Load& load) {
  for (const Communication& row : planner.communication(choice, load)) {
    const bool gathers = row.kind == CollectiveKind::all_gather && row.group == RankGroup::tensor;
    if (gathers) return row.seconds / row.count;
  }
  return 0;
}

}  // namespace

// Llama 3 8B's GEMMs on one of eight ranks: 32 heads and 8 of keys and values of 128, 14,336 inner
// features.
TEST_CASE("GEMMs of a model's layers hide half of what rings beside them do") {
  Planner planner = h100_trainer(load_model("llama-3-8b").spec);
  DeviceRates rates = planner.rates();
  rates.memory_bytes_per_s *= kForever;
  rates.kernel_s = rates.layer_gemm_kernel_s = 0;
  planner.set_rates(rates);
  const Load load{1, 8192};
  const double gather_s = gather_seconds(planner, tensor_parallel(8, TensorOverlap::off), load);
  const auto gemm_s = [&](double in_features, double out_features) {
    return 2.0 * 8192 * in_features * out_features / 8 /
           (rates.flops_per_s * rates.efficiency.matrix);
  };
  double hidden_s = 0;
  for (const double seconds : {gemm_s(4096, 4096 + 2 * 1024), gemm_s(4096, 4096),
                               gemm_s(4096, 2 * 14336), gemm_s(14336, 4096)}) {
    hidden_s += 32 * hidden_by_ring(8, seconds, gather_s);
  }
  const auto exposed_s = [&](TensorOverlap overlap) {
    return micro_batch_of(planner, tensor_parallel(8, overlap), load).forward_communication_s;
  };
  CHECK(exposed_s(TensorOverlap::off) - exposed_s(TensorOverlap::on) ==
        doctest::Approx(hidden_s / 2));
}

TEST_CASE("recomputed layers hide their collectives again") {
  Planner planner = h100_trainer(load_model("llama-3-8b").spec);
  const Load load{2, 8192};
  const auto hidden_s = [&](Recompute recompute) {
    PlanChoice choice = tensor_parallel(8, TensorOverlap::off);
    choice.recompute.kind = recompute;
    const MicroBatchTime serial = micro_batch_of(planner, choice, load);
    choice.tensor_overlap = TensorOverlap::on;
    return serial.communication() - micro_batch_of(planner, choice, load).communication();
  };
  PlanChoice choice = tensor_parallel(8, TensorOverlap::off);
  const MicroBatchTime serial = micro_batch_of(planner, choice, load);
  choice.tensor_overlap = TensorOverlap::on;
  const MicroBatchTime both = micro_batch_of(planner, choice, load);
  CHECK(hidden_s(Recompute::full) - hidden_s(Recompute::none) ==
        doctest::Approx(serial.forward_communication_s - both.forward_communication_s));
}

namespace {

double async_step_s(const CsvRow& row) {
  PlanQuery query;
  query.purpose = Purpose::train;
  if (row.at("precision") == "fp8") query.states.recipe = Recipe::fp8_transformer_engine;
  query.arithmetic = info(query.states.recipe).arithmetic;
  Planner planner(load_model(row.at("model")).spec, query,
                  device_rates(find_machine(row.at("machine")), query.purpose, DType::bfloat16,
                               query.arithmetic));
  const bool overlaps = row.at("async_tp") == "1";
  PlanChoice choice =
      tensor_parallel(number(row, "tp"), overlaps ? TensorOverlap::on : TensorOverlap::off);
  choice.parallel.data = number(row, "devices") / number(row, "tp");
  choice.micro_batch = number(row, "micro_batch");
  choice.zero = Zero::weights;
  choice.overlap = DataOverlap::on;
  choice.recompute.kind = Recompute::full;
  return planner.evaluate(choice, {number(row, "global_batch"), number(row, "seq")})
      .time.iteration_s;
}

}  // namespace

// The share that GEMMs hide was chosen with these rows at hand.
TEST_CASE("collectives beside GEMMs gain what torchtitan measured, to 8 %") {
  const std::vector<CsvRow> rows = read_csv(data_folder() / "training" / "torchtitan_async_tp.csv");
  REQUIRE(rows.size() == 6);
  for (std::size_t i = 0; i + 1 < rows.size(); i += 2) {
    const double measured = std::stod(rows[i + 1].at("tokens_per_s_per_device")) /
                            std::stod(rows[i].at("tokens_per_s_per_device"));
    CHECK(async_step_s(rows[i]) / async_step_s(rows[i + 1]) ==
          doctest::Approx(measured).epsilon(0.08 * measured / (1 + measured)));
  }
}

TEST_CASE("options of a step are refused where the plan has nothing for them") {
  const ShardingLimits limits = h100_trainer(load_model("llama-3-8b").spec).limits(8192);
  const auto broken = [&](auto change) {
    PlanChoice choice;
    change(choice);
    return broken_rule(choice, {8, 8192}, limits);
  };
  CHECK(broken([](PlanChoice& c) { c.tensor_overlap = TensorOverlap::on; }) ==
        PlanRule::tensor_overlap_sequence);
  CHECK(broken([](PlanChoice& c) { c.offload_layers = 32; }) == PlanRule::offload_layers_count);
  CHECK(broken([](PlanChoice& c) { c.offload_layers = -1; }) == PlanRule::offload_layers_count);
  CHECK(broken([](PlanChoice& c) {
          c.offload_layers = 1;
          c.parallel.pipeline = 2;
        }) == PlanRule::offload_layers_pipeline);
  for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
    CHECK(broken([&](PlanChoice& c) {
            c.offload_layers = 1;
            c.recompute.kind = recompute;
          }) == PlanRule::offload_layers_recompute);
  }
  CHECK(broken([](PlanChoice& c) { c.loss_chunks = 0; }) == PlanRule::loss_chunks_positive);
  CHECK(broken([](PlanChoice& c) { c.loss_chunks = 8193; }) == PlanRule::loss_chunks_tokens);
  CHECK_FALSE(broken([](PlanChoice& c) { c.loss_chunks = 8192; }));
  CHECK_FALSE(broken([](PlanChoice& c) {
    c.loss_chunks = 8193;
    c.micro_batch = 2;
  }));
  CHECK_FALSE(broken([](PlanChoice& c) { c.offload_layers = 31; }));
  const ShardingLimits images = h100_trainer(load_model("vit-base-patch16-224").spec).limits(197);
  PlanChoice choice;
  choice.loss_chunks = 4;
  CHECK(broken_rule(choice, {8, 197}, images) == PlanRule::loss_chunks_words);
}

// Megatron-LM, transformer_config.py: "CPU offloading does not work when activation recomputation
// is enabled".
TEST_CASE("plans with activations on the host are searched without recomputation") {
  const Planner planner = h100_trainer(gpt(1024, 16, 24));
  SearchSpace space;
  space.devices = 2;
  space.load = {8, 1024};
  space.keep = 100;
  space.fixed.offload_layers = 12;
  const PlanSearch search = search_plans(planner, space);
  REQUIRE_FALSE(search.best.empty());
  for (const RankedPlan& plan : search.best) CHECK(plan.choice.recompute == Recomputation{});
}

TEST_CASE("a search is refused where no plan has room for an option of the step") {
  const ShardingLimits limits = h100_trainer(load_model("llama-3-8b").spec).limits(8192);
  const auto refused = [&](auto change) -> std::optional<PlanRule> {
    FixedDegrees fixed;
    change(fixed);
    try {
      require_legal(fixed, {8, 8192}, limits);
    } catch (const IllegalPlan& error) {
      return error.violation().rule;
    }
    return std::nullopt;
  };
  CHECK(refused([](FixedDegrees& f) {
          f.offload_layers = 4;
          f.pipeline = 4;
        }) == PlanRule::offload_layers_pipeline);
  CHECK(refused([](FixedDegrees& f) { f.offload_layers = 99; }) == PlanRule::offload_layers_count);
  CHECK(refused([](FixedDegrees& f) {
          f.offload_layers = 4;
          f.recompute = Recomputation{Recompute::full};
        }) == PlanRule::offload_layers_recompute);
  CHECK(refused([](FixedDegrees& f) {
          f.tensor_overlap = TensorOverlap::on;
          f.tensor = 1;
        }) == PlanRule::tensor_overlap_sequence);
  CHECK(refused([](FixedDegrees& f) {
          f.tensor_overlap = TensorOverlap::on;
          f.sequence = SequenceParallel::off;
        }) == PlanRule::tensor_overlap_sequence);
  CHECK(refused([](FixedDegrees& f) { f.loss_chunks = 8 * 8192 + 1; }) ==
        PlanRule::loss_chunks_tokens);
  CHECK_FALSE(refused([](FixedDegrees& f) {
    f.tensor_overlap = TensorOverlap::on;
    f.offload_layers = 4;
    f.loss_chunks = 8192;
  }));
}

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
    choice.offload_layers = offloaded;
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
    choice.offload_layers = offloaded;
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
  choice.offload_layers = 12;
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
  choice.offload_layers = 4;
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

// Liger Kernel, fused_linear_cross_entropy.py: a chunk's logits become their gradient in place, and
// grad_weight and grad_input are made in the forward pass.
TEST_CASE("a loss in chunks holds one chunk of the logits and the gradient of the head") {
  Planner planner = h100_trainer(load_model("llama-3-8b").spec);
  const Load load{1, 8192};
  PlanChoice choice;
  const PlanMemory whole = memory_of(planner, choice, load);
  constexpr Integer kLogits = Integer{8192} * 128256 * 2;
  constexpr Integer kSaved = Integer{8191} * 128256 * 2;  // the last token predicts none
  constexpr Integer kHidden = Integer{8192} * 4096 * 2;
  CHECK(whole.buffers.backward == kHidden + 2 * kLogits);
  choice.loss_chunks = 8;
  const PlanMemory chunks = memory_of(planner, choice, load);
  CHECK(whole.embedding_and_loss - chunks.embedding_and_loss == kSaved);
  CHECK(chunks.buffers.backward == kHidden + kLogits / 8 + Integer{128256} * 4096 * 2);
  CHECK(chunks.activations == whole.activations);
}

// grad_weight is zeros_like(weight): 4 bytes where the recipe stores float32 weights. The head of
// recipes in float8 has 16 bits.
TEST_CASE("the gradient of a chunked loss has the type of the weights") {
  const auto backward_bytes = [](Recipe recipe) {
    PlanQuery query;
    query.purpose = Purpose::train;
    query.states.recipe = recipe;
    Planner planner(load_model("llama-3-8b").spec, query,
                    device_rates(find_machine("h100-80gb"), query.purpose, query.dtype));
    PlanChoice choice;
    choice.loss_chunks = 8;
    return memory_of(planner, choice, {1, 8192}).buffers.backward;
  };
  constexpr Integer kWeights = Integer{128256} * 4096;
  CHECK(backward_bytes(Recipe::float32) - backward_bytes(Recipe::megatron) == 2 * kWeights);
  for (const Recipe recipe : {Recipe::fp8_transformer_engine, Recipe::fp8_deepseek_v3}) {
    CHECK(backward_bytes(recipe) == backward_bytes(Recipe::megatron));
  }
}

// The loop of Liger's kernel in PyTorch 2 on a CPU, 1,024 tokens of width 256 and 16,384 words in
// float32: torch.profiler counts 26,411,008 bytes at once in 8 chunks and 22,151,180 in 16, of
// which three rows and two of logits are temporaries of the emulated softmax, and 12 its scalars.
TEST_CASE("a loss in chunks takes what PyTorch's allocator counts") {
  PlanQuery query;
  query.purpose = Purpose::train;
  query.dtype = DType::float32;
  query.states.recipe = Recipe::float32;
  Planner planner(gpt(256, 4, 2, 1024, 16384), query,
                  device_rates(find_machine("h100-80gb"), query.purpose, query.dtype));
  constexpr Integer kRow = 16384 * 4;
  PlanChoice choice;
  choice.loss_chunks = 8;
  CHECK(memory_of(planner, choice, {1, 1024}).buffers.backward == 26'411'008 - 3 * kRow);
  choice.loss_chunks = 16;
  CHECK(memory_of(planner, choice, {1, 1024}).buffers.backward == 22'151'180 - 2 * kRow - 12);
}

TEST_CASE("tensor parallelism divides the vocabulary of a loss in chunks") {
  Planner planner = h100_trainer(load_model("llama-3-8b").spec);
  const Load load{1, 8192};
  const auto dropped = [&](std::int64_t ranks) {
    PlanChoice choice;
    choice.parallel.tensor = ranks;
    const Integer whole = memory_of(planner, choice, load).embedding_and_loss;
    choice.loss_chunks = 8;
    return whole - memory_of(planner, choice, load).embedding_and_loss;
  };
  CHECK(dropped(1) == 4 * dropped(4));
}

namespace {

Planner expert_planner(double imbalance) {
  PlanQuery query;
  query.purpose = Purpose::train;
  query.expert_imbalance = imbalance;
  return {load_model("deepseek-v2-lite").spec, query,
          device_rates(find_machine("h100-80gb"), query.purpose, DType::bfloat16)};
}

PlanChoice experts_on(std::int64_t ranks) {
  PlanChoice choice;
  choice.parallel.data = ranks;
  choice.parallel.expert = ranks;
  return choice;
}

/// Bytes that the layers save between the dispatch and the combination of tokens.
Integer saved_on_exchanged_tokens(const PlanChoice& choice, const Load& load) {
  const Graph rank =
      shard(training_graph(load_model("deepseek-v2-lite").spec, AttentionImplementation::fused),
            choice.parallel);
  const Workload workload =
      training(choice.micro_batch, load.seq_len, AttentionImplementation::fused);
  Integer bytes = 0;
  for (const SavedTensor& saved : analyze(rank, fused_kernels()).saved) {
    const bool of_experts = saved.path.find("mlp.experts.") != std::string::npos;
    const bool combines = saved.path.find(".combine") != std::string::npos;
    if (!of_experts || combines) continue;
    bytes += (saved.repeat * saved.bytes).evaluate(values_on(rank, workload, choice.parallel));
  }
  return bytes;
}

}  // namespace

TEST_CASE("the fullest rank of experts decides the time and memory of a step") {
  const Load load{8, 4096};
  const PlanChoice choice = experts_on(8);
  Planner mean = expert_planner(1);
  Planner fullest = expert_planner(1.5);
  const auto exchange = [&](Planner& planner) {
    return planner.communication(choice, load).front().wire_bytes;
  };
  CHECK(exchange(fullest) == doctest::Approx(1.5 * exchange(mean)));
  const auto saved = static_cast<double>(saved_on_exchanged_tokens(choice, load));
  CHECK(saved > 0);
  CHECK(static_cast<double>(memory_of(fullest, choice, load).activations -
                            memory_of(mean, choice, load).activations) ==
        doctest::Approx(saved / 2).epsilon(1e-6));
  const PlanTime even = mean.evaluate(choice, load).time;
  const PlanTime uneven = fullest.evaluate(choice, load).time;
  CHECK(uneven.compute_s > even.compute_s);
  CHECK(uneven.compute_s < 1.5 * even.compute_s);
  // The work of all ranks together is the same.
  CHECK(*uneven.mfu * uneven.iteration_s == doctest::Approx(*even.mfu * even.iteration_s));
}

// DeepSeek-V2-Lite: 64 experts, 6 for each token. Mixtral: 8 and 2.
TEST_CASE("experts are at most as uneven as all tokens on one rank make them") {
  const ModelSpec lite = load_model("deepseek-v2-lite").spec;
  const ModelSpec mixtral = load_model("mixtral-8x7b").spec;
  CHECK(most_expert_imbalance(mixtral, 8) == 4);  // one of a token's two experts is on the rank
  CHECK(most_expert_imbalance(mixtral, 4) == 4);
  CHECK(most_expert_imbalance(mixtral, 2) == 2);
  CHECK(most_expert_imbalance(lite, 8) == 8);
  CHECK(most_expert_imbalance(lite, 64) == doctest::Approx(64.0 / 6));
  CHECK(most_expert_imbalance(load_model("llama-3-8b").spec, 8) == 1);
  Planner all_on_one = expert_planner(8);
  Planner beyond = expert_planner(100);
  const Load load{8, 4096};
  CHECK(beyond.evaluate(experts_on(8), load).time.iteration_s ==
        all_on_one.evaluate(experts_on(8), load).time.iteration_s);
}

TEST_CASE("one rank of experts is never fuller than the mean") {
  Planner mean = expert_planner(1);
  Planner fullest = expert_planner(1.5);
  CHECK(fullest.evaluate({}, {1, 4096}).time.iteration_s ==
        mean.evaluate({}, {1, 4096}).time.iteration_s);
}

TEST_CASE("an uneven batch of requests waits for the fullest rank of experts") {
  PlanQuery query;
  const auto seconds = [&](double imbalance, Load load) {
    query.expert_imbalance = imbalance;
    Planner planner(load_model("deepseek-v2-lite").spec, query,
                    device_rates(find_machine("h100-80gb"), query.purpose, DType::bfloat16));
    return planner.evaluate(experts_on(8), load).time;
  };
  const Load load{4096, 2048};
  CHECK(seconds(1.5, load).iteration_s > seconds(1, load).iteration_s);
  CHECK(seconds(1.5, load).iteration_s < 1.5 * seconds(1, load).iteration_s);
  CHECK(*seconds(1.5, load).ttft_s > *seconds(1, load).ttft_s);
}

}  // namespace headroom::test
