// Steps of operators that no preset has, and claims about figures that have no terms.
#include <doctest/doctest.h>

#include <algorithm>

#include "headroom/claim.h"
#include "headroom/crossover.h"
#include "headroom/derivation.h"
#include "headroom/error.h"
#include "headroom/machine_profile.h"
#include "headroom/report.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

Derivation flops_of_family(const std::string& family, Phase phase = Phase::prefill) {
  WorkloadRequest request;
  request.phase = phase;
  const auto folder = data_folder() / "families" / family;
  return make_derivation(load_model((folder / "config.json").string()), request, Subject::flops);
}

bool has_step(const Derivation& derivation, const std::string& name) {
  for (const DerivationBlock& block : derivation.blocks) {
    for (const DerivationGroup& group : block.groups) {
      if (std::ranges::count(group.steps, name, &DerivationStep::name) > 0) return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("a state that is added to has two products, and one that forgets a vector has four") {
  const Derivation added = flops_of_family("rwkv5");
  CHECK(has_step(added, "addition"));
  CHECK(has_step(added, "read at the receptance"));
  CHECK_FALSE(has_step(added, "removal"));
  const Derivation removed = flops_of_family("rwkv7");
  CHECK(has_step(removed, "read at the removal"));
  CHECK(has_step(removed, "removal"));
  const Derivation corrected = flops_of_family("kimi_linear");
  CHECK(has_step(corrected, "correction"));
}

TEST_CASE("steps of families with unusual operators sum to their counts in every phase") {
  for (const char* const family :
       {"kimi_k3_text", "deepseek_v4", "glm5_next_text", "minimax_m3", "hy_v4", "axk2", "flint",
        "kolibri1", "laguna", "lara_mini", "muse_glimmer_text", "step3p5"}) {
    CAPTURE(family);
    for (const Phase phase : {Phase::prefill, Phase::decode, Phase::train}) {
      const Derivation derivation = flops_of_family(family, phase);
      CHECK(derivation.total.value > 0);
      CHECK(derivation.total.value == derivation.reported);
    }
  }
}

TEST_CASE("claims about element-wise operations and training states are tried without terms") {
  WorkloadRequest trains;
  trains.phase = Phase::train;
  for (const Subject subject : {Subject::elementwise, Subject::states}) {
    const ClaimReport report = explain_claim(load_model("gpt2"), trains, subject, 12'345);
    CHECK(report.terms_tried == 0);
    CHECK(report.explanations.empty());
    const ClaimReport equal = explain_claim(load_model("gpt2"), trains, subject, report.ours.value);
    REQUIRE(equal.explanations.size() == 1);
    CHECK(equal.explanations.front().terms.empty());
  }
}

TEST_CASE("a cache of states alone has no attention to take instead") {
  WorkloadRequest decode;
  decode.phase = Phase::decode;
  const ClaimReport mamba = explain_claim(load_model("mamba-130m"), decode, Subject::kv, 1'000);
  CHECK(mamba.ours.value > 0);
  CHECK(mamba.explanations.empty());
}

TEST_CASE("parameters of cross-attention can be left out of an encoder-decoder's FLOPs") {
  const Model model = load_model("t5-small");
  const ClaimReport ours = explain_claim(model, {}, Subject::flops, 1'000);
  Integer cross = 0;
  const AnalyzeReport report = make_analyze_report(model, {});
  for (std::size_t i = 0; i < report.analysis.components.size(); ++i) {
    const std::string name = name_of(report.analysis.components[i].component);
    const bool is_cross = name.find("cross_attention") != std::string::npos;
    if (is_cross) cross += report.figures.components[i].forward.matrix_flops;
  }
  REQUIRE(cross > 0);
  const ClaimReport without = explain_claim(model, {}, Subject::flops, ours.ours.value - cross);
  REQUIRE_FALSE(without.explanations.empty());
  const bool named = std::ranges::any_of(without.explanations, [](const ClaimExplanation& one) {
    return std::ranges::count(one.terms, "without cross-attention", &ClaimTerm::name) == 1;
  });
  CHECK(named);
}

TEST_CASE("crossovers need a datasheet, and exist only where a cost grows") {
  const MachineProfile machine = find_machine("h100-80gb");
  const CrossoverReport layer = make_crossover_report(load_model("layer-ffn"), {}, &machine);
  CHECK(layer.crossovers.empty());
  MachineProfile measured = machine;
  measured.rates = MeasuredRates{};
  const Model gpt2 = load_model("gpt2");
  CHECK(refusal_of([&] {
          (void)make_crossover_report(gpt2, {}, &measured);
        }).find("need its datasheet") != std::string::npos);
}

TEST_CASE("a list of presets that is empty says where all are") {
  const auto hint_of = [](const PresetQuery& query) {
    try {
      (void)find_presets(query);
    } catch (const Error& error) {
      return std::string(error.hint());
    }
    return std::string();
  };
  CHECK(hint_of({.text = "zzzzzzzz"}) == "`headroom presets` lists all");
  CHECK(hint_of({.family = "zzzzzzzz"}) == "a preset's type is in the list of presets");
}
