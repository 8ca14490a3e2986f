// Steps of routed experts.
#include <algorithm>
#include <memory>

#include "kernels/elementwise.h"
#include "kernels/experts.h"
#include "step_builder.h"

namespace headroom::measured {

StepBuilder::Run StepBuilder::operator()(const RouterSelect& op) {
  RouterArguments args;
  args.rows = integer(op.rows);
  args.num_experts = integer(op.num_experts);
  args.per_token = integer(op.per_token);
  auto plan = std::make_shared<ExpertPlan>(args.rows, args.num_experts, args.per_token);
  plans_[node_->output] = plan;
  std::size_t next = 0;
  const std::string scale = op.spec.beside_dense ? weight_path(next++) : std::string();
  const std::string bias = op.spec.correction_bias ? weight_path(next) : std::string();
  const std::int64_t moved = args.rows * (args.num_experts + 2 * args.per_token) * kFloatBytes;
  return [=, spec = op.spec, weights = &program_.weights_, scores = input(0), routing = output(),
          layers_per_weights = block_.layers_per_weights](std::int64_t layer) mutable {
    const std::int64_t stored = layer / layers_per_weights;
    if (!bias.empty()) args.correction_bias = weights->values(bias, stored);
    if (!scale.empty()) args.expert_scale = weights->values(scale, stored);
    select_experts(args, spec, scores, routing);
    plan_experts(routing, *plan);
    return StepCount{0, moved};
  };
}

StepBuilder::Run StepBuilder::operator()(const ExpertLinear& op) {
  const std::int64_t experts = integer(op.num_experts);
  const std::int64_t in = integer(op.in_features);
  const std::int64_t out = integer(op.out_features);
  const std::int64_t slots = integer(op.rows * op.per_token);
  std::vector<std::map<std::int64_t, PackedLinear*>> by_expert;
  for (std::int64_t expert = 0; expert < experts; ++expert) by_expert.push_back(linears(expert));
  const bool gathers = op.source == ExpertLinear::Source::tokens;
  auto gathered = scratch(gathers ? slots * in : 0);
  return [=, by_expert = std::move(by_expert), plan = plans_.at(node_->inputs.at(1)),
          weighting = op.weighting, x = input(0), y = output()](std::int64_t layer) {
    if (gathers) gather_rows(*plan, weighting, x, in, gathered->data());
    const float* const from = gathers ? gathered->data() : x;
    StepCount count{0, slots * (in + out) * kFloatBytes};
    for (std::size_t expert = 0; expert < by_expert.size(); ++expert) {
      const std::int64_t first = plan->first[expert];
      const std::int64_t rows = plan->first[expert + 1] - first;
      if (rows == 0) continue;
      PackedLinear& linear = *by_expert[expert].at(layer);
      count.matrix_flops += linear.run(from + first * in, y + first * out, rows);
      count.bytes += linear.weight_bytes(rows);
    }
    return count;
  };
}

StepBuilder::Run StepBuilder::operator()(const ExpertCombine& op) {
  const std::int64_t width = integer(op.width);
  const std::int64_t rows = integer(op.rows);
  const std::int64_t slots = rows * integer(op.per_token);
  return [=, plan = plans_.at(node_->inputs.at(1)), weighting = op.weighting, x = input(0),
          y = output()](std::int64_t /*layer*/) {
    combine_experts(*plan, weighting, x, width, y);
    return StepCount{0, (slots + rows) * width * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const RowGate& op) {
  const std::int64_t rows = integer(op.rows);
  const std::int64_t width = integer(op.width);
  return [=, copy_input = input_copy(), gate = input(1), x = output()](std::int64_t /*layer*/) {
    copy_input();
    gate_rows(x, gate, rows, width);
    return StepCount{0, 2 * rows * width * kFloatBytes};
  };
}

}  // namespace headroom::measured
