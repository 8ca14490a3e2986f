// What a model is run on: token ids, masks, pixels or hidden states.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "headroom/model_spec.h"
#include "headroom/workload.h"

namespace headroom::measured {

/// Tokens of a batch, [batch, seq_len] each. An empty mask hides nothing; empty type ids are all 0.
struct TokenInputs {
  std::int64_t batch = 0;
  std::int64_t seq_len = 0;
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> type_ids;
  std::vector<std::uint8_t> key_mask;
};

/// Inputs of one run. `encoder` is for encoder-decoders only, whose `main` is the decoder's.
struct ModelInputs {
  TokenInputs main;
  std::optional<TokenInputs> encoder;
  std::vector<float> pixel_values{};    ///< [batch, channels, height, width] of image models
  std::vector<float> hidden_states{};   ///< [batch, seq_len, hidden] of single layers
  std::vector<float> audio_features{};  ///< [batch, mel bins, 2·enc_seq_len] of speech models
  /// [batch, enc_seq_len, hidden] that a layer of cross-attention attends to.
  std::vector<float> encoder_hidden_states{};
};

/// What a generation starts from, one sequence.
struct GeneratePrompt {
  TokenInputs prompt;
  std::optional<TokenInputs> encoder;
  std::int64_t max_new_tokens = 0;
  std::vector<float> audio_features{};
};

/// What an input file holds.
struct InputFile {
  ModelInputs inputs;
  std::optional<GeneratePrompt> generate;
};

/// Reads `inputs.json` (input_ids, attention_mask, token_type_ids, decoder_input_ids, generate),
/// and pixel_values, input_features or hidden_states from the .safetensors file beside it or from
/// `path` itself. Throws Error{invalid_input}: ids beyond the vocabulary, rows of different
/// lengths, …
[[nodiscard]] InputFile read_inputs(const std::filesystem::path& path, const ModelSpec& spec);

/// Inputs of the workload's sizes, of random tokens or values.
[[nodiscard]] ModelInputs random_inputs(const ModelSpec& spec, const Workload& workload,
                                        std::uint64_t seed);

}  // namespace headroom::measured
