// Weights from files: a tensor that is missing, unexpected, of the wrong shape or not finite is an
// error that names file and tensor.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>

#include "checkpoint/weight_files.h"
#include "headroom/error.h"
#include "inspect/model_folder.h"
#include "safetensors_writer.h"
#include "session.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::checkpoint;
using namespace headroom::measured;

namespace {

constexpr const char* kReference = "golden/models/gpt2";

/// Tensors of a reference checkpoint, for a test to modify before writing.
std::vector<TensorToWrite> reference_tensors(const char* model = kReference) {
  const SafetensorsFile file(test::data_folder() / model / "model.safetensors");
  std::vector<TensorToWrite> tensors;
  for (const StoredTensor& tensor : file.tensors()) {
    tensors.push_back(
        {tensor.name, tensor.type, tensor.shape, {tensor.data.begin(), tensor.data.end()}});
  }
  return tensors;
}

ModelSpec reference_spec(const char* model = kReference) {
  return load_model((test::data_folder() / model).string()).spec;
}

/// Location of the error that loading these tensors throws; fails the test if there is none.
std::string load_error(const std::vector<TensorToWrite>& tensors, const char* model = kReference) {
  const test::TempFolder folder;
  write_safetensors(folder.path() / "model.safetensors", tensors);
  const ModelSpec spec = reference_spec(model);
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

TEST_CASE("a token's expert that is no whole number from 0 is refused, not taken as an index") {
  constexpr const char* kModel = "families/deepseek_v4";
  for (const std::int64_t expert : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(),
                                    std::numeric_limits<std::int64_t>::max()}) {
    CAPTURE(expert);
    auto tensors = reference_tensors(kModel);
    TensorToWrite& table = find(tensors, "model.layers.0.ffn.gate.tid2eid");
    std::memcpy(table.data.data() + table.data.size() - sizeof expert, &expert, sizeof expert);
    CHECK(load_error(tensors, kModel).ends_with("token_experts"));
  }
}

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

// NormHead of baichuan-inc/Baichuan2-7B-Base, modeling_baichuan.py; vLLM tells Baichuan 2 by its
// vocabulary of 125696 words.
TEST_CASE("Baichuan 2 divides the rows of its head by their lengths, and Baichuan does not") {
  const auto largest_logit = [](std::int64_t vocab_size, float length) {
    const nlohmann::json config = {
        {"model_type", "baichuan"}, {"architectures", {"BaichuanForCausalLM"}},
        {"hidden_size", 8},         {"intermediate_size", 8},
        {"num_hidden_layers", 1},   {"num_attention_heads", 2},
        {"vocab_size", vocab_size}, {"tie_word_embeddings", false}};
    std::vector<TensorToWrite> tensors;
    for (const TensorToWrite& listed : test::tensors_of(config)) {
      const bool is_head = listed.name == "lm_head.weight";
      const std::vector<float> values(listed.data.size() / sizeof(float), is_head ? length : 0.5F);
      tensors.push_back(float32_tensor(listed.name, listed.shape, values));
    }
    const test::TempFolder folder;
    write_safetensors(folder.path() / "model.safetensors", tensors);
    const ModelSpec spec = test::spec_of(config);
    const auto source = checkpoint_weights(spec, Checkpoint(folder.path()));
    Session session(spec, *source, {});
    ModelInputs inputs;
    inputs.main = {1, 1, {3}, {}, {}};
    for (const NamedTensor& tensor : session.forward(inputs)) {
      if (tensor.name == "logits") return tensor.values.front();
    }
    FAIL("no logits");
    return 0.0F;
  };
  // The final norm gives 0.5 in each of 8 dimensions; a row of equal values has length √8 of them.
  CHECK(largest_logit(125696, 1) == doctest::Approx(0.5 * std::sqrt(8.0)));
  CHECK(largest_logit(125696, 3) == doctest::Approx(0.5 * std::sqrt(8.0)));
  CHECK(largest_logit(64000, 3) == doctest::Approx(8 * 0.5 * 3));
}

// Kimi K3's published files have 128 entries of A_log for 96 heads. llama.cpp
// (conversion/kimi_k3.py) keeps the first n_head, as vLLM-Ascend does; Megatron-Bridge writes zeros
// behind them.
TEST_CASE("Kimi K3's A_log may be padded to 128 entries, of which the first are the heads'") {
  constexpr const char* kModel = "families/kimi_k3_text";
  // Each value is two bytes, in bfloat16.
  const auto padded_to = [&](std::int64_t entries, std::byte padding) {
    auto tensors = reference_tensors(kModel);
    for (TensorToWrite& tensor : tensors) {
      if (!tensor.name.ends_with(".A_log")) continue;
      tensor.shape = {entries};
      tensor.data.resize(2 * static_cast<std::size_t>(entries), padding);
    }
    return tensors;
  };
  const ModelSpec spec = reference_spec(kModel);
  const auto logits_of = [&](const std::vector<TensorToWrite>& tensors) {
    const test::TempFolder folder;
    write_safetensors(folder.path() / "model.safetensors", tensors);
    const auto source = checkpoint_weights(spec, Checkpoint(folder.path()));
    Session session(spec, *source, {});
    Workload workload;
    workload.seq_len = 9;
    for (NamedTensor& tensor : session.forward(random_inputs(spec, workload, 1))) {
      if (tensor.name == "logits") return std::move(tensor.values);
    }
    FAIL("no logits");
    return std::vector<float>{};
  };
  const auto unpadded = logits_of(reference_tensors(kModel));
  CHECK(logits_of(padded_to(128, std::byte{0})) == unpadded);
  CHECK(logits_of(padded_to(128, std::byte{0x41})) == unpadded);
  CHECK(load_error(padded_to(64, std::byte{0}), kModel).ends_with(".A_log"));
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
