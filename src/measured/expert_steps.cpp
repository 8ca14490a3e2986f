// Steps of routed experts.
#include <algorithm>
#include <memory>

#include "headroom/error.h"
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
  const std::string bias = op.spec.correction_bias ? weight_path(next++) : std::string();
  const bool looks_up = op.spec.selection == ExpertSelection::token_table;
  const std::string table = looks_up ? weight_path(next) : std::string();
  if (looks_up) args.ids = tokens().ids.data();
  const std::int64_t moved = args.rows * (args.num_experts + 2 * args.per_token) * kFloatBytes;
  return [=, spec = op.spec, weights = &program_.weights_, scores = input(0), routing = output(),
          layers_per_weights = block_.layers_per_weights](std::int64_t layer) mutable {
    const std::int64_t stored = layer / layers_per_weights;
    if (!bias.empty()) args.correction_bias = weights->values(bias, stored);
    if (!scale.empty()) args.expert_scale = weights->values(scale, stored);
    if (!table.empty()) args.token_experts = weights->values(table, stored);
    select_experts(args, spec, scores, routing);
    plan_experts(routing, *plan);
    return StepCount{0, moved};
  };
}

std::shared_ptr<const ExpertPlan> StepBuilder::expert_plan() const {
  const auto exchange = exchanges_.find(node_->inputs.at(1));
  if (exchange != exchanges_.end()) return exchange->second->round_plan();
  return plans_.at(node_->inputs.at(1));
}

StepBuilder::Run StepBuilder::operator()(const ExpertLinear& op) {
  const std::int64_t experts = integer(op.num_experts);
  const std::int64_t in = integer(op.in_features);
  const std::int64_t out = integer(op.out_features);
  const std::int64_t slots = integer(op.rows * op.per_token);
  const bool came_from_ranks = exchanges_.contains(node_->inputs.at(1));
  std::vector<std::map<std::int64_t, PackedLinear*>> by_expert;
  for (std::int64_t expert = 0; expert < experts; ++expert) by_expert.push_back(linears(expert));
  const bool gathers = op.source == ExpertLinear::Source::tokens && !came_from_ranks;
  auto gathered = scratch(gathers ? slots * in : 0);
  return [=, by_expert = std::move(by_expert), plan = expert_plan(), weighting = op.weighting,
          x = input(0), y = output()](std::int64_t layer) {
    if (gathers) gather_rows(*plan, weighting, x, in, gathered->data());
    const float* const from = gathers ? gathered->data() : x;
    StepCount count;
    for (std::size_t expert = 0; expert < by_expert.size(); ++expert) {
      const std::int64_t first = plan->first[expert];
      const std::int64_t rows = plan->first[expert + 1] - first;
      if (rows == 0) continue;
      PackedLinear& linear = *by_expert[expert].at(layer);
      count.matrix_flops += linear.run(from + first * in, y + first * out, rows);
      count.bytes += rows * (in + out) * kFloatBytes + linear.weight_bytes(rows);
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

const Node& StepBuilder::experts_beside(TensorId tensor) const {
  const auto found = std::ranges::find_if(block_.nodes, [&](const Node& node) {
    return std::holds_alternative<ExpertLinear>(node.op) &&
           (node.inputs.front() == tensor || node.output == tensor);
  });
  if (found != block_.nodes.end()) return *found;
  throw Error(ErrorCode::internal, "an all-to-all has no experts", node_->path);
}

/// Sends every selection of this rank's tokens to the rank of its expert.
StepBuilder::Run StepBuilder::send_to_experts(Communicator* group) {
  require_group(group);
  const Node& experts = experts_beside(node_->output);
  const auto& op = std::get<ExpertLinear>(experts.op);
  const TensorId routing = experts.inputs.at(1);
  const std::int64_t width = integer(op.in_features);
  const std::int64_t slots = integer(op.rows * op.per_token);
  auto exchange = std::make_shared<ExpertExchange>(*group, plans_.at(routing), slots);
  exchange->tensors.insert(node_->output);
  exchanges_[routing] = exchange;
  for (auto& buffer : exchange->buffers()) program_.kernel_scratch_.push_back(buffer);
  auto gathered = scratch(slots * width);
  return [=, weighting = op.weighting, x = input(0), arrived = output()](std::int64_t /*layer*/) {
    gather_rows(*exchange->own(), weighting, x, width, gathered->data());
    exchange->send(gathered->data(), width, arrived);
    return StepCount{0, 2 * slots * width * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::return_from_experts(Communicator* group) {
  require_group(group);
  const Node& experts = experts_beside(node_->inputs.front());
  const auto& op = std::get<ExpertLinear>(experts.op);
  const std::int64_t width = integer(op.out_features);
  const std::int64_t slots = integer(op.rows * op.per_token);
  return [=, exchange = exchanges_.at(experts.inputs.at(1)),
          returned = output()](std::int64_t /*layer*/) {
    exchange->return_to(returned, width);
    return StepCount{0, 2 * slots * width * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::in_rounds(Run run) {
  if (node_->inputs.empty() || std::holds_alternative<Collective>(node_->op)) return run;
  const auto found = std::ranges::find_if(exchanges_, [&](const auto& entry) {
    return entry.second->tensors.contains(node_->inputs.front());
  });
  if (found == exchanges_.end()) return run;
  const std::shared_ptr<ExpertExchange> exchange = found->second;
  exchange->tensors.insert(node_->output);
  exchange->add_step(run);
  const auto* const experts = std::get_if<ExpertLinear>(&node_->op);
  const bool is_last = experts != nullptr && experts->source == ExpertLinear::Source::experts;
  if (!is_last) return run;
  return [=, width = integer(experts->out_features), computed = output()](std::int64_t layer) {
    StepCount count = run(layer);
    const StepCount others = exchange->run_other_rounds(layer, computed, width);
    count.matrix_flops += others.matrix_flops;
    count.bytes += others.bytes;
    return count;
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
