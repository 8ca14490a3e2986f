// Tensors that published files have beside those of the model: they are named, and no problem.
#include <doctest/doctest.h>

#include "inspect/model_folder.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using nlohmann::json;

json config_in_folder(const char* folder) {
  return read_json(data_folder() / folder / "config.json");
}

/// Zeros in the place of the tensors of tests/data's `folder`, and one of ones more.
std::vector<TensorToWrite> tensors_with(const char* folder, TensorToWrite extra) {
  std::vector<TensorToWrite> tensors;
  for (const auto& tensor : safetensors_shapes(data_folder() / folder / "model.safetensors")) {
    tensors.push_back(zeros(tensor.first, tensor.second));
  }
  tensors.push_back(std::move(extra));
  return tensors;
}

void check_extras(const Inspection& inspection, const std::vector<std::string>& lines) {
  CHECK(problems_of(inspection).empty());
  CHECK(extras_of(inspection) == lines);
  CHECK(inspection.weights.values == inspection.reconciliation->expected_parameters);
}

}  // namespace

TEST_CASE("buffers, norms and adapters that a model does not use are named by what they are") {
  const auto inspected = [](const char* folder, TensorToWrite extra) {
    return inspect_folder(config_in_folder(folder), tensors_with(folder, std::move(extra)));
  };
  check_extras(inspected("golden/models/bert_model", zeros("embeddings.position_ids", {1, 64})),
               {"position ids buffer: 1"});
  // Files of A.X K1 store a norm behind the network of dense layers, too.
  check_extras(inspected("families/axk1", zeros("model.layers.0.post_mlp_layernorm.weight", {32})),
               {"router bias buffer: 2", "norm that the layer does not use: 1"});
  // Jina's adapters, beside a model whose config has none.
  check_extras(inspected("families/xlm_roberta",
                         zeros("roberta.encoder.layer.0.attention.self.query.parametrizations."
                               "weight.0.lora_A",
                               {5, 4, 48})),
               {"adapter or bias that the model does not use: 1"});
}
