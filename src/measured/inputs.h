// Inputs of a forward pass: token ids, masks, pixels, audio features or hidden states.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "headroom/model_spec.h"
#include "headroom/workload.h"

namespace headroom::measured {

/// Tokens of a batch, each field [batch, seq_len]. An empty `key_mask` masks nothing; empty
/// `type_ids` are all 0.
struct TokenInputs {
  std::int64_t batch = 0;
  std::int64_t seq_len = 0;
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> type_ids;
  std::vector<std::uint8_t> key_mask;
};

struct ImageSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
};

/// Inputs of one run. For encoder-decoders, `encoder` goes to the encoder and `main` to the
/// decoder.
struct ModelInputs {
  TokenInputs main;
  std::optional<TokenInputs> encoder;
  std::vector<float> pixel_values{};    ///< [batch, channels, height, width]; image models
  std::vector<float> hidden_states{};   ///< [batch, seq_len, hidden]; single layers
  std::vector<float> audio_features{};  ///< [batch, mel bins, 2·enc_seq_len]; speech models
  /// [batch, enc_seq_len, hidden]; keys and values of a cross-attention layer.
  std::vector<float> encoder_hidden_states{};
  /// Of `pixel_values`; empty: the size in the config.
  std::optional<ImageSize> pixels{};

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
};

/// Contents of an input file.
struct InputFile {
  ModelInputs inputs;
  std::optional<GeneratePrompt> generate;
};

/// Reads token inputs from `inputs.json` (input_ids, attention_mask, token_type_ids,
/// decoder_input_ids, generate), and pixel_values, input_features or hidden_states from the
/// .safetensors file of the same name or from `path` itself. Throws Error{invalid_input}: ids
/// outside the vocabulary, rows of different lengths, …
[[nodiscard]] InputFile read_inputs(const std::filesystem::path& path, const ModelSpec& spec);

/// Throws Error{invalid_input} at `where` if an id is a placeholder of an image or sound, which the
/// text model alone would read as a word.
void require_text_tokens(const std::vector<std::int64_t>& ids, const ModelSpec& spec,
                         const std::string& where);

/// Random tokens or values in the workload's shapes.
[[nodiscard]] ModelInputs random_inputs(const ModelSpec& spec, const Workload& workload,
                                        std::uint64_t seed);

}  // namespace headroom::measured
