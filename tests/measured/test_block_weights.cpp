// Models whose weights stay in ggml's blocks, against float32 runs of the same values.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "headroom/storage.h"
#include "inspect/model_folder.h"
#include "measure.h"
#include "run_memory.h"
#include "stored_runs.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::measured;
using namespace headroom::test;

namespace {

Measurement measured_in_blocks(const nlohmann::json& config, WeightType type, MeasuredPhase phase) {
  Model model;
  model.spec = stored_as(spec_of(config), type);
  MeasureOptions options;
  options.phase = phase;
  options.storage = HeldType::stored;
  options.runs = 1;
  options.warmup = 0;
  options.new_tokens = 3;
  const auto source = random_stored(model.spec, 1);
  return measure(std::move(model), prompt_of(5), *source, std::nullopt, options,
                 [](int, int) { return true; });
}

constexpr std::array kMixes{WeightType::q8_0, WeightType::q6_k, WeightType::q5_k_m,
                            WeightType::q4_k_m, WeightType::q4_0};

}  // namespace

TEST_CASE("weights in blocks with float32 activations compute what their float32 values compute") {
  for (const WeightType type : kMixes) {
    CAPTURE(name_of(type));
    const ModelSpec spec = stored_as(spec_of(llama_of_blocks()), type);
    const auto exact = logits_of(spec, {});
    REQUIRE(exact.size() == 9 * 320);
    CHECK(relative_error(logits_of(spec, stored_with(ActivationPath::float32)), exact) < 1e-5);
  }
}

TEST_CASE("int8 activations move the logits by about the rounding of eight bits") {
  for (const WeightType type : kMixes) {
    CAPTURE(name_of(type));
    const ModelSpec spec = stored_as(spec_of(llama_of_blocks()), type);
    const double error =
        relative_error(logits_of(spec, stored_with(ActivationPath::int8)), logits_of(spec, {}));
    // A step is 1/127 of the largest of 32 values, two to three deviations: each activation is off
    // by 3/127/√12 = 0.7 % of their deviation. The products of the two layers in sequence, seven
    // on the longest path, add up as independent errors: 2 %.
    CHECK(error < 0.03);
    CHECK(error > 0);
  }
}

TEST_CASE("weights in blocks are counted and held as stored") {
  const ModelSpec spec = stored_as(spec_of(llama_of_blocks()), WeightType::q4_k_m);
  const Measurement run =
      measured_in_blocks(llama_of_blocks(), WeightType::q4_k_m, MeasuredPhase::prefill);
  const Graph graph = build_graph(spec, all_parts());
  const StoredWeights stored = stored_weights(spec, graph);
  CHECK(Integer{run.counted.weight_bytes} == stored.bytes);
  CHECK(static_cast<double>(run.memory.weights_held_bytes) <
        1.01 * static_cast<double>(run.counted.weight_bytes));
  CHECK(run.activations == "int8");
  std::int64_t bytes = 0;
  std::int64_t parameters = 0;
  for (const WeightFormat& format : run.weight_formats) {
    CHECK(format.stored == format.held);
    bytes += format.bytes;
    parameters += format.parameters;
  }
  CHECK(bytes == run.counted.weight_bytes);
  CHECK(parameters == run.counted.parameters);
  CHECK(run.weight_formats.front().stored == "Q4_K");
}

TEST_CASE("FLOPs do not depend on the type of the weights, and generations hold one layout") {
  const Measurement eight =
      measured_in_blocks(llama_of_blocks(), WeightType::q8_0, MeasuredPhase::generate);
  const Measurement four =
      measured_in_blocks(llama_of_blocks(), WeightType::q4_0, MeasuredPhase::generate);
  CHECK(eight.counted.matrix_flops == four.counted.matrix_flops);
  CHECK(four.memory.weights_held_bytes < 1.01 * static_cast<double>(four.counted.weight_bytes));
}

TEST_CASE("a tied table in blocks is held once") {
  nlohmann::json config = llama_of_blocks();
  config["tie_word_embeddings"] = true;
  const Measurement run = measured_in_blocks(config, WeightType::q8_0, MeasuredPhase::prefill);
  CHECK(run.memory.weights_held_bytes < 1.01 * static_cast<double>(run.counted.weight_bytes));
}

TEST_CASE("experts stay in their blocks") {
  nlohmann::json config = llama_of_blocks();
  config["model_type"] = "mixtral";
  config["architectures"] = {"MixtralForCausalLM"};
  config["num_local_experts"] = 4;
  config["num_experts_per_tok"] = 2;
  const ModelSpec spec = stored_as(spec_of(config), WeightType::q4_0);
  const auto exact = logits_of(spec, {});
  CHECK(relative_error(logits_of(spec, stored_with(ActivationPath::float32)), exact) < 1e-5);
}

TEST_CASE("the memory of a run counts weights in blocks in their own bytes") {
  const ModelSpec spec = stored_as(spec_of(llama_of_blocks()), WeightType::q4_k_m);
  const Graph graph = build_graph(spec, all_parts());
  const RunMemory memory = memory_of(spec, {prompt_of(5), 0, HeldType::stored});
  CHECK(memory.weights == stored_weights(spec, graph).bytes);
  // BF16 is not a type of blocks: all weights are widened to float32.
  const ModelSpec half = stored_as(spec_of(llama_of_blocks()), WeightType::bfloat16);
  const RunMemory widened = memory_of(half, {prompt_of(5), 0, HeldType::stored});
  CHECK(widened.weights == 2 * stored_weights(half, graph).bytes);
}

TEST_CASE("types that run only when widened are named") {
  const Measurement run =
      measured_in_blocks(llama_of_blocks(), WeightType::mxfp4, MeasuredPhase::prefill);
  const auto widened = [](const WeightFormat& format) { return format.stored != format.held; };
  const auto found = std::ranges::find_if(run.weight_formats, widened);
  REQUIRE(found != run.weight_formats.end());
  CHECK(found->stored == "BF16");
  CHECK(found->held == "F32");
}
