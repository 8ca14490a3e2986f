// Eight measured training steps on B200s: tests/data/training/b200_training_runs.csv, from
// SimuMax's table. `real_alloc_gib` is max_memory_allocated of Megatron-LM with Transformer Engine.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "gpt_models.h"
#include "headroom/plan.h"

namespace headroom::test {
namespace {

constexpr double kAllocatedGib = 1024.0 * 1024.0 * 1024.0;

/// The number after `key` in a case's name, such as 2 after "_tp"; 1 if it is not named.
std::int64_t number_after(const std::string& name, const std::string& key) {
  const std::size_t at = name.find("_" + key);
  if (at == std::string::npos) return 1;
  return std::strtoll(name.c_str() + at + 1 + key.size(), nullptr, 10);
}

nlohmann::json preset_config(const std::string& name) {
  return read_json(std::filesystem::path(HEADROOM_PRESETS) / (name + ".json")).at("config");
}

/// Models as SimuMax defines them: as published, but its 405B has 16 key-value heads, and its
/// DeepSeek-V3 one dense layer.
nlohmann::json config_of(const std::string& name) {
  nlohmann::json config;
  if (name.starts_with("llama3")) config = preset_config("llama-3-70b");
  if (name.starts_with("llama3_405b")) {
    config["hidden_size"] = 16384;
    config["intermediate_size"] = 53248;
    config["num_attention_heads"] = 128;
    config["num_key_value_heads"] = 16;
  }
  if (name.starts_with("deepseekv2")) config = preset_config("deepseek-v2");
  if (name.starts_with("deepseekv3")) {
    config = preset_config("deepseek-v3");
    config["first_k_dense_replace"] = 1;
    config.erase("quantization_config");
  }
  config["num_hidden_layers"] = number_after(name, "l");
  return config;
}

PlanFigures predicted_step(const std::string& name) {
  PlanQuery query;
  query.purpose = Purpose::train;
  query.attention = AttentionImplementation::fused;
  Planner planner(spec_of(config_of(name)), query,
                  device_rates(find_machine("b200"), query.purpose, DType::bfloat16));
  PlanChoice choice;
  choice.parallel.tensor = number_after(name, "tp");
  choice.parallel.pipeline = number_after(name, "pp");
  choice.parallel.data = number_after(name, "dp");
  choice.parallel.expert = number_after(name, "ep");
  choice.parallel.sequence =
      choice.parallel.tensor > 1 ? SequenceParallel::on : SequenceParallel::off;
  choice.zero = Zero::optimizer;
  const Load load{number_after(name, "mbc") * choice.parallel.data, 4096};
  require_legal(choice, load, planner.limits(load.seq_len));
  return planner.evaluate(choice, load);
}

/// Relative error of `figure` in every row whose name begins with `prefix`.
template <class Figure>
std::vector<double> errors_of(const std::string& prefix, const std::string& column,
                              const Figure& figure) {
  std::vector<double> errors;
  for (const CsvRow& row : read_csv(data_folder() / "training/b200_training_runs.csv")) {
    const std::string& name = row.at("case");
    if (!name.starts_with(prefix)) continue;
    const double measured = std::strtod(row.at(column).c_str(), nullptr);
    errors.push_back(figure(predicted_step(name)) / measured - 1);
    MESSAGE(name << " " << column << " " << 100 * errors.back() << " %");
  }
  return errors;
}

double allocated_gib(const PlanFigures& figures) {
  return static_cast<double>(figures.memory.allocated()) / kAllocatedGib;
}

}  // namespace

TEST_CASE("allocated memory of dense training steps on B200 is within 0.5 % of the measured") {
  const std::vector<double> errors = errors_of("llama3", "real_alloc_gib", allocated_gib);
  CHECK(errors.size() == 5);
  for (const double error : errors) CHECK(std::abs(error) < 0.005);
}

// Tokens are assumed to be spread evenly over the experts; a run allocates for those it got.
TEST_CASE("allocated memory of mixtures of experts on B200 is within 2.5 % of the measured") {
  const std::vector<double> errors = errors_of("deepseek", "real_alloc_gib", allocated_gib);
  CHECK(errors.size() == 3);
  for (const double error : errors) CHECK(std::abs(error) < 0.025);
}

// The three efficiencies of Blackwell were fitted to these rows (src/machine/efficiency.cpp).
TEST_CASE("training steps on B200 take the measured time within 5 %") {
  const std::vector<double> errors = errors_of(
      "", "real_ms", [](const PlanFigures& figures) { return 1e3 * figures.time.iteration_s; });
  CHECK(errors.size() == 8);
  for (const double error : errors) CHECK(std::abs(error) < 0.05);
}

}  // namespace headroom::test
