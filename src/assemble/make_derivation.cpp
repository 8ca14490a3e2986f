// Groups the steps of a figure by layer and sublayer, and sums them.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyze_model.h"
#include "derivation_reasons.h"
#include "derivation_steps.h"
#include "headroom/derivation.h"
#include "headroom/error.h"

namespace headroom {
namespace {

using detail::PlacedStep;

class Deriver {
 public:
  Deriver(AnalyzeReport analyzed, Subject subject) : analyzed_(std::move(analyzed)) {
    derivation_.subject = subject;
    derivation_.unit = detail::unit_of(subject);
    derivation_.values = bindings_of(analyzed_.workload, analyzed_.graph);
    derivation_.relations = relations_of(analyzed_.workload);
    derivation_.relations.insert(derivation_.relations.end(), analyzed_.graph.relations.begin(),
                                 analyzed_.graph.relations.end());
  }

  Derivation derive() && {
    for (const PlacedStep& step : detail::steps_of(analyzed_, derivation_.subject)) add(step);
    merge_equal_layers();
    Expr total;
    for (DerivationBlock& block : derivation_.blocks) total += sum(block);
    derivation_.total = figure("total", total);
    derivation_.reported =
        detail::figure_of(analyzed_, derivation_.subject).evaluate(derivation_.values);
    if (derivation_.reported != derivation_.total.value) {
      throw Error(ErrorCode::internal,
                  fmt::format("the steps sum to {} {}, and the count is {}",
                              to_string(derivation_.total.value), derivation_.unit,
                              to_string(derivation_.reported)));
    }
    derivation_.reasons = detail::reasons_of(analyzed_, derivation_.subject);
    derivation_.workload = analyzed_.workload;
    derivation_.model = std::move(analyzed_.model);
    derivation_.notes = notes_on(derivation_.workload, derivation_.model.spec);
    if (!derivation_.model.name_note.empty()) {
      derivation_.notes.insert(derivation_.notes.begin(), derivation_.model.name_note);
    }
    return std::move(derivation_);
  }

 private:
  [[nodiscard]] ExplainedFigure figure(std::string name, const Expr& formula) const {
    return {std::move(name), collapse(formula, derivation_.relations),
            formula.evaluate(derivation_.values)};
  }

  void add(const PlacedStep& step) {
    DerivationBlock& block = block_of(step);
    auto group = std::ranges::find(block.groups, step.group, &DerivationGroup::name);
    if (group == block.groups.end()) {
      block.groups.push_back({step.group, {}, {}});
      group = std::prev(block.groups.end());
    }
    group->steps.push_back({step.name, step.path, step.operands, step.product,
                            collapse(step.product, derivation_.relations),
                            step.product.evaluate(derivation_.values)});
  }

  DerivationBlock& block_of(const PlacedStep& step) {
    for (DerivationBlock& block : derivation_.blocks) {
      if (block.path == step.block && block.times.formula == step.times) return block;
    }
    derivation_.blocks.push_back(
        {step.block, {"layers", step.times, step.times.evaluate(derivation_.values)}, {}, {}, {}});
    return derivation_.blocks.back();
  }

  static bool equal_steps(const DerivationStep& a, const DerivationStep& b) {
    return a.name == b.name && a.operands == b.operands && a.product == b.product;
  }
  static bool equal_groups(const DerivationGroup& a, const DerivationGroup& b) {
    return a.name == b.name && std::ranges::equal(a.steps, b.steps, equal_steps);
  }

  /// Layers of a stack that alternate with others are blocks of their own; equal ones become one.
  void merge_equal_layers() {
    std::vector<DerivationBlock> merged;
    for (DerivationBlock& block : derivation_.blocks) {
      const auto same = std::ranges::find_if(merged, [&](const DerivationBlock& other) {
        return other.path.substr(0, other.path.find('[')) ==
                   block.path.substr(0, block.path.find('[')) &&
               std::ranges::equal(other.groups, block.groups, equal_groups);
      });
      if (same == merged.end()) {
        merged.push_back(std::move(block));
        continue;
      }
      same->path += block.path.substr(std::min(block.path.find('['), block.path.size()));
      same->times.formula += block.times.formula;
      same->times.value = checked_add(same->times.value, block.times.value);
    }
    derivation_.blocks = std::move(merged);
  }

  /// Fills in the subtotals; returns the sum of all layers.
  Expr sum(DerivationBlock& block) const {
    Expr one;
    for (DerivationGroup& group : block.groups) {
      Expr subtotal;
      for (const DerivationStep& step : group.steps) subtotal += step.product;
      group.subtotal = figure(group.name, subtotal);
      one += subtotal;
    }
    block.one = figure(block.path, one);
    Expr all = one * block.times.formula;
    block.all = figure(block.path, all);
    return all;
  }

  AnalyzeReport analyzed_;
  Derivation derivation_;
};

/// FLOPs of the steps of each operator, all layers.
std::map<std::string, Integer> derived_by_path(const Derivation& derivation) {
  std::map<std::string, Integer> derived;
  for (const DerivationBlock& block : derivation.blocks) {
    for (const DerivationGroup& group : block.groups) {
      for (const DerivationStep& step : group.steps) {
        Integer& sum = derived[step.path];
        sum = checked_add(sum, step.value);
      }
    }
  }
  return derived;
}

}  // namespace

Derivation make_derivation(Model model, const WorkloadRequest& request, Subject subject,
                           const KvCacheRequest& kv_cache) {
  AnalyzeReport analyzed =
      detail::analyze_model(std::move(model), request, Convention::headroom, kv_cache);
  return Deriver(std::move(analyzed), subject).derive();
}

void add_measurement(Derivation& derivation, const Measurement& measurement) {
  const auto add = [&](std::string path, Integer derived, Integer counted) {
    derivation.measured.push_back({std::move(path), derived, counted});
  };
  switch (derivation.subject) {
    case Subject::flops:
      break;
    case Subject::params:
      return add("", derivation.total.value, measurement.counted.parameters);
    case Subject::kv:
      return add("", derivation.total.value, measurement.counted.kv_cache_bytes);
    case Subject::elementwise:
    case Subject::activations:
    case Subject::training:
    case Subject::states:
      throw Error(ErrorCode::invalid_input,
                  fmt::format("a run counts no {}", name_of(derivation.subject)), {},
                  "leave out the run, or explain flops, params or kv");
  }
  const std::map<std::string, Integer> derived = derived_by_path(derivation);
  for (const OperatorMeasurement& op : measurement.operators) {
    const auto found = derived.find(op.path);
    if (found == derived.end() && op.matrix_flops == 0) continue;
    Integer layers = 0;
    for (const DerivationBlock& block : derivation.blocks) {
      for (const DerivationGroup& group : block.groups) {
        const auto step = std::ranges::find(group.steps, op.path, &DerivationStep::path);
        if (step != group.steps.end()) layers = block.times.value;
      }
    }
    add(op.path, found == derived.end() ? 0 : checked_multiply(layers, found->second),
        op.matrix_flops);
  }
  add("", derivation.total.value, measurement.counted.matrix_flops);
}

}  // namespace headroom
