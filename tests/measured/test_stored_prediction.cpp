// Predictions of weights in blocks against what the measured module holds, counts and times.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "calibrate/probes.h"
#include "headroom/error.h"
#include "headroom/machine_profile.h"
#include "headroom/predict.h"
#include "headroom/report.h"
#include "headroom/storage.h"
#include "inspect/model_folder.h"
#include "measure.h"
#include "run_memory.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::measured;
using namespace headroom::test;

namespace {

/// Multi-head latent attention: decode reads the matrices of kv_b as float32.
nlohmann::json latent_model() {
  return {{"model_type", "deepseek_v3"},
          {"architectures", {"DeepseekV3ForCausalLM"}},
          {"hidden_size", 256},
          {"intermediate_size", 512},
          {"moe_intermediate_size", 256},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 4},
          {"q_lora_rank", 256},
          {"kv_lora_rank", 256},
          {"qk_nope_head_dim", 32},
          {"qk_rope_head_dim", 32},
          {"v_head_dim", 64},
          {"n_routed_experts", 4},
          {"n_shared_experts", 1},
          {"num_experts_per_tok", 2},
          {"n_group", 1},
          {"topk_group", 1},
          {"first_k_dense_replace", 1},
          {"norm_topk_prob", true},
          {"routed_scaling_factor", 1.0},
          {"hidden_act", "silu"},
          {"max_position_embeddings", 64},
          {"rms_norm_eps", 1e-6},
          {"rope_theta", 10000.0},
          {"rope_scaling", nullptr},
          {"tie_word_embeddings", false},
          {"vocab_size", 320}};
}

/// Rows of 96 values fill no block of 256, but three of 32; rows of 48 fill neither.
nlohmann::json narrow_llama(std::int64_t hidden_size) {
  nlohmann::json config = llama_of_blocks();
  config["hidden_size"] = hidden_size;
  config["intermediate_size"] = 160;
  return config;
}

constexpr std::array kMixes{WeightType::q8_0,   WeightType::q6_k, WeightType::q5_k_m,
                            WeightType::q4_k_m, WeightType::q4_0, WeightType::mxfp4};

Workload prompt_in(WeightType type) {
  Workload workload;
  workload.seq_len = 5;
  workload.weights = type;
  return workload;
}

struct PredictedAndRun {
  RunFigures predicted;
  Integer held_bytes = 0;  ///< of weights, predicted
  Measurement run;
};

PredictedAndRun predicted_and_run(const nlohmann::json& config, WeightType type) {
  const ModelSpec spec = stored_as(spec_of(config), type);
  const Workload workload = prompt_in(type);
  Model model;
  model.spec = spec;
  MeasureOptions options;
  options.storage = HeldType::stored;
  options.runs = 1;
  options.warmup = 0;
  const auto source = random_stored(spec, 1);
  TimeRequest request;
  request.computes_in_float32 = true;
  request.opaque_layout = options.backend == Backend::onednn;
  return {predict_run(spec, workload, request), predict_held_weight_bytes(spec, workload, request),
          measure(std::move(model), workload, *source, std::nullopt, options,
                  [](int, int) { return true; })};
}

}  // namespace

TEST_CASE("the formats that GEMMs read as stored are those with kernels") {
  std::set<std::string_view> with_kernels;
  for (const checkpoint::GgmlTypeInfo& type : checkpoint::ggml_types()) {
    if (has_block_kernels(type.type)) with_kernels.insert(type.name);
  }
  CHECK(with_kernels == std::set(block_formats().begin(), block_formats().end()));
}

TEST_CASE("weights in blocks take exactly the predicted number of bytes") {
  const nlohmann::json configs[] = {llama_of_blocks(), tied_llama(), mixture_of_experts(),
                                    latent_model(), narrow_llama(96)};
  for (const nlohmann::json& config : configs) {
    for (const WeightType type : kMixes) {
      CAPTURE(config.dump());
      CAPTURE(name_of(type));
      const auto [predicted, held, run] = predicted_and_run(config, type);
      CHECK(predicted.parameters == run.counted.parameters);
      CHECK(predicted.weight_bytes == run.counted.weight_bytes);
      CHECK(predicted.matrix_flops == run.counted.matrix_flops);
      // Tiles of rows are filled with zeros.
      CHECK(static_cast<double>(run.memory.weights_held_bytes) ==
            doctest::Approx(static_cast<double>(held)).epsilon(0.01));
    }
  }
}

TEST_CASE("rows that fill no block are predicted as they run, in float32") {
  for (const WeightType type : kMixes) {
    CAPTURE(name_of(type));
    const auto [predicted, held, run] = predicted_and_run(narrow_llama(48), type);
    CHECK(predicted.weight_bytes == run.counted.weight_bytes);
  }
}

TEST_CASE("weights in blocks that run as float32 are predicted in float32") {
  const ModelSpec spec = stored_as(spec_of(tied_llama()), WeightType::q4_0);
  Workload workload = prompt_in(WeightType::float32);
  CHECK_FALSE(stored_gemm_formats(spec, workload).has_value());
  TimeRequest request;
  request.computes_in_float32 = true;
  const RunFigures predicted = predict_run(spec, workload, request);
  CHECK(predicted.weight_bytes == 4 * predicted.parameters);
}

TEST_CASE("float16 weights, which no kernel runs, have no time on this machine") {
  CHECK_THROWS_AS((void)stored_gemm_formats(spec_of(tied_llama()), prompt_in(WeightType::float16)),
                  Error);
}

TEST_CASE("loading the largest weight takes more memory than the run where it is held narrower") {
  nlohmann::json config = tied_llama();
  config["vocab_size"] = 200'000;
  const ModelSpec spec = spec_of(config);
  Workload workload;
  workload.seq_len = 1;
  TimeRequest request;
  request.computes_in_float32 = true;
  const RunFigures predicted = predict_run(spec, workload, request);
  // The float32 values of the table return to the system as it is packed.
  const Integer table = Integer{4} * 256 * 200'000;
  CHECK(predicted.rss_growth_bytes >= table);
  CHECK(predicted.rss_growth_bytes < 3 * table / 2);
  CHECK(predict_held_weight_bytes(spec, workload, request) < 3 * table / 2);
  workload.weights = WeightType::bfloat16;
  CHECK(predict_held_weight_bytes(spec, workload, request) < 3 * table / 4);
  CHECK(predict_run(spec, workload, request).rss_growth_bytes >= table);
}

TEST_CASE("GEMMs of weights in blocks are timed cold and warm, with inputs in whole blocks") {
  Gauge gauge(Backend::eigen, 1, std::int64_t{32} << 20);
  LinearProbes probes{Backend::eigen, {}};
  Budget& budget = probes.budgets.emplace_back(budget_of(Effort::quick));
  budget.rounds = 1;
  budget.seconds = 0;
  budget.gauge = &gauge;
  budget.reference = gauge.read();
  std::vector<ThreadProfile> profiles(1);
  REQUIRE(probe_stored_gemms(probes, checkpoint::GgmlType::q4_k, profiles,
                             [](double) { return true; }));
  const StoredGemm* const gemm = find_stored_gemm(profiles.front(), "Q4_K");
  REQUIRE(gemm != nullptr);
  const auto& inputs = gemm->cold.axes[1];
  CHECK(std::ranges::all_of(inputs, [](double in) { return to_integer(in) % 256 == 0; }));
  CHECK(gemm->cold.seconds.front().value_or(0) > 0);
  CHECK(gemm->warm.seconds.front().value_or(0) > 0);
}
