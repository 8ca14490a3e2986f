// Bytes of weights, gradients and optimizer states against the published rules.
#include "gpt_models.h"
#include "headroom/parallel_plan.h"

namespace headroom::test {
namespace {

/// States of all weights of a model.
StateBytes states_of(const Graph& graph, const StatePolicy& policy) {
  StateBytes states;
  for (const Weight& weight : graph.weights) states += state_bytes(weight, policy, graph.sizes);
  return states;
}

StatePolicy policy(Recipe recipe, Optimizer optimizer) { return {recipe, optimizer, {}}; }

}  // namespace

// ZeRO, arXiv 1910.02054, section 3.1: 2 + 2 + 12. Megatron-LM: 2 + 4 + 12.
TEST_CASE("Adam uses 16 or 18 bytes per parameter in mixed precision") {
  const Graph graph = training_graph(gpt(768, 12, 12));
  const Integer n = parameters_on(graph);
  const StateBytes mixed = states_of(graph, policy(Recipe::mixed, Optimizer::adam));
  CHECK(mixed.weights == 2 * n);
  CHECK(mixed.gradients == 2 * n);
  CHECK(mixed.optimizer == 12 * n);
  CHECK(states_of(graph, policy(Recipe::megatron, Optimizer::adam)).total() == 18 * n);
  CHECK(states_of(graph, policy(Recipe::float32, Optimizer::adam)).total() == 16 * n);
  CHECK(states_of(graph, policy(Recipe::bfloat16, Optimizer::adam)).total() == 8 * n);
  CHECK(states_of(graph, policy(Recipe::mixed, Optimizer::sgd)).optimizer == 4 * n);
  CHECK(states_of(graph, policy(Recipe::mixed, Optimizer::momentum)).optimizer == 8 * n);
}

// Megatron-LM's distributed optimizer: 6 + 12/dp bytes. ZeRO 1, 2, 3 of arXiv 1910.02054, Figure 1,
// with 64 ranks and 7.5 G parameters: 31.4, 16.6 and 1.9 GB.
TEST_CASE("ZeRO shards states, gradients and weights as published") {
  const Graph graph = training_graph(gpt(768, 12, 12));
  const Integer n = parameters_on(graph);
  const StateBytes all = states_of(graph, policy(Recipe::megatron, Optimizer::adam));
  for (const std::int64_t ranks : {1, 4, 64}) {
    const Integer sharded = zero_sharded(all, Zero::optimizer, ranks).total();
    CHECK(sharded == 6 * n + (12 * n + ranks - 1) / ranks);
  }
  const Integer billion = 1'000'000'000;
  const Integer parameters = 15 * billion / 2;
  const StateBytes large{2 * parameters, 2 * parameters, 12 * parameters};
  const auto gb = [&](Zero zero) {
    return static_cast<double>(zero_sharded(large, zero, 64).total()) / 1e9;
  };
  CHECK(gb(Zero::none) == doctest::Approx(120));
  CHECK(gb(Zero::optimizer) == doctest::Approx(31.4).epsilon(0.002));
  CHECK(gb(Zero::gradients) == doctest::Approx(16.6).epsilon(0.003));
  CHECK(gb(Zero::weights) == doctest::Approx(1.9).epsilon(0.02));
}

// arXiv 2110.02861: two states of 8 bits; a float32 per block. Small tensors stay in 32 bits.
TEST_CASE("8-bit Adam uses two bytes per parameter plus the scales of its blocks") {
  const Graph graph = training_graph(gpt(768, 12, 12));
  Integer expected = 0;
  for (const Weight& weight : graph.weights) {
    const Integer one = weight.elements().evaluate(graph.sizes);
    const Integer layers = weight.repeat.evaluate(graph.sizes);
    expected += layers * (one < 4096 ? 8 * one : 2 * one + 2 * 4 * ((one + 255) / 256));
  }
  const StateBytes states = states_of(graph, policy(Recipe::bfloat16, Optimizer::adam_8bit));
  CHECK(states.optimizer == expected);
  CHECK(static_cast<double>(states.optimizer) / static_cast<double>(parameters_on(graph)) ==
        doctest::Approx(2.03).epsilon(0.01));
}

// arXiv 1804.04235, section 3: rows + columns of a matrix instead of rows · columns.
TEST_CASE("Adafactor stores a row and a column per matrix") {
  const Graph graph = training_graph(gpt(768, 12, 2));
  // A layer: q, k, v, out [768, 768]; up and down [3072, 768]; biases and two norms.
  const Integer layer = 4 * (768 + 768) + 2 * (3072 + 768) + 4 * 768 + 3072 + 768 + 4 * 768;
  const Integer outside = (51200 + 768) + (2048 + 768) + 2 * 768;
  const StateBytes states = states_of(graph, policy(Recipe::float32, Optimizer::adafactor));
  CHECK(states.optimizer == 4 * (2 * layer + outside));
}

TEST_CASE("Muon stores one state for the layers' matrices and two for all else") {
  const Graph graph = training_graph(gpt(768, 12, 2));
  const Integer matrices = 2 * (4 * 768 * 768 + 2 * 768 * 3072);
  const Integer n = parameters_on(graph);
  const StateBytes states = states_of(graph, policy(Recipe::float32, Optimizer::muon));
  CHECK(states.optimizer == 4 * (matrices + 2 * (n - matrices)));
}

// arXiv 2106.09685, section 4.1: A [r, in] and B [out, r] per target matrix, and nothing else.
TEST_CASE("LoRA trains rank·(in + out) weights per target matrix") {
  const Graph whole = training_graph(gpt(768, 12, 12));
  for (const AdapterTargets targets : {AdapterTargets::attention, AdapterTargets::all}) {
    const Graph graph = with_adapter(whole, {AdapterKind::lora, 8, targets});
    Integer trained = 0;
    for (const Weight& weight : graph.weights) {
      if (weight.training == Training::frozen) continue;
      trained += (weight.repeat * weight.elements()).evaluate(graph.sizes);
    }
    const Integer attention = 12 * 8 * 4 * (768 + 768);
    const Integer feed_forward = 12 * 8 * 2 * (768 + 3072);
    CHECK(trained == attention + (targets == AdapterTargets::all ? feed_forward : 0));
    CHECK(parameters_on(graph) - trained == parameters_on(whole));
    const StateBytes states = states_of(graph, policy(Recipe::mixed, Optimizer::adam));
    CHECK(states.gradients == 2 * trained);
    CHECK(states.optimizer == 12 * trained);
  }
}

// arXiv 2106.09685, Table 5 and section 4.2: rank 2 on all four attention matrices of GPT-3 trains
// 18 M parameters, 0.01 %; weights and states use 350 GB.
TEST_CASE("LoRA trains a ten-thousandth of GPT-3") {
  const Graph graph = with_adapter(training_graph(gpt(12288, 96, 96, 2048, 50257)),
                                   {AdapterKind::lora, 2, AdapterTargets::attention});
  const StateBytes states = states_of(graph, policy(Recipe::mixed, Optimizer::adam));
  const auto trained = static_cast<double>(states.gradients) / 2;
  CHECK(trained == doctest::Approx(18.9e6).epsilon(0.005));
  CHECK(static_cast<double>(parameters_on(graph)) / trained > 9000);
  CHECK(static_cast<double>(states.total()) == doctest::Approx(350e9).epsilon(0.01));
}

// arXiv 2106.09685, Table 4: rank 1 on queries and values of GPT-3 trains 4.7 M parameters, rank 8
// 37.7 M.
TEST_CASE("LoRA on queries and values trains what its paper counts for GPT-3") {
  const auto trained = [](std::int64_t rank) {
    const Graph graph = with_adapter(training_graph(gpt(12288, 96, 96, 2048, 50257)),
                                     {AdapterKind::lora, rank, AdapterTargets::query_value});
    return states_of(graph, policy(Recipe::mixed, Optimizer::adam)).gradients / 2;
  };
  CHECK(static_cast<double>(trained(1)) == doctest::Approx(4.7e6).epsilon(0.01));
  CHECK(static_cast<double>(trained(8)) == doctest::Approx(37.7e6).epsilon(0.002));
}

TEST_CASE("a frozen layer needs half of the backward FLOPs") {
  const Graph whole = training_graph(gpt(768, 12, 12));
  const Workload workload = training(1, 128);
  const Graph graph = with_adapter(whole, {AdapterKind::lora, 8, AdapterTargets::all});
  const auto flops = [&](const Graph& one, Expr Cost::*figure, Cost NodeCost::*direction) {
    const NodeCost total = analyze(one, fused_kernels()).total;
    return ((total.*direction).*figure).evaluate(values_on(one, workload, {}));
  };
  const Integer rows = 128;
  const Integer layers = 2 * rows * 12 * (4 * 768 * 768 + 2 * 768 * 3072);
  const Integer head = 2 * rows * 768 * 51200;
  const Integer low_rank = 2 * rows * 12 * 8 * (4 * (768 + 768) + 2 * (768 + 3072));
  const auto forward = &NodeCost::forward;
  const auto backward = &NodeCost::backward;
  CHECK(flops(graph, &Cost::matrix_flops, forward) ==
        flops(whole, &Cost::matrix_flops, forward) + low_rank);
  CHECK(flops(graph, &Cost::matrix_flops, backward) ==
        flops(whole, &Cost::matrix_flops, backward) - layers - head + 2 * low_rank);
}

// arXiv 2305.14314, section 3: 4.127 bits per weight with double quantisation.
TEST_CASE("QLoRA stores the layers' matrices in 4.127 bits") {
  const Graph graph = with_adapter(training_graph(gpt(4096, 32, 32)),
                                   {AdapterKind::qlora, 16, AdapterTargets::all});
  StatePolicy by = policy(Recipe::mixed, Optimizer::adam);
  by.adapter = AdapterKind::qlora;
  Integer elements = 0;
  Integer bytes = 0;
  for (const Weight& weight : graph.weights) {
    const bool quantised = weight.training == Training::frozen && weight.shape.size() == 2 &&
                           !weight.repeat.constant();
    if (!quantised) continue;
    elements += (weight.repeat * weight.elements()).evaluate(graph.sizes);
    bytes += state_bytes(weight, by, graph.sizes).weights;
  }
  CHECK(elements == Integer{32} * 12 * 4096 * 4096);
  CHECK(8 * static_cast<double>(bytes) / static_cast<double>(elements) ==
        doctest::Approx(4.127).epsilon(0.0002));
}

}  // namespace headroom::test
