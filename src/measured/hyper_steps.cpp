// Steps of hyper-connections and attention residuals: weights of the residual streams, their sum
// and update.
#include "kernels/hyper_connections.h"
#include "step_builder.h"

namespace headroom::measured {

StepBuilder::Run StepBuilder::operator()(const StreamWeights& op) {
  StreamWeightArguments args;
  args.rows = integer(op.rows);
  args.streams = integer(op.streams);
  args.stride = integer(program_.graph_.tensors[node_->output].shape.back());
  if (op.mixes()) args.iterations = op.spec.sinkhorn_iterations;
  args.eps = static_cast<float>(op.spec.eps);
  args.addition_scale = static_cast<float>(op.spec.addition_scale);
  args.addition_eps = static_cast<float>(op.spec.addition_eps);
  return [=, base = weight_path(0), scale = weight_path(1), weights = &program_.weights_,
          layers_per_weights = block_.layers_per_weights, copy_input = input_copy(),
          logits = output()](std::int64_t layer) mutable {
    copy_input();
    args.base = weights->values(base, layer / layers_per_weights);
    args.scale = weights->values(scale, layer / layers_per_weights);
    stream_weights(args, logits);
    return StepCount{0, 2 * args.rows * args.stride * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::attend_step(const StreamStep& op) {
  AttendArguments args;
  args.rows = integer(op.rows);
  args.width = integer(op.width);
  args.eps = static_cast<float>(op.eps);
  for (std::size_t i = 0; i < node_->inputs.size(); ++i) args.streams.push_back(input(i));
  return
      [=, norm = weight_path(0), projection = weight_path(1), weights = &program_.weights_,
       layers_per_weights = block_.layers_per_weights, out = output()](std::int64_t layer) mutable {
        args.norm = weights->values(norm, layer / layers_per_weights);
        args.projection = weights->values(projection, layer / layers_per_weights);
        const std::int64_t flops = attend_streams(args, out);
        const auto tensors = static_cast<std::int64_t>(args.streams.size()) + 1;
        return StepCount{flops, tensors * args.rows * args.width * kFloatBytes};
      };
}

StepBuilder::Run StepBuilder::update_step(const StreamStep& op) {
  const Streams sizes{integer(op.rows), integer(op.streams), integer(op.width)};
  const std::int64_t row_floats = sizes.rows * sizes.width;
  const std::int64_t moved = (2 * sizes.streams + 1) * row_floats * kFloatBytes;
  float* const out = output();
  const bool mixes = op.kind == StreamStep::Kind::update;
  return [=, branch = input(1), weights = input(2), copy_input = input_copy(),
          stride = integer(program_.graph_.tensors[node_->inputs[2]].shape.back())](
             std::int64_t /*layer*/) {
    copy_input();
    std::int64_t flops = 0;
    if (mixes) {
      flops = update_streams(sizes, weights, stride, branch, out);
    } else {
      add_to_streams(sizes, weights, stride, branch, out);
    }
    return StepCount{flops, moved};
  };
}

StepBuilder::Run StepBuilder::operator()(const StreamStep& op) {
  const Streams sizes{integer(op.rows), integer(op.streams), integer(op.width)};
  const std::int64_t row_floats = sizes.rows * sizes.width;
  const std::int64_t moved = (sizes.streams + 1) * row_floats * kFloatBytes;
  const float* const x = input(0);
  float* const out = output();
  switch (op.kind) {
    case StreamStep::Kind::expand:
      return [=](std::int64_t /*layer*/) {
        expand_streams(sizes, x, out);
        return StepCount{0, moved};
      };
    case StreamStep::Kind::sum:
      return [=, weights = input(1),
              stride = integer(program_.graph_.tensors[node_->inputs[1]].shape.back())](
                 std::int64_t /*layer*/) {
        sum_streams(sizes, weights, stride, x, out);
        return StepCount{0, moved};
      };
    case StreamStep::Kind::mean:
      return [=](std::int64_t /*layer*/) {
        mean_of_streams(sizes, x, out);
        return StepCount{0, moved};
      };
    case StreamStep::Kind::attend:
      return attend_step(op);
    case StreamStep::Kind::update:
    case StreamStep::Kind::add:
      break;
  }
  return update_step(op);
}

}  // namespace headroom::measured
