// Reader, classes and stored names of encoder-decoders with BART's keys.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../config_reader.h"
#include "../model_class.h"
#include "../stored/stored_names.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// The decoder's first token, where the inputs name none: that of the config, or the last of the
/// encoder's, which is its language.
enum class DecoderStart { of_config, language };

/// Choices in which the families differ.
struct EncoderDecoderFamily {
  NormPlacement placement = NormPlacement::post;
  bool embedding_norm = false;
  bool key_bias = true;
  std::int64_t positions_offset = 0;
  std::string_view positions_key = "max_position_embeddings";
  std::int64_t positions_when_absent = 1024;
  PositionKind positions = PositionKind::learned;
  PositionTable table = PositionTable::trained;
  ActivationKind activation = ActivationKind::gelu;
  DecoderStart start = DecoderStart::of_config;
  InputKind encoder_input = InputKind::tokens;
};

/// A stored, untrained buffer that is added to the logits.
enum class LogitsBias { none, buffer };

/// `language_model_class`, and `prefix` + Model, ForSequenceClassification, ForQuestionAnswering
/// and ForCausalLM, the decoder alone.
[[nodiscard]] ModelClasses encoder_decoder_classes(const std::string& prefix,
                                                   std::string language_model_class,
                                                   LogitsBias bias = LogitsBias::buffer);

/// Reads both stacks into `spec`, or the decoder alone, by the class.
void read_encoder_decoder(ConfigReader& config, ModelSpec& spec,
                          const EncoderDecoderFamily& family);

/// Names stored like BART's; `own` rules come first.
[[nodiscard]] NameTable bart_names(std::vector<std::span<const NameRule>> own = {});

}  // namespace headroom::detail
