// The forward pass against the outputs of the reference code: every hidden state, the logits, and
// greedily generated tokens. Source: tests/data/README.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "checkpoint.h"
#include "golden_values.h"
#include "session.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::checkpoint;
using namespace headroom::measured;
using headroom::measured::testing::error_over_tolerance;
using headroom::measured::testing::values_of;

namespace {

/// Folders with weights, inputs and expected outputs: of the published code and of an independent
/// reference.
std::vector<std::filesystem::path> golden_folders() {
  std::vector<std::filesystem::path> folders = test::golden_models();
  for (const auto& entry : std::filesystem::directory_iterator(test::data_folder() / "families")) {
    folders.push_back(entry.path());
  }
  return folders;
}

/// Selects the values to compare: all but rows of padding queries, which nothing reads and the
/// reference computes differently.
std::vector<bool> relevant_values(const NamedTensor& tensor, const ModelInputs& inputs) {
  std::vector<bool> relevant(tensor.values.size(), true);
  const bool encoder = tensor.name.starts_with("encoder");
  const TokenInputs& tokens = encoder && inputs.encoder ? *inputs.encoder : inputs.main;
  if (tokens.key_mask.empty() || tensor.shape.size() != 3) return relevant;
  const auto width = static_cast<std::size_t>(tensor.shape[2]);
  for (std::size_t i = 0; i < relevant.size(); ++i) relevant[i] = tokens.key_mask[i / width] != 0;
  return relevant;
}

/// Name under which the reference recorded a tensor. Classes of Mamba record the hidden states
/// after each layer, and not the embeddings: their first is our second.
std::string recorded_name(const ModelSpec& spec, const std::string& name) {
  constexpr std::string_view kStates = "hidden_states.";
  const bool shifted = spec.model_type.find("mamba") != std::string::npos;
  if (!shifted || !name.starts_with(kStates)) return name;
  const int index = std::stoi(name.substr(kStates.size()));
  if (index == spec.main_stack().num_layers) return name;  // after the final norm
  return std::string(kStates) + std::to_string(index - 1);
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

void check_golden_outputs(const std::filesystem::path& folder, const SessionOptions& options) {
  CAPTURE(folder.string());
  const GoldenModel model = load_golden(folder);
  Session session = session_of(folder, model.spec, options);
  std::size_t compared = 0;
  for (const NamedTensor& tensor : session.forward(model.inputs.inputs)) {
    CAPTURE(tensor.name);
    const StoredTensor* expected = model.expected.find(recorded_name(model.spec, tensor.name));
    if (expected == nullptr) continue;
    REQUIRE(tensor.shape == expected->shape);
    const std::vector<bool> relevant = relevant_values(tensor, model.inputs.inputs);
    CHECK(error_over_tolerance(tensor.values, values_of(*expected),
                               [&](std::size_t i) { return relevant[i]; }) <= 1.0);
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

/// Logits of the last positions of a prefill of all `ids`, as many as `logits` has.
std::vector<float> prefill_logits(Session& session, const GeneratePrompt& prompt,
                                  std::span<const std::int64_t> ids, std::size_t logits) {
  ModelInputs inputs{prompt.prompt, prompt.encoder};
  inputs.audio_features = prompt.audio_features;
  inputs.main.ids.assign(ids.begin(), ids.end());
  inputs.main.seq_len = std::ssize(ids);
  const auto outputs = session.forward(inputs);
  const auto all = std::ranges::find(outputs, "logits", &NamedTensor::name);
  REQUIRE(all != outputs.end());
  return {all->values.end() - static_cast<std::ptrdiff_t>(logits), all->values.end()};
}

}  // namespace

TEST_CASE("decode steps equal one prefill of all tokens") {
  for (const auto& folder : golden_folders()) {
    CAPTURE(folder.string());
    const GoldenModel model = load_golden(folder);
    if (!model.inputs.generate) continue;
    Session session = session_of(folder, model.spec, {});
    const Generation generation = session.generate(*model.inputs.generate);
    const std::vector<float>& steps = generation.logits.values;
    const std::vector<float> whole =
        prefill_logits(session, *model.inputs.generate,
                       std::span(generation.ids).first(generation.ids.size() - 1), steps.size());
    CHECK(error_over_tolerance(steps, whole) <= 1.0);
  }
}

TEST_CASE("models that cannot be run are refused with a reason") {
  for (const auto& folder : test::refused_golden_models()) {
    CAPTURE(folder.string());
    const auto run = [&] {
      const GoldenModel model = load_golden(folder);
      (void)session_of(folder, model.spec, {}).forward(model.inputs.inputs);
    };
    CHECK_THROWS_AS(run(), Error);
  }
}

TEST_CASE("outputs, hidden states and generated tokens equal the reference with eager attention") {
  for (const auto& folder : golden_folders()) check_golden_outputs(folder, {});
  CHECK(golden_folders().size() >= 60);
}

TEST_CASE("outputs, hidden states and generated tokens equal the reference with fused attention") {
  SessionOptions options;
  options.attention = AttentionImplementation::fused;
  for (const auto& folder : golden_folders()) check_golden_outputs(folder, options);
}

TEST_CASE("outputs, hidden states and generated tokens equal the reference with oneDNN") {
  if (!is_available(Backend::onednn)) return;
  SessionOptions options;
  options.backend = Backend::onednn;
  for (const auto& folder : golden_folders()) check_golden_outputs(folder, options);
}
