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

TEST_CASE("12·l·d² stands for the parameters of the text's layers alone") {
  const auto layers = [](const char* model) {
    return rule_named(make_explain_report(load_model(model), {}, Subject::params), "12·l·d²").exact;
  };
  // 12 layers of 12·d² + 13·d (Kaplan et al. 2020, table 1, with biases and norms).
  CHECK(layers("gpt2") == Integer{12} * (12 * 768 * 768 + 13 * 768));
  // Mamba: in, convolution of 4 taps, x, dt, A, D, out and a norm per layer (arXiv 2312.00752).
  const Integer width = 1536;
  const Integer mamba = 768 * 2 * width + width * 5 + width * (48 + 2 * 16) + width * 48 + width +
                        width * 16 + width + width * 768 + 768;
  CHECK(layers("mamba-130m") == Integer{24} * mamba);
  // 28 layers: attention of 16 heads of 128 with 8 for keys and values, an FFN of 6144, two norms,
  // and two of heads.
  const Integer qwen = 2 * 2048 * 2048 + 2 * 2048 * 1024 + 3 * 2048 * 6144 + 2 * 2048 + 2 * 128;
  CHECK(layers("qwen3-vl-2b") == Integer{28} * qwen);
}

TEST_CASE("layers of a shared block count, and the rule names it") {
  const auto report = make_explain_report(load_model("zamba2-7b"), {}, Subject::params);
  const RuleOfThumb& rule = rule_named(report, "12·l·d²");
  // All parameters but the table, which the head shares, and the final norm.
  CHECK(rule.exact == report.whole.value - Integer{32'000 + 1} * 3'584);
  CHECK(std::ranges::count(rule.differences, "blocks of attention and FFN that layers share") == 1);
}

TEST_CASE("a text's N has no image tower, which the rule for all parameters names") {
  const Model model = load_model("qwen3-vl-2b");
  const auto params = make_explain_report(model, {}, Subject::params);
  CHECK(std::ranges::count(rule_named(params, "12·l·d² + V·d").differences, "the image tower") ==
        1);
  // All parameters but the table of 151936 rows, 306,242,560 of the tower and 100,714,496 of the
  // projector.
  const Integer text = params.whole.value - 306'242'560 - 100'714'496;
  const auto flops = make_explain_report(model, {}, Subject::flops);
  const RuleOfThumb& forward = rule_named(flops, "2·N·b·s");
  CHECK(forward.value == Integer{2} * 128 * (text - Integer{151'936} * 2'048));
  CHECK(std::ranges::count(forward.differences, "the image tower") == 0);
  WorkloadRequest training;
  training.phase = Phase::train;
  const auto trained = make_explain_report(model, training, Subject::training);
  CHECK(rule_named(trained, "6·N·D").value == Integer{6} * 128 * text);
}

TEST_CASE("a pass with images differs by their tower") {
  WorkloadRequest request;
  request.images = 1;
  const auto report = make_explain_report(load_model("qwen3-vl-2b"), request, Subject::flops);
  CHECK(std::ranges::count(rule_named(report, "2·N·b·s").differences, "the image tower") == 1);
  const RuleOfThumb& layers = rule_named(report, "24·b·s·l·d²·(1 + t/(6·d))");
  CHECK(layers.value == layers.exact);  // of the text alone
}

TEST_CASE("windows are a difference only where they cut keys or pairs") {
  const auto windows = [](std::int64_t tokens, AttentionImplementation attention, Subject subject) {
    WorkloadRequest request;
    request.seq_len = tokens;
    request.attention = attention;
    const auto report = make_explain_report(load_model("mistral-7b-v0.1"), request, subject);
    return std::ranges::count(report.rules.back().differences, "windows");
  };
  CHECK(windows(128, AttentionImplementation::fused, Subject::flops) == 0);
  CHECK(windows(4096, AttentionImplementation::fused, Subject::flops) == 0);
  CHECK(windows(4097, AttentionImplementation::fused, Subject::flops) == 1);
  CHECK(windows(8192, AttentionImplementation::eager, Subject::flops) == 0);  // masks all pairs
  CHECK(windows(128, AttentionImplementation::eager, Subject::kv) == 0);
  CHECK(windows(8192, AttentionImplementation::eager, Subject::kv) == 1);
}

TEST_CASE("one key-value head is singular") {
  const auto report = make_explain_report(load_model("gemma-3-1b"), {}, Subject::kv);
  CHECK(report.rules.front().differences.front() == "1 key-value head, not 4");
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
