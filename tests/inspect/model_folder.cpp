#include "inspect/model_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "support/data.h"
#include "weight_places.h"

namespace headroom::test {

TensorToWrite zeros(std::string name, std::vector<std::int64_t> shape, StoredType type) {
  const std::size_t bytes = checkpoint::stored_bytes(type, shape).value();
  return {std::move(name), type, std::move(shape), std::vector<std::byte>(bytes)};
}

std::vector<TensorToWrite> tensors_of(const nlohmann::json& config) {
  const ModelSpec spec = spec_of(config);
  const Graph graph = build_graph(spec, {});
  const detail::WeightPlaces places(spec, graph, detail::name_table(spec));
  std::vector<TensorToWrite> tensors;
  std::set<std::string> done;
  for (const Weight& weight : graph.weights) {
    const auto layers = static_cast<std::int64_t>(weight.repeat.evaluate(graph.sizes));
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      const auto alternatives = places.of(weight, layer);
      for (const detail::WeightPlace& place : alternatives.front()) {
        if (!done.insert(place.name).second) continue;
        std::vector<std::int64_t> shape{place.stored.rows};
        if (place.stored.columns != 1) shape.push_back(place.stored.columns);
        tensors.push_back(zeros(place.name, std::move(shape)));
      }
    }
  }
  return tensors;
}

nlohmann::json small_llama() {
  return {{"model_type", "llama"},
          {"architectures", {"LlamaForCausalLM"}},
          {"hidden_size", 64},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"num_hidden_layers", 2},
          {"intermediate_size", 96},
          {"vocab_size", 128},
          {"tie_word_embeddings", false},
          {"max_position_embeddings", 32}};
}

nlohmann::json llama_of_blocks() {
  nlohmann::json config = small_llama();
  config["hidden_size"] = 256;
  config["intermediate_size"] = 512;
  config["vocab_size"] = 320;
  config["tie_word_embeddings"] = false;
  return config;
}

nlohmann::json tied_llama() {
  nlohmann::json config = llama_of_blocks();
  config["tie_word_embeddings"] = true;
  return config;
}

nlohmann::json mixture_of_experts() {
  nlohmann::json config = llama_of_blocks();
  config["model_type"] = "mixtral";
  config["architectures"] = {"MixtralForCausalLM"};
  config["num_local_experts"] = 4;
  config["num_experts_per_tok"] = 2;
  return config;
}

TensorToWrite take(std::vector<TensorToWrite>& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &TensorToWrite::name);
  REQUIRE(found != tensors.end());
  TensorToWrite taken = std::move(*found);
  tensors.erase(found);
  return taken;
}

Inspection inspect_folder(const nlohmann::json& config, const std::vector<TensorToWrite>& tensors) {
  const TempFolder folder;
  write_file(folder / "config.json", config.dump());
  checkpoint::write_safetensors(folder / "model.safetensors", tensors);
  return inspect(folder.path().string());
}

Inspection inspect_folder(const std::vector<TensorToWrite>& tensors) {
  const TempFolder folder;
  checkpoint::write_safetensors(folder / "model.safetensors", tensors);
  return inspect(folder.path().string());
}

std::vector<std::string> problems_of(const Inspection& inspection) {
  std::vector<std::string> problems;
  REQUIRE(inspection.reconciliation.has_value());
  for (const Problem& problem : inspection.reconciliation->problems) {
    problems.push_back(fmt::format("{}: {}", name_of(problem.kind), problem.tensor));
  }
  CHECK(static_cast<std::int64_t>(problems.size()) == inspection.reconciliation->problem_count);
  CHECK(inspection.is_explained() == problems.empty());
  return problems;
}

std::vector<std::string> extras_of(const Inspection& inspection) {
  std::vector<std::string> extras;
  for (const ExtraRow& extra : inspection.extras) {
    extras.push_back(fmt::format("{}: {}", extra.kind, extra.totals.tensors));
  }
  return extras;
}

}  // namespace headroom::test
