#include "inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "headroom/error.h"
#include "headroom/tiled_tower.h"
#include "image_inputs.h"
#include "json_text.h"
#include "safetensors.h"
#include "sound_inputs.h"
#include "tile_inputs.h"
#include "token_reader.h"

namespace headroom::measured {
namespace {

using nlohmann::json;

/// Keys of an input file. Values of pixels and sounds are in the .safetensors file beside it; masks
/// of what the model derives itself and expected tokens are accepted, and not read.
const std::vector<std::string> kInputKeys = {"input_ids",
                                             "attention_mask",
                                             "global_attention_mask",
                                             "token_type_ids",
                                             "mm_token_type_ids",
                                             "decoder_input_ids",
                                             "input_features",
                                             "input_values",
                                             "pixel_values",
                                             "image_sizes",
                                             "image_position_ids",
                                             "image_grid_thw",
                                             "image_merge_sizes",
                                             "spatial_shapes",
                                             "pixel_attention_mask",
                                             "feature_attention_mask",
                                             "input_features_mask",
                                             "aspect_ratio_ids",
                                             "aspect_ratio_mask",
                                             "cross_attention_mask",
                                             "generate"};
const std::vector<std::string> kGenerateKeys = {
    "prompt_ids",         "decoder_prompt_ids", "encoder_input_ids", "token_type_ids",
    "mm_token_type_ids",  "max_new_tokens",     "pixel_values",      "image_sizes",
    "image_position_ids", "image_grid_thw",     "image_merge_sizes", "input_features",
    "expected_ids",       "aspect_ratio_ids",   "aspect_ratio_mask", "cross_attention_mask"};

void read_mask(const TokenReader& reader, TokenInputs& tokens) {
  if (!reader.has("attention_mask")) return;
  const auto mask = reader.values_like("attention_mask", tokens, 2);
  tokens.key_mask.assign(mask.begin(), mask.end());
}

/// Number of token types; any, where only their equality matters (XLNet).
std::int64_t token_types(const ModelSpec& spec) {
  if (!spec.decoder && spec.encoder->self_attention.transformer_xl) {
    return std::numeric_limits<std::int64_t>::max();
  }
  return spec.embedding.type_vocab_size;
}

/// Reads token types: rows of a table, or which tokens are a prompt (PaliGemma).
void read_types(const TokenReader& reader, const ModelSpec& spec, TokenInputs& tokens) {
  const bool marks_prompt = spec.main_stack().self_attention.lookahead == Lookahead::prompt;
  const std::int64_t types = marks_prompt ? 2 : token_types(spec);
  if (!reader.has("token_type_ids") || types == 0) return;
  tokens.type_ids = reader.values_like("token_type_ids", tokens, types);
}

/// Reads which tokens have global attention; without a mask, as the class chooses them.
void read_global_mask(const TokenReader& reader, const ModelSpec& spec, TokenInputs& tokens) {
  const auto& global = spec.main_stack().self_attention.global;
  if (!global) return;
  if (!reader.has("global_attention_mask")) {
    add_default_global_mask(*global, tokens);
    return;
  }
  const auto mask = reader.values_like("global_attention_mask", tokens, 2);
  tokens.global_mask.assign(mask.begin(), mask.end());
}

/// The tokens that a decoder gets to predict `tokens`: each one step later, after `start`.
TokenInputs shifted_right(const TokenInputs& tokens, std::int64_t start) {
  TokenInputs shifted;
  shifted.batch = tokens.batch;
  shifted.seq_len = tokens.seq_len;
  shifted.ids.resize(tokens.ids.size());
  for (std::size_t i = 0; i < shifted.ids.size(); ++i) {
    const bool first = i % static_cast<std::size_t>(tokens.seq_len) == 0;
    shifted.ids[i] = first ? start : tokens.ids[i - 1];
  }
  return shifted;
}

ModelInputs read_token_inputs(const TokenReader& reader, const ModelSpec& spec) {
  ModelInputs inputs;
  if (spec.embedding.audio) {
    inputs.main = reader.tokens("decoder_input_ids");
    return inputs;
  }
  TokenInputs tokens = reader.tokens("input_ids");
  read_mask(reader, tokens);
  if (spec.kind == ModelKind::encoder_decoder) {
    inputs.encoder = std::move(tokens);
    inputs.main = reader.has("decoder_input_ids") || !spec.decoder_start_id
                      ? reader.tokens("decoder_input_ids")
                      : shifted_right(*inputs.encoder, *spec.decoder_start_id);
    if (inputs.main.batch != inputs.encoder->batch) {
      reader.fail("decoder_input_ids", "does not have the batch size of input_ids");
    }
    return inputs;
  }
  read_types(reader, spec, tokens);
  read_global_mask(reader, spec, tokens);
  inputs.main = std::move(tokens);
  return inputs;
}

GeneratePrompt read_generate(const json& generate, const std::string& file, const ModelSpec& spec) {
  const TokenReader reader(generate, file, "/generate", spec);
  if (!generate.is_object()) reader.fail("prompt_ids", "is missing: generate is not an object");
  reader.refuse_others(kGenerateKeys);
  GeneratePrompt result;
  const bool has_encoder = spec.kind == ModelKind::encoder_decoder;
  if (has_encoder && !spec.embedding.audio) result.encoder = reader.tokens("encoder_input_ids");
  result.prompt = reader.tokens(has_encoder ? "decoder_prompt_ids" : "prompt_ids");
  if (!has_encoder) read_types(reader, spec, result.prompt);
  const json count = generate.value("max_new_tokens", json(16));
  if (!count.is_number_integer() || count.get<std::int64_t>() < 1) {
    reader.fail("max_new_tokens", "is not an integer of at least 1");
  }
  result.max_new_tokens = count.get<std::int64_t>();
  return result;
}

ModelInputs read_pixels(const std::filesystem::path& path, const ModelSpec& spec) {
  const checkpoint::SafetensorsFile file(path);
  const checkpoint::StoredTensor* tensor = file.find("pixel_values");
  const ImageSpec& image = *spec.embedding.image;
  const bool matches = tensor != nullptr && tensor->shape.size() == 4 && tensor->shape[0] > 0 &&
                       tensor->shape[1] == image.num_channels &&
                       fits(image, {tensor->shape[2], tensor->shape[3]});
  if (!matches) {
    throw Error(ErrorCode::invalid_input, "has no matching tensor [batch, channels, height, width]",
                checkpoint::tensor_place(file.path(), "pixel_values"),
                fmt::format("store images of {} × {} × {}", image.num_channels, image.image_size,
                            image.image_size));
  }
  ModelInputs inputs;
  const ImageSize size{tensor->shape[2], tensor->shape[3]};
  inputs.pixels = size;
  inputs.main.batch = tensor->shape[0];
  inputs.main.seq_len =
      image.prefix_tokens() + (size.height / image.patch_size) * (size.width / image.patch_size);
  const std::int64_t pixels = image.num_channels * size.height * size.width;
  inputs.pixel_values.resize(static_cast<std::size_t>(inputs.main.batch * pixels));
  checkpoint::copy_as_float32(*tensor, inputs.pixel_values,
                              checkpoint::tensor_place(file.path(), "pixel_values"));
  file.require_unchanged();
  return inputs;
}

/// Reads hidden states [batch, seq_len, hidden_size].
TokenInputs read_states(const checkpoint::SafetensorsFile& file, const std::string& name,
                        std::int64_t hidden_size, std::vector<float>& states) {
  const checkpoint::StoredTensor* tensor = file.find(name);
  const bool matches = tensor != nullptr && tensor->shape.size() == 3 && tensor->shape[0] > 0 &&
                       tensor->shape[1] > 0 && tensor->shape[2] == hidden_size;
  if (!matches) {
    throw Error(ErrorCode::invalid_input, "has no matching tensor [batch, seq_len, hidden_size]",
                checkpoint::tensor_place(file.path(), name),
                fmt::format("store rows of {} values", hidden_size));
  }
  states.resize(static_cast<std::size_t>(tensor->shape[0] * tensor->shape[1] * hidden_size));
  checkpoint::copy_as_float32(*tensor, states, checkpoint::tensor_place(file.path(), name));
  file.require_unchanged();
  return {tensor->shape[0], tensor->shape[1], {}, {}, {}};
}

ModelInputs read_hidden_states(std::filesystem::path path, const ModelSpec& spec) {
  const checkpoint::SafetensorsFile file(path.replace_extension(".safetensors"));
  ModelInputs inputs;
  inputs.main = read_states(file, "hidden_states", spec.hidden_size, inputs.hidden_states);
  if (!spec.reads_two_sequences()) return inputs;
  inputs.encoder =
      read_states(file, "encoder_hidden_states", spec.hidden_size, inputs.encoder_hidden_states);
  if (inputs.encoder->batch == inputs.main.batch) return inputs;
  throw Error(ErrorCode::invalid_input, "does not have the batch size of hidden_states",
              checkpoint::tensor_place(file.path(), "encoder_hidden_states"),
              "store the same number of sequences in both");
}

/// Reads the sound of the inputs and of the prompt, if they have placeholders for any.
void read_segment_inputs(std::filesystem::path path, const json& document, const ModelSpec& spec,
                         InputFile& inputs) {
  const std::string name = path.string();
  const auto read = [&](const json& object, const std::string& pointer, TokenInputs& tokens,
                        const char* key, const std::string& tensor) {
    std::optional<SegmentInputs> audio;
    const TokenReader reader(object, name, pointer, spec);
    if (reader.has("input_features")) {
      std::filesystem::path tensors = path;
      const checkpoint::SafetensorsFile file(tensors.replace_extension(".safetensors"));
      audio = read_segments(file, tensor, spec);
      for (const char* const mask : {"feature_attention_mask", "input_features_mask"}) {
        reader.require_unpadded(mask);
      }
    }
    require_audio_placeholders(tokens, audio, spec, reader.place_of(key));
    drop_padding(tokens, audio, spec);
    return audio;
  };
  if (inputs.inputs.main.batch > 0) {
    inputs.inputs.audio = read(document, "", inputs.inputs.main, "input_ids", "input_features");
  }
  if (!inputs.generate) return;
  inputs.generate->audio = read(document.at("generate"), "/generate", inputs.generate->prompt,
                                "prompt_ids", "generate.input_features");
}

/// Reads the images of the inputs and of the prompt, if they have placeholders for any.
void read_tower_inputs(std::filesystem::path path, const json& document, const ModelSpec& spec,
                       InputFile& inputs) {
  const std::string name = path.string();
  const auto read = [&](const json& object, const std::string& pointer, const TokenInputs& tokens,
                        const char* key, const std::string& tensor) {
    std::optional<TowerInputs> images;
    const TokenReader reader(object, name, pointer, spec);
    if (reader.has("pixel_values")) {
      std::filesystem::path tensors = path;
      const checkpoint::SafetensorsFile file(tensors.replace_extension(".safetensors"));
      switch (spec.tower->embedding.image->pixels) {
        case PixelLayout::images: {
          const bool packs = spec.tower->projector.packs_tiles();
          if (reads_canvases(*spec.tower)) {
            images = read_canvases(file, tensor, spec, reader.aspect_ratio_ids());
            break;
          }
          images = (packs ? read_tiles : read_images)(file, tensor, spec, reader.image_sizes());
          break;
        }
        case PixelLayout::patches:
          images = read_patches(file, tensor, spec, reader.image_grids());
          break;
      }
    }
    require_placeholders(tokens, images, spec, reader.place_of(key));
    return images;
  };
  const auto keys = [&](const TokenInputs& tokens, const std::optional<TowerInputs>& images) {
    const bool attends = images && attends_to_images(spec);
    return attends ? std::optional(keys_of_images(spec, tokens, *images, name)) : std::nullopt;
  };
  if (inputs.inputs.main.batch > 0) {
    inputs.inputs.images = read(document, "", inputs.inputs.main, "input_ids", "pixel_values");
    inputs.inputs.encoder = keys(inputs.inputs.main, inputs.inputs.images);
  }
  if (!inputs.generate) return;
  inputs.generate->images = read(document.at("generate"), "/generate", inputs.generate->prompt,
                                 "prompt_ids", "generate.pixel_values");
  inputs.generate->encoder = keys(inputs.generate->prompt, inputs.generate->images);
}

}  // namespace

bool is_filled(const ModelSpec& spec, std::int64_t token) {
  const auto among = [&](const std::vector<std::int64_t>& tokens) {
    return std::ranges::find(tokens, token) != tokens.end();
  };
  if (among(spec.audio_tokens)) return spec.audio_tower.has_value();
  return among(spec.tower_tokens) && spec.tower.has_value();
}

void require_text_tokens(const std::vector<std::int64_t>& ids, const ModelSpec& spec,
                         const std::string& where) {
  for (const std::int64_t token : spec.tower_tokens) {
    if (std::ranges::find(ids, token) == ids.end()) continue;
    const bool sound = std::ranges::find(spec.audio_tokens, token) != spec.audio_tokens.end();
    const char* const stands_for = sound ? "sound" : "an image";
    if (is_filled(spec, token)) {
      throw Error(ErrorCode::invalid_input,
                  fmt::format("token {} stands for {}", token, stands_for), where,
                  fmt::format("give text tokens only, or {} with an input file",
                              sound ? "sound" : "images"));
    }
    throw Error(ErrorCode::invalid_input,
                fmt::format("token {} stands for {}, and headroom does not run that tower of {}",
                            token, stands_for, spec.model_type),
                where, "give text tokens only");
  }
}

InputFile read_inputs(const std::filesystem::path& path, const ModelSpec& spec) {
  InputFile file;
  if (spec.embedding.input == InputKind::patches) {
    std::filesystem::path tensors = path;
    file.inputs = read_pixels(tensors.replace_extension(".safetensors"), spec);
    return file;
  }
  if (spec.embedding.input == InputKind::waveform) {
    file.inputs = read_waveform(path, spec);
    return file;
  }
  if (spec.embedding.input == InputKind::hidden_states) {
    file.inputs = read_hidden_states(path, spec);
    return file;
  }
  const std::string name = path.string();
  const json document = headroom::detail::parse_json(headroom::detail::read_text_file(name), name);
  if (!document.is_object()) {
    throw Error(ErrorCode::invalid_input, "is not an object", name, "write {\"input_ids\": …}");
  }
  const bool has_tensors = spec.embedding.audio || spec.tower || spec.audio_tower;
  if (document.empty() && !has_tensors) {
    throw Error(ErrorCode::invalid_input, "has no inputs", name, "write {\"input_ids\": …}");
  }
  const TokenReader reader(document, name, "", spec);
  reader.refuse_others(kInputKeys);
  const bool has_tokens =
      reader.has("input_ids") || (spec.embedding.audio && reader.has("decoder_input_ids"));
  if (has_tokens) file.inputs = read_token_inputs(reader, spec);
  if (reader.has("generate")) file.generate = read_generate(document.at("generate"), name, spec);
  if (const auto& audio = spec.embedding.audio) read_audio_inputs(path, *audio, file);
  if (spec.tower) read_tower_inputs(path, document, spec, file);
  if (spec.audio_tower) read_segment_inputs(path, document, spec, file);
  return file;
}

}  // namespace headroom::measured
