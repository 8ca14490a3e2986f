// Steps of the collectives of a sharded graph.
#include <algorithm>
#include <span>

#include "headroom/error.h"
#include "headroom/expr.h"
#include "step_builder.h"

namespace headroom::measured {
namespace {

/// Parts of ranks, laid out [ranks, outer, inner] by the communicator and [outer, ranks, inner] in
/// a tensor. Padding of a row of the tensor, at its end, is left out.
struct RankParts {
  std::int64_t ranks = 1;
  std::int64_t outer = 1;
  std::int64_t inner = 0;
  std::int64_t row = 0;  ///< elements of a row of the tensor: ranks·inner less padding

  [[nodiscard]] std::int64_t part() const noexcept { return outer * inner; }
  [[nodiscard]] std::int64_t all() const noexcept { return ranks * part(); }

  /// Calls copy(offset by ranks, offset in the tensor, elements) for every run of elements.
  template <class Copy>
  void for_each_run(Copy copy) const {
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const std::int64_t count = std::clamp<std::int64_t>(row - rank * inner, 0, inner);
      for (std::int64_t i = 0; i < outer; ++i) {
        copy((rank * outer + i) * inner, i * row + rank * inner, count);
      }
    }
  }
};

std::span<float> values(float* first, std::int64_t count) {
  return {first, static_cast<std::size_t>(count)};
}

std::span<const float> values(const float* first, std::int64_t count) {
  return {first, static_cast<std::size_t>(count)};
}

/// Null for a group that a run does not have.
Communicator* group_of(const RankContext& rank, RankGroup group) {
  switch (group) {
    case RankGroup::tensor:
      return rank.tensor_group;
    case RankGroup::pipeline:
      return rank.pipeline_group;
    case RankGroup::expert:
      return rank.expert_group;
    case RankGroup::context:
    case RankGroup::data:
      break;
  }
  return nullptr;
}

}  // namespace

void require_group(const Communicator* group) {
  if (group != nullptr) return;
  throw Error(ErrorCode::internal,
              "a collective of a sharded graph has no ranks to communicate with");
}

StepBuilder::Run StepBuilder::operator()(const Collective& op) {
  const RankContext* const rank = program_.rank_;
  if (rank == nullptr) {
    throw Error(ErrorCode::internal, "a sharded graph runs on one rank of several");
  }
  Communicator* const group = group_of(*rank, op.group);
  switch (op.forward) {
    case CollectiveKind::all_reduce:
      return op.squares ? all_reduce_squares(group, *op.squares) : all_reduce(group);
    case CollectiveKind::all_gather:
      return node_->output == node_->inputs.front() ? gather_features(group) : gather_tokens(group);
    case CollectiveKind::reduce_scatter:
      return reduce_scatter(group);
    case CollectiveKind::send:
      return send_on(group);
    case CollectiveKind::all_to_all:
      return op.dispatch == Dispatch::forward ? send_to_experts(group) : return_from_experts(group);
    case CollectiveKind::none:
      break;
  }
  throw Error(ErrorCode::invalid_input, "a run has no such collective",
              block_.path + "." + node_->path, "use fit, which counts it");
}

StepBuilder::Run StepBuilder::all_reduce(Communicator* group) {
  require_group(group);
  const std::int64_t count = floats_of(node_->output);
  return [=, copy_input = input_copy(), x = output()](std::int64_t /*layer*/) {
    copy_input();
    group->all_reduce(values(x, count));
    return StepCount{0, 2 * count * kFloatBytes};
  };
}

RowSums StepBuilder::row_sums(Integer groups, std::int64_t width) const {
  const GroupPosition& tensor = program_.rank_->tensor;
  RowSums rows{static_cast<std::int64_t>(groups)};
  rows.group = tensor.rank * rows.groups / tensor.ranks;
  // Heads of keys that several ranks hold count as often in the sums.
  rows.features = width * (tensor.ranks / rows.groups);
  return rows;
}

/// Sums the squares of each row's features over the ranks that hold parts of them.
StepBuilder::Run StepBuilder::all_reduce_squares(Communicator* group, const RowSquares& squares) {
  require_group(group);
  NormArguments args{integer(squares.rows), integer(squares.width), nullptr, nullptr, 0};
  args.stride = integer(squares.row_width);
  const RowSums rows = row_sums(squares.groups, args.width);
  const std::int64_t count = args.rows * rows.groups;
  return [=, x = input(0) + integer(squares.first), sums = output()](std::int64_t /*layer*/) {
    sum_squares(rows, args, x, sums);
    group->all_reduce(values(sums, count));
    return StepCount{0, (args.rows * args.width + 2 * count) * kFloatBytes};
  };
}

/// Gathers an output of the graph whose features are divided into memory of its own.
StepBuilder::Run StepBuilder::gather_features(Communicator* group) {
  require_group(group);
  const Expr& width = program_.graph_.tensors[node_->output].shape.back();
  RankParts parts{group->size(), 1, integer(width), width.evaluate_int64(program_.whole_sizes_)};
  const std::int64_t floats = floats_of(node_->output);
  parts.outer = floats / parts.inner;
  auto by_rank = scratch(parts.all());
  AlignedVector<float>& gathered = program_.gathered_outputs_[node_->output];
  gathered.resize(static_cast<std::size_t>(parts.outer * parts.row));
  return [=, from = input(0), to = gathered.data()](std::int64_t /*layer*/) {
    group->all_gather(values(static_cast<const float*>(from), floats),
                      values(by_rank->data(), parts.all()));
    parts.for_each_run([&](std::int64_t source, std::int64_t target, std::int64_t count) {
      std::copy_n(by_rank->data() + source, count, to + target);
    });
    return StepCount{0, (parts.all() + parts.outer * parts.row) * kFloatBytes};
  };
}

/// Experts run on the tokens of all ranks, whose order follows from the gathered routing.
std::shared_ptr<ExpertPlan> StepBuilder::plan_of_all_ranks(std::int64_t ranks) {
  const auto own = plans_.find(node_->inputs.front());
  if (own == plans_.end()) return nullptr;
  const ExpertPlan& plan = *own->second;
  auto all =
      std::make_shared<ExpertPlan>(plan.rows * ranks, std::ssize(plan.first) - 1, plan.per_token);
  plans_[node_->output] = all;
  return all;
}

/// Gathers the tokens of every sequence.
StepBuilder::Run StepBuilder::gather_tokens(Communicator* group) {
  require_group(group);
  const std::int64_t floats = floats_of(node_->inputs.front());
  const std::int64_t batch = program_.lengths_.batch;
  const RankParts parts{group->size(), batch, floats / batch, group->size() * floats / batch};
  auto by_rank = scratch(batch > 1 ? parts.all() : 0);
  return [=, plan = plan_of_all_ranks(group->size()), from = input(0),
          to = output()](std::int64_t /*layer*/) {
    float* const gathered = batch > 1 ? by_rank->data() : to;
    group->all_gather(values(static_cast<const float*>(from), floats),
                      values(gathered, parts.all()));
    if (batch > 1) {
      parts.for_each_run([&](std::int64_t source, std::int64_t target, std::int64_t count) {
        std::copy_n(gathered + source, count, to + target);
      });
    }
    if (plan != nullptr) plan_experts(to, *plan);
    return StepCount{0, (parts.part() + parts.all()) * kFloatBytes};
  };
}

/// Sums over the ranks, and keeps this rank's tokens of every sequence.
StepBuilder::Run StepBuilder::reduce_scatter(Communicator* group) {
  require_group(group);
  const std::int64_t floats = floats_of(node_->output);
  const std::int64_t batch = program_.lengths_.batch;
  const RankParts parts{group->size(), batch, floats / batch, group->size() * floats / batch};
  auto by_rank = scratch(batch > 1 ? parts.all() : 0);
  return [=, from = input(0), to = output()](std::int64_t /*layer*/) {
    const float* whole = from;
    if (batch > 1) {
      parts.for_each_run([&](std::int64_t target, std::int64_t source, std::int64_t count) {
        std::copy_n(from + source, count, by_rank->data() + target);
      });
      whole = by_rank->data();
    }
    group->reduce_scatter(values(whole, parts.all()), values(to, floats));
    return StepCount{0, (parts.part() + parts.all()) * kFloatBytes};
  };
}

/// Sends a tensor to the next stage, whose program receives it before its first step.
StepBuilder::Run StepBuilder::send_on(Communicator* group) {
  require_group(group);
  const std::int64_t count = floats_of(node_->output);
  return [=, copy_input = input_copy(), x = output()](std::int64_t /*layer*/) {
    copy_input();
    group->send(values(static_cast<const float*>(x), count), group->rank() + 1);
    return StepCount{0, count * kFloatBytes};
  };
}

}  // namespace headroom::measured
