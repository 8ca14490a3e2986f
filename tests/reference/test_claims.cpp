// Figures that other tools and authors publish, explained exactly.
#include <doctest/doctest.h>

#include "headroom/claim.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

/// The names of the terms of the only explanation; empty if there is none, or several.
std::vector<std::string> explained(const ClaimReport& report) {
  std::vector<std::string> names;
  if (report.explanations.size() != 1) return names;
  Integer sum = report.ours.value;
  for (const ClaimTerm& term : report.explanations.front().terms) {
    names.push_back(term.name);
    sum += term.value;
    CHECK(term.formula.evaluate(report.values) == term.value);
  }
  const ClaimScale& scale = report.explanations.front().scale;
  if (!scale.name.empty()) names.push_back(scale.name);
  CHECK(sum * scale.numerator == report.claim * scale.denominator);
  return names;
}

std::vector<std::string> parameters_explained(const char* model, Integer claim) {
  return explained(explain_claim(load_model(model), {}, Subject::params, claim));
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a claim of training FLOPs per token counts the weights of norms as products") {
  // Another tool's figure for Qwen3-30B-A3B at 8,192 tokens: 6 · 210,944 weights more than ours.
  WorkloadRequest request;
  request.phase = Phase::train;
  request.seq_len = 8192;
  const ClaimReport report =
      explain_claim(load_model("qwen3-30b-a3b"), request, Subject::flops, 37'578'559'488);
  CHECK(report.ours.value == Integer{8192} * 37'577'293'824);
  CHECK(explained(report) ==
        Names{"norm weights at 2 FLOP forward and 4 backward per token", "per token"});
  CHECK(report.explanations.front().terms.front().value == Integer{8192} * 6 * 210'944);
}

TEST_CASE("published parameter counts of GPT-2 differ by head, positions and biases") {
  // 124,439,808 are those of Hugging Face's checkpoint.
  CHECK(parameters_explained("gpt2", 124'439'808).empty());  // equal: no terms
  // nn.Module.parameters() of an implementation without tied weights
  CHECK(parameters_explained("gpt2", 163'037'184) == Names{"the tied head counted again"});
  // Raschka, Build a Large Language Model (2024), section 4.6: untied, and qkv_bias=False
  CHECK(parameters_explained("gpt2", 163'009'536) ==
        Names{"without biases of attention.qkv", "the tied head counted again"});
  // nanoGPT's get_num_params, 123.65 M: without position embeddings
  CHECK(parameters_explained("gpt2", 123'653'376) ==
        Names{"without embeddings.position_embeddings.weight"});
}

TEST_CASE("a head that was taken for tied, a pooler and active experts are named") {
  // BertModel(add_pooling_layer=False)
  CHECK(parameters_explained("bert-base", 108'891'648) ==
        Names{"without the head, or without pooler"});
  // A calculator's 7.505 B for Llama-3-8B, as if the head were tied
  CHECK(parameters_explained("llama-3-8b", 7'504'924'672) ==
        Names{"without embeddings, or without the head"});
  // Jiang et al. 2024, arXiv 2401.04088: 12.9 B active parameters
  CHECK(parameters_explained("mixtral-8x7b", 12'879'925'248) ==
        Names{"without experts that no token is routed to"});
}

TEST_CASE("claims of a KV-cache ignore latent keys, recurrent layers or half of the entries") {
  WorkloadRequest request;
  request.dtype = DType::bfloat16;
  request.seq_len = 4096;
  // Calculators' 1,748,992 B a token for DeepSeek-V3
  const Names latent =
      explained(explain_claim(load_model("deepseek-v3"), request, Subject::kv, 1'748'992));
  CHECK(latent == Names{"keys and values of d each in every layer: grouped or latent heads ignored",
                        "per token"});
  // 24 GiB for Qwen3-Next at 262,144 tokens
  request.seq_len = 262'144;
  const Names hybrid = explained(
      explain_claim(load_model("qwen3-next-80b-a3b"), request, Subject::kv, Integer{24} << 30));
  CHECK(hybrid ==
        Names{"full attention's cache in every layer: windows or recurrent states ignored"});
  // K without V: 0.5 GiB for Llama-3-8B at 8,192 tokens
  request.seq_len = 8192;
  const Names keys =
      explained(explain_claim(load_model("llama-3-8b"), request, Subject::kv, Integer{1} << 29));
  CHECK(keys == Names{"with half the bytes per element, or keys or values alone"});
}

TEST_CASE("multiply-adds and a causal half are found together") {
  const Model model = load_model("gpt2");
  const Integer ours = make_analyze_report(model, WorkloadRequest{}).figures.forward.matrix_flops;
  // Scores and contexts of 12 layers: 4·b·s²·d each (Narayanan et al. 2021, eq. 3).
  const Integer pairs = Integer{12} * 4 * 128 * 128 * 768;
  const ClaimReport report = explain_claim(model, {}, Subject::flops, (ours - pairs / 2) / 2);
  REQUIRE(report.explanations.size() == 1);
  CHECK(report.explanations.front().scale.name == "in multiply–adds");
  CHECK(report.explanations.front().terms.front().value == -pairs / 2);
}

TEST_CASE("a verdict counts the terms that there are") {
  const auto verdict = [](Subject subject, Phase phase) {
    WorkloadRequest request;
    request.phase = phase;
    return render(explain_claim(load_model("gpt2"), request, subject, 37),
                  {Format::table, Detail::summary, 0, Colour::off});
  };
  CHECK(verdict(Subject::kv, Phase::prefill).find("sums of at most 1 term,") != std::string::npos);
  CHECK(verdict(Subject::states, Phase::train).find(" of no terms,") != std::string::npos);
}

TEST_CASE("a figure of a training step is claimed of one") {
  CHECK(refusal_of([] {
          return explain_claim(load_model("gpt2"), {}, Subject::states, 37);
        }).find("training step") != std::string::npos);
}

TEST_CASE("a figure of nobody has no explanation") {
  CHECK(explain_claim(load_model("bert-base"), {}, Subject::flops, 12'345'678'901)
            .explanations.empty());
  CHECK(refusal_of([] {
          return explain_claim(load_model("bert-base"), {}, Subject::flops, 0);
        }).find("at least 1") != std::string::npos);
}
