// WavLM's gated relative positions against the reference code: matrix FLOPs, and the tensors that a
// layer saves for the backward pass (tests/data/encoders/wavlm.json, make_wavlm.py).
#include <doctest/doctest.h>

#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

constexpr std::int64_t kPositions = 19;  // of 200 samples: convolutions of 10/5 and 3/2

nlohmann::json recorded() { return read_json(data_folder() / "encoders/wavlm.json"); }

nlohmann::json tiny_config() {
  return read_json(data_folder() / "golden/models/wavlm/config.json");
}

}  // namespace

TEST_CASE("WavLM multiplies as much as the reference code") {
  WorkloadRequest request;
  request.batch_size = recorded().at("sequences");
  request.seq_len = kPositions;
  const ModelSpec spec = spec_of(tiny_config());
  CHECK(count(spec, resolve(request, spec)).figures.forward.matrix_flops ==
        recorded().at("matrix_flops").get<std::int64_t>());
}

TEST_CASE("a layer of WavLM saves the gates and the input that they read by head") {
  nlohmann::json config = tiny_config();
  config["num_hidden_layers"] = 3;
  for (const char* const name : {"activation_dropout", "attention_dropout", "hidden_dropout"}) {
    config[name] = 0;
  }
  const ModelSpec spec = spec_of(config);
  WorkloadRequest request;
  request.phase = Phase::train;
  request.seq_len = kPositions;
  const Workload workload = resolve(request, spec);
  const Counted counted = count(spec, workload);
  const Bindings values = bindings_of(workload, counted.graph);
  Integer saved = 0;
  for (const SavedTensor& tensor : counted.analysis.saved) {
    // The layers share one copy of the bias, which the reference saves in its first layer.
    const bool in_layer = tensor.path.find(".layers.") != std::string::npos;
    if (in_layer && tensor.what != "relative bias") saved += tensor.bytes.evaluate(values);
  }
  Integer expected = 0;
  for (const nlohmann::json& row : recorded().at("saved")) {
    expected += row.at(2).get<std::int64_t>();
  }
  CHECK(saved == expected);
}
