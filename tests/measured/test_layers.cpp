// Single layers against PyTorch's outputs, and causality of causal layers. Source:
// tests/reference/make_layers.py, run with torch 1.13.
#include <doctest/doctest.h>

#include <algorithm>

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

std::vector<float> last_hidden_state(Session& session, const ModelInputs& inputs) {
  for (const NamedTensor& tensor : session.forward(inputs)) {
    if (tensor.name == "last_hidden_state") return tensor.values;
  }
  return {};
}

std::vector<std::filesystem::path> layer_folders() {
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(test::data_folder() / "layers")) {
    folders.push_back(entry.path());
  }
  return folders;
}

void check_layer_outputs(Backend backend) {
  for (const auto& folder : layer_folders()) {
    CAPTURE(folder.string());
    const ModelSpec spec = load_model(folder.string()).spec;
    for (const RowRange rows : {RowRange::few, RowRange::many}) {
      const auto weights = checkpoint_weights(spec, Checkpoint(folder));
      Session session(spec, *weights, {backend, measured::HeldType::float32, rows});
      const InputFile inputs = read_inputs(folder / "inputs.safetensors", spec);
      const SafetensorsFile file(folder / "expected.safetensors");
      const StoredTensor* const expected = file.find("last_hidden_state");
      REQUIRE(expected != nullptr);
      CHECK(error_over_tolerance(last_hidden_state(session, inputs.inputs), values_of(*expected)) <=
            1.0);
    }
  }
}

Workload prefill_of(const ModelSpec& spec, std::int64_t batch, std::int64_t seq_len) {
  WorkloadRequest request;
  request.batch_size = batch;
  request.seq_len = seq_len;
  return resolve(request, spec);
}

/// Hidden states [batch, seq_len, width].
struct States {
  std::int64_t batch = 0;
  std::int64_t seq_len = 0;
  std::int64_t width = 0;
  std::vector<float> values{};

  /// Positions [begin, end) of every sequence.
  [[nodiscard]] States part(std::int64_t begin, std::int64_t end) const {
    States slice{batch, end - begin, width};
    for (std::int64_t b = 0; b < batch; ++b) {
      const auto row = values.begin() + b * seq_len * width;
      slice.values.insert(slice.values.end(), row + begin * width, row + end * width);
    }
    return slice;
  }
};

ModelInputs inputs_of(const States& states) {
  ModelInputs inputs;
  inputs.main = {states.batch, states.seq_len, {}, {}, {}};
  inputs.hidden_states = states.values;
  return inputs;
}

/// Outputs of the last layer in a run over `states`.
States outputs_of(Program& program, States states) {
  program.run([&](const ProgramBlock&, std::int64_t, const float* data) {
    std::copy_n(data, states.values.size(), states.values.begin());
  });
  return states;
}

/// Outputs of a prefill of `states` alone.
States prefill(const Session& session, const States& states) {
  const ModelInputs inputs = inputs_of(states);
  KvCache cache = session.make_cache(lengths_of(inputs));
  const auto program = session.program(Phase::prefill, inputs, lengths_of(inputs), cache);
  return outputs_of(*program, states);
}

States random_states(const ModelSpec& spec, std::int64_t batch, std::int64_t seq_len,
                     std::uint64_t seed) {
  const ModelInputs inputs = random_inputs(spec, prefill_of(spec, batch, seq_len), seed);
  return {batch, seq_len, spec.hidden_size, inputs.hidden_states};
}

std::vector<nlohmann::json> causal_layers() {
  std::vector<nlohmann::json> configs;
  for (const char* const cell : {"rnn", "lstm", "gru"}) {
    configs.push_back({{"model_type", cell}, {"hidden_size", 24}, {"num_layers", 2}});
  }
  configs.push_back({{"model_type", "convolution"},
                     {"hidden_size", 24},
                     {"kernel_size", 3},
                     {"num_layers", 3},
                     {"dilation_base", 2},
                     {"is_causal", true}});
  for (const char* const kind : {"softmax", "linear"}) {
    configs.push_back({{"model_type", "attention"},
                       {"hidden_size", 24},
                       {"num_attention_heads", 3},
                       {"head_dim", 8},
                       {"attention_kind", kind},
                       {"is_causal", true}});
  }
  return configs;
}

template <class Check>
void for_each_causal_layer(Check check) {
  for (const nlohmann::json& config : causal_layers()) {
    CAPTURE(config.dump());
    const ModelSpec spec = test::spec_of(config);
    const auto source = random_weights(7);
    check(spec, Session(spec, *source, {}));
  }
}

}  // namespace

TEST_CASE("outputs of single layers equal PyTorch's") {
  CHECK(layer_folders().size() == 37);
  check_layer_outputs(Backend::eigen);
}

TEST_CASE("outputs of single layers equal PyTorch's with oneDNN") {
  if (is_available(Backend::onednn)) check_layer_outputs(Backend::onednn);
}

TEST_CASE("later positions do not change a causal layer's outputs") {
  for_each_causal_layer([](const ModelSpec& spec, const Session& session) {
    const States first = random_states(spec, 2, 12, 1);
    States other = random_states(spec, 2, 12, 2);
    constexpr std::int64_t kCommon = 5;
    for (std::int64_t b = 0; b < first.batch; ++b) {
      const auto row = b * first.seq_len * first.width;
      std::copy_n(first.values.begin() + row, kCommon * first.width, other.values.begin() + row);
    }
    const States a = prefill(session, first);
    const States b = prefill(session, other);
    CHECK(error_over_tolerance(b.part(0, kCommon).values, a.part(0, kCommon).values) <= 1.0);
    CHECK(error_over_tolerance(b.part(kCommon, 12).values, a.part(kCommon, 12).values) > 1.0);
  });
}

TEST_CASE("a prefill with decode steps equals one long prefill") {
  for_each_causal_layer([](const ModelSpec& spec, const Session& session) {
    const States all = random_states(spec, 2, 11, 3);
    const States whole = prefill(session, all);
    KvCache cache = session.make_cache(lengths_of(inputs_of(all)));
    constexpr std::int64_t kPrompt = 7;
    Lengths lengths = lengths_of(inputs_of(all.part(0, kPrompt)), 11 - kPrompt);
    const ModelInputs prompt = inputs_of(all.part(0, kPrompt));
    session.program(Phase::prefill, prompt, lengths, cache)->run();
    lengths.seq_len = 1;
    for (std::int64_t at = kPrompt; at < 11; ++at) {
      const ModelInputs next = inputs_of(all.part(at, at + 1));
      const auto step = session.program(Phase::decode, next, lengths, cache);
      step->set_past(at);
      const States got = outputs_of(*step, all.part(at, at + 1));
      CHECK(error_over_tolerance(got.values, whole.part(at, at + 1).values) <= 1.0);
    }
  });
}

TEST_CASE("a window as wide as the sequence masks nothing") {
  nlohmann::json config{{"model_type", "attention"},
                        {"hidden_size", 24},
                        {"num_attention_heads", 3},
                        {"head_dim", 8}};
  const auto run = [&](const nlohmann::json& layer) {
    const ModelSpec spec = test::spec_of(layer);
    const auto source = random_weights(7);
    Session session(spec, *source, {});
    return last_hidden_state(session, random_inputs(spec, prefill_of(spec, 2, 9), 1));
  };
  const std::vector<float> whole = run(config);
  config["sliding_window"] = 18;
  CHECK(error_over_tolerance(run(config), whole) <= 1.0);
  config["sliding_window"] = 4;
  CHECK(error_over_tolerance(run(config), whole) > 1.0);
}

TEST_CASE("the weights of one layer do not serve a stack of two") {
  const auto folder = test::data_folder() / "layers/attention_packed";
  ModelSpec spec = load_model(folder.string()).spec;
  spec.encoder->num_layers = 2;
  const auto weights = checkpoint_weights(spec, Checkpoint(folder));
  CHECK_THROWS_WITH((void)Session(spec, *weights, {}),
                    doctest::Contains("layers.0.in_proj_weight: the tensor is missing"));
}

TEST_CASE("inputs of the wrong width are rejected") {
  const ModelSpec spec = test::spec_of({{"model_type", "gru"}, {"hidden_size", 24}});
  CHECK_THROWS((void)read_inputs(test::data_folder() / "layers/gru/inputs.safetensors", spec));
}
