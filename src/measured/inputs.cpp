#include "inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "headroom/error.h"
#include "json_text.h"
#include "safetensors.h"

namespace headroom::measured {
namespace {

using nlohmann::json;

/// Reads the token lists of a JSON object; every error names the file and the key.
class TokenReader {
 public:
  TokenReader(const json& object, std::string file, std::string pointer, const ModelSpec& spec)
      : object_(object), file_(std::move(file)), pointer_(std::move(pointer)), spec_(spec) {}

  [[nodiscard]] bool has(const char* key) const { return object_.contains(key); }

  /// Returns ids [batch, seq_len]; a flat list is one sequence.
  [[nodiscard]] TokenInputs tokens(const char* key) const {
    TokenInputs inputs;
    const auto rows = integer_rows(key);
    inputs.batch = static_cast<std::int64_t>(rows.size());
    inputs.seq_len = static_cast<std::int64_t>(rows.front().size());
    inputs.ids = flatten(rows, key, spec_.embedding.vocab_size);
    require_text_tokens(inputs.ids, spec_, file_ + "#" + pointer_ + "/" + key);
    return inputs;
  }

  [[nodiscard]] std::vector<std::int64_t> values_like(const char* key, const TokenInputs& tokens,
                                                      std::int64_t limit) const {
    const auto rows = integer_rows(key);
    std::vector<std::int64_t> values = flatten(rows, key, limit);
    if (values.size() != tokens.ids.size()) fail(key, "does not have the shape of the tokens");
    return values;
  }

  [[noreturn]] void fail(const char* key, const std::string& message) const {
    throw Error(ErrorCode::invalid_input, message, file_ + "#" + pointer_ + "/" + key,
                "give one list of integers per sequence, all of the same length");
  }

 private:
  using Rows = std::vector<std::vector<std::int64_t>>;

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

  [[nodiscard]] std::vector<std::int64_t> flatten(const Rows& rows, const char* key,
                                                  std::int64_t limit) const {
    std::vector<std::int64_t> values;
    for (const auto& row : rows) {
      if (row.size() != rows.front().size()) fail(key, "has sequences of different lengths");
      for (const std::int64_t value : row) {
        if (value < 0 || value >= limit) {
          fail(key, fmt::format("{} is not from 0 to {}", value, limit - 1));
        }
        values.push_back(value);
      }
    }
    return values;
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
    inputs.main = reader.tokens("decoder_input_ids");
    if (inputs.main.batch != inputs.encoder->batch) {
      reader.fail("decoder_input_ids", "does not have the batch size of input_ids");
    }
    return inputs;
  }
  if (reader.has("token_type_ids") && spec.embedding.type_vocab_size > 0) {
    tokens.type_ids = reader.values_like("token_type_ids", tokens, spec.embedding.type_vocab_size);
  }
  inputs.main = std::move(tokens);
  return inputs;
}

GeneratePrompt read_generate(const json& generate, const std::string& file, const ModelSpec& spec) {
  const TokenReader reader(generate, file, "/generate", spec);
  GeneratePrompt result;
  const bool has_encoder = spec.kind == ModelKind::encoder_decoder;
  if (has_encoder && !spec.embedding.audio) result.encoder = reader.tokens("encoder_input_ids");
  result.prompt = reader.tokens(has_encoder ? "decoder_prompt_ids" : "prompt_ids");
  const json count = generate.value("max_new_tokens", json(16));
  if (!count.is_number_integer() || count.get<std::int64_t>() < 1) {
    reader.fail("max_new_tokens", "is not an integer of at least 1");
  }
  result.max_new_tokens = count.get<std::int64_t>();
  return result;
}

/// Returns whether headroom runs images of this height and width: the config's own, or any that
/// holds a patch if the family interpolates its positions.
bool fits(const ImageSpec& image, std::int64_t height, std::int64_t width) {
  switch (image.interpolation) {
    case PositionInterpolation::none:
      return height == image.image_size && width == image.image_size;
    case PositionInterpolation::bicubic:
      break;
  }
  return height >= image.patch_size && width >= image.patch_size;
}

ModelInputs read_pixels(const std::filesystem::path& path, const ModelSpec& spec) {
  const checkpoint::SafetensorsFile file(path);
  const checkpoint::StoredTensor* tensor = file.find("pixel_values");
  const ImageSpec& image = *spec.embedding.image;
  const bool matches = tensor != nullptr && tensor->shape.size() == 4 && tensor->shape[0] > 0 &&
                       tensor->shape[1] == image.num_channels &&
                       fits(image, tensor->shape[2], tensor->shape[3]);
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
  return inputs;
}

/// Reads audio features [batch, mel bins, frames]. The encoder halves the number of frames.
TokenInputs read_audio(const checkpoint::SafetensorsFile& file, const std::string& name,
                       const AudioSpec& audio, std::vector<float>& features) {
  const checkpoint::StoredTensor* tensor = file.find(name);
  const bool matches = tensor != nullptr && tensor->shape.size() == 3 && tensor->shape[0] > 0 &&
                       tensor->shape[1] == audio.num_mel_bins && tensor->shape[2] > 0 &&
                       tensor->shape[2] % 2 == 0;
  if (!matches) {
    throw Error(ErrorCode::invalid_input, "has no matching tensor [batch, mel bins, frames]",
                checkpoint::tensor_place(file.path(), name),
                fmt::format("store {} mel bins and an even number of frames", audio.num_mel_bins));
  }
  features.resize(static_cast<std::size_t>(tensor->shape[0] * tensor->shape[1] * tensor->shape[2]));
  checkpoint::copy_as_float32(*tensor, features, checkpoint::tensor_place(file.path(), name));
  return {tensor->shape[0], tensor->shape[2] / 2, {}, {}, {}};
}

void read_audio_inputs(std::filesystem::path path, const AudioSpec& audio, InputFile& inputs) {
  const checkpoint::SafetensorsFile file(path.replace_extension(".safetensors"));
  inputs.inputs.encoder = read_audio(file, "input_features", audio, inputs.inputs.audio_features);
  if (!inputs.generate) return;
  const bool has_generate_features = file.find("generate.input_features") != nullptr;
  inputs.generate->encoder =
      read_audio(file, has_generate_features ? "generate.input_features" : "input_features", audio,
                 inputs.generate->audio_features);
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

}  // namespace

void require_text_tokens(const std::vector<std::int64_t>& ids, const ModelSpec& spec,
                         const std::string& where) {
  for (const std::int64_t token : spec.tower_tokens) {
    if (std::ranges::find(ids, token) == ids.end()) continue;
    throw Error(ErrorCode::invalid_input,
                fmt::format("token {} stands for an image or sound, and headroom does not run the "
                            "towers of {}",
                            token, spec.model_type),
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
  const bool has_tokens =
      reader.has("input_ids") || (spec.embedding.audio && reader.has("decoder_input_ids"));
  if (has_tokens) file.inputs = read_token_inputs(reader, spec);
  if (reader.has("generate")) file.generate = read_generate(document.at("generate"), name, spec);
  if (const auto& audio = spec.embedding.audio) read_audio_inputs(path, *audio, file);
  return file;
}

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
      throw Error(ErrorCode::internal, "inputs of a model that is not run");
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
