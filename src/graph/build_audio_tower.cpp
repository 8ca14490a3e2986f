// The audio tower of a multimodal model and its projector: a graph of its own whose sequences are
// segments of sound, or the rows of all of them as one, with its sizes as numbers.
#include <string_view>
#include <utility>

#include "builder.h"
#include "headroom/workload.h"

namespace headroom::detail {
namespace {

/// Norm of the output of a clip's convolution.
Norm norm_of(const SubsamplingSpec& subsampling, const GridConvolution& op) {
  const Expr channels = Integer{op.out_channels};
  switch (subsampling.rows) {
    case SubsamplingRows::centred:
      return {subsampling.norm, op.batch * Integer{op.places()}, channels, {}};
    case SubsamplingRows::causal_norm:
      break;
  }
  return {subsampling.norm,
          op.batch * Integer{op.out_rows()},
          Integer{op.out_columns()} * channels,
          {},
          NormAxis::earlier_rows};
}

}  // namespace

Graph GraphBuilder::build_audio_tower() && {
  emit_nodes_ = reads_sound();
  StackContext stack;
  stack.spec = &spec_.main_stack();
  stack.path = "encoder";
  stack.num_layers = Symbol::num_hidden_layers;
  stack.tokens = Symbol::seq_len;
  stack.position = &spec_.position;
  const AudioSpec& audio = *spec_.embedding.audio;
  attends_in_runs_ = audio.joined_frames > 0;
  const TensorId hidden = audio.subsampling         ? embed_subsampled(stack)
                          : audio.grid_channels > 0 ? embed_grid(stack)
                          : attends_in_runs_        ? embed_segments(stack)
                                                    : embed_audio(stack);
  graph_.outputs = {run_stack(stack, hidden)};
  return std::move(graph_);
}

TensorId GraphBuilder::embed_sound(const AudioTowerSpec& tower) {
  const ModelSpec encoder = encoder_of(tower);
  Expr rows = Expr(Symbol::audio_segments) * Integer{tower.segment_positions};
  TowerPlace place{{StackRole::audio_tower, Part::audio_tower},
                   "audio_tower.",
                   Symbol::audio_segments,
                   Integer{tower.segment_positions}};
  if (tower.attended_segments > 0) {
    place.sequences = Integer{1};
    place.rows = rows = Symbol::audio_rows;
  }
  const std::vector<TensorId> states =
      append_tower(GraphBuilder(encoder, options_).build_audio_tower(), place);
  graph_.tensors[states.front()].shape = {rows, Integer{tower.hidden_size}};
  const bool emits = std::exchange(emit_nodes_, reads_sound());
  const TensorId tokens =
      project_rows(tower.projector, {StackRole::audio_tower, "audio_projector"}, states.front());
  emit_nodes_ = emits;
  return tokens;
}

TensorId GraphBuilder::grid_convolution(const std::string& path, const GridConvolution& op,
                                        TensorId input) {
  const Expr channels = Integer{op.out_channels};
  std::vector<Expr> shape{op.batch, Integer{op.out_rows()}, Integer{op.out_columns()}, channels};
  if (op.order == GridOrder::rows_last) {
    shape = {op.batch, Integer{op.out_columns()}, channels, Integer{op.out_rows()}};
  }
  std::vector<WeightId> weights{weight(Part::embeddings, path + ".weight",
                                       {channels, Integer{op.inputs()}}, WeightRole::embedding)};
  if (op.bias) {
    weights.push_back(weight(Part::embeddings, path + ".bias", {channels}, WeightRole::embedding));
  }
  const Expr places = op.batch * Integer{op.places()};
  const Expr elements = places * channels;
  TensorId output = emit(Part::embeddings, path, op, {input}, std::move(weights), std::move(shape));
  if (const auto& subsampling = spec_.embedding.audio->subsampling) {
    output = emit_in_place(
        Part::embeddings, path + "_norm", norm_of(*subsampling, op), {output},
        norm_weights(subsampling->norm, Part::embeddings, path + "_norm", {channels}));
  }
  return emit_in_place(Part::embeddings, path + ".activation",
                       Activation{spec_.embedding.audio->activation, elements}, {output});
}

TensorId GraphBuilder::embed_segments(const StackContext& stack) {
  const AudioSpec& audio = *spec_.embedding.audio;
  const Expr segments = Symbol::audio_segments;
  const Expr bins = Integer{audio.num_mel_bins};
  const Expr frames = Integer{audio.joined_frames};
  const Expr kernel = Integer{3};
  const TensorId features = tensor("input_features", {segments, bins, frames});
  if (emit_nodes_) graph_.inputs.push_back(features);
  begin_block("embeddings", stack.role, Integer{1}, features);
  const Convolution first{segments, bins, Symbol::hidden_size, kernel, Integer{1}, frames, true};
  const std::int64_t columns = audio.joined_frames / 2;
  const Convolution second{segments, Symbol::hidden_size, Symbol::hidden_size,
                           kernel,   Integer{2},          Integer{columns}};
  const TensorId filtered = audio_convolution("conv1", first, features);
  return finish_segments(stack, columns, audio_convolution("conv2", second, filtered));
}

/// Adds positions within segments and keeps the rows of sound.
TensorId GraphBuilder::finish_segments(const StackContext& stack, std::int64_t columns,
                                       TensorId hidden) {
  const Expr rows = Expr(Symbol::audio_segments) * Integer{columns};
  hidden = emit_in_place(Part::embeddings, "position_embeddings",
                         PositionEmbedding{rows, Integer{columns}, Symbol::hidden_size}, {hidden});
  const PatchRows op{PatchRows::Kind::sound, stack.rows(), Symbol::hidden_size};
  return finish_embedding(stack,
                          emit(Part::embeddings, "sound", op, {hidden}, {}, hidden_shape(stack)));
}

TensorId GraphBuilder::embed_grid(const StackContext& stack) {
  const AudioSpec& audio = *spec_.embedding.audio;
  const Expr segments = Symbol::audio_segments;
  GridConvolution op{segments, 1, audio.grid_channels, audio.num_mel_bins, audio.joined_frames};
  op.reads_sound = true;
  TensorId hidden = tensor("input_features", {segments, Integer{op.rows}, Integer{op.columns}});
  if (emit_nodes_) graph_.inputs.push_back(hidden);
  begin_block("embeddings", stack.role, Integer{1}, hidden);
  for (const char* const path : {"conv1", "conv2", "conv3"}) {
    const bool last = std::string_view(path) == "conv3";
    op.order = last ? GridOrder::rows_last : GridOrder::channels_last;
    hidden = grid_convolution(path, op, hidden);
    op.reads_sound = false;
    op.in_channels = audio.grid_channels;
    op.rows = op.out_rows();
    op.columns = op.out_columns();
  }
  const LinearParts columns{Part::embeddings,
                            "input",
                            WeightRole::embedding,
                            segments * Integer{op.columns},
                            Integer{op.in_channels} * op.rows,
                            {{"input", Symbol::hidden_size}}};
  hidden = linear(columns, hidden, {segments, Integer{op.columns}, Symbol::hidden_size});
  return finish_segments(stack, op.columns, hidden);
}

/// Embeds whole clips, in segments of the frames that become one row.
TensorId GraphBuilder::embed_subsampled(const StackContext& stack) {
  const AudioSpec& audio = *spec_.embedding.audio;
  const SubsamplingSpec& sizes = *audio.subsampling;
  const Expr segments = Symbol::audio_segments;
  GridConvolution op{segments, 1, sizes.first_channels, audio.joined_frames, audio.num_mel_bins};
  const bool centred = sizes.rows == SubsamplingRows::centred;
  op.items = centred ? GridItems::rows_of_clips : GridItems::later_rows_of_clips;
  op.bias = false;
  op.reads_sound = true;
  TensorId hidden = tensor("input_features", {segments, Integer{op.rows}, Integer{op.columns}});
  if (emit_nodes_) graph_.inputs.push_back(hidden);
  begin_block("embeddings", stack.role, Integer{1}, hidden);
  for (const char* const path : {"conv1", "conv2"}) {
    hidden = grid_convolution(path, op, hidden);
    op.reads_sound = false;
    op.rows = op.out_rows();
    op.columns = op.out_columns();
    op.in_channels = op.out_channels;
    op.out_channels = sizes.second_channels;
  }
  const LinearParts rows{Part::embeddings,
                         "input",
                         WeightRole::embedding,
                         stack.rows(),
                         Integer{op.columns} * op.in_channels,
                         {{"input", Symbol::hidden_size}}};
  return finish_embedding(stack, linear(rows, hidden, hidden_shape(stack)));
}

/// Rows that stand side by side are one row of the same memory.
TensorId GraphBuilder::group_rows(const GroupStep& step, TensorId features) {
  const AudioTowerSpec& tower = *spec_.audio_tower;
  const Expr width = graph_.tensors[features].shape[1];
  switch (step.kind) {
    case RowGroup::side_by_side: {
      const Expr rows = Expr(Symbol::audio_segments) * Integer{tower.segment_positions / step.rows};
      graph_.tensors[features].shape = {rows, Integer{step.rows} * width};
      return features;
    }
    case RowGroup::first: {
      const PatchRows op{PatchRows::Kind::first_of_neighbours, Symbol::audio_tokens, width};
      return emit(Part::projector, "first", op, {features}, {}, {Symbol::audio_tokens, width});
    }
    case RowGroup::mean:
      break;
  }
  const bool apart = tower.attended_segments == 0;
  const std::int64_t means = tower.segment_positions / step.rows;
  const Expr rows =
      apart ? Expr(Symbol::audio_segments) * Integer{means} : Expr(Symbol::audio_tokens);
  const PatchRows op{PatchRows::Kind::mean_of_neighbours, rows, width, step.rows};
  return emit(Part::projector, "mean", op, {features}, {}, {rows, width});
}

TensorId GraphBuilder::drop_silence(TensorId features) {
  const Expr width = graph_.tensors[features].shape[1];
  const PatchRows op{PatchRows::Kind::sound, Symbol::audio_tokens, width};
  return emit(Part::projector, "sound", op, {features}, {}, {Symbol::audio_tokens, width});
}

TensorId GraphBuilder::insert_audio_tokens(TensorId hidden) {
  if (!audio_tokens_ || !reads_sound()) return hidden;
  const Expr rows = graph_.tensors[*audio_tokens_].shape.front();
  return emit_in_place(Part::embeddings, "audio_tokens",
                       VisualTokens{VisualTokens::Kind::replace, rows, Symbol::hidden_size,
                                    VisualTokens::Source::audio},
                       {hidden, *audio_tokens_});
}

}  // namespace headroom::detail
