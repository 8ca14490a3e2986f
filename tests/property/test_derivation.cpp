// Derivations step by step: sums, for every preset.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "headroom/derivation.h"
#include "support/data.h"
#include "support/sanitized.h"

using namespace headroom;
using namespace headroom::test;

namespace {

/// A figure to derive, and the workload that has it.
struct DerivedCase {
  Subject subject;
  Phase phase;
  AttentionImplementation attention = AttentionImplementation::eager;
  Recompute recompute = Recompute::none;
};

constexpr DerivedCase kCases[] = {
    {Subject::flops, Phase::prefill},
    {Subject::flops, Phase::prefill, AttentionImplementation::fused},
    {Subject::flops, Phase::decode},
    {Subject::flops, Phase::train},
    {Subject::elementwise, Phase::prefill},
    {Subject::params, Phase::prefill},
    {Subject::activations, Phase::train},
    {Subject::activations, Phase::train, AttentionImplementation::fused, Recompute::selective},
    {Subject::activations, Phase::train, AttentionImplementation::eager, Recompute::full},
    {Subject::kv, Phase::prefill},
    {Subject::kv, Phase::decode},
    {Subject::training, Phase::train, AttentionImplementation::fused, Recompute::full},
};

/// The figure of a report that was counted without the steps.
Integer reported(const Figures& figures, Subject subject) {
  switch (subject) {
    case Subject::flops:
      return figures.forward.matrix_flops;
    case Subject::elementwise:
      return figures.forward.elementwise_flops;
    case Subject::params:
    case Subject::states:
      return figures.parameters;
    case Subject::activations:
      return figures.saved_activation_bytes;
    case Subject::kv:
      return figures.kv_cache_bytes;
    case Subject::training:
      break;
  }
  return figures.forward.matrix_flops + figures.backward.matrix_flops +
         figures.recompute.matrix_flops;
}

/// Adds up the printed numbers alone.
Integer sum_of_steps(const Derivation& derivation) {
  Integer sum = 0;
  for (const DerivationBlock& block : derivation.blocks) {
    Integer one = 0;
    for (const DerivationGroup& group : block.groups) {
      Integer subtotal = 0;
      for (const DerivationStep& step : group.steps) {
        subtotal += step.value;
        CHECK(step.formula.evaluate(derivation.values) == step.value);
      }
      CHECK(subtotal == group.subtotal.value);
      one += subtotal;
    }
    CHECK(one == block.one.value);
    CHECK(one * block.times.value == block.all.value);
    sum += one * block.times.value;
  }
  return sum;
}

bool has_case(const ModelSpec& spec, const DerivedCase& one) {
  const bool caches = spec.main_stack().causal() && spec.kind != ModelKind::denoiser;
  if (one.phase == Phase::decode && !caches) return false;
  if (one.subject != Subject::kv) return true;
  WorkloadRequest request;
  request.phase = one.phase;
  return count(spec, resolve(request, spec)).figures.kv_cache_bytes > 0;
}

}  // namespace

TEST_CASE("the steps of every preset's derivations sum to the report's figures") {
  std::size_t derived = 0;
  const std::vector<Preset> presets = list_presets();
  for (std::size_t i = 0; i < presets.size(); i += kModelStep) {
    const Preset& preset = presets[i];
    const Model model = load_model(preset.name);
    for (const DerivedCase& one : kCases) {
      if (!has_case(model.spec, one)) continue;
      CAPTURE(preset.name);
      CAPTURE(std::string(name_of(one.subject)));
      WorkloadRequest request;
      request.phase = one.phase;
      request.attention = one.attention;
      request.recompute = one.recompute;
      const Derivation derivation = make_derivation(model, request, one.subject);
      const Figures figures = make_analyze_report(model, request).figures;
      CHECK(sum_of_steps(derivation) == reported(figures, one.subject));
      ++derived;
    }
  }
  CHECK(derived > (kSanitized ? 300 : 3000));
}
