#include "working_memory.h"

#include <initializer_list>

namespace headroom::detail {
namespace {

/// Floats of a convolution's padded input, and of the rows of one tap if they are copied.
Expr convolution_floats(const Convolution& op, const Bindings& sizes) {
  const Expr padded =
      op.batch * op.in_channels * ((op.length - Integer{1}) * op.stride + op.reach() + Integer{1});
  const bool copies = op.batch.evaluate(sizes) > 1 || op.stride.evaluate(sizes) > 1;
  return copies ? padded + op.batch * op.in_channels * op.length : padded;
}

/// Floats that an operator's kernel uses besides its operands; patches are gathered for all images.
Expr kernel_floats(const Op& op, const Bindings& sizes) {
  return std::visit(
      Overloaded{
          [](const PatchEmbedding& patches) {
            return patches.batch * patches.patches * patches.patch_elements;
          },
          [](const GatedDelta& delta) {  // query, key and correction of every head
            return delta.batch * delta.heads * (Integer{2} * delta.key_dim + delta.value_dim);
          },
          // The transposed table, its projections, and the scores of one head with all positions.
          [](const DisentangledBias& bias) {
            const AttentionShape& shape = bias.shape;
            return bias.positions *
                   (bias.width + shape.queries + bias.projections() * shape.heads * shape.head_dim);
          },
          [&](const Convolution& convolution) { return convolution_floats(convolution, sizes); },
          [](const OneOf<TokenEmbedding, PositionEmbedding, RelativePositionBias, PositionTableRows,
                         Linear, Norm, HeadNorm, Rotary, Clamp, TemperatureScale, LatentConcat,
                         HeadLinear, GroupedLinear, KeyCompression, IndexScores, KeySelect,
                         StreamWeights, StreamStep, KvCacheAppend, AttentionScores, Softmax,
                         AttentionContext, FusedAttention, FeatureMap, LinearAttention,
                         ShortConvolution, StateSpaceScan, Recurrence, OutputGate, Activation,
                         GatedActivation, RouterSelect, ExpertLinear, ExpertCombine, RowGate,
                         ResidualAdd, ChannelScale, Dropout, SelectToken, Scale, TrainedScale,
                         SoftCap, CrossEntropy, Collective> auto&) { return Expr(); }},
      op);
}

Integer product(std::initializer_list<Integer> factors) {
  Integer result = 1;
  for (const Integer factor : factors) result = checked_multiply(result, factor);
  return result;
}

/// Floats of the inputs, without token ids.
Integer input_floats(const ModelSpec& spec, const Workload& workload) {
  const Integer batch = workload.batch_size;
  const Integer enc_seq_len = workload.enc_seq_len;
  switch (spec.embedding.input) {
    case InputKind::tokens:
      break;
    case InputKind::patches: {
      const ImageSpec& image = *spec.embedding.image;
      if (workload.seq_len == image.num_tokens()) {
        return product({batch, image.num_channels, image.image_size, image.image_size});
      }
      return product({batch, image.num_channels, image.patch_size, image.patch_size,
                      workload.seq_len - image.prefix_tokens()});
    }
    case InputKind::waveform:  // counted, not run
      break;
    case InputKind::audio:  // two frames per encoder position
      return product({batch, 2, spec.embedding.audio->num_mel_bins, enc_seq_len});
    case InputKind::hidden_states: {  // the inputs and a working copy
      const Integer encoded = spec.reads_two_sequences() ? enc_seq_len : 0;
      return product({batch, 2, spec.hidden_size, checked_add(workload.seq_len, encoded)});
    }
  }
  return 0;
}

}  // namespace

Integer working_floats(const Graph& graph, const ModelSpec& spec, const Workload& workload) {
  const Bindings sizes = bindings_of(workload, graph);
  Integer floats = input_floats(spec, workload);
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      floats = checked_add(floats, kernel_floats(node.op, sizes).evaluate(sizes));
    }
  }
  return floats;
}

}  // namespace headroom::detail
