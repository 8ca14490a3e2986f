#include "working_memory.h"

#include <algorithm>
#include <initializer_list>

#include "visit.h"

namespace headroom::detail {
namespace {

/// Floats of a convolution's padded input, and of the rows of one tap if they are copied; in a
/// grouped one, of the inputs and outputs of one group.
Expr convolution_floats(const Convolution& op, const Bindings& sizes) {
  const Expr padded = op.batch * op.in_channels * op.padded_inputs();
  if (op.is_grouped()) {
    const Integer groups = op.in_channels.evaluate(sizes) / op.group_channels.evaluate(sizes);
    const Expr outputs = Integer{op.out_channels.evaluate(sizes) / groups};
    return padded + op.batch * op.length * (op.group_channels * op.kernel + outputs);
  }
  const bool copies = op.batch.evaluate(sizes) > 1 || op.stride.evaluate(sizes) > 1;
  return copies ? padded + op.batch * op.in_channels * op.length : padded;
}

/// Floats of the queries of one block, and of the keys and values that they see, with transient
/// ones.
Expr transient_block_floats(const AttentionShape& shape) {
  return shape.block * shape.heads * shape.head_dim +
         shape.keys * shape.kv_heads * (shape.head_dim + shape.value_head_dim);
}

/// Floats of the padded queries, keys and values of attention in blocks.
Expr blocked_rows(const AttentionShape& shape) {
  if (!shape.is_blocked()) return {};
  if (shape.has_transient_keys()) return transient_block_floats(shape);
  const Expr width =
      shape.heads * shape.head_dim + shape.kv_heads * (shape.head_dim + shape.value_head_dim);
  return shape.batch * shape.key_rows() * width;
}

/// Floats of the scores of a chunk, of a block with the global keys, and of these keys and values.
Expr chunk_score_floats(const AttentionShape& shape) {
  if (!shape.is_chunked()) return {};
  const Expr scores = shape.block * (Integer{4} * shape.block + shape.global_keys);
  const Expr keys = shape.batch * shape.global_keys * (shape.head_dim + shape.value_head_dim);
  return shape.heads * scores + shape.kv_heads * keys;
}

/// Floats of a block's probabilities with the keys of three blocks and the global ones.
Expr chunk_context_floats(const AttentionShape& shape) {
  if (!shape.is_chunked()) return {};
  return shape.heads * shape.block * (Integer{3} * shape.block + shape.global_keys);
}

/// Floats that an operator's kernel uses besides its operands; patches are gathered for all images.
Expr kernel_floats(const Op& op, const Bindings& sizes) {
  return std::visit(
      Overloaded{
          [](const PatchEmbedding& patches) { return patches.patches * patches.patch_elements; },
          // Query, key, decay and correction of every head, the last in whole vectors of up to 16
          // floats; the vectors of RWKV.
          [&](const GatedDelta& delta) {
            const Expr heads = delta.batch * delta.heads;
            if (delta.update != StateUpdate::delta) {
              return heads * (Integer{4} * delta.key_dim + delta.value_dim);
            }
            const Integer values = (delta.value_dim.evaluate(sizes) + 15) / 16 * 16;
            return heads * (Integer{3} * delta.key_dim + values);
          },
          // Both gates of every head, for as many tokens as are projected together.
          [&](const GatedLinearRecurrence& recurrence) {
            constexpr Integer kTogether = 16;
            const Integer tokens =
                recurrence.rows.evaluate(sizes) / recurrence.batch.evaluate(sizes);
            return Integer{2} * std::min(kTogether, tokens) * recurrence.state_elements();
          },
          // The transposed table, its projections, and the scores of one head with all positions.
          [](const DisentangledBias& bias) {
            const AttentionShape& shape = bias.shape;
            return bias.positions *
                   (bias.width + shape.queries + bias.projections() * shape.heads * shape.head_dim);
          },
          // Scores of a head with all positions, its transposed position keys, its queries, and
          // the term of each key.
          [](const TransformerXlBias& bias) {
            const AttentionShape& shape = bias.shape;
            return shape.queries * bias.positions +
                   shape.head_dim * (bias.positions + shape.queries) + shape.queries;
          },
          [](const AttentionScores& scores) {
            return blocked_rows(scores.shape) + chunk_score_floats(scores.shape);
          },
          [](const AttentionContext& context) {
            const AttentionShape& shape = context.shape;
            if (!shape.is_blocked()) return Expr();
            return shape.block * shape.heads * shape.value_head_dim + chunk_context_floats(shape);
          },
          // Of each head: queries, keys, values and position keys, and both scores.
          [](const LocalAttention& local) {
            const Expr rows = Integer{local.chunk + 2 * local.context() + local.positions};
            const Integer scores = Integer{local.chunk} * (local.context() + local.positions);
            return local.heads * (rows * local.head_dim + Expr(scores));
          },
          // The inputs of all places of an item, and its outputs before they are reordered.
          [](const GridConvolution& grid) {
            const std::int64_t reordered =
                grid.order == GridOrder::rows_last ? grid.out_channels : 0;
            return Expr(Integer{grid.places()} * (grid.inputs() + reordered));
          },
          [&](const Convolution& convolution) { return convolution_floats(convolution, sizes); },
          [](const OneOf<
              TokenEmbedding, PositionEmbedding, PatchRows, VisualTokens, RelativePositionBias,
              PositionTableRows, RelativeSinusoids, GatedPositionBias, Linear, Norm, HeadNorm,
              Rotary, Clamp, TemperatureScale, LatentConcat, HeadLinear, GroupedLinear,
              KeyCompression, IndexScores, KeySelect, PoolTokens, StreamWeights, StreamStep,
              KvCacheAppend, Softmax, FusedAttention, GlobalRows, FeatureMap, LinearAttention,
              ShortConvolution, StateSpaceScan, TokenShift, TokenMix, ValueBonus, WeightedKeyValue,
              Concatenate, Recurrence, OutputGate, Activation, GatedActivation, RouterSelect,
              ExpertLinear, ExpertCombine, RowGate, ResidualAdd, ChannelScale, Dropout, SelectToken,
              UnitLength, RepeatedRow, SimilarityLogits, Scale, AltUpStep, TrainedScale,
              TimestepFeatures, TrainedShift, Modulation, SequenceRows, SoftCap, CrossEntropy,
              Collective> auto&) { return Expr(); }},
      op);
}

Integer product(std::initializer_list<Integer> factors) {
  Integer result = 1;
  for (const Integer factor : factors) result = checked_multiply(result, factor);
  return result;
}

/// Floats of a diffusion transformer's latent and text.
Integer denoiser_input_floats(const DenoiserSpec& denoiser, const Workload& workload) {
  const ReferenceImageSpec& image = denoiser.reference_image;
  const Integer text = product({workload.batch_size, workload.enc_seq_len, denoiser.text.size});
  const Integer conditions =
      checked_add(text, product({workload.batch_size, image.tokens, image.size}));
  return checked_add(conditions, product({workload.batch_size, workload.seq_len,
                                          denoiser.latent.patch_elements()}));
}

/// Floats of images and sound, which towers read.
Integer tower_input_floats(const ModelSpec& spec, const Workload& workload) {
  Integer floats = 0;
  if (spec.tower && workload.images.count > 0) {
    const ImageSpec& image = *spec.tower->embedding.image;
    floats = product(
        {workload.images.totals.patches, image.num_channels, image.patch_size, image.patch_size});
  }
  if (!spec.audio_tower) return floats;
  const AudioTowerSpec& tower = *spec.audio_tower;
  return checked_add(floats, product({workload.audio.totals.segments,
                                      tower.embedding.audio->num_mel_bins, tower.segment_frames}));
}

/// Floats of the inputs, without token ids.
Integer input_floats(const ModelSpec& spec, const Workload& workload) {
  const Integer batch = workload.batch_size;
  if (spec.denoiser) return denoiser_input_floats(*spec.denoiser, workload);
  const Integer enc_seq_len = workload.enc_seq_len;
  switch (spec.embedding.input) {
    case InputKind::tokens:
      return tower_input_floats(spec, workload);
    case InputKind::patches: {
      const ImageSpec& image = *spec.embedding.image;
      if (workload.seq_len == image.num_tokens()) {
        return product({batch, image.num_channels, image.image_size, image.image_size});
      }
      return product({batch, image.num_channels, image.patch_size, image.patch_size,
                      workload.seq_len - image.prefix_tokens()});
    }
    case InputKind::waveform:
      return checked_multiply(batch, spec.embedding.waveform->fewest_inputs(0, workload.seq_len));
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
