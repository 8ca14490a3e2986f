// Weights, activations, arithmetic, KV-cache and communication have their own types.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "headroom/error.h"
#include "headroom/microscaling.h"
#include "headroom/plan_report.h"
#include "headroom/report.h"
#include "headroom/storage.h"
#include "support/data.h"

namespace headroom::test {
namespace {

AnalyzeReport report_of(const char* model, const WorkloadRequest& request,
                        const char* machine = nullptr) {
  AnalyzeReport report = make_analyze_report(load_model(model), request);
  if (machine != nullptr) add_prediction(report, find_machine(machine), {});
  return report;
}

FitReport fit_of(const char* model, const PlanQuery& query, std::int64_t tensor) {
  PlanQuestion question;
  question.model = load_model(model);
  question.query = query;
  const MachineProfile machine = find_machine("h100-80gb");
  question.rates = device_rates(machine, query.purpose, query.dtype, query.arithmetic);
  question.devices = tensor;
  question.load = {4, 4096};
  PlanRequest request;
  request.choice.parallel.tensor = tensor;
  return make_fit_report(question, request);
}

Integer bytes_read(const AnalyzeReport& report, const std::string& path) {
  const auto node = std::ranges::find(report.analysis.nodes, path, &NodeAnalysis::path);
  REQUIRE(node != report.analysis.nodes.end());
  return node->cost.forward.bytes_read.evaluate(bindings_of(report.workload, report.graph));
}

}  // namespace

TEST_CASE("the type of weights changes no activation, no saved tensor and no KV-cache") {
  WorkloadRequest request;
  request.phase = Phase::train;
  const Figures stored = report_of("llama-3-8b", request).figures;
  request.weights = WeightType::float32;
  const Figures wide = report_of("llama-3-8b", request).figures;
  CHECK(wide.weight_bytes == 2 * stored.weight_bytes);
  CHECK(wide.saved_activation_bytes == stored.saved_activation_bytes);
  request.phase = Phase::decode;
  const Figures step = report_of("llama-3-8b", request).figures;
  request.weights.reset();
  const Figures stored_step = report_of("llama-3-8b", request).figures;
  CHECK(step.peak_activation_bytes == stored_step.peak_activation_bytes);
  CHECK(step.kv_cache_bytes == stored_step.kv_cache_bytes);
}

TEST_CASE("the type of weights and GEMMs changes no message between ranks") {
  PlanQuery query;
  const FitReport stored = fit_of("llama-3-8b", query, 2);
  query.weights = WeightType::float8;
  query.arithmetic = DType::float8;
  const FitReport low = fit_of("llama-3-8b", query, 2);
  REQUIRE(low.communication.size() == stored.communication.size());
  for (std::size_t i = 0; i < low.communication.size(); ++i) {
    CHECK(low.communication[i].wire_bytes == stored.communication[i].wire_bytes);
  }
  CHECK(low.result.figures.memory.activations == stored.result.figures.memory.activations);
}

// mixtral-8x7b: 8 experts of 3 · 4096 · 14336 weights in each of 32 layers, in bfloat16; a token
// takes 2 of them.
TEST_CASE("a step reads the stored bytes of the routed experts only") {
  WorkloadRequest request;
  request.phase = Phase::decode;
  request.batch_size = 1;
  const AnalyzeReport one = report_of("mixtral-8x7b", request);
  const Integer activations = Integer{32} * 2 * 2 * 14336;  // two experts' inner values per layer
  CHECK(bytes_read(one, "decoder.layers.mlp.experts.down") ==
        Integer{32} * 2 * 4096 * 14336 * 2 + activations);
  request.weights = WeightType::float32;
  CHECK(bytes_read(report_of("mixtral-8x7b", request), "decoder.layers.mlp.experts.down") ==
        Integer{32} * 2 * 4096 * 14336 * 4 + activations);
}

TEST_CASE("a token reads one stored row of the embedding") {
  WorkloadRequest request;
  request.seq_len = 3;
  const AnalyzeReport report = report_of("llama-3-8b", request);
  // Rows of 4096 bfloat16 values, and ids of 8 bytes.
  CHECK(bytes_read(report, "embeddings.word_embeddings") == Integer{3} * (2 * 4096 + 8));
}

// H100 SXM: 1,978.9 TFLOP/s in FP8, 989.4 in 16 bit (datasheet).
TEST_CASE("8-bit arithmetic speeds up the layers' GEMMs only") {
  WorkloadRequest request;
  request.seq_len = 4096;
  const auto time_at = [](const AnalyzeReport& report, const std::string& path) {
    const auto one = std::ranges::find(report.time->operators, path, &OperatorTime::path);
    REQUIRE(one != report.time->operators.end());
    return one->time_s;
  };
  const AnalyzeReport wide = report_of("llama-3-8b", request, "h100-80gb");
  request.arithmetic = DType::float8;
  const AnalyzeReport low = report_of("llama-3-8b", request, "h100-80gb");
  const std::string down = "decoder.layers.mlp.down";
  // Hopper's FP8 peak is twice the 16-bit one; runs reach another fraction of it.
  const auto sheet = std::get<DatasheetRates>(find_machine("h100-80gb").rates);
  const auto reached = [&](DType type) {
    return efficiency_of(sheet, Purpose::serve, type).fractions.matrix;
  };
  const double faster = 2 * reached(DType::float8) / reached(DType::bfloat16);
  CHECK(time_at(wide, down) == doctest::Approx(faster * time_at(low, down)).epsilon(0.001));
  for (const char* path : {"decoder.layers.attention.scores", "decoder.layers.attention.context"}) {
    CHECK(time_at(wide, path) == time_at(low, path));
  }
}

// B200: 9 PFLOP/s in FP4, 2.25 in 16 bit, of which runs reach 0.45 and 0.60 (efficiency.cpp).
TEST_CASE("4-bit arithmetic has the device's own peak for it") {
  WorkloadRequest request;
  request.seq_len = 8192;
  request.dtype = request.arithmetic = DType::bfloat16;
  const auto down_on = [&](const char* machine) {
    const AnalyzeReport report = report_of("llama-3-8b", request, machine);
    const auto one =
        std::ranges::find(report.time->operators, "decoder.layers.mlp.down", &OperatorTime::path);
    REQUIRE(one != report.time->operators.end());
    const auto sheet = std::get<DatasheetRates>(find_machine(machine).rates);
    const DType computed = computed_type(sheet, *request.arithmetic);
    return one->time_s - 32 * serving_kernel_seconds(sheet.architecture, computed);
  };
  const double wide = down_on("b200");
  const double wide_h100 = down_on("h100-80gb");
  request.arithmetic = DType::float4;
  CHECK(down_on("b200") == doctest::Approx(wide * 0.60 / (4 * 0.45)).epsilon(1e-6));
  CHECK(down_on("h100-80gb") == wide_h100);
  PlanQuery query;
  query.arithmetic = DType::float4;
  const MachineProfile b200 = find_machine("b200");
  const DeviceRates rates = device_rates(b200, query.purpose, query.dtype, query.arithmetic);
  CHECK(*rates.layer_gemm_flops_per_s == doctest::Approx(4 * rates.flops_per_s * 0.45 / 0.60));
  CHECK_FALSE(rates.conversion);
  CHECK(device_rates(find_machine("h200-141gb"), query.purpose, query.dtype, query.arithmetic)
            .conversion.has_value());
}

TEST_CASE("a config that states 4-bit activations computes in 4 bits") {
  ModelSpec spec = load_model("llama-3-8b").spec;
  spec.storage.activations = StatedType::nvfp4;
  CHECK(resolve({}, spec).arithmetic == DType::float4);
  spec.storage.activations = StatedType::int4;
  CHECK(resolve({}, spec).arithmetic == DType::int4);
  CHECK(info(InferenceRecipe::w4a4_nvfp4).arithmetic == DType::float4);
  WorkloadRequest request;
  request.phase = Phase::decode;
  request.kv_dtype = DType::int4;
  CHECK_THROWS_AS((void)resolve(request, spec), Error);
}

// Blackwell's tcgen05.mma and CDNA 4's v_mfma_scale_f32 scale blocks of 32 values; Hopper's wgmma
// does not.
TEST_CASE("MXFP8 multiplies at the rate of float8 where matrix units scale blocks of 32") {
  const InferenceRecipeInfo& recipe = info(InferenceRecipe::w8a8_mxfp8);
  CHECK(recipe.arithmetic == DType::float8);
  const ModelSpec plain = load_model("llama-3-8b").spec;
  const ModelSpec spec = stored_as(plain, recipe.weights);
  for (const char* const name : {"b200", "gb300", "mi355x", "rtx-5090"}) {
    CAPTURE(name);
    CHECK_FALSE(note_on_mxfp8(find_machine(name), spec, DType::float8));
  }
  const MachineProfile hopper = find_machine("h100-80gb");
  CHECK(note_on_mxfp8(hopper, spec, DType::float8));
  CHECK_FALSE(note_on_mxfp8(hopper, spec, DType::bfloat16));
  CHECK_FALSE(note_on_mxfp8(hopper, stored_as(plain, WeightType::float8), DType::float8));
  CHECK_FALSE(note_on_mxfp8(find_machine("a100-80gb"), spec, DType::float8));  // conversion_note()
}

TEST_CASE("a weight-only recipe computes in the type of the activations") {
  CHECK_FALSE(info(InferenceRecipe::w4a16).arithmetic);
  CHECK_FALSE(info(InferenceRecipe::w8a16).arithmetic);
  CHECK(info(InferenceRecipe::w8a8).arithmetic == DType::int8);
}

// arXiv 2412.19437, section 3.3: FP8 weights for the GEMMs, float32 master weights and gradients,
// bfloat16 moments of AdamW. Embedding, head and norms stay in 16 bits.
TEST_CASE("DeepSeek-V3's recipe keeps 13 bytes per weight of the layers with Adam") {
  const Graph graph =
      build_graph(load_model("llama-3-8b").spec, {Phase::train, AttentionImplementation::eager});
  const StatePolicy policy{Recipe::fp8_deepseek_v3, Optimizer::adam, AdapterKind::none};
  for (const Weight& weight : graph.weights) {
    const Integer elements = (weight.repeat * weight.elements()).evaluate(graph.sizes);
    const StateBytes states = state_bytes(weight, policy, graph.sizes);
    CHECK(states.total() == (is_layer_matrix(weight) ? 13 : 14) * elements);
  }
}

// The published checkpoint has 65,248,815,744 bytes (its model.safetensors.index.json) and runs on
// one device of 80 GB (the model card).
TEST_CASE("gpt-oss-120b fits one device of 80 GB as it is stored") {
  const FitReport report = fit_of("gpt-oss-120b", {}, 1);
  CHECK(report.storage.bytes == Integer{65'248'815'744});
  CHECK(report.result.fits);
  PlanQuery query;
  query.weights = WeightType::bfloat16;
  CHECK_FALSE(fit_of("gpt-oss-120b", query, 1).result.fits);
}

// arXiv 2412.19437, section 3.3: tokens go to their experts in FP8, with a float32 scale per 128
// values (1 + 4/128 bytes), and come back in bfloat16; gradients likewise.
TEST_CASE("DeepSeek-V3's recipe sends tokens to experts in FP8 and back in 16 bits") {
  const auto sent_with = [](Recipe recipe) {
    PlanQuery query;
    query.purpose = Purpose::train;
    query.states.recipe = recipe;
    Planner planner(load_model("mixtral-8x7b").spec, query,
                    device_rates(find_machine("h100-80gb"), Purpose::serve, DType::bfloat16));
    PlanChoice choice;
    choice.parallel.data = choice.parallel.expert = 4;
    double sent = 0;
    for (const Communication& row : planner.communication(choice, {4, 1024})) {
      if (row.group == RankGroup::expert) sent += row.wire_bytes;
    }
    return sent;
  };
  const double dispatched = 1 + 4.0 / 128;
  CHECK(sent_with(Recipe::fp8_deepseek_v3) / sent_with(Recipe::megatron) ==
        doctest::Approx((dispatched + 2) / (2 + 2)));
}

TEST_CASE("the groups of a storage sum to its bytes") {
  for (const char* const model : {"gpt-oss-20b", "deepseek-v3", "bert-base"}) {
    const AnalyzeReport report = report_of(model, {});
    Integer bytes = 0;
    Integer elements = 0;
    for (const StorageGroup& group : report.storage.groups) {
      CHECK_FALSE(group.format.empty());
      bytes += group.bytes;
      elements += group.parameters;
    }
    CHECK(bytes == report.figures.weight_bytes);
    CHECK(elements >= report.figures.parameters);  // buffers included
  }
}

namespace {

/// Every type of weights, and forms of groups with each kind of codes and scales.
std::vector<WeightForm> all_forms() {
  std::vector<WeightForm> forms;
  for (int type = 0; type <= static_cast<int>(WeightType::iq4_xs); ++type) {
    forms.emplace_back(static_cast<WeightType>(type));
  }
  for (const char* const name : {"4bit-1x128-s16-zeros", "4bit-1x16-s8", "4bit-1x64-nested",
                                 "int8-row-s16", "fp8-128x128-s32", "fp8-tensor-s32"}) {
    forms.emplace_back(group_format_named(name).value());
  }
  return forms;
}

}  // namespace

TEST_CASE("a device stores the bytes of analyze in every form of weights") {
  for (const WeightForm& form : all_forms()) {
    CAPTURE(name_of(form));
    WorkloadRequest request;
    request.weights = form;
    PlanQuery query;
    query.weights = form;
    const FitReport fit = fit_of("tinyllama-1.1b", query, 1);
    const Integer counted = report_of("tinyllama-1.1b", request).figures.weight_bytes;
    CHECK(fit.result.figures.memory.weights == counted);
    CHECK(fit.storage.bytes == counted);
    CHECK(fit.storage.origin == "converted to " + name_of(form));
  }
}

// 44 norms of 2 in each layer and the last one are in both ranks, of 2048 values each; GGUF's mixes
// store them in float32. Halves of an odd number of bytes are rounded up, for each of 10 weights.
TEST_CASE("tensor-parallel ranks share the bytes of every form of weights") {
  for (const WeightForm& form : all_forms()) {
    CAPTURE(name_of(form));
    PlanQuery query;
    query.weights = form;
    Planner planner(load_model("tinyllama-1.1b").spec, query,
                    device_rates(find_machine("h100-80gb"), Purpose::serve, DType::bfloat16));
    const Integer whole = planner.stage_weights({}).front();
    PlanChoice halves;
    halves.parallel.tensor = 2;
    const Integer shared = 2 * planner.stage_weights(halves).front() - whole;
    const auto* const type = std::get_if<WeightType>(&form);
    const bool wide =
        type != nullptr && (*type >= WeightType::q8_0 || *type == WeightType::float32);
    const Integer norms = Integer{45} * 2048 * (wide ? 4 : 2);
    CHECK(shared >= norms);
    CHECK(shared <= norms + 10);
  }
}

TEST_CASE("tensor-parallel ranks store their share of every weight") {
  const Integer whole = fit_of("llama-3-8b", {}, 1).result.figures.memory.weights;
  const FitReport halves = fit_of("llama-3-8b", {}, 2);
  // Norms are in both ranks: 65 of 4096 bfloat16 values.
  CHECK(2 * halves.result.figures.memory.weights == whole + Integer{65} * 4096 * 2);
}

}  // namespace headroom::test
