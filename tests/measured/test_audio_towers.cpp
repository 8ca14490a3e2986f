// Sound of an input file: clips of several segments, their placeholders, and files that do not
// match the model.
#include <doctest/doctest.h>

#include <cstring>
#include <numeric>

#include "kernels/convolution.h"
#include "safetensors_writer.h"
#include "session.h"
#include "sound_inputs.h"
#include "support/data.h"
#include "support/scratch.h"

using namespace headroom;
using namespace headroom::measured;

namespace {

ModelSpec tiny(const std::string& name) {
  return load_model((test::data_folder() / "towers/tiny" / (name + ".config.json")).string()).spec;
}

/// Writes clips [count, bins, frames] with the values 0, 1, 2, …
void write_clips(const std::filesystem::path& file, std::vector<std::int64_t> shape) {
  std::vector<float> values(static_cast<std::size_t>(shape[0] * shape[1] * shape[2]));
  std::iota(values.begin(), values.end(), 0.0F);
  const std::vector<checkpoint::TensorToWrite> tensors{
      checkpoint::float32_tensor("input_features", std::move(shape), values)};
  checkpoint::write_safetensors(file, tensors);
}

std::string placeholders(std::int64_t token, std::int64_t count) {
  std::string ids = "[1";
  for (std::int64_t i = 0; i < count; ++i) ids += ", " + std::to_string(token);
  return ids + "]";
}

}  // namespace

TEST_CASE("a clip of several segments is cut along its frames") {
  const test::ScratchFolder folder;
  const ModelSpec spec = tiny("qwen2_5_omni_thinker");  // segments of 20 mel bins and 20 frames
  write_clips(folder.path() / "inputs.safetensors", {1, 20, 40});
  const checkpoint::SafetensorsFile file(folder.path() / "inputs.safetensors");
  const SegmentInputs audio = read_segments(file, "input_features", spec);
  CHECK(audio.clip_frames == std::vector<std::int64_t>{40});
  CHECK(segment_frames(*spec.audio_tower, audio) == std::vector<std::int64_t>{20, 20});
  CHECK(audio.features.at(0) == 0);
  CHECK(audio.features.at(20) == 40);       // the second bin begins after 40 frames
  CHECK(audio.features.at(20 * 20) == 20);  // the second segment begins with the first bin
  CHECK(audio.features.at(20 * 20 + 20) == 60);
}

TEST_CASE("a shorter last segment is completed with silence") {
  const test::ScratchFolder folder;
  const ModelSpec spec = tiny("qwen2_5_omni_thinker");
  write_clips(folder.path() / "inputs.safetensors", {1, 20, 27});
  const checkpoint::SafetensorsFile file(folder.path() / "inputs.safetensors");
  const SegmentInputs audio = read_segments(file, "input_features", spec);
  CHECK(segment_frames(*spec.audio_tower, audio) == std::vector<std::int64_t>{20, 7});
  CHECK(audio.features.size() == 2 * 20 * 20);
  CHECK(audio.features.at(20 * 20 + 6) == 26);
  CHECK(audio.features.at(20 * 20 + 7) == 0);
  CHECK(audio.features.at(20 * 20 + 20) == 47);  // the second bin's 20 frames before it
}

TEST_CASE("a 2-D convolution reads the neighbours of every second place") {
  // A grid of 3 × 2 places with two channels: 10·place and 10·place + 1.
  std::vector<float> grid;
  for (int place = 0; place < 6; ++place) {
    grid.push_back(static_cast<float>(10 * place));
    grid.push_back(static_cast<float>(10 * place + 1));
  }
  std::vector<float> gathered(2 * 18);
  gather_places({3, 2, 2}, grid.data(), gathered.data());
  // Around place 0 of the first row, and place 4 of the last; zeros outside.
  const std::vector<float> wanted{0, 0,  0,  0, 0,  10, 0, 20, 30, 0, 0,  0,  0, 1,  11, 0, 21, 31,
                                  0, 20, 30, 0, 40, 50, 0, 0,  0,  0, 21, 31, 0, 41, 51, 0, 0,  0};
  CHECK(gathered == wanted);
  std::vector<float> reordered(12);
  rows_to_end({3, 2, 2}, grid.data(), reordered.data());
  CHECK(reordered == std::vector<float>{0, 20, 40, 1, 21, 41, 10, 30, 50, 11, 31, 51});
}

TEST_CASE("sound whose placeholders or sizes do not match the model is refused") {
  const test::ScratchFolder folder;
  const ModelSpec spec = tiny("qwen2_5_omni_thinker");
  const std::int64_t token = spec.audio_tokens.front();
  const auto read = [&](std::int64_t count, const std::string& more = "") {
    return read_inputs(folder.write("inputs.json", R"({"input_features": 0, "input_ids": )" +
                                                       placeholders(token, count) + more + "}"),
                       spec);
  };
  write_clips(folder.path() / "inputs.safetensors", {1, 20, 40});
  CHECK(read(10).inputs.main.audio_rows.size() == 10);
  CHECK_THROWS_WITH((void)read(9), doctest::Contains("becomes 10 tokens"));
  CHECK_THROWS_WITH((void)read(10, R"(, "feature_attention_mask": [[1, 0]])"),
                    doctest::Contains("whole segments"));
  write_clips(folder.path() / "inputs.safetensors", {1, 20, 31});  // 10 rows and 6: 8 tokens
  CHECK(read(8).inputs.main.audio_rows.size() == 8);
  CHECK_THROWS_WITH((void)read(10), doctest::Contains("becomes 8 tokens"));
  write_clips(folder.path() / "inputs.safetensors", {1, 16, 40});
  CHECK_THROWS_WITH((void)read(10), doctest::Contains("no matching tensor"));
}

TEST_CASE("a placeholder of sound is refused by models that do not run their audio tower") {
  const test::ScratchFolder folder;
  const ModelSpec spec = tiny("granite_speech");
  const auto file = folder.write(
      "inputs.json", R"({"input_ids": )" + placeholders(spec.audio_tokens.front(), 1) + "}");
  CHECK_THROWS_WITH((void)read_inputs(file, spec), doctest::Contains("stands for sound"));
  CHECK_THROWS_WITH(
      require_text_tokens(tiny("voxtral").audio_tokens, tiny("voxtral"), "--token-ids"),
      doctest::Contains("stands for sound"));
}

TEST_CASE("images come before sound in random inputs, each after a token of text") {
  const ModelSpec spec = tiny("qwen2_5_omni_thinker");
  WorkloadRequest request;
  request.batch_size = 2;
  request.images = 1;
  request.image_size = ImageSize{28, 28};  // 2 × 2 visual tokens
  request.audio = 2;
  request.audio_seconds = 1;  // 5 segments of 5 tokens
  const Workload workload = resolve(request, spec);
  const ModelInputs inputs = random_inputs(spec, workload, 1);
  const std::int64_t next = workload.seq_len;
  REQUIRE(inputs.main.visual_rows.size() == 2 * 4);
  REQUIRE(inputs.main.audio_rows.size() == 2 * 2 * 25);
  CHECK(inputs.main.visual_rows[0] == 1);
  CHECK(inputs.main.audio_rows[0] == 1 + 4 + 1);
  CHECK(inputs.main.audio_rows[25] == 1 + 4 + 1 + 25 + 1);
  CHECK(inputs.main.visual_rows[4] == next + 1);
  CHECK(inputs.main.audio_rows[50] == next + 1 + 4 + 1);
}
