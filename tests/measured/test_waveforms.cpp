// Audio samples as inputs: the positions that they fill, and those that are refused. The tiny
// model's convolutions have kernels of 10, 3 and 2 and strides of 5, 2 and 2, so 21 positions come
// from 42, 85 and 430 inputs.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "checkpoint/weight_files.h"
#include "inputs.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::measured;

namespace {

ModelSpec speech_model(const char* norm) {
  auto config = test::read_json(test::data_folder() / "golden/tiny/wav2vec2_ctc.json").at("config");
  config["feat_extract_norm"] = norm;
  return test::spec_of(config);
}

ModelInputs read_samples(const ModelSpec& spec, std::size_t samples) {
  const test::TempFolder folder;
  const std::size_t bytes = samples * sizeof(float);
  const std::string header = "{" +
                             test::entry("input_values", "F32", fmt::format("[1, {}]", samples),
                                         fmt::format("[0, {}]", bytes)) +
                             "}";
  const auto file = folder / "inputs.safetensors";
  test::write_file(file, test::safetensors_bytes(header, std::string(bytes, '\0')));
  return read_inputs(file, spec).inputs;
}

}  // namespace

TEST_CASE("samples fill as many positions as the convolutions leave") {
  const ModelInputs exact = read_samples(speech_model("group"), 430);
  CHECK(exact.main.seq_len == 21);
  CHECK(exact.audio_features.size() == 430);
  // The first convolution reads four more without another position.
  const ModelInputs more = read_samples(speech_model("group"), 434);
  CHECK(more.main.seq_len == 21);
  CHECK(more.audio_features.size() == 430);
}

TEST_CASE("last samples that only a norm over time would read are refused, else dropped") {
  const std::string refusal =
      test::refusal_of([] { (void)read_samples(speech_model("group"), 435); });
  CHECK(refusal.find("435 samples") != std::string::npos);
  CHECK(read_samples(speech_model("layer"), 435).audio_features.size() == 430);
}

TEST_CASE("too few samples for one position are refused with the number needed") {
  const auto read = [] { (void)read_samples(speech_model("group"), 29); };
  CHECK(test::input_error_of(read).hint().find("30 samples") != std::string::npos);
}
