// Inputs of GEMMs that recipes in float8 save in one byte a value, with the sizes of a layer
// counted by hand.
#include "training_plans.h"

namespace headroom::test {
namespace {

constexpr std::int64_t kSequence = 1024;

/// Bytes of activations that one device saves of a sequence.
Integer saved_with(Recipe recipe, const ModelSpec& spec) {
  PlanQuery query;
  query.purpose = Purpose::train;
  query.states.recipe = recipe;
  Planner planner(spec, query,
                  device_rates(find_machine("b200"), query.purpose, query.dtype, DType::float8));
  return memory_of(planner, {}, {1, kSequence}).activations;
}

/// Float8 values with a scale of one byte per 32, or of four per 128.
Integer microscaled(Integer values) { return values + values / 32; }

}  // namespace

// A layer of Llama saves for its GEMMs two outputs of norms (4,096 each), the attention's output
// (4,096), which attention saves too, and the input of down (14,336).
TEST_CASE("GEMMs in float8 save their inputs in one byte, which Llama's MLP profits from most") {
  const ModelSpec spec = load_model("llama-3-8b").spec;
  const Integer in_16_bits = saved_with(Recipe::megatron, spec);
  const Integer layers = 32 * kSequence;
  const Integer norms = 2 * 4096;
  const Integer down = 14336;
  CHECK(saved_with(Recipe::mixed, spec) == in_16_bits);
  SUBCASE("scaled by tensor, Megatron-LM copies the attention's output") {
    CHECK(saved_with(Recipe::fp8_transformer_engine, spec) ==
          in_16_bits - layers * (norms + down) + layers * 4096);
  }
  SUBCASE("scaled by block, it is read where attention saved it") {
    const Integer saved = 2 * (norms + down) - microscaled(norms + down);
    CHECK(saved_with(Recipe::mxfp8_transformer_engine, spec) == in_16_bits - layers * saved);
    CHECK(saved_with(Recipe::fp8_deepseek_v3, spec) == in_16_bits - layers * saved);
  }
}

// Each of a token's two experts saves the token (4,096) and the input of down (14,336). The router
// multiplies in 16 bits, and so keeps the norm's output before the experts.
TEST_CASE("experts in float8 save their tokens in one byte, and routers theirs in two") {
  const ModelSpec spec = load_model("mixtral-8x7b").spec;
  const Integer layers = 32 * kSequence;
  const Integer in_one_byte = 4096 + 2 * (4096 + 14336);
  CHECK(saved_with(Recipe::megatron, spec) - saved_with(Recipe::mxfp8_transformer_engine, spec) ==
        layers * (2 * in_one_byte - microscaled(in_one_byte)));
}

TEST_CASE("an MXFP8 recipe keeps two copies of each layer matrix with a scale per 32 values") {
  const Graph graph = training_graph(load_model("llama-3-8b").spec, AttentionImplementation::fused);
  const StatePolicy policy{Recipe::mxfp8_transformer_engine, Optimizer::adam, AdapterKind::none};
  for (const Weight& weight : graph.weights) {
    const Integer elements = (weight.repeat * weight.elements()).evaluate(graph.sizes);
    const Integer copies = is_layer_matrix(weight) ? 2 * microscaled(elements) : 0;
    CHECK(state_bytes(weight, policy, graph.sizes).total() == 18 * elements + copies);
  }
}

// Megatron-LM's distributed optimizer gathers the 16-bit weights; copies in float8 are made of
// them.
TEST_CASE("replicas gather 16-bit weights, and make their copies in float8 of them") {
  const auto gathered = [](Recipe recipe) {
    PlanQuery query;
    query.purpose = Purpose::train;
    query.states.recipe = recipe;
    Planner planner(load_model("llama-3-8b").spec, query,
                    device_rates(find_machine("b200"), query.purpose, query.dtype));
    PlanChoice choice;
    choice.parallel.data = 8;
    choice.zero = Zero::optimizer;
    for (const Communication& row : planner.communication(choice, {8, kSequence})) {
      if (row.kind == CollectiveKind::all_gather) return row.wire_bytes;
    }
    return 0.0;
  };
  constexpr double kParameters = 8'030'261'248;
  CHECK(gathered(Recipe::megatron) == doctest::Approx(2 * kParameters * 7 / 8));
  CHECK(gathered(Recipe::fp8_transformer_engine) == gathered(Recipe::megatron));
  CHECK(gathered(Recipe::mxfp8_transformer_engine) == gathered(Recipe::megatron));
  CHECK(gathered(Recipe::fp8_deepseek_v3) < gathered(Recipe::megatron));
}

}  // namespace headroom::test
