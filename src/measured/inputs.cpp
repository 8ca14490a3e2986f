#include "inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "headroom/error.h"
#include "image_inputs.h"
#include "json_text.h"
#include "safetensors.h"
#include "similar.h"
#include "sound_inputs.h"

namespace headroom::measured {
namespace {

using nlohmann::json;

/// Keys of an input file. Values of pixels and sounds are in the .safetensors file beside it; masks
/// of what the model derives itself and expected tokens are accepted, and not read.
const std::vector<std::string> kInputKeys = {
    "input_ids",           "attention_mask",    "global_attention_mask", "token_type_ids",
    "mm_token_type_ids",   "decoder_input_ids", "input_features",        "input_values",
    "pixel_values",        "image_sizes",       "image_position_ids",    "image_grid_thw",
    "image_merge_sizes",   "spatial_shapes",    "pixel_attention_mask",  "feature_attention_mask",
    "input_features_mask", "generate"};
const std::vector<std::string> kGenerateKeys = {
    "prompt_ids",         "decoder_prompt_ids", "encoder_input_ids", "token_type_ids",
    "mm_token_type_ids",  "max_new_tokens",     "pixel_values",      "image_sizes",
    "image_position_ids", "image_grid_thw",     "image_merge_sizes", "input_features",
    "expected_ids"};

/// Reads the token lists of a JSON object; every error names the file and the key.
class TokenReader {
 public:
  TokenReader(const json& object, std::string file, std::string pointer, const ModelSpec& spec)
      : object_(object), file_(std::move(file)), pointer_(std::move(pointer)), spec_(spec) {}

  [[nodiscard]] bool has(const char* key) const { return object_.contains(key); }

  /// Throws Error{invalid_input} for a key that is not among `known`.
  void refuse_others(const std::vector<std::string>& known) const {
    for (const auto& [key, value] : object_.items()) {
      if (std::ranges::find(known, key) != known.end()) continue;
      std::string hint = headroom::detail::did_you_mean(key, known);
      if (hint.empty()) hint = fmt::format("use {}", fmt::join(known, ", "));
      throw Error(ErrorCode::invalid_input, "is not a key of inputs", place_of(key.c_str()), hint);
    }
  }

  /// Returns ids [batch, seq_len]; a flat list is one sequence.
  [[nodiscard]] TokenInputs tokens(const char* key) const {
    TokenInputs inputs;
    const auto rows = integer_rows(key);
    inputs.batch = static_cast<std::int64_t>(rows.size());
    inputs.seq_len = static_cast<std::int64_t>(rows.front().size());
    inputs.ids = flatten(rows, key);
    for (const std::int64_t id : inputs.ids) {
      const bool placeholder =
          std::ranges::find(spec_.tower_tokens, id) != spec_.tower_tokens.end();
      if (!placeholder) require_below(id, spec_.embedding.vocab_size, key);
    }
    std::vector<std::int64_t> unfilled = inputs.ids;
    std::erase_if(unfilled, [&](std::int64_t id) { return is_filled(spec_, id); });
    require_text_tokens(unfilled, spec_, place_of(key));
    find_placeholders(inputs, spec_);
    return inputs;
  }

  [[nodiscard]] std::vector<std::int64_t> values_like(const char* key, const TokenInputs& tokens,
                                                      std::int64_t limit) const {
    const auto rows = integer_rows(key);
    std::vector<std::int64_t> values = flatten(rows, key);
    for (const std::int64_t value : values) require_below(value, limit, key);
    if (values.size() != tokens.ids.size()) fail(key, "does not have the shape of the tokens");
    return values;
  }

  /// Sizes of images, [height, width] each; empty if absent.
  [[nodiscard]] std::vector<ImageSize> image_sizes() const {
    std::vector<ImageSize> sizes;
    if (!has("image_sizes")) return sizes;
    for (const std::vector<std::int64_t>& size : integer_rows("image_sizes")) {
      if (size.size() != 2) fail("image_sizes", "has an entry that is not [height, width]");
      require_lengths(size, "image_sizes");
      sizes.push_back({size[0], size[1]});
    }
    return sizes;
  }

  /// Grids of patches of images: [frames, rows, columns] each, [rows, columns] each, or the
  /// [column, row] of each patch in raster order, [-1, -1] for padding.
  [[nodiscard]] std::vector<ImageGrid> image_grids() const {
    std::vector<ImageGrid> grids;
    std::int64_t patches = 0;
    if (has("image_position_ids")) {
      for (const json& image : object_.at("image_position_ids")) grids.push_back(grid_from(image));
      return grids;
    }
    const bool flat = has("spatial_shapes");
    const char* const key = flat ? "spatial_shapes" : "image_grid_thw";
    for (const std::vector<std::int64_t>& grid : integer_rows(key)) {
      const std::size_t sides = flat ? 2 : 3;
      if (grid.size() != sides) {
        fail(key, fmt::format("has an entry that is not [{}rows, columns]", flat ? "" : "1, "));
      }
      require_lengths(grid, key);
      if (!flat && grid[0] != 1) fail(key, "has a video, and only images run");
      grids.push_back({grid[sides - 2], grid[sides - 1]});
      patches += grids.back().patches();
      if (patches > kMostPatches) fail(key, "has more patches than any file");
    }
    return grids;
  }

  /// Throws Error{invalid_input} if the mask `key` is there and masks anything.
  void require_unpadded(const char* key) const {
    if (!has(key)) return;
    for (const std::vector<std::int64_t>& row : integer_rows(key)) {
      if (std::ranges::count(row, 1) == std::ssize(row)) continue;
      throw Error(ErrorCode::invalid_input, "masks frames, and headroom runs whole segments only",
                  place_of(key), "give sound without padding");
    }
  }

  [[nodiscard]] std::string place_of(const char* key) const {
    return file_ + "#" + pointer_ + "/" + key;
  }

  [[noreturn]] void fail(const char* key, const std::string& message) const {
    throw Error(ErrorCode::invalid_input, message, place_of(key),
                "give one list of integers per sequence, all of the same length");
  }

 private:
  using Rows = std::vector<std::vector<std::int64_t>>;

  /// Pixels or patches of a side, so that no product of two sides overflows.
  static constexpr std::int64_t kLongestSide = std::int64_t{1} << 30U;
  /// Patches of all images, so that neither their sum nor that of their tokens overflows.
  static constexpr std::int64_t kMostPatches = std::int64_t{1} << 60U;

  void require_lengths(const std::vector<std::int64_t>& sides, const char* key) const {
    const auto odd = [](std::int64_t side) { return side < 1 || side > kLongestSide; };
    if (std::ranges::any_of(sides, odd)) fail(key, "has a size that no image has");
  }

  [[nodiscard]] ImageGrid grid_from(const json& image) const {
    constexpr const char* kKey = "image_position_ids";
    ImageGrid grid;
    Rows places;
    if (!image.is_array() || image.empty()) fail(kKey, "has an image without patches");
    for (const json& place : image) {
      places.push_back(integers(place, kKey));
      if (places.back().size() != 2) fail(kKey, "has a place that is not [column, row]");
      const auto beyond = [](std::int64_t index) { return index < -1 || index >= kLongestSide; };
      if (std::ranges::any_of(places.back(), beyond)) fail(kKey, "has a place outside any image");
      grid.columns = std::max(grid.columns, places.back()[0] + 1);
      grid.rows = std::max(grid.rows, places.back()[1] + 1);
    }
    for (std::int64_t patch = 0; patch < std::ssize(places); ++patch) {
      const bool padding = patch / std::max<std::int64_t>(grid.columns, 1) >= grid.rows;
      const std::vector<std::int64_t> wanted =
          padding ? std::vector<std::int64_t>{-1, -1}
                  : std::vector{patch % grid.columns, patch / grid.columns};
      if (places[static_cast<std::size_t>(patch)] != wanted) {
        fail(kKey, "does not list the patches row by row");
      }
    }
    if (std::ssize(places) < grid.patches()) fail(kKey, "lacks patches of a row");
    return grid;
  }

  [[nodiscard]] Rows integer_rows(const char* key) const {
    const json* list = has(key) ? &object_.at(key) : nullptr;
    if (list == nullptr) fail(key, "is missing");
    if (!list->is_array() || list->empty()) fail(key, "is not a list of tokens");
    Rows rows;
    if (list->front().is_array()) {
      for (const json& row : *list) rows.push_back(integers(row, key));
    } else {
      rows.push_back(integers(*list, key));
    }
    return rows;
  }

  [[nodiscard]] std::vector<std::int64_t> integers(const json& row, const char* key) const {
    if (!row.is_array() || row.empty()) fail(key, "is not a list of tokens");
    std::vector<std::int64_t> values;
    for (const json& value : row) {
      if (!value.is_number_integer()) fail(key, "has a value that is not an integer");
      values.push_back(value.get<std::int64_t>());
    }
    return values;
  }

  [[nodiscard]] std::vector<std::int64_t> flatten(const Rows& rows, const char* key) const {
    std::vector<std::int64_t> values;
    for (const auto& row : rows) {
      if (row.size() != rows.front().size()) fail(key, "has sequences of different lengths");
      values.insert(values.end(), row.begin(), row.end());
    }
    return values;
  }

  void require_below(std::int64_t value, std::int64_t limit, const char* key) const {
    if (value >= 0 && value < limit) return;
    fail(key, fmt::format("{} is not from 0 to {}", value, limit - 1));
  }

  const json& object_;
  std::string file_;
  std::string pointer_;
  const ModelSpec& spec_;
};

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
  const auto read = [&](const json& object, const std::string& pointer, const TokenInputs& tokens,
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
  if (inputs.inputs.main.batch > 0) {
    inputs.inputs.images = read(document, "", inputs.inputs.main, "input_ids", "pixel_values");
  }
  if (!inputs.generate) return;
  inputs.generate->images = read(document.at("generate"), "/generate", inputs.generate->prompt,
                                 "prompt_ids", "generate.pixel_values");
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
