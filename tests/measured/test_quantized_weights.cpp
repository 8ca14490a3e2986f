// Quantised safetensors run as they are stored, against the outputs of the reference code with the
// dequantised weights. Source: tests/data/README.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "golden_values.h"
#include "headroom/error.h"
#include "headroom/storage.h"
#include "measure.h"
#include "session.h"
#include "support/data.h"
#include "support/scratch.h"
#include "weight_reader.h"

using namespace headroom;
using namespace headroom::checkpoint;
using namespace headroom::measured;
using headroom::measured::testing::error_over_tolerance;
using headroom::measured::testing::values_of;

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> quantized_folders() {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(test::data_folder() / "quantized")) {
    folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  REQUIRE(folders.size() == 17);
  return folders;
}

std::unique_ptr<WeightSource> source_of(const fs::path& folder, const ModelSpec& spec) {
  return stored_weights(spec, headroom::detail::read_packed(folder));
}

void check_outputs(const fs::path& folder, HeldType storage) {
  const ModelSpec spec = load_model(folder.string()).spec;
  const InputFile inputs = read_inputs(folder / "inputs.json", spec);
  const SafetensorsFile expected(folder / "expected.safetensors");
  SessionOptions options;
  options.storage = storage;
  const auto source = source_of(folder, spec);
  Session session(spec, *source, options);
  std::size_t compared = 0;
  for (const NamedTensor& tensor : session.forward(inputs.inputs)) {
    CAPTURE(tensor.name);
    const StoredTensor* const wanted = expected.find(tensor.name);
    if (wanted == nullptr) continue;
    CHECK(error_over_tolerance(tensor.values, values_of(*wanted)) <= 1);
    ++compared;
  }
  CHECK(compared >= 2);
  const Generation generation = session.generate(*inputs.generate);
  const StoredTensor& ids = *expected.find("generate.ids");
  std::vector<std::int64_t> expected_ids(ids.data.size() / sizeof(std::int64_t));
  std::memcpy(expected_ids.data(), ids.data.data(), ids.data.size());
  CHECK(generation.ids == expected_ids);
  CHECK(error_over_tolerance(generation.logits.values,
                             values_of(*expected.find("generate.logits"))) <= 1);
}

Measurement measured_of(const Model& model, const fs::path& folder, HeldType storage) {
  MeasureOptions options;
  options.storage = storage;
  options.phase = MeasuredPhase::generate;
  options.new_tokens = 3;
  options.runs = 1;
  options.warmup = 0;
  options.activations = ActivationPath::float32;
  Workload workload;
  workload.seq_len = 5;
  const auto source = source_of(folder, model.spec);
  return measure(model, workload, *source, std::nullopt, options, [](int, int) { return true; });
}

/// Bytes of all tensors of the files, and of those with one dimension that are no pieces of packed
/// weights: norms and biases, which run as float32.
struct FileBytes {
  std::int64_t all = 0;
  std::int64_t vectors = 0;
};

FileBytes bytes_of(const fs::path& folder) {
  FileBytes bytes;
  const SafetensorsFile file(folder / "model.safetensors");
  for (const StoredTensor& tensor : file.tensors()) {
    const auto size = static_cast<std::int64_t>(tensor.data.size());
    bytes.all += size;
    const bool is_vector = tensor.name.ends_with("norm.weight") || tensor.name.ends_with("bias") ||
                           tensor.name.ends_with("sinks");
    if (is_vector) bytes.vectors += size;
  }
  return bytes;
}

/// Copies the folder with another value of one key of its quantization_config.
void copy_with(const fs::path& folder, const std::string& key, const nlohmann::json& value,
               const test::ScratchFolder& copy) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    fs::copy(entry.path(), copy.path() / entry.path().filename());
  }
  std::ifstream before(folder / "config.json");
  nlohmann::json config = nlohmann::json::parse(before);
  config["quantization_config"][key] = value;
  std::ofstream(copy.path() / "config.json") << config;
}

std::string error_of(const fs::path& folder, const std::string& tensor) {
  try {
    (void)headroom::detail::read_packed(folder)->read_groups(tensor, std::nullopt);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_input);
    CHECK(error.where().find(tensor) != std::string::npos);
    CHECK(error.hint() != "");
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("quantised safetensors run as stored compute what their dequantised weights compute") {
  for (const fs::path& folder : quantized_folders()) {
    CAPTURE(folder.filename().string());
    check_outputs(folder, HeldType::stored);
  }
}

TEST_CASE("quantised safetensors can be dequantised to float32") {
  for (const fs::path& folder : quantized_folders()) {
    CAPTURE(folder.filename().string());
    check_outputs(folder, HeldType::float32);
  }
}

TEST_CASE("quantised safetensors are counted and held in the bytes of their files") {
  for (const fs::path& folder : quantized_folders()) {
    CAPTURE(folder.filename().string());
    const Model model = load_model(folder.string());
    const Measurement run = measured_of(model, folder, HeldType::stored);
    const FileBytes bytes = bytes_of(folder);
    CHECK(run.counted.weight_bytes == bytes.all);
    const Graph graph = build_graph(model.spec, all_parts());
    CHECK(Integer{run.counted.weight_bytes} == stored_weights(model, graph).bytes);
    // Vectors of 16 bits take 32, and the routers' 4 rows of gpt-oss fill up tiles of up to 16.
    constexpr std::int64_t kFilledUp = std::int64_t{2} * 12 * 64 * 2;
    const std::int64_t filled = folder.filename() == "mxfp4" ? kFilledUp : 0;
    const auto held = static_cast<double>(run.memory.weights_held_bytes - bytes.vectors - filled);
    CHECK(held < 1.01 * static_cast<double>(bytes.all));
    CHECK(held > 0.95 * static_cast<double>(bytes.all));
    CHECK(run.activations == "float32");
    const Measurement widened = measured_of(model, folder, HeldType::float32);
    CHECK(run.counted.matrix_flops == widened.counted.matrix_flops);
    CHECK(run.counted.parameters == widened.counted.parameters);
  }
}

TEST_CASE("forms of packed weights that no kernel runs are refused with their tensor") {
  const std::string tensor = "model.layers.0.mlp.up_proj.weight";
  const fs::path data = test::data_folder() / "quantized";
  const test::ScratchFolder gemv;
  copy_with(data / "awq_int4", "version", "gemv", gemv);
  const std::string of_awq = error_of(gemv.path(), tensor);
  CHECK(of_awq.find("the version \"gemv\" of AWQ is not supported") != std::string::npos);
  const test::ScratchFolder marlin;
  copy_with(data / "gptq_int4", "checkpoint_format", "marlin", marlin);
  const std::string of_gptq = error_of(marlin.path(), tensor);
  CHECK(of_gptq.find("the checkpoint_format \"marlin\" of GPTQ") != std::string::npos);
}

TEST_CASE("zero points of GPTQ's two formats differ by one") {
  const std::string tensor = "model.layers.0.mlp.up_proj.weight";
  const fs::path folder = test::data_folder() / "quantized" / "gptq_int4";
  const test::ScratchFolder second;
  copy_with(folder, "checkpoint_format", "gptq_v2", second);
  const GroupedWeights first = headroom::detail::read_packed(folder)->read_groups(tensor, {});
  const GroupedWeights other =
      headroom::detail::read_packed(second.path())->read_groups(tensor, {});
  REQUIRE(first.zeros.size() == other.zeros.size());
  for (std::size_t i = 0; i < first.zeros.size(); ++i) {
    CHECK(first.zeros[i] == (other.zeros[i] + 1) % 16);
  }
}
