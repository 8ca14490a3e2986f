// Weights from files: a tensor that is missing, unexpected, of the wrong shape or not finite is an
// error that names file and tensor.
#include <doctest/doctest.h>

#include <filesystem>
#include <limits>

#include "checkpoint/weight_files.h"
#include "headroom/error.h"
#include "safetensors_writer.h"
#include "session.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::checkpoint;
using namespace headroom::measured;

namespace {

/// Tensors of a reference checkpoint, for a test to modify before writing.
std::vector<TensorToWrite> reference_tensors() {
  const SafetensorsFile file(test::data_folder() / "golden/models/gpt2/model.safetensors");
  std::vector<TensorToWrite> tensors;
  for (const StoredTensor& tensor : file.tensors()) {
    tensors.push_back(
        {tensor.name, tensor.type, tensor.shape, {tensor.data.begin(), tensor.data.end()}});
  }
  return tensors;
}

ModelSpec reference_spec() {
  return load_model((test::data_folder() / "golden/models/gpt2").string()).spec;
}

/// Location of the error that loading these tensors throws; fails the test if there is none.
std::string load_error(const std::vector<TensorToWrite>& tensors) {
  const test::TempFolder folder;
  write_safetensors(folder.path() / "model.safetensors", tensors);
  const ModelSpec spec = reference_spec();
  try {
    const auto source = checkpoint_weights(spec, Checkpoint(folder.path()));
    const Session session(spec, *source, {});
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_input);
    CHECK_FALSE(error.hint().empty());
    return error.where();
  }
  FAIL("loaded");
  return {};
}

TensorToWrite& find(std::vector<TensorToWrite>& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &TensorToWrite::name);
  REQUIRE(found != tensors.end());
  return *found;
}

}  // namespace

TEST_CASE("a missing tensor is named") {
  auto tensors = reference_tensors();
  const auto ends = [](const TensorToWrite& tensor) {
    return tensor.name.ends_with("h.1.mlp.c_fc.weight");
  };
  REQUIRE(std::erase_if(tensors, ends) == 1);
  CHECK(load_error(tensors).ends_with("h.1.mlp.c_fc.weight"));
}

TEST_CASE("a tensor without a weight in the model is named") {
  auto tensors = reference_tensors();
  const std::vector<float> values(4);
  tensors.push_back(float32_tensor("transformer.h.7.ln_1.weight", {4}, values));
  CHECK(load_error(tensors).ends_with("transformer.h.7.ln_1.weight"));
}

TEST_CASE("a tensor of the wrong shape is named") {
  auto tensors = reference_tensors();
  TensorToWrite& norm = find(tensors, "transformer.ln_f.weight");
  norm = float32_tensor(norm.name, {3}, std::vector<float>(3));
  CHECK(load_error(tensors).ends_with("transformer.ln_f.weight"));
}

TEST_CASE("a weight that is NaN is rejected") {
  auto tensors = reference_tensors();
  TensorToWrite& norm = find(tensors, "transformer.ln_f.weight");
  std::vector<float> values(static_cast<std::size_t>(norm.shape.front()), 1.0F);
  values[2] = std::numeric_limits<float>::quiet_NaN();
  norm = float32_tensor(norm.name, norm.shape, values);
  CHECK(load_error(tensors).ends_with("transformer.ln_f.weight"));
}

TEST_CASE("a bfloat16 checkpoint loads and runs") {
  auto tensors = reference_tensors();
  for (TensorToWrite& tensor : tensors) {
    std::vector<std::byte> upper;  // bfloat16 is the upper half of a float32
    for (std::size_t i = 0; i < tensor.data.size(); i += 4) {
      upper.insert(upper.end(), {tensor.data[i + 2], tensor.data[i + 3]});
    }
    tensor.data = std::move(upper);
    tensor.type = StoredType::bfloat16;
  }
  const test::TempFolder folder;
  write_safetensors(folder.path() / "model.safetensors", tensors);
  const ModelSpec spec = reference_spec();
  const auto source = checkpoint_weights(spec, Checkpoint(folder.path()));
  Session session(spec, *source, {});
  Workload workload;
  workload.seq_len = 9;
  const auto outputs = session.forward(random_inputs(spec, workload, 1));
  CHECK(outputs.size() > 4);
}

TEST_CASE("random weights depend on the seed only") {
  const ModelSpec spec = reference_spec();
  Workload workload;
  workload.seq_len = 5;
  const ModelInputs inputs = random_inputs(spec, workload, 1);
  const auto logits = [&](std::uint64_t seed) {
    const auto source = random_weights(seed);
    Session session(spec, *source, {});
    for (NamedTensor& tensor : session.forward(inputs)) {
      if (tensor.name == "logits") return std::move(tensor.values);
    }
    return std::vector<float>();
  };
  const auto once = logits(1);
  REQUIRE_FALSE(once.empty());
  CHECK(once == logits(1));
  CHECK(once != logits(2));
}
