// Rules of thumb: their published meaning, and a reason wherever one differs from the exact figure.
#include <doctest/doctest.h>

#include <algorithm>

#include "headroom/report.h"
#include "support/sanitized.h"

namespace headroom {
namespace {

const RuleOfThumb& rule_named(const ExplainReport& report, const std::string& name) {
  const auto found = std::ranges::find(report.rules, name, &RuleOfThumb::name);
  REQUIRE(found != report.rules.end());
  return *found;
}

TEST_CASE("the N of 2·N·b·s leaves out embeddings, as Kaplan's does") {
  WorkloadRequest one_token;
  one_token.seq_len = 1;
  const auto report = make_explain_report(load_model("gpt2"), one_token, Subject::flops);
  // 124,439,808 parameters less 50257 + 1024 rows of 768.
  CHECK(rule_named(report, "2·N·b·s").value == 2 * 85'056'000);
}

TEST_CASE("a mixture of experts computes with the parameters that a token uses") {
  WorkloadRequest one_token;
  one_token.seq_len = 1;
  const auto report = make_explain_report(load_model("mixtral-8x7b"), one_token, Subject::flops);
  const RuleOfThumb& rule = rule_named(report, "2·N_active·b·s");
  // Only the scores of attention, the head and the norms are left out.
  const double difference = 1 - static_cast<double>(rule.value) / static_cast<double>(rule.exact);
  CHECK(difference > 0);
  CHECK(difference < 0.02);
}

TEST_CASE("no rule for whole layers stands beside a single layer") {
  WorkloadRequest training;
  training.phase = Phase::train;
  training.dtype = DType::bfloat16;
  for (const char* layer : {"layer-ffn", "layer-multi-head-attention"}) {
    const auto report = make_explain_report(load_model(layer), training, Subject::activations);
    CHECK_MESSAGE(report.rules.empty(), layer);
  }
}

TEST_CASE(
    "a decode step of an encoder-decoder computes with the decoder's half of the parameters") {
  WorkloadRequest step;
  step.phase = Phase::decode;
  const auto report = make_explain_report(load_model("t5-small"), step, Subject::flops);
  // 60,506,624 parameters less the table of 32128 rows of 512 and two of 32 distances by 8 heads.
  CHECK(rule_named(report, "2·N·b·s/2").value == 60'506'624 - 32128 * 512 - 2 * 32 * 8);
}

TEST_CASE("a layer without attention does not differ by its scores") {
  const auto report = make_explain_report(load_model("layer-ffn"), {}, Subject::flops);
  CHECK(rule_named(report, "2·N·b·s").differences == std::vector<std::string>{"norms and biases"});
}

TEST_CASE("every rule of thumb that differs from the exact figure names why") {
  const std::vector<Preset> presets = list_presets();
  for (std::size_t i = 0; i < presets.size(); i += test::kModelStep) {
    const Preset& preset = presets[i];
    const Model model = read_preset(preset);
    for (const Subject subject : {Subject::params, Subject::flops, Subject::kv}) {
      if (subject == Subject::kv && !model.spec.main_stack().causal()) continue;
      const ExplainReport report = make_explain_report(model, {}, subject);
      for (const RuleOfThumb& rule : report.rules) {
        if (rule.value == rule.exact) continue;
        CHECK_MESSAGE(!rule.differences.empty(), preset.name << ": " << rule.name);
      }
    }
  }
}

}  // namespace
}  // namespace headroom
