// FLOPs that a training step needs, and the MFU made of them, by hand: 2 per parameter of a matrix
// and token forward, 2 for the gradient of its input, and 2 for its own unless it is frozen.
#include "gpt_models.h"

namespace headroom::test {
namespace {

constexpr Load kStepLoad{2, 2048};
constexpr double kStepTokens = 2 * 2048.0;

/// Llama 3 8B: queries and output, keys and values, three matrices of the FFN; the head.
constexpr double kLlamaMatrices =
    32 * (2 * 4096.0 * 4096 + 2 * 4096.0 * 1024 + 3 * 4096.0 * 14336) + 4096.0 * 128256;
/// 16·(in + out) for each of these, without the head.
constexpr double kLlamaAdapters =
    32 * 16 * (2 * (4096.0 + 4096) + 2 * (4096.0 + 1024) + 3 * (4096.0 + 14336));

/// Causal attention of 32 layers of width 4096, forward and two gradients: two GEMMs over
/// s·(s + 1)/2 pairs of 2·4096 FLOPs.
constexpr double kCausalAttention = 3 * 32 * kStepTokens * (2048 + 1) * 2 * 4096.0;

PlanTime step_time(const char* model, AdapterKind kind, const Load& load = kStepLoad) {
  PlanQuery query;
  query.purpose = Purpose::train;
  query.attention = AttentionImplementation::fused;
  query.adapter.kind = kind;
  Planner planner(load_model(model).spec, query,
                  device_rates(find_machine("a100-80gb"), query.purpose, query.dtype));
  PlanChoice choice;
  choice.micro_batch = load.batch_size;
  return planner.evaluate(choice, load).time;
}

/// The FLOPs that the MFU counts: A100's peak in 16 bit is 312 TFLOP/s (NVIDIA's datasheet).
double counted_flops(const char* model, AdapterKind kind) {
  const PlanTime time = step_time(model, kind);
  return time.mfu.value() * time.iteration_s * 312e12;
}

}  // namespace

TEST_CASE("a step of all weights needs six FLOPs per parameter of a matrix and token") {
  CHECK(counted_flops("llama-3-8b", AdapterKind::none) ==
        doctest::Approx(6 * kLlamaMatrices * kStepTokens + kCausalAttention).epsilon(1e-9));
}

TEST_CASE("a step of adapters needs four FLOPs per frozen parameter, and six per trained one") {
  const double expected =
      (4 * kLlamaMatrices + 6 * kLlamaAdapters) * kStepTokens + kCausalAttention;
  for (const AdapterKind kind : {AdapterKind::lora, AdapterKind::qlora}) {
    CHECK(counted_flops("llama-3-8b", kind) == doctest::Approx(expected).epsilon(1e-9));
  }
}

// Mixtral 8x7B: two of eight experts of three matrices, and a router; experts have no adapters.
TEST_CASE("frozen experts need no weight gradients") {
  constexpr double kFrozen =
      32 * (2 * 4096.0 * 4096 + 2 * 4096.0 * 1024 + 2 * 3 * 4096.0 * 14336 + 4096.0 * 8) +
      4096.0 * 32000;
  constexpr double kTrained = 32 * 16 * (2 * (4096.0 + 4096) + 2 * (4096.0 + 1024));
  CHECK(
      counted_flops("mixtral-8x7b", AdapterKind::lora) ==
      doctest::Approx((4 * kFrozen + 6 * kTrained) * kStepTokens + kCausalAttention).epsilon(1e-9));
  const PlanTime trained = step_time("mixtral-8x7b", AdapterKind::none);
  const PlanTime frozen = step_time("mixtral-8x7b", AdapterKind::lora);
  CHECK(frozen.compute_s < 0.75 * trained.compute_s);
}

// GEMMs reach 80 % of the peak (arXiv 2205.05198, Table 5), and nothing is faster.
TEST_CASE("the MFU is below the fraction of the peak that GEMMs reach") {
  const double reached =
      device_rates(find_machine("a100-80gb"), Purpose::train, DType::bfloat16).efficiency.matrix;
  for (const AdapterKind kind : {AdapterKind::none, AdapterKind::lora, AdapterKind::qlora}) {
    for (const Load& load : {Load{1, 512}, Load{8, 2048}, Load{1, 32768}}) {
      CAPTURE(load.seq_len);
      CHECK(step_time("llama-3-8b", kind, load).mfu.value() < reached);
    }
  }
}

}  // namespace headroom::test
