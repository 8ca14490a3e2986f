// Steps of alternating updates.
#include "kernels/altup.h"
#include "step_builder.h"

namespace headroom::measured {

StepBuilder::Run StepBuilder::operator()(const AltUpStep& op) {
  const AltUpArguments args{integer(op.streams), integer(op.rows), integer(op.width), op.index};
  std::vector<const float*> inputs;
  for (std::size_t i = 0; i < node_->inputs.size(); ++i) inputs.push_back(input(i));
  const std::int64_t moved = 2 * integer(op.elements()) * kFloatBytes;
  float* const out = output();
  switch (op.kind) {
    case AltUpStep::Kind::stack:
      return [=](std::int64_t) {
        altup_stack(args, inputs, out);
        return StepCount{0, moved};
      };
    case AltUpStep::Kind::merge:
      return [=](std::int64_t) {
        altup_merge(args, inputs, out);
        return StepCount{0, moved};
      };
    case AltUpStep::Kind::select:
      return [=](std::int64_t) {
        altup_select(args, inputs[0], out);
        return StepCount{0, 2 * args.rows * args.width * kFloatBytes};
      };
    case AltUpStep::Kind::predict:
      return [=](std::int64_t) {
        return StepCount{altup_predict(args, inputs[0], inputs[1], out), moved};
      };
    case AltUpStep::Kind::correct:
      return [=, copy_input = input_copy()](std::int64_t) {
        copy_input();
        altup_correct(args, inputs[1], inputs[2], out);
        return StepCount{0, moved};
      };
    case AltUpStep::Kind::spread:
      break;
  }
  return [=, copy_input = input_copy()](std::int64_t) {
    copy_input();
    altup_spread(args, inputs[1], out);
    return StepCount{0, moved};
  };
}

}  // namespace headroom::measured
