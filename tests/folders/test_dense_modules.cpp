// Dense layers of sentence-transformers: a key that their reader does not know could change what is
// counted.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "support/data.h"
#include "support/scratch.h"

using namespace headroom;
using namespace headroom::test;

TEST_CASE("a dense layer with an unknown key is refused at it") {
  const ScratchFolder root;
  const nlohmann::json config = {{"model_type", "bert"},         {"hidden_size", 64},
                                 {"num_hidden_layers", 2},       {"num_attention_heads", 4},
                                 {"intermediate_size", 96},      {"vocab_size", 100},
                                 {"max_position_embeddings", 32}};
  root.write("config.json", config.dump());
  root.write("modules.json",
             R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
                 {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])");
  std::filesystem::create_directory(root.path() / "2_Dense");
  const auto parameters = [&](const char* dense) {
    root.write("2_Dense/config.json", dense);
    return parameters_on(build_graph(load_model(root.path().string()).spec, {}));
  };
  const Integer narrow = parameters(R"({"in_features": 64, "out_features": 8})");
  CHECK(parameters(R"({"in_features": 64, "out_features": 9})") - narrow == 64 + 1);
  const std::string error =
      refusal_of([&] { (void)parameters(R"({"in_features": 64, "out_features": 8, "rank": 4})"); });
  CHECK(error.find("2_Dense/config.json#/rank: is unknown") != std::string::npos);
}
