// Steps of multi-head latent attention, and of Llama 4's temperature scaling of queries.
#include <algorithm>
#include <cmath>

#include "kernels/latent.h"
#include "step_builder.h"

namespace headroom::measured {

StepBuilder::Run StepBuilder::operator()(const LatentConcat& op) {
  const LatentArguments args{integer(op.rows),     integer(op.heads),     integer(op.nope_dim),
                             integer(op.rope_dim), integer(op.value_dim), integer(op.latent_dim)};
  const std::int64_t row = args.heads * (2 * (args.nope_dim + args.rope_dim) + args.value_dim);
  return [=, queries = input(0), key_value = input(1), latents = input(2),
          out = output()](std::int64_t /*layer*/) {
    concat_latent(args, queries, key_value, latents, out);
    return StepCount{0, 2 * args.rows * row * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const HeadLinear& op) {
  // `expanded` is a head's number of rows in the weight, whatever the direction.
  const Weight& weight = program_.graph_.weights[node_->weights.front()];
  const std::int64_t expanded = integer(weight.shape[0]) / integer(op.heads);
  LatentArguments args;
  args.rows = integer(op.rows);
  args.heads = integer(op.heads);
  args.rope_dim = integer(op.kept);
  const std::int64_t in = integer(op.in_features);
  const std::int64_t out_features = integer(op.out_features);
  const bool to_latent = op.direction == HeadLinear::Direction::query_to_latent;
  args.latent_dim = to_latent ? out_features : in;
  args.nope_dim = to_latent ? in : expanded - out_features;
  args.value_dim = to_latent ? expanded - in : out_features;
  const std::int64_t bytes = (args.rows * args.heads * (in + out_features + 2 * args.rope_dim) +
                              args.heads * in * out_features) *
                             kFloatBytes;
  return [=, path = weight_path(0), weights = &program_.weights_, x = input(0),
          out = output()](std::int64_t layer) {
    const auto kernel = to_latent ? queries_to_latent : contexts_from_latent;
    return StepCount{kernel(args, weights->values(path, layer), x, out), bytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const TemperatureScale& op) {
  const std::int64_t rows = integer(op.heads.rows);
  const std::int64_t stride = integer(op.heads.row_width);
  const std::int64_t width = integer(op.heads.heads * op.heads.head_dim);
  const std::int64_t seq_len = integer(op.seq_len);
  return [=, tuning = op.tuning, lengths = &program_.lengths_, copy_input = input_copy(),
          x = output() + integer(op.heads.first)](std::int64_t /*layer*/) {
    copy_input();
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto position = static_cast<double>(lengths->past + row % seq_len);
      const double first = tuning.from == TemperatureTuning::From::one ? 1 : 0;
      const double steps = std::floor((position + first) / tuning.floor_scale);
      const auto factor = static_cast<float>(1 + tuning.scale * std::log1p(steps));
      std::for_each_n(x + row * stride, width, [factor](float& value) { value *= factor; });
    }
    return StepCount{0, 2 * rows * width * kFloatBytes};
  };
}

}  // namespace headroom::measured
