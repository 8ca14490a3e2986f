// Random tokens, pixels, audio and hidden states of a workload.
#include <algorithm>
#include <random>

#include "image_inputs.h"
#include "inputs.h"
#include "sound_inputs.h"

namespace headroom::measured {
namespace {

/// Placeholders of images and sound in the vocabulary, sorted.
std::vector<std::int64_t> placeholders_of(const ModelSpec& spec) {
  std::vector<std::int64_t> tokens = spec.tower_tokens;
  const auto is_outside = [&](std::int64_t token) { return token >= spec.embedding.vocab_size; };
  std::erase_if(tokens, is_outside);
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

/// Uniform over the vocabulary without the placeholders of images and sound.
TokenInputs random_tokens(std::int64_t batch, std::int64_t seq_len, const ModelSpec& spec,
                          std::mt19937_64& generator) {
  const std::vector<std::int64_t> left_out = placeholders_of(spec);
  const std::int64_t words = spec.embedding.vocab_size - std::ssize(left_out);
  std::uniform_int_distribution<std::int64_t> ids(0, std::max<std::int64_t>(words, 1) - 1);
  TokenInputs tokens{batch, seq_len, {}, {}, {}};
  tokens.ids.resize(static_cast<std::size_t>(batch * seq_len));
  std::ranges::generate(tokens.ids, [&] {
    std::int64_t id = ids(generator);
    // Sorted: each placeholder up to the id moves it by one.
    for (const std::int64_t token : left_out) id += token <= id ? 1 : 0;
    return id;
  });
  return tokens;
}

/// Gives the first tokens of every sequence global attention.
void mark_first_tokens(std::int64_t count, TokenInputs& tokens) {
  tokens.global_mask.assign(tokens.ids.size(), 0);
  for (std::int64_t item = 0; item < tokens.batch; ++item) {
    std::fill_n(tokens.global_mask.begin() + item * tokens.seq_len, count, std::uint8_t{1});
  }
}

}  // namespace

ModelInputs random_inputs(const ModelSpec& spec, const Workload& workload, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> normal;
  ModelInputs inputs;
  const std::int64_t batch = workload.batch_size;
  const auto fill = [&](std::vector<float>& values, std::int64_t count) {
    values.resize(static_cast<std::size_t>(count));
    std::ranges::generate(values, [&] { return normal(generator); });
  };
  inputs.main.batch = batch;
  inputs.main.seq_len = workload.seq_len;
  switch (spec.embedding.input) {
    case InputKind::tokens:
    case InputKind::audio:
      inputs.main = random_tokens(batch, workload.seq_len, spec, generator);
      if (workload.global_tokens > 0) mark_first_tokens(workload.global_tokens, inputs.main);
      if (workload.images.count > 0) add_random_images(spec, workload, generator, inputs);
      if (workload.audio.count > 0) add_random_sound(spec, workload, generator, inputs);
      break;
    case InputKind::patches: {
      const ImageSpec& image = *spec.embedding.image;
      if (workload.seq_len != image.num_tokens()) {  // a row of as many patches
        const std::int64_t patches = workload.seq_len - image.prefix_tokens();
        inputs.pixels = ImageSize{image.patch_size, image.patch_size * patches};
      }
      const ImageSize size = inputs.image_size(image);
      fill(inputs.pixel_values, batch * image.num_channels * size.height * size.width);
      break;
    }
    case InputKind::waveform:
      fill(inputs.audio_features,
           batch * spec.embedding.waveform->fewest_inputs(0, workload.seq_len));
      break;
    case InputKind::hidden_states:
      fill(inputs.hidden_states, batch * workload.seq_len * spec.hidden_size);
      break;
  }
  if (const auto& audio = spec.embedding.audio) {
    inputs.encoder = TokenInputs{batch, workload.enc_seq_len, {}, {}, {}};
    fill(inputs.audio_features, batch * audio->num_mel_bins * 2 * workload.enc_seq_len);
  } else if (spec.kind == ModelKind::cross_attention_layer) {
    inputs.encoder = TokenInputs{batch, workload.enc_seq_len, {}, {}, {}};
    fill(inputs.encoder_hidden_states, batch * workload.enc_seq_len * spec.hidden_size);
  } else if (spec.kind == ModelKind::encoder_decoder) {
    inputs.encoder = random_tokens(batch, workload.enc_seq_len, spec, generator);
  }
  return inputs;
}

}  // namespace headroom::measured
