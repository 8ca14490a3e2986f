// Bytes of weights of every GGUF file that llama.cpp's logs name, against its type's recipe.
// tests/data/logs/weight_records.json says which model each name is, and lists the records that
// differ with their causes.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>

#include "headroom/plan.h"
#include "headroom/storage.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using WeightJson = nlohmann::json;

constexpr double kBytesPerGiB = 1024.0 * 1024.0 * 1024.0;

std::optional<WeightType> type_of_file(const WeightJson& types, const std::string& quant) {
  if (!types.contains(quant)) return std::nullopt;
  const std::string word = types[quant];
  for (const WeightType type :
       {WeightType::float16, WeightType::bfloat16, WeightType::q8_0, WeightType::q6_k,
        WeightType::q5_k_m, WeightType::q4_k_m, WeightType::q4_0}) {
    if (name_of(type) == word) return type;
  }
  FAIL("unknown type " << word);
  return std::nullopt;
}

/// The model's name without the type that llama-bench adds to it.
std::string model_of(const WeightJson& log) {
  const std::string name = log["model"];
  const std::string suffix = " " + log["quant"].get<std::string>();
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : name;
}

/// The cause that `differs` gives for records of this name and type; empty if it has none.
std::string cause_of(const WeightJson& differs, const std::string& name, const std::string& quant) {
  for (const WeightJson& entry : differs) {
    const bool same_type = !entry.contains("quant") || entry["quant"] == quant;
    if (entry["model"] == name && same_type) return entry["cause"];
  }
  return {};
}

/// The preset that `entry` names, with the sizes that it states.
ModelSpec spec_of_model(const WeightJson& entry) {
  if (entry.is_string()) return load_model(entry.get<std::string>()).spec;
  ModelSpec spec = load_model(entry["preset"].get<std::string>()).spec;
  spec.decoder->self_attention.num_key_value_heads = entry["num_key_value_heads"];
  return spec;
}

/// GiB of the text model: a GGUF file has the vision tower in a file of its own.
double gib_of_file(const WeightJson& model, WeightType type) {
  const ModelSpec spec = stored_as(spec_of_model(model), type);
  const Graph graph = build_graph(spec, {Phase::prefill, AttentionImplementation::eager});
  const StoredWeights stored = stored_weights(spec, graph);
  Integer bytes = 0;
  for (std::size_t i = 0; i < graph.weights.size(); ++i) {
    const bool is_vision = graph.weights[i].component.part == Part::vision_tower;
    bytes += is_vision ? 0 : stored.weights[i].bytes;
  }
  return static_cast<double>(bytes) / kBytesPerGiB;
}

/// Weights of one rank in 16 bits by the planner.
double gib_of_rank(const WeightJson& entry) {
  PlanChoice choice;
  choice.parallel.tensor = entry["ranks"].value("tensor", 1);
  choice.parallel.data = entry["ranks"].value("data", 1);
  choice.parallel.expert = entry["ranks"].value("expert", 1);
  Planner planner(load_model(entry["preset"].get<std::string>()).spec, {},
                  device_rates(find_machine("h100-80gb"), Purpose::serve, DType::bfloat16));
  const PlanMemory memory = planner.evaluate(choice, {choice.parallel.data, 128}).memory;
  return static_cast<double>(memory.weights + memory.embedding_states) / kBytesPerGiB;
}

/// The preset's weights as stored, over equal devices.
double gib_of_device(const WeightJson& entry) {
  const ModelSpec spec = load_model(entry["preset"].get<std::string>()).spec;
  const StoredWeights stored = stored_weights(spec, build_graph(spec, {}));
  return static_cast<double>(stored.bytes) / kBytesPerGiB / entry["devices"].get<double>();
}

bool weights_agree(double computed, double printed) {
  return std::abs(computed - printed) <= 0.01 * printed;
}

WeightJson weights_of_record(const WeightJson& held, int record) {
  for (const WeightJson& entry : held["engines"]["records"]) {
    if (entry["record"] == record) return entry;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("engines' logs print the weights of a rank, or differ for a named cause") {
  const WeightJson held = read_json(data_folder() / "logs/weight_records.json");
  std::ifstream lines(data_folder() / "logs/engine_logs.jsonl");
  std::string line;
  int record = 0;
  int checked = 0;
  while (std::getline(lines, line)) {
    ++record;
    const WeightJson log = WeightJson::parse(line);
    if (log["weights_gib_per_gpu"].is_null()) continue;
    CAPTURE(record);
    const WeightJson entry = weights_of_record(held, record);
    REQUIRE_MESSAGE(!entry.is_null(), "neither checked nor explained");
    const double printed = log["weights_gib_per_gpu"];
    if (entry.contains("ranks")) {
      CHECK(weights_agree(gib_of_rank(entry), printed));
      ++checked;
    } else if (entry.contains("preset")) {
      CHECK_MESSAGE(!weights_agree(gib_of_device(entry), printed), "it agrees: check the record");
      CHECK(!entry["cause"].get<std::string>().empty());
    }
  }
  CHECK(checked >= 3);
}

TEST_CASE("llama.cpp's logs print the size of a file of the type's recipe") {
  const WeightJson held = read_json(data_folder() / "logs/weight_records.json");
  std::ifstream lines(data_folder() / "logs/llamacpp_logs.jsonl");
  std::map<std::pair<std::string, std::string>, double> sizes;  // by model and type
  std::string line;
  int record = 0;
  int checked = 0;
  while (std::getline(lines, line)) {
    ++record;
    const WeightJson log = WeightJson::parse(line);
    if (log["file_gib"].is_null()) continue;
    const std::string name = model_of(log);
    const std::string quant = log["quant"];
    CAPTURE(record);
    CAPTURE(name);
    CAPTURE(quant);
    if (held["unreadable"].contains(name)) {
      CHECK(!find_preset(held["unreadable"][name]["preset"].get<std::string>()));
      continue;
    }
    REQUIRE(held["models"].contains(name));
    const auto type = type_of_file(held["types"], quant);
    const std::string cause = cause_of(held["differs"], name, quant);
    if (!type) {
      REQUIRE_MESSAGE(held["no_recipe"].contains(quant), "a type without a recipe or a cause");
      continue;
    }
    double& gib = sizes[{name, quant}];
    if (gib == 0) gib = gib_of_file(held["models"][name], *type);
    CAPTURE(gib);
    const double printed = log["file_gib"];
    CHECK(weights_agree(gib, printed) == cause.empty());
    checked += cause.empty() ? 1 : 0;
  }
  CHECK(checked >= held["checked"].get<int>());
}
