// Steps that turn tokens, images and audio into hidden states.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>

#include "hard_tokens.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/position_table.h"
#include "step_builder.h"

namespace headroom::measured {
namespace {

/// RoBERTa's position ids: they start after the id of the padding token and `past` tokens, and
/// padding tokens keep that id (the family's create_position_ids_from_input_ids).
std::vector<std::int64_t> positions_after_padding(const TokenInputs& tokens, std::int64_t offset,
                                                  std::int64_t past) {
  const std::int64_t padding = offset - 1;
  std::vector<std::int64_t> positions(tokens.ids.size(), padding);
  for (std::int64_t b = 0; b < tokens.batch; ++b) {
    std::int64_t next = offset + past;
    for (std::int64_t s = 0; s < tokens.seq_len; ++s) {
      const auto at = static_cast<std::size_t>(b * tokens.seq_len + s);
      if (tokens.ids[at] != padding) positions[at] = next++;
    }
  }
  return positions;
}

/// Factors of the embeddings of a model that masks tokens as by dropout: 0 for `mask_token`, else
/// (1 - 0.12) / (1 - share of mask tokens among those that are not padding). Source: EsmEmbeddings,
/// transformers, models/esm.
std::vector<float> token_dropout_scales(const TokenInputs& tokens, std::int64_t mask_token) {
  constexpr float kKeptInTraining = 1.0F - 0.15F * 0.8F;
  std::vector<float> scales(tokens.ids.size());
  for (std::int64_t b = 0; b < tokens.batch; ++b) {
    const auto first = static_cast<std::size_t>(b * tokens.seq_len);
    const auto length = static_cast<std::size_t>(tokens.seq_len);
    const std::span ids = std::span(tokens.ids).subspan(first, length);
    const auto masked = static_cast<float>(std::ranges::count(ids, mask_token));
    auto all = static_cast<float>(tokens.seq_len);
    if (!tokens.key_mask.empty()) {
      const std::span mask = std::span(tokens.key_mask).subspan(first, length);
      all = static_cast<float>(std::ranges::count(mask, std::uint8_t{1}));
    }
    for (std::size_t i = 0; i < length; ++i) {
      scales[first + i] = ids[i] == mask_token ? 0.0F : kKeptInTraining / (1.0F - masked / all);
    }
  }
  return scales;
}

std::vector<float> computed_positions(const PositionSpec& spec, std::int64_t rows,
                                      std::int64_t width) {
  return spec.table == PositionTable::tensor2tensor ? tensor2tensor_positions(rows, width)
                                                    : sinusoidal_positions(rows, width);
}

/// Sets the factor of all word embeddings; returns one per token if they differ.
std::vector<float> scale_words(TokenEmbeddingArguments& args, const TokenEmbedding& op,
                               const ModelSpec& spec, std::int64_t hidden_size,
                               const TokenInputs& tokens) {
  switch (op.scale) {
    case EmbeddingScale::none:
      break;
    case EmbeddingScale::sqrt_hidden_size:
      args.scale = std::sqrt(static_cast<float>(hidden_size));
      break;
    case EmbeddingScale::fixed:
      args.scale = static_cast<float>(op.fixed_scale);
      break;
    case EmbeddingScale::token_dropout:
      return token_dropout_scales(tokens, spec.embedding.mask_token_id);
  }
  return {};
}

/// The rows [first, first + rows) of a table that ranks divide; those of others are zeros, and the
/// sum over the ranks is the whole table.
RowReader rows_of_rank(RowReader own, std::int64_t first, std::int64_t rows, std::int64_t width) {
  return [=, own = std::move(own)](std::int64_t row, float* to) {
    if (row >= first && row < first + rows) {
      own(row - first, to);
    } else {
      std::fill_n(to, width, 0.0F);
    }
  };
}

}  // namespace

StepBuilder::Run StepBuilder::operator()(const TokenEmbedding& op) {
  const ModelWeights& weights = program_.weights_;
  const TokenInputs& tokens = this->tokens();
  TokenEmbeddingArguments args;
  args.batch = tokens.batch;
  args.seq_len = tokens.seq_len;
  args.width = integer(op.width);
  args.word_row = weights.word_rows(weight_path(0));
  args.ids = tokens.ids.data();
  const std::optional<std::int64_t> placeholder = program_.spec_.embedding.placeholder_id;
  const ModelSpec& model = program_.spec_;
  const bool encodes = node_->component.stack == StackRole::encoder;
  const std::int64_t hidden_size = encodes ? model.encoder_width() : model.hidden_size;
  std::vector<float> token_scales = scale_words(args, op, model, hidden_size, tokens);
  std::size_t next_table = 1;
  std::vector<float> sinusoids;
  switch (op.positions) {
    case AddedPositions::none:
      break;
    case AddedPositions::learned:
      args.position_table = position_rows(weight_path(next_table++), args.width);
      break;
    case AddedPositions::sinusoidal:
      sinusoids = computed_positions(
          program_.spec_.position,
          program_.lengths_.capacity + tokens.seq_len + program_.spec_.position.offset, args.width);
      break;
  }
  const bool skips_padding = program_.spec_.position.skips_padding;
  if (skips_padding && sinusoids.empty()) {
    args.position_table = weights.values(weight_path(1), 0);
  }
  if (!op.type_rows.is_zero()) {
    args.type_table = weights.values(weight_path(next_table), 0);
    if (!tokens.type_ids.empty()) args.type_ids = tokens.type_ids.data();
  }
  const auto is_placeholder = [model = &program_.spec_](std::int64_t id) {
    return std::ranges::find(model->tower_tokens, id) != model->tower_tokens.end();
  };
  // A table of per-layer embeddings may lack the last ids, of images and sound, which read row 0.
  // Source: get_per_layer_inputs of Gemma3nModel, transformers, models/gemma3n.
  const Weight& words = program_.graph_.weights[node_->weights.front()];
  const std::int64_t rows = words.shape.front().evaluate_int64(program_.whole_sizes_);
  const bool lacks_rows = rows < program_.spec_.embedding.vocab_size;
  const std::int64_t own_rows = integer(words.shape.front());
  if (own_rows != rows) {
    const std::int64_t first = tensor_position().rank * own_rows;
    args.word_row = rows_of_rank(std::move(args.word_row), first, own_rows, args.width);
    if (!tensor_position().is_first()) sinusoids.assign(sinusoids.size(), 0.0F);
  }
  const bool embeds_words = !block_.path.ends_with("per_layer_embeddings");
  if (embeds_words && own_rows == rows) {
    args.word_row = with_hard_tokens(std::move(args.word_row), model.embedding.hard_tokens, weights,
                                     args.width, args.scale);
  }
  const bool is_decoder = node_->component.stack != StackRole::encoder;
  const std::int64_t moved = args.batch * args.seq_len * args.width * kFloatBytes *
                             static_cast<std::int64_t>(1 + node_->weights.size());
  return [=, lengths = &program_.lengths_, out = output(), sinusoids = std::move(sinusoids),
          token_scales = std::move(token_scales), offset = program_.spec_.position.offset,
          input_tokens = &tokens, ids = std::vector<std::int64_t>(),
          positions = std::vector<std::int64_t>()](std::int64_t /*layer*/) mutable {
    const std::int64_t unused = skips_padding ? 0 : offset * args.width;  // rows before the first
    if (!sinusoids.empty()) args.position_table = sinusoids.data() + unused;
    if (!token_scales.empty()) args.token_scales = token_scales.data();
    if (placeholder || lacks_rows) {
      ids = input_tokens->ids;
      if (placeholder) std::ranges::replace_if(ids, is_placeholder, *placeholder);
      std::ranges::replace_if(
          ids, [rows](std::int64_t id) { return id >= rows; }, 0);
      args.ids = ids.data();
    }
    args.first_position = is_decoder ? lengths->past : 0;
    if (skips_padding) {
      positions = positions_after_padding(*input_tokens, offset, args.first_position);
      args.position_ids = positions.data();
    }
    embed_tokens(args, out);
    return StepCount{0, moved};
  };
}

const float* StepBuilder::position_rows(const std::string& path, std::int64_t width) const {
  const bool in_encoder = node_->component.stack == StackRole::encoder;
  const PositionSpec& position = in_encoder ? program_.spec_.encoder_positions() : spec().position;
  return program_.weights_.values(path, 0) + position.offset * width;
}

StepBuilder::Run StepBuilder::operator()(const PositionEmbedding& op) {
  if (is_tower()) return patch_positions(op);
  const std::int64_t width = integer(op.width);
  const std::int64_t seq_len = integer(op.seq_len);
  const std::int64_t batch = integer(op.tokens) / seq_len;
  const bool in_encoder = node_->component.stack == StackRole::encoder || is_audio_tower();
  // With sequence parallelism a rank has `seq_len` tokens of each sequence, the first rank the
  // first.
  const bool shards = shards_tokens(program_.rank_, program_.graph_.options.phase);
  const std::int64_t first_of_rank = shards ? tensor_position().rank * seq_len : 0;
  std::vector<float> sines;
  if (node_->weights.empty()) {
    sines = computed_positions(spec().position, first_of_rank + seq_len, width);
  }
  const float* const stored = sines.empty() ? position_rows(weight_path(0), width) : nullptr;
  return [=, lengths = &program_.lengths_, sines = std::move(sines), copy_input = input_copy(),
          x = output()](std::int64_t /*layer*/) {
    copy_input();
    const float* const table = stored == nullptr ? sines.data() : stored;
    const std::int64_t first = first_of_rank + (in_encoder ? 0 : lengths->past);
    for (std::int64_t b = 0; b < batch; ++b) {
      add_residual(x + b * seq_len * width, table + first * width, seq_len * width);
    }
    return StepCount{0, 3 * batch * seq_len * width * kFloatBytes};
  };
}

}  // namespace headroom::measured
