#include "output_collector.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "headroom/tiled_tower.h"

namespace headroom::measured {

namespace {

/// Returns whether the classes record hidden states after each layer, and not the embeddings: those
/// of Mamba and RWKV-4.
bool records_after_layers(const StackSpec& stack) {
  const AttentionKind kind = stack.self_attention.kind;
  const bool mixes =
      kind == AttentionKind::state_space || kind == AttentionKind::weighted_key_value;
  return mixes && stack.variants.empty() && !stack.shared_block;
}

}  // namespace

void OutputCollector::add(std::string name, std::vector<std::int64_t> shape, const float* data) {
  if (data == nullptr) return;
  const std::int64_t count =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>{});
  const auto has_same_name = [&](const NamedTensor& tensor) { return tensor.name == name; };
  std::erase_if(tensors_, has_same_name);
  tensors_.push_back({std::move(name), std::move(shape), {data, data + count}});
}

void OutputCollector::add_hidden(const std::string& name, bool in_encoder, const float* data) {
  const std::int64_t tokens = in_encoder ? lengths_.enc_seq_len : lengths_.seq_len;
  const std::int64_t width = in_encoder ? spec_.encoder_width() : spec_.output_width();
  add(name, {lengths_.batch, tokens, width}, data);
}

void OutputCollector::add_layer(const std::string& name, bool in_encoder, const float* data) {
  if (!spec_.main_stack().self_attention.transformer_xl) return add_hidden(name, in_encoder, data);
  if (data == nullptr) return;
  // XLNet's layers have the tokens of all sequences at one position side by side.
  const std::int64_t width = spec_.output_width();
  std::vector<float> by_position;
  by_position.reserve(static_cast<std::size_t>(lengths_.batch * lengths_.seq_len * width));
  for (std::int64_t token = 0; token < lengths_.seq_len; ++token) {
    for (std::int64_t sequence = 0; sequence < lengths_.batch; ++sequence) {
      const float* const row = data + (sequence * lengths_.seq_len + token) * width;
      by_position.insert(by_position.end(), row, row + width);
    }
  }
  add(name, {lengths_.seq_len, lengths_.batch, width}, by_position.data());
  tensors_.back().batch_dimension = 1;
}

void OutputCollector::add_first_rows() {
  const auto states = std::ranges::find(tensors_, "last_hidden_state", &NamedTensor::name);
  if (states == tensors_.end()) return;
  const auto width = static_cast<std::size_t>(states->shape.back());
  const std::size_t stride = static_cast<std::size_t>(states->shape[1]) * width;
  std::vector<float> rows;
  for (std::size_t begin = 0; begin < states->values.size(); begin += stride) {
    const float* const row = states->values.data() + begin;
    rows.insert(rows.end(), row, row + width);
  }
  add("pooler_output", {states->shape.front(), states->shape.back()}, rows.data());
}

void OutputCollector::add_streams(const std::string& name, const float* data) {
  const StackSpec& stack = spec_.main_stack();
  if (stack.altup) {
    add(name, {stack.altup->inputs, lengths_.batch, lengths_.seq_len, spec_.hidden_size}, data);
    if (data != nullptr) tensors_.back().batch_dimension = 1;
    return;
  }
  add(name, {lengths_.batch, lengths_.seq_len, stack.hyper_connections->streams, spec_.hidden_size},
      data);
}

void OutputCollector::end_stack(bool in_encoder, const float* data) {
  add_hidden(in_encoder ? "encoder_last_hidden_state" : "last_hidden_state", in_encoder, data);
}

void OutputCollector::observe_tower(const ProgramBlock& block, std::int64_t layer,
                                    const float* data) {
  const ImageTotals& images = lengths_.images;
  if (block.path == "projector" && spec_.head.similarity) {
    add("image_embeds", {images.images, spec_.head.similarity->projection_dim}, data);
  } else if (block.path == "projector") {
    add("image_features", {images.tokens, spec_.hidden_size}, data);
  } else if (block.path == "deepstack") {
    const std::string name = fmt::format("deepstack_features.{}", layer);
    add(name, {images.tokens, spec_.hidden_size}, data);
  } else if (block.path.ends_with(".layers")) {
    const TowerSpec& tower = *spec_.tower;
    const std::int64_t rows =
        reads_canvases(tower)
            ? images.images * padded_rows_of_tile(tower)
            : images.patches + images.images * tower.embedding.image->prefix_tokens();
    add(fmt::format("vision.layers.{}.output", layer), {rows, tower.hidden_size}, data);
  }
}

void OutputCollector::observe_audio_tower(const ProgramBlock& block, std::int64_t layer,
                                          const float* data) {
  const AudioTowerSpec& tower = *spec_.audio_tower;
  if (block.path == "audio_projector") {
    add("audio_features", {lengths_.audio.tokens, spec_.hidden_size}, data);
  } else if (block.path.ends_with(".layers")) {
    add(fmt::format("audio.layers.{}.output", layer), {lengths_.audio.rows, tower.hidden_size},
        data);
  }
}

void OutputCollector::observe(const ProgramBlock& block, std::int64_t layer, const float* data) {
  switch (block.steps.front().node->component.stack) {
    case StackRole::tower:
      return observe_tower(block, layer, data);
    case StackRole::audio_tower:
      return observe_audio_tower(block, layer, data);
    case StackRole::single:
    case StackRole::encoder:
    case StackRole::decoder:
      break;
  }
  const bool two_stacks = spec_.kind == ModelKind::encoder_decoder;
  const bool in_encoder = two_stacks && block.path.starts_with("encoder");
  const std::string states = !two_stacks  ? "hidden_states"
                             : in_encoder ? "encoder_hidden_states"
                                          : "decoder_hidden_states";
  const std::string& first = block.steps.front().node->path;
  const bool streams = spec_.main_stack().altup || spec_.main_stack().hyper_connections;
  if (streams) return observe_streams(block, layer, data);
  if (block.path == "per_layer_embeddings") return;
  const bool after = records_after_layers(in_encoder ? *spec_.encoder : spec_.main_stack());
  if (block.path.ends_with("embeddings")) {
    if (!after) add_hidden(states + ".0", in_encoder, data);
  } else if (block.path.ends_with(".layers")) {
    const std::string stack = in_encoder ? "encoder." : "decoder.";
    add_layer(fmt::format("{}layers.{}.output", two_stacks ? stack : "", layer), in_encoder, data);
    add_hidden(fmt::format("{}.{}", states, after ? layer : layer + 1), in_encoder, data);
    const StackSpec& stack_spec = in_encoder ? *spec_.encoder : spec_.main_stack();
    if (layer + 1 == stack_spec.num_layers) end_stack(in_encoder, data);
  } else if (block.path.ends_with(".input_convolution")) {
    add_hidden(states + ".1", in_encoder, data);
  } else if (first == "final_norm") {
    // Hugging Face's last hidden state follows the final norm, except in a ViT.
    const StackSpec& stack = in_encoder ? *spec_.encoder : spec_.main_stack();
    const bool replaces = spec_.embedding.input != InputKind::patches;
    if (replaces) add_hidden(fmt::format("{}.{}", states, stack.num_layers), in_encoder, data);
    end_stack(in_encoder, data);
  }
}

void OutputCollector::observe_streams(const ProgramBlock& block, std::int64_t layer,
                                      const float* data) {
  const bool ends = std::ranges::any_of(
      block.steps, [](const Step& step) { return step.node->path == "final_norm"; });
  const bool expands = block.path == "altup_inputs" || block.path.ends_with(".streams");
  if (expands) add_streams("hidden_states.0", data);
  if (ends && spec_.main_stack().hyper_connections) {
    add_hidden(fmt::format("hidden_states.{}", spec_.main_stack().num_layers), false, data);
  }
  if (ends) end_stack(false, data);
  if (!block.path.ends_with(".layers")) return;
  add_streams(fmt::format("layers.{}.output", layer), data);
  add_streams(fmt::format("hidden_states.{}", layer + 1), data);
}

void OutputCollector::add_similarities(const Program& program) {
  const std::int64_t texts = lengths_.batch;
  const std::int64_t images = lengths_.images.images;
  add("text_embeds", {texts, spec_.head.similarity->projection_dim}, program.output("text_embeds"));
  const float* const logits = program.output("logits_per_text");
  if (logits == nullptr) return;
  add("logits_per_text", {texts, images}, logits);
  std::vector<float> transposed(static_cast<std::size_t>(images * texts));
  auto to = transposed.begin();
  for (std::int64_t image = 0; image < images; ++image) {
    for (std::int64_t text = 0; text < texts; ++text) *to++ = logits[text * images + image];
  }
  add("logits_per_image", {images, texts}, transposed.data());
}

void OutputCollector::add_classes(const ClassifierSpec& spec, const Program& program) {
  const std::vector<std::int64_t> tokens{lengths_.batch, lengths_.seq_len};
  switch (spec.input) {
    case ClassifierInput::every_token:
      break;
    case ClassifierInput::last_token:
      return add("logits", {lengths_.batch, spec.num_labels}, program.output("classifier.token"));
    case ClassifierInput::first_two_tokens:
      return add("logits", {lengths_.batch, spec.num_labels}, program.output("classifier.mean"));
    case ClassifierInput::pooled_token:
    case ClassifierInput::first_token:
    case ClassifierInput::end_token:
    case ClassifierInput::mean_token:
    case ClassifierInput::first_and_mean:
      return add("logits", {lengths_.batch, spec.num_labels}, program.output("classifier"));
  }
  const float* const logits = program.output("classifier");
  if (spec.scores) return add("logits", tokens, logits);
  if (!spec.spans) return add("logits", {tokens[0], tokens[1], spec.num_labels}, logits);
  for (std::int64_t end = 0; end < 2 && logits != nullptr; ++end) {
    std::vector<float> scores;
    for (std::int64_t token = 0; token < tokens[0] * tokens[1]; ++token) {
      scores.push_back(logits[token * spec.num_labels + end]);
    }
    add(end == 0 ? "start_logits" : "end_logits", tokens, scores.data());
  }
}

std::vector<NamedTensor> OutputCollector::finish(const Program& program) && {
  // OPT's decoder ends with the narrow states of project_out.
  if (spec_.head.projects_out) {
    const std::vector<std::int64_t> shape{lengths_.batch, program.logit_tokens(),
                                          spec_.embedding.embedding_size};
    const float* const states = program.output("project_out");
    add(fmt::format("hidden_states.{}", spec_.main_stack().num_layers), shape, states);
    add("last_hidden_state", shape, states);
  }
  // Of shards of the tokens, the run gathers the last states alone.
  if (const float* const gathered = program.output("output_tokens")) {
    add_hidden("last_hidden_state", false, gathered);
  }
  add("logits", {lengths_.batch, program.logit_tokens(), spec_.embedding.vocab_size},
      program.output("logits"));
  const auto& classifier = spec_.head.classifier;
  if (classifier && !spec_.head.language_model) add_classes(*classifier, program);
  if (classifier && spec_.head.language_model && classifier->input == ClassifierInput::end_token) {
    add("mc_logits", {lengths_.batch}, program.output("classifier"));  // one score of each choice
  }
  if (spec_.head.similarity) add_similarities(program);
  if (spec_.head.first_row_is_pooled) add_first_rows();
  const std::int64_t size = spec_.head.pooler_size;
  add("pooler_output", {lengths_.batch, size == 0 ? spec_.hidden_size : size},
      program.output("pooler.activation"));
  return std::move(tensors_);
}

}  // namespace headroom::measured
