// Steps of attention in chunks with tokens of global attention, as Longformer's layers run it.
#include <algorithm>
#include <vector>

#include "kernels/sliding_chunks.h"
#include "step_builder.h"

namespace headroom::measured {
namespace {

/// Rows of a token with global attention: among such tokens, and among all of the batch.
struct GlobalPlace {
  std::int64_t global = 0;
  std::int64_t token = 0;
};

std::vector<GlobalPlace> places_of(const GlobalPositions& positions, const TokenInputs& tokens) {
  std::vector<GlobalPlace> places;
  for (std::int64_t item = 0; item < tokens.batch; ++item) {
    for (std::int64_t i = 0; i < positions.per_sequence; ++i) {
      const std::int64_t token = positions.at(item, i);
      if (token < 0) continue;
      places.push_back({item * positions.per_sequence + i, item * tokens.seq_len + token});
    }
  }
  return places;
}

}  // namespace

GlobalPositions StepBuilder::global_positions(std::int64_t per_sequence) const {
  const TokenInputs& tokens = this->tokens();
  return measured::global_positions(tokens.global_mask, key_mask(KeySource::projections),
                                    tokens.batch, per_sequence);
}

StepBuilder::Run StepBuilder::chunk_scores(const AttentionScores& op) {
  ChunkArguments args;
  args.rows = blocked_arguments(op);
  args.rows.least_blocks = integer(op.shape.queries) / args.half();
  args.globals = global_positions(integer(op.shape.global_keys));
  chunks_ = ChunkOperands{args, scratch(args.rows.padded_floats()), scratch(args.global_floats())};
  const std::int64_t moved =
      2 * (args.rows.padded_floats() + args.global_floats()) + floats_of(node_->output);
  return [=, operands = *chunks_, own = scratch(args.score_scratch_floats()),
          scores = output()](std::int64_t /*layer*/) {
    pad_rows(args.rows, operands.padded->data());
    gather_global_keys(args, operands.padded->data(), operands.globals->data());
    const std::int64_t flops = measured::chunk_scores(
        args, operands.padded->data(), operands.globals->data(), own->data(), scores);
    return StepCount{flops, moved * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::chunk_softmax() {
  const std::int64_t moved = 2 * floats_of(node_->output);
  return [=, args = chunks_->args, copy_input = input_copy(),
          scores = output()](std::int64_t /*layer*/) {
    copy_input();
    measured::chunk_softmax(args, scores);
    return StepCount{0, moved * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::chunk_context() {
  const ChunkOperands operands = *chunks_;
  chunks_.reset();
  const std::int64_t moved = floats_of(node_->inputs.front()) + operands.args.rows.padded_floats() +
                             floats_of(node_->output);
  return [=, own = scratch(operands.args.context_scratch_floats()), probabilities = input(0),
          out = output()](std::int64_t /*layer*/) {
    const std::int64_t flops =
        measured::chunk_context(operands.args, operands.padded->data(), operands.globals->data(),
                                probabilities, own->data(), out);
    return StepCount{flops, moved * kFloatBytes};
  };
}

StepBuilder::Run StepBuilder::operator()(const GlobalRows& op) {
  if (op.kind == GlobalRows::Kind::sum) return transient_sums(op);
  const std::int64_t width = integer(op.width);
  const auto places = places_of(global_positions(integer(op.tokens)), tokens());
  const std::int64_t moved = 2 * integer(op.elements());
  switch (op.kind) {
    case GlobalRows::Kind::gather:
      return [=, floats = floats_of(node_->output), from = input(0),
              to = output()](std::int64_t /*layer*/) {
        std::fill_n(to, floats, 0.0F);
        for (const GlobalPlace& place : places) {
          std::copy_n(from + place.token * width, width, to + place.global * width);
        }
        return StepCount{0, moved * kFloatBytes};
      };
    case GlobalRows::Kind::scatter:
    case GlobalRows::Kind::sum:
      break;
  }
  return [=, copy_input = input_copy(), from = input(1), to = output()](std::int64_t /*layer*/) {
    copy_input();
    for (const GlobalPlace& place : places) {
      std::copy_n(from + place.global * width, width, to + place.token * width);
    }
    return StepCount{0, moved * kFloatBytes};
  };
}

}  // namespace headroom::measured
