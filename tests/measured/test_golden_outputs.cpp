// The forward pass against the outputs of the reference code: every hidden state, the logits, and
// greedily generated tokens. Source: tests/data/README.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "checkpoint.h"
#include "checkpoint/weight_files.h"
#include "golden_folders.h"
#include "golden_values.h"
#include "safetensors_writer.h"
#include "session.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::checkpoint;
using namespace headroom::measured;
using headroom::measured::testing::error_over_tolerance;
using headroom::measured::testing::values_of;

namespace {

/// Selects the values to compare: all but rows of padding queries, which nothing reads and the
/// reference computes differently.
std::vector<bool> relevant_values(const NamedTensor& tensor, const ModelInputs& inputs) {
  std::vector<bool> relevant(tensor.values.size(), true);
  const bool encoder = tensor.name.starts_with("encoder");
  const TokenInputs& tokens = encoder && inputs.encoder ? *inputs.encoder : inputs.main;
  // [batch, seq, width], or several streams of that.
  // [batch, seq] for the scores of an answer's first and last token.
  const bool scores = tensor.name == "start_logits" || tensor.name == "end_logits";
  if (tokens.key_mask.empty() || (tensor.shape.size() < 3 && !scores)) return relevant;
  const auto width = scores ? std::size_t{1} : static_cast<std::size_t>(tensor.shape.back());
  // XLNet's layers have the sequences of one position side by side.
  const bool by_position = tensor.batch_dimension == 1 && tensor.shape.size() == 3;
  const auto sequences = static_cast<std::size_t>(tokens.batch);
  const auto length = static_cast<std::size_t>(tokens.seq_len);
  for (std::size_t i = 0; i < relevant.size(); ++i) {
    std::size_t row = i / width % tokens.key_mask.size();
    if (by_position) row = row % sequences * length + row / sequences;
    relevant[i] = tokens.key_mask[row] != 0;
  }
  return relevant;
}

/// Expected values of a tower's rows, without those of padding: the reference pads every image to
/// the largest.
std::vector<float> unpadded(const StoredTensor& tensor, const ModelInputs& inputs,
                            const ModelSpec& spec, std::size_t wanted) {
  std::vector<float> values = values_of(tensor);
  if (values.size() == wanted || tensor.shape.size() != 3) return values;
  const std::int64_t patch = spec.tower->embedding.image->patch_size;
  std::vector<float> kept;
  auto from = values.begin();
  for (const ImageSize& size : inputs.images->sizes) {
    const std::int64_t rows = (size.height / patch) * (size.width / patch);
    kept.insert(kept.end(), from, from + rows * tensor.shape[2]);
    from += tensor.shape[1] * tensor.shape[2];
  }
  return kept;
}

struct GoldenModel {
  ModelSpec spec;
  InputFile inputs;
  SafetensorsFile expected;
};

GoldenModel load_golden(const std::filesystem::path& folder) {
  ModelSpec spec = load_model(folder.string()).spec;
  InputFile inputs = read_inputs(folder / "inputs.json", spec);
  return {std::move(spec), std::move(inputs), SafetensorsFile(folder / "expected.safetensors")};
}

Session session_of(const std::filesystem::path& folder, const ModelSpec& spec,
                   const SessionOptions& options) {
  const auto source = checkpoint_weights(spec, Checkpoint(folder));
  return {spec, *source, options};
}

/// False for models with tokens of global attention.
bool has_fused_kernel(const std::filesystem::path& folder) {
  return !load_model(folder.string()).spec.main_stack().self_attention.global;
}

/// Largest allowed error over the tolerance. Of the last layer of Gemma 4, the reference's own
/// float32 run differs from its float64 run by 1.3 times the tolerance, and headroom's by 0.9.
double allowed_error(const std::filesystem::path& folder) {
  return folder.filename() == "gemma4" ? 2.5 : 1.0;
}

/// Compares the outputs of `session`, and what it generates, with those of the reference.
void check_outputs(const GoldenModel& model, Session& session, double allowed) {
  std::size_t compared = 0;
  for (const NamedTensor& tensor : session.forward(model.inputs.inputs)) {
    CAPTURE(tensor.name);
    const StoredTensor* expected = model.expected.find(tensor.name);
    if (expected == nullptr) continue;
    // The rows of all images or clips stand one after the other; the reference may split them.
    const bool of_images = tensor.name.starts_with("vision.") || tensor.name == "image_features";
    const bool of_sound = tensor.name.starts_with("audio.");
    if (!of_images && !of_sound) REQUIRE(tensor.shape == expected->shape);
    const std::vector<bool> relevant = relevant_values(tensor, model.inputs.inputs);
    const std::vector<float> values =
        of_images ? unpadded(*expected, model.inputs.inputs, model.spec, tensor.values.size())
                  : values_of(*expected);
    CHECK(error_over_tolerance(tensor.values, values, [&](std::size_t i) { return relevant[i]; }) <=
          allowed);
    ++compared;
  }
  CHECK(compared >= 4);
  if (!model.inputs.generate) return;
  const Generation generation = session.generate(*model.inputs.generate);
  const StoredTensor* ids = model.expected.find("generate.ids");
  REQUIRE(ids != nullptr);
  std::vector<std::int64_t> expected_ids(ids->data.size() / sizeof(std::int64_t));
  std::memcpy(expected_ids.data(), ids->data.data(), ids->data.size());
  CHECK(generation.ids == expected_ids);
  const auto logits = values_of(*model.expected.find("generate.logits"));
  CHECK(error_over_tolerance(generation.logits.values, logits) <= 1.0);
}

void check_golden_outputs(const std::filesystem::path& folder, const SessionOptions& options) {
  CAPTURE(folder.string());
  const GoldenModel model = load_golden(folder);
  Session session = session_of(folder, model.spec, options);
  check_outputs(model, session, allowed_error(folder));
}

/// A file's tensors by the names that Microsoft's code of Phi-4 multimodal gives them.
std::vector<TensorToWrite> with_names_of_phi4mm(const SafetensorsFile& file) {
  const std::vector<std::pair<std::string, std::string>> renamed{
      {"img_projection_up", "img_projection.0"},
      {"img_projection_down", "img_projection.2"},
      {"sub_img_feature_extensor", "sub_GN"},
      {"global_img_feature_extensor", "glb_GN"},
      {"qkv_proj.", "qkv_proj.base_layer."},
      {"layers.0.self_attn.o_proj.", "layers.0.self_attn.o_proj.base_layer."},
      {"layers.1.self_attn.o_proj.", "layers.1.self_attn.o_proj.base_layer."},
      {"mlp.gate_up_proj.", "mlp.gate_up_proj.base_layer."},
      {"mlp.down_proj.", "mlp.down_proj.base_layer."}};
  std::vector<TensorToWrite> tensors;
  for (const StoredTensor& tensor : file.tensors()) {
    std::string name = tensor.name;
    for (const auto& [from, to] : renamed) {
      const auto at = name.find(from);
      if (at != std::string::npos) name.replace(at, from.size(), to);
    }
    tensors.push_back({name, tensor.type, tensor.shape, {tensor.data.begin(), tensor.data.end()}});
  }
  // Adapters, which a run without images does not read.
  tensors.push_back({"model.layers.0.mlp.down_proj.lora_A.vision.weight",
                     StoredType::float32,
                     {1, 1},
                     std::vector<std::byte>(sizeof(float))});
  return tensors;
}

/// Logits of the last positions of a prefill of all `ids`, as many as `logits` has.
std::vector<float> prefill_logits(Session& session, const GeneratePrompt& prompt,
                                  std::span<const std::int64_t> ids, std::size_t logits) {
  ModelInputs inputs{prompt.prompt, prompt.encoder};
  inputs.audio_features = prompt.audio_features;
  inputs.images = prompt.images;
  inputs.audio = prompt.audio;
  inputs.main.ids.assign(ids.begin(), ids.end());
  inputs.main.seq_len = std::ssize(ids);
  if (!inputs.main.type_ids.empty()) inputs.main.type_ids.resize(ids.size(), 1);  // not the prompt
  const auto outputs = session.forward(inputs);
  const auto all = std::ranges::find(outputs, "logits", &NamedTensor::name);
  REQUIRE(all != outputs.end());
  return {all->values.end() - static_cast<std::ptrdiff_t>(logits), all->values.end()};
}

/// False if the first steps have the angles of a shorter sequence: with dynamic RoPE beyond the
/// trained context, and with LongRoPE across the original one.
bool equals_one_prefill(const ModelSpec& spec, const GeneratePrompt& prompt) {
  const std::int64_t tokens = prompt.prompt.seq_len + prompt.max_new_tokens - 1;
  const RopeSpec& rope = spec.position.rope;
  const bool crosses = prompt.prompt.seq_len <= rope.original_max_position_embeddings &&
                       tokens > rope.original_max_position_embeddings;
  if (rope.scaling == RopeScalingKind::longrope && crosses) return false;
  return rope.scaling != RopeScalingKind::dynamic ||
         tokens <= spec.position.max_position_embeddings;
}

}  // namespace

TEST_CASE("decode steps equal one prefill of all tokens") {
  for (const auto& folder : test::models_with_outputs()) {
    CAPTURE(folder.string());
    const GoldenModel model = load_golden(folder);
    if (!model.inputs.generate) continue;
    if (!equals_one_prefill(model.spec, *model.inputs.generate)) continue;
    Session session = session_of(folder, model.spec, {});
    const Generation generation = session.generate(*model.inputs.generate);
    const std::vector<float>& steps = generation.logits.values;
    const std::vector<float> whole =
        prefill_logits(session, *model.inputs.generate,
                       std::span(generation.ids).first(generation.ids.size() - 1), steps.size());
    CHECK(error_over_tolerance(steps, whole) <= 1.0);
  }
}

TEST_CASE("the last token's logits alone equal those among all, and generate the same tokens") {
  SessionOptions options;
  options.logits = Logits::last;
  std::size_t generators = 0;
  for (const auto& folder : test::models_with_outputs()) {
    CAPTURE(folder.string());
    const GoldenModel model = load_golden(folder);
    if (!model.inputs.generate || !can_generate(model.spec)) continue;
    ++generators;
    const ModelInputs& inputs = model.inputs.inputs;
    const auto logits_of = [&](const SessionOptions& with) {
      Session session = session_of(folder, model.spec, with);
      const std::vector<NamedTensor> outputs = session.forward(inputs);
      return *std::ranges::find(outputs, "logits", &NamedTensor::name);
    };
    const NamedTensor all = logits_of({});
    const NamedTensor last = logits_of(options);
    REQUIRE(last.shape == std::vector<std::int64_t>{inputs.main.batch, 1, all.shape.back()});
    std::vector<float> last_of_all;
    for (std::int64_t b = 1; b <= inputs.main.batch; ++b) {
      const auto end = all.values.begin() + b * inputs.main.seq_len * all.shape.back();
      last_of_all.insert(last_of_all.end(), end - all.shape.back(), end);
    }
    CHECK(error_over_tolerance(last.values, last_of_all) <= 1.0);
    Session with_last = session_of(folder, model.spec, options);
    Session with_all = session_of(folder, model.spec, {});
    CHECK(with_last.generate(*model.inputs.generate).ids ==
          with_all.generate(*model.inputs.generate).ids);
  }
  CHECK(generators >= 30);
}

TEST_CASE("outputs, hidden states and generated tokens equal the reference with eager attention") {
  for (const auto& folder : test::models_with_outputs()) check_golden_outputs(folder, {});
  CHECK(test::models_with_outputs().size() >= 60);
}

TEST_CASE("Phi-4 multimodal by the names of Microsoft's files gives the reference's outputs") {
  const auto folder = test::data_folder() / "golden/models/phi4_multimodal_images";
  GoldenModel model = load_golden(folder);
  const test::TempFolder renamed;
  write_safetensors(renamed / "model.safetensors",
                    with_names_of_phi4mm(SafetensorsFile(folder / "model.safetensors")));
  model.spec.model_type = "phi4mm";
  model.spec.text_type.clear();
  Session session = session_of(renamed.path(), model.spec, {});
  check_outputs(model, session, 1.0);
}

TEST_CASE("outputs, hidden states and generated tokens equal the reference with fused attention") {
  SessionOptions options;
  options.attention = AttentionImplementation::fused;
  std::size_t fused = 0;
  for (const auto& folder : test::models_with_outputs()) {
    if (!has_fused_kernel(folder)) continue;
    check_golden_outputs(folder, options);
    ++fused;
  }
  CHECK(fused >= 60);
}

TEST_CASE("keys keep their angles as dynamic RoPE grows beyond the trained context") {
  const auto folder = test::data_folder() / "families/llama_dynamic_generation";
  const GoldenModel model = load_golden(folder);
  REQUIRE(!equals_one_prefill(model.spec, *model.inputs.generate));
  Session session = session_of(folder, model.spec, {});
  const Generation generation = session.generate(*model.inputs.generate);
  const std::vector<float>& steps = generation.logits.values;
  const std::vector<float> whole =
      prefill_logits(session, *model.inputs.generate,
                     std::span(generation.ids).first(generation.ids.size() - 1), steps.size());
  CHECK(error_over_tolerance(steps, whole) > 100.0);
}

TEST_CASE("an input shorter than a transient global token's block has none, as in the reference") {
  const auto folder = test::data_folder() / "golden/models/longt5_transient_global";
  const auto reference = test::read_json(folder / "reference.json").at("short");
  const auto ids = [&](const char* key) {
    return reference.at(key).get<std::vector<std::int64_t>>();
  };
  ModelInputs inputs;
  inputs.main = {1, std::ssize(ids("input_ids")), ids("input_ids"), {}, {}};
  inputs.encoder =
      TokenInputs{1, std::ssize(ids("encoder_input_ids")), ids("encoder_input_ids"), {}, {}};
  Session session = session_of(folder, load_model(folder.string()).spec, {});
  const auto outputs = session.forward(inputs);
  const auto logits = std::ranges::find(outputs, "logits", &NamedTensor::name);
  REQUIRE(logits != outputs.end());
  CHECK(error_over_tolerance(logits->values, reference.at("logits").get<std::vector<float>>()) <=
        1.0);
}

TEST_CASE("tokens with global attention are refused with fused attention") {
  SessionOptions options;
  options.attention = AttentionImplementation::fused;
  const auto folder = test::data_folder() / "golden/models/longformer";
  CHECK(!has_fused_kernel(folder));
  const GoldenModel model = load_golden(folder);
  Session session = session_of(folder, model.spec, options);
  CHECK_THROWS_AS((void)session.forward(model.inputs.inputs), Error);
}

TEST_CASE("outputs, hidden states and generated tokens equal the reference with oneDNN") {
  if (!is_available(Backend::onednn)) return;
  SessionOptions options;
  options.backend = Backend::onednn;
  for (const auto& folder : test::models_with_outputs()) check_golden_outputs(folder, options);
  CHECK(test::models_with_outputs().size() >= 60);
}
