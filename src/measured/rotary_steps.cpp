// Steps of rotary position embedding.
#include <algorithm>

#include "step_builder.h"

namespace headroom::measured {
namespace {

/// Undoes the rotation of a table's angles if they are to turn back.
void turn(RotaryDirection direction, RotaryTable& table) {
  if (direction == RotaryDirection::forward) return;
  for (float& sine : table.sin) sine = -sine;
}

/// Leaves the rows of every `step`-th position.
void keep_every(std::int64_t step, RotaryTable& table) {
  const std::int64_t rows = std::ssize(table.cos) / std::max<std::int64_t>(1, table.half);
  for (std::int64_t row = step; row < rows; row += step) {
    std::copy_n(table.cos.begin() + row * table.half, table.half,
                table.cos.begin() + row / step * table.half);
    std::copy_n(table.sin.begin() + row * table.half, table.half,
                table.sin.begin() + row / step * table.half);
  }
}

/// Angles of dynamic scaling and LongRoPE, which follow a sequence as it grows; keys in the cache
/// keep theirs.
struct GrowingRows {
  RopeSpec rope;
  RotaryDirection direction = RotaryDirection::forward;
  std::int64_t width = 0;
  std::int64_t trained = 0;
  std::int64_t step = 1;    ///< positions from one row to the next
  std::int64_t length = 0;  ///< that the table is for

  /// Makes `table` `count` rows, the first of the last multiple of `step` up to position `past`.
  void fill(RotaryTable& table, std::int64_t past, std::int64_t count) {
    const std::int64_t first = past / step * step;
    const std::int64_t end = first + count * step;
    if (length == end) return;
    length = end;
    table = make_rotary_rows(rope, width, first, end, trained);
    turn(direction, table);
    if (step > 1) keep_every(step, table);
  }
};

}  // namespace

std::optional<AxisPositions> StepBuilder::prompt_positions() const {
  if (is_tower() || program_.graph_.options.phase == Phase::decode) return std::nullopt;
  std::optional<AxisPositions> positions = axis_positions(program_.spec_, program_.inputs_);
  if (!positions) return positions;
  for (AxisPosition& token : positions->of_tokens) {
    for (std::int64_t& position : token) position += program_.lengths_.past;
  }
  return positions;
}

RotaryTable StepBuilder::rotary_table(const RopeSpec& rope, std::int64_t width,
                                      std::int64_t positions,
                                      const std::optional<AxisPositions>& prompt) const {
  const std::int64_t trained = program_.spec_.position.max_position_embeddings;
  switch (rope.axes) {
    case RopeAxes::rows_and_columns_alternate:
    case RopeAxes::rows_then_columns:
    case RopeAxes::columns_then_rows:
    case RopeAxes::columns_and_rows_take_turns:
    case RopeAxes::time_then_rows_then_columns:
      return make_patch_rotary_table(rope, width,
                                     points_of(*spec().embedding.image, rope.coordinates, grids()));
    case RopeAxes::sections:
    case RopeAxes::interleaved_sections:
      if (prompt) return make_axis_rotary_table(rope, width, trained, prompt->of_tokens);
      break;
    case RopeAxes::sequence:
      break;
  }
  return make_rotary_table(rope, width, positions, trained);
}

StepBuilder::Run StepBuilder::operator()(const Rotary& op) {
  RotaryArguments args;
  args.seq_len = integer(op.seq_len);
  args.batch = args.seq_len == 0 ? 0 : integer(op.heads.rows) / args.seq_len;
  args.heads = integer(op.heads.heads);
  args.head_stride = integer(op.heads.head_dim);
  args.stride = integer(op.heads.row_width);
  args.batch_stride = args.seq_len * args.stride;
  const std::int64_t width = integer(op.rotary_dim);
  const bool in_encoder =
      node_->component.stack == StackRole::encoder || is_tower() || is_audio_tower();
  const std::int64_t positions = in_encoder ? args.seq_len : program_.lengths_.capacity;
  const std::optional<AxisPositions> prompt = prompt_positions();
  auto table = std::make_shared<RotaryTable>(rotary_table(op.rope, width, positions, prompt));
  if (prompt) {  // one row of angles for every token of the batch
    args.seq_len *= args.batch;
    args.batch = 1;
  }
  const std::vector<std::int64_t>& shifts = program_.inputs_.main.position_shifts;
  if (!shifts.empty() && !in_encoder) args.shifts = shifts.data();
  turn(op.direction, *table);
  if (op.step > 1) keep_every(op.step, *table);
  const bool follows =
      op.rope.scaling == RopeScalingKind::dynamic || op.rope.scaling == RopeScalingKind::longrope;
  const bool grows = follows && !in_encoder && !prompt && args.shifts == nullptr;
  GrowingRows rows{op.rope, op.direction, width, program_.spec_.position.max_position_embeddings,
                   op.step};
  const std::int64_t offset = integer(op.heads.first) + integer(op.first_dim);
  const std::int64_t moved = 2 * args.batch * args.seq_len * args.heads * width;
  const bool starts_at_zero = in_encoder || prompt;
  const std::int64_t shard = first_token_of_shard(op.seq_len);
  return [=, copy_input = input_copy(), lengths = &program_.lengths_, step = op.step,
          x = output()](std::int64_t /*layer*/) mutable {
    copy_input();
    args.first_position = grows ? 0 : shard + (starts_at_zero ? 0 : lengths->past / step);
    if (grows) rows.fill(*table, lengths->past + shard, args.seq_len);
    apply_rotary(*table, args, x + offset);
    return StepCount{0, moved * kFloatBytes};
  };
}

}  // namespace headroom::measured
