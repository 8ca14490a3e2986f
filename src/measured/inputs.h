// Inputs of a forward pass: token ids, masks, pixels, audio features or hidden states.
#pragma once

#include <cstdint>
#include <filesystem>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headroom/model_spec.h"
#include "headroom/workload.h"

namespace headroom::measured {

/// Tokens of a batch, each field [batch, seq_len]. An empty `key_mask` masks nothing; empty
/// `type_ids` are all 0. `visual_rows` are the rows of `ids` that visual tokens replace.
struct TokenInputs {
  std::int64_t batch = 0;
  std::int64_t seq_len = 0;
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> type_ids;
  std::vector<std::uint8_t> key_mask;
  std::vector<std::int64_t> visual_rows{};
  std::vector<std::int64_t> audio_rows{};   ///< likewise, of audio tokens
  std::vector<std::uint8_t> global_mask{};  ///< 1 for tokens with global attention; empty: none
  /// How far the positions of a decode step are shifted, [batch]; empty: not at all.
  std::vector<std::int64_t> position_shifts{};
};

/// Images for a tower: the pixels [channels, height, width] of each, one after the other, or its
/// patches, by blocks (PixelLayout).
struct TowerInputs {
  std::vector<float> pixels;
  std::vector<ImageSize> sizes;
  std::vector<ImageTiling> tilings{};  ///< of each image whose tiles are packed
};

/// Sound for an audio tower: the spectrograms [mel bins, frames] of its segments, or of a Conformer
/// [frames, mel bins], one after the other; the last ones of clips are completed with zeros.
struct SegmentInputs {
  std::vector<float> features;
  std::vector<std::int64_t> clip_frames;  ///< of each clip
};

/// Inputs of one run. For encoder-decoders, `encoder` goes to the encoder and `main` to the
/// decoder.
struct ModelInputs {
  TokenInputs main;
  std::optional<TokenInputs> encoder;
  std::vector<float> pixel_values{};   ///< [batch, channels, height, width]; image models
  std::vector<float> hidden_states{};  ///< [batch, seq_len, hidden]; single layers
  std::vector<float>
      audio_features{};  ///< [batch, mel bins, 2·enc_seq_len] or [batch, samples]; speech models
  /// [batch, enc_seq_len, hidden]; keys and values of a cross-attention layer.
  std::vector<float> encoder_hidden_states{};
  /// Of `pixel_values`; empty: the size in the config.
  std::optional<ImageSize> pixels{};
  std::optional<TowerInputs> images{};   ///< of all sequences, in the order of their placeholders
  std::optional<SegmentInputs> audio{};  ///< likewise

  [[nodiscard]] ImageSize image_size(const ImageSpec& image) const {
    return pixels.value_or(ImageSize{image.image_size, image.image_size});
  }
};

/// Prompt of a generation; one sequence.
struct GeneratePrompt {
  TokenInputs prompt;
  std::optional<TokenInputs> encoder;
  std::int64_t max_new_tokens = 0;
  std::vector<float> audio_features{};
  std::optional<TowerInputs> images{};
  std::optional<SegmentInputs> audio{};
};

/// Contents of an input file.
struct InputFile {
  ModelInputs inputs;
  std::optional<GeneratePrompt> generate;
};

/// Most tokens with global attention in a sequence, padding left out.
[[nodiscard]] std::int64_t most_global_tokens(const TokenInputs& tokens);

/// Marks the tokens that the class gives global attention, in place of a mask.
void add_default_global_mask(const GlobalAttentionSpec& global, TokenInputs& tokens);

/// Reads token inputs from `inputs.json` (input_ids, attention_mask, global_attention_mask,
/// token_type_ids, decoder_input_ids, generate), and pixel_values, input_features or hidden_states
/// from the .safetensors file of the same name or from `path` itself. Throws Error{invalid_input}:
/// ids outside the vocabulary, rows of different lengths, …
[[nodiscard]] InputFile read_inputs(const std::filesystem::path& path, const ModelSpec& spec);

/// Returns whether the model runs the tower that fills the placeholder `token`.
[[nodiscard]] bool is_filled(const ModelSpec& spec, std::int64_t token);

/// Throws Error{invalid_input} at `where` if an id is a placeholder of an image or sound, which the
/// text model alone would read as a word.
void require_text_tokens(const std::vector<std::int64_t>& ids, const ModelSpec& spec,
                         const std::string& where);

/// Random tokens or values in the workload's shapes.
[[nodiscard]] ModelInputs random_inputs(const ModelSpec& spec, const Workload& workload,
                                        std::uint64_t seed);

}  // namespace headroom::measured
