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

TEST_CASE("6·N·D counts the embedding table, which is only looked up, and not attention's scores") {
  WorkloadRequest training;
  training.phase = Phase::train;
  const auto report = make_explain_report(load_model("llama-3-8b"), training, Subject::training);
  const RuleOfThumb& rule = rule_named(report, "6·N·D");
  // A table of 128,256 rows and 65 norms of 4,096; scores and contexts of 32 layers, 3 passes.
  const Integer unused = Integer{128'256 + 65} * 4'096;
  const Integer scores = Integer{3} * 32 * 4 * 128 * 128 * 4'096;
  CHECK(rule.value - rule.exact == Integer{6} * 128 * unused - scores);
  CHECK(rule.differences == std::vector<std::string>{"the embedding table, which is only looked up",
                                                     "scores and contexts of attention",
                                                     "norms and biases"});
}

TEST_CASE("a table that the head multiplies, too, is no difference of 6·N·D") {
  WorkloadRequest training;
  training.phase = Phase::train;
  const auto report = make_explain_report(load_model("gpt2"), training, Subject::training);
  CHECK(rule_named(report, "6·N·D").differences ==
        std::vector<std::string>{"position embeddings, which are only added",
                                 "scores and contexts of attention", "norms and biases"});
}

TEST_CASE("rules name the recurrences and experts of a hybrid, and no FFN that no layer has") {
  const auto report = make_explain_report(load_model("qwen3-next-80b-a3b"), {}, Subject::flops);
  CHECK(rule_named(report, "2·N_active·b·s").differences ==
        std::vector<std::string>{"scores and contexts of attention", "the gated delta recurrences",
                                 "norms and biases", "the head's GEMM"});
  // Its config states an intermediate_size of 5120, which belongs to dense layers only.
  for (const RuleOfThumb& rule : report.rules) {
    for (const std::string& difference : rule.differences) {
      CHECK_MESSAGE(difference.find("5120") == std::string::npos, rule.name << ": " << difference);
    }
  }
}

TEST_CASE("the line of a model names its experts, and a dense FFN only if a layer has one") {
  struct Expected {
    const char* model;
    const char* words;
    bool dense;
  };
  // Sizes of the published configs; DeepSeek-V3 has 3 dense layers (arXiv 2412.19437, section 4.2).
  for (const auto& [name, words, dense] :
       {Expected{"llama-4-scout-text", "16 experts of 8192, 1 per token", false},
        Expected{"qwen3-30b-a3b", "128 experts of 768, 8 per token", false},
        Expected{"deepseek-v3", "gated FFN 18432 · 256 experts of 2048, 8 per token", true},
        Expected{"llama-3-8b", "gated FFN 14336 · vocab 128256", true}}) {
    const auto report = make_explain_report(load_model(name), {}, Subject::params);
    const std::string text = render(report, {Format::table, Detail::summary, 0, Colour::off});
    const std::string line = text.substr(0, text.find('\n'));
    CHECK_MESSAGE(line.find(words) != std::string::npos, line);
    CHECK_MESSAGE((line.find("FFN") != std::string::npos) == dense, line);
  }
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
