// Configs that state a quantisation, without files: `compare` runs random codes in that form.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "headroom/compare.h"
#include "headroom/predict.h"
#include "headroom/report.h"
#include "headroom/storage.h"
#include "inspect/model_folder.h"
#include "measure.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::measured;
using namespace headroom::test;

namespace {

/// quantization_config of published checkpoints, by method.
std::vector<std::pair<std::string, nlohmann::json>> stated_methods() {
  const nlohmann::json channels = {{"num_bits", 8}, {"type", "int"}, {"strategy", "channel"}};
  const nlohmann::json group = {{"targets", {"Linear"}}, {"weights", channels}};
  return {{"awq",
           {{"quant_method", "awq"},
            {"bits", 4},
            {"group_size", 128},
            {"version", "gemm"},
            {"zero_point", true}}},
          {"gptq",
           {{"quant_method", "gptq"},
            {"bits", 4},
            {"group_size", 128},
            {"desc_act", false},
            {"sym", true}}},
          {"compressed-tensors",
           {{"quant_method", "compressed-tensors"},
            {"format", "int-quantized"},
            {"ignore", {"lm_head"}},
            {"config_groups", {{"group_0", group}}}}},
          {"fp8",
           {{"quant_method", "fp8"},
            {"fmt", "e4m3"},
            {"activation_scheme", "dynamic"},
            {"weight_block_size", {128, 128}}}}};
}

/// The prediction of `model`, and a run of it with random codes.
struct StatedRun {
  AnalyzeReport predicted;
  Measurement measured;
};

StatedRun run_of(const Model& model) {
  WorkloadRequest request;
  request.seq_len = 5;
  request.dtype = DType::float32;
  StatedRun run{make_analyze_report(model, request), {}};
  MeasureOptions options;
  options.storage = HeldType::stored;
  options.activations = ActivationPath::float32;
  options.runs = 1;
  options.warmup = 0;
  TimeRequest time;
  time.computes_in_float32 = true;
  time.opaque_layout = options.backend == Backend::onednn;
  run.predicted.run = predict_run(model.spec, run.predicted.workload, time);
  const auto source = random_stored(model.spec, 1);
  run.measured = measure(model, run.predicted.workload, *source, std::nullopt, options,
                         [](int, int) { return true; });
  return run;
}

}  // namespace

TEST_CASE("a config that states a quantisation runs random codes, counted as they are predicted") {
  for (const auto& method : stated_methods()) {
    CAPTURE(method.first);
    nlohmann::json config = llama_of_blocks();
    config["torch_dtype"] = "bfloat16";
    config["quantization_config"] = method.second;
    Model model;
    model.spec = spec_of(config);
    const StatedRun run = run_of(model);
    CHECK(stored_gemm_formats(model.spec, run.predicted.workload).has_value());
    CHECK(Integer{run.measured.counted.weight_bytes} == run.predicted.figures.weight_bytes);
    CHECK(Integer{run.measured.counted.matrix_flops} == run.predicted.figures.forward.matrix_flops);
    int exact = 0;
    for (const ComparisonRow& row :
         compare(predicted_run(run.predicted), measured_run(run.measured), {}).rows) {
      if (row.tolerance != 0.0 || row.result == RowResult::skip) continue;
      CAPTURE(row.quantity);
      CHECK(row.result == RowResult::pass);
      ++exact;
    }
    CHECK(exact == 5);  // parameters, FLOPs, weights, KV-cache and activations
  }
}

TEST_CASE("a run names its own types of GEMMs and KV-cache, not those stated for engines") {
  nlohmann::json config = llama_of_blocks();
  config["quantization_config"] = {
      {"quant_method", "modelopt"}, {"quant_algo", "FP8"}, {"kv_cache_quant_algo", "FP8"}};
  Model model;
  model.spec = spec_of(config);
  const StatedRun run = run_of(model);
  CHECK(run.predicted.workload.kv_dtype == DType::float8);
  CHECK(run.predicted.workload.arithmetic == DType::float8);
  CHECK(run.measured.workload.kv_dtype == DType::float32);
  CHECK(run.measured.workload.arithmetic_type() == DType::float32);
  // Keys and values of 5 tokens in 2 layers: 2 heads of 64.
  CHECK(run.measured.counted.kv_cache_bytes == 2 * 5 * 2 * 2 * 64 * 4);
}

TEST_CASE("products of a stated quantisation are as many as those of plain weights") {
  Model plain;
  plain.spec = spec_of(llama_of_blocks());
  const Integer flops = make_analyze_report(plain, {}).figures.forward.matrix_flops;
  for (const auto& method : stated_methods()) {
    CAPTURE(method.first);
    nlohmann::json config = llama_of_blocks();
    config["quantization_config"] = method.second;
    Model model;
    model.spec = spec_of(config);
    CHECK(make_analyze_report(model, {}).figures.forward.matrix_flops == flops);
  }
}
