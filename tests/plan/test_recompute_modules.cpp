// Modules that selective recomputation names, beside the terms of arXiv 2205.05198, section 4.1, in
// bytes of 16-bit training: of 34·s·b·h, the GeLU and the second linear keep 8·s·b·h each, and the
// inputs of the QKV projection and of the first linear, which are outputs of norms, 2·s·b·h each.
#include "gpt_models.h"
#include "headroom/plan_report.h"
#include "headroom/recompute_modules.h"

namespace headroom::test {
namespace {

constexpr std::int64_t kRecomputeBatch = 2;
constexpr std::int64_t kRecomputeSeq = 512;

Planner training_planner(const ModelSpec& spec,
                         AttentionImplementation attention = AttentionImplementation::eager) {
  PlanQuery query;
  query.purpose = Purpose::train;
  query.attention = attention;
  return {spec, query, device_rates(find_machine("a100-80gb"), Purpose::train, DType::bfloat16)};
}

/// Empty for none.
Recomputation recomputing(std::string_view modules) {
  if (modules.empty()) return {};
  return {Recompute::selective, 1, recompute_modules(modules).value()};
}

PlanFigures trained(const ModelSpec& spec, const char* modules, std::int64_t expert_ranks = 1) {
  Planner planner = training_planner(spec);
  PlanChoice choice;
  choice.parallel.data = expert_ranks;
  choice.parallel.expert = expert_ranks;
  choice.micro_batch = kRecomputeBatch;
  choice.recompute = recomputing(modules);
  return planner.evaluate(choice, {kRecomputeBatch * expert_ranks, kRecomputeSeq});
}

/// Bytes of layers that recomputing these modules drops.
Integer dropped_by(const ModelSpec& spec, const char* modules) {
  return trained(spec, "").memory.activations - trained(spec, modules).memory.activations;
}

}  // namespace

TEST_CASE("recomputed modules drop the terms that the paper lists for them") {
  constexpr std::int64_t kLayers = 6;
  constexpr std::int64_t kHeads = 8;
  constexpr std::int64_t kWidth = 1024;
  const ModelSpec spec = gpt(kWidth, kHeads, kLayers);
  const Integer sbh = Integer{kRecomputeSeq} * kRecomputeBatch * kWidth * kLayers;
  const Integer pairs = Integer{kHeads} * kRecomputeSeq * kRecomputeSeq * kRecomputeBatch * kLayers;
  CHECK(dropped_by(spec, "mlp") == 16 * sbh);
  // A mean and a reciprocal deviation a row besides, for each of two norms.
  const Integer statistics = Integer{2} * 2 * 2 * kRecomputeSeq * kRecomputeBatch * kLayers;
  CHECK(dropped_by(spec, "layernorm") == 4 * sbh + statistics);
  CHECK(dropped_by(spec, "core_attn") == 5 * pairs);
  CHECK(dropped_by(spec, "mlp,layernorm,core_attn") == 20 * sbh + statistics + 5 * pairs);
}

TEST_CASE("tensor parallelism does not hide a norm's output from its recomputation") {
  const ModelSpec spec = gpt(1024, 8, 6);
  Planner planner = training_planner(spec);
  PlanChoice choice;
  choice.parallel.tensor = 4;
  const Load load{1, kRecomputeSeq};
  const Integer all = planner.evaluate(choice, load).memory.activations;
  choice.recompute = {Recompute::selective, 1, RecomputeModules(RecomputeModule::layernorm)};
  const Integer sbh = Integer{kRecomputeSeq} * 1024 * 6;
  const Integer dropped = all - planner.evaluate(choice, load).memory.activations;
  CHECK(dropped >= 4 * sbh);
  CHECK(dropped < 4 * sbh + sbh / 100);  // statistics besides
}

TEST_CASE("a recomputed network runs its tensor-parallel all-reduce again") {
  const ModelSpec spec = gpt(1024, 8, 6);
  Planner planner = training_planner(spec);
  PlanChoice choice;
  choice.parallel.tensor = 4;
  const auto all_reduces = [&](const char* modules) {
    choice.recompute = recomputing(modules);
    for (const Communication& row : planner.communication(choice, {1, kRecomputeSeq})) {
      if (row.kind == CollectiveKind::all_reduce) return row.count;
    }
    return 0.0;
  };
  CHECK(all_reduces("mlp") == all_reduces("") + 6);
  CHECK(all_reduces("layernorm,core_attn") == all_reduces(""));
}

// A gated expert keeps its copies of tokens, two projections and their product, of every token a
// times: with 2 of 8 experts a = 2.
TEST_CASE("recomputed experts drop their tokens, projections and products") {
  const ModelSpec spec =
      spec_of(read_json(data_folder() / "golden/configs/mixtral-8x7b.config.json"), "mixtral");
  const Integer tokens =
      Integer{kRecomputeSeq} * kRecomputeBatch * 2 * spec.main_stack().num_layers;
  const Integer width = spec.main_stack().ffn.experts->intermediate_size;
  CHECK(dropped_by(spec, "moe_act") == 2 * width * tokens);
  const Integer experts = dropped_by(spec, "moe");
  CHECK(experts >= 2 * 3 * width * tokens);
  CHECK(experts < 2 * (3 * width + 3 * spec.hidden_size) * tokens);
  CHECK(dropped_by(spec, "moe,moe_act") == experts);
  CHECK(dropped_by(spec, "mlp") == 0);
}

// DeepSeek-V3 keeps of each token and head a query and a key of 128 + 64 values and a value of 128
// (arXiv 2412.19437, section 4.2), and of its shared expert a gate, an up projection and their
// product of 2048 values each, in 58 of 61 layers.
TEST_CASE("expanded latents and shared experts are dropped by modules of their own") {
  const ModelSpec spec =
      spec_of(read_json(data_folder() / "golden/configs/deepseek-v3.config.json"), "deepseek-v3");
  const Integer tokens = Integer{kRecomputeSeq} * kRecomputeBatch;
  const Integer heads = Integer{2} * 128 * (2 * (128 + 64) + 128) * 61 * tokens;
  const Integer shared = Integer{2} * 3 * 2048 * 58 * tokens;
  CHECK(dropped_by(spec, "mla_up_proj") == heads);
  CHECK(dropped_by(spec, "shared_experts") == shared);
  CHECK(dropped_by(spec, "mla_up_proj,shared_experts") == heads + shared);
  CHECK(dropped_by(spec, "moe,shared_experts") == dropped_by(spec, "moe"));
  CHECK(dropped_by(gpt(1024, 8, 6), "mla_up_proj,shared_experts") == 0);
}

// Megatron-LM's layernorm names the norms before attention and feed-forward network, not those of
// compressed queries and latents (megatron/core/transformer/transformer_layer.py).
TEST_CASE("the norms of latents are not those that layernorm recomputes") {
  const ModelSpec spec =
      spec_of(read_json(data_folder() / "golden/configs/deepseek-v3.config.json"), "deepseek-v3");
  const Integer tokens = Integer{kRecomputeSeq} * kRecomputeBatch;
  // Two outputs in 16 bits and two reciprocal deviations in 32 a token and layer.
  CHECK(dropped_by(spec, "layernorm") == (Integer{2} * 2 * 7168 + 2 * 4) * 61 * tokens);
}

TEST_CASE("a plan notes that the modules which it recomputes drop nothing") {
  const auto notes_of = [](const char* modules) {
    PlanQuestion question;
    question.model.spec = gpt(1024, 8, 6);
    question.query.purpose = Purpose::train;
    question.rates = device_rates(find_machine("a100-80gb"), Purpose::train, DType::bfloat16);
    question.load = {1, kRecomputeSeq};
    SearchSpace space;
    space.threads = 1;
    space.fixed.recompute = recomputing(modules);
    return make_plan_report(question, space, search_plans).notes;
  };
  const auto counts = [](const std::vector<std::string>& notes, std::string_view text) {
    return std::ranges::count(notes, text);
  };
  CHECK(counts(notes_of("moe"), "recomputing moe drops no tensor of this model") == 1);
  CHECK(counts(notes_of("mlp"), "recomputing mlp drops no tensor of this model") == 0);
}

TEST_CASE("what is recomputed takes its forward pass again, and experts' tokens travel again") {
  const ModelSpec spec =
      spec_of(read_json(data_folder() / "golden/configs/mixtral-8x7b.config.json"), "mixtral");
  const PlanTime none = trained(spec, "", 8).time;
  const PlanTime activation = trained(spec, "moe_act", 8).time;
  const PlanTime experts = trained(spec, "moe", 8).time;
  CHECK(activation.compute_s > none.compute_s);
  CHECK(experts.compute_s > activation.compute_s);
  // Data-parallel communication has more computation to overlap with.
  CHECK(experts.communication_s > 1.4 * none.communication_s);
  CHECK(experts.communication_s < 1.5 * none.communication_s);
}

TEST_CASE("experts that are recomputed exchange tokens in three passes, not two") {
  const ModelSpec spec =
      spec_of(read_json(data_folder() / "golden/configs/mixtral-8x7b.config.json"), "mixtral");
  Planner planner = training_planner(spec, AttentionImplementation::fused);
  PlanChoice choice;
  choice.parallel.data = 8;
  choice.parallel.expert = 8;
  const auto exchanges = [&] {
    for (const Communication& row : planner.communication(choice, {8, kRecomputeSeq})) {
      if (row.kind == CollectiveKind::all_to_all) return row.count;
    }
    return 0.0;
  };
  const auto layers = static_cast<double>(spec.main_stack().num_layers);
  CHECK(exchanges() == 4 * layers);
  choice.recompute = {Recompute::selective, 1, RecomputeModules(RecomputeModule::moe)};
  CHECK(exchanges() == 6 * layers);
  choice.recompute = {Recompute::selective, 1, RecomputeModules(RecomputeModule::moe_act)};
  CHECK(exchanges() == 4 * layers);
}

TEST_CASE("a module that drops nothing is noted") {
  PlanQuestion question;
  question.model = load_model("gpt2");
  question.query.purpose = Purpose::train;
  question.query.attention = AttentionImplementation::fused;
  question.rates = device_rates(find_machine("a100-80gb"), Purpose::train, DType::bfloat16);
  question.load = {1, 512};
  const auto notes = [&](const char* modules) {
    PlanRequest request;
    request.choice.recompute = {Recompute::selective, 1, recompute_modules(modules).value()};
    const std::vector<std::string> all = make_fit_report(question, request).notes;
    return std::pair(
        std::ranges::count_if(all,
                              [](const std::string& note) {
                                return note.ends_with("drops no tensor of this model");
                              }),
        std::ranges::count(
            all, "selective recomputation (core_attn) saves nothing with fused attention"));
  };
  CHECK(notes("moe,moe_act") == std::pair(1L, 0L));
  CHECK(notes("core_attn") == std::pair(0L, 1L));  // fused attention keeps no pairs
  CHECK(notes("mlp") == std::pair(0L, 0L));
}

TEST_CASE("modules have Megatron-LM's names, in any order and once each") {
  CHECK(name_of(recompute_modules("moe_act,layernorm,moe_act").value()) == "layernorm,moe_act");
  CHECK(name_of(recompute_modules("core_attn,mlp").value(), ' ') == "core_attn mlp");
  for (const char* const wrong : {"", "norm", "mlp,", ",mlp", "mlp, moe", "MLP"}) {
    CAPTURE(wrong);
    CHECK_FALSE(recompute_modules(wrong).has_value());
  }
  CHECK(name_of(Recomputation{Recompute::selective, 1}) == "selective");
  CHECK(name_of(Recomputation{Recompute::selective, 1, recompute_modules("mlp").value()}) == "mlp");
}

}  // namespace headroom::test
