// Commands of engines hold against the options that each engine's release has: tests/data/engines,
// read from its source (the header of a list says of which release).
#include <doctest/doctest.h>

#include "engine_options.h"
#include "headroom/engine_command.h"
#include "headroom/error.h"
#include "headroom/report.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

/// Presets of every kind of layer that engines run.
constexpr const char* kModels[] = {
    "gpt2",         "llama-3-8b",  "llama-3.1-70b",   "qwen2.5-7b",    "qwen3-30b-a3b",
    "mixtral-8x7b", "deepseek-v2", "deepseek-v3",     "gemma-2-9b",    "gemma-3-27b",
    "gpt-oss-20b",  "olmo-2-7b",   "mistral-7b-v0.1", "llama-4-scout", "bloom-7b1",
    "opt-1.3b",     "phi-3-mini",  "falcon-7b"};

PlanQuestion asked(const Model& model, Purpose purpose) {
  PlanQuestion question;
  question.model = model;
  question.query.purpose = purpose;
  question.rates = device_rates(find_machine("h100-80gb"), purpose, DType::bfloat16);
  question.devices = 64;
  question.load = {128, 4096};
  return question;
}

/// Plans with every option of a step.
std::vector<PlanChoice> choices() {
  std::vector<PlanChoice> all(1);
  for (const std::int64_t degree : {2, 8}) {
    PlanChoice choice;
    choice.parallel.tensor = degree;
    choice.parallel.sequence = SequenceParallel::on;
    choice.step.tensor_overlap = TensorOverlap::on;
    choice.parallel.pipeline = 4;
    choice.parallel.interleave = degree;
    choice.parallel.data = 2;
    choice.zero = Zero::optimizer;
    choice.step.overlap = DataOverlap::on;
    all.push_back(choice);
    choice.parallel.context = 2;
    choice.recompute = {Recompute::full, degree};
    choice.step.schedule = PipelineSchedule::zero_bubble;
    choice.step.loss_chunks = 4;
    all.push_back(choice);
    choice = {};
    choice.parallel.data = 8;
    choice.parallel.expert = 8;
    choice.zero = degree == 2 ? Zero::gradients : Zero::weights;
    choice.step.zero_ranks = 4;
    choice.recompute.kind = Recompute::selective;
    choice.recompute.modules = RecomputeModules(RecomputeModule::layernorm);
    choice.recompute.modules.add(RecomputeModule::mlp);
    choice.parallel.expert_tensor = ExpertTensor::whole;
    all.push_back(choice);
    choice.parallel.expert_exchange = ExpertExchange::by_node;
    choice.parallel.batch_overlap = BatchOverlap::two_batches;
    choice.step.offload_layers = 2;
    choice.recompute = {};
    all.push_back(choice);
  }
  return all;
}

/// Questions with every type and adapter.
std::vector<PlanQuestion> serving_questions(const Model& model) {
  std::vector<PlanQuestion> all{asked(model, Purpose::serve)};
  for (int type = 0; type <= static_cast<int>(WeightType::iq4_xs); ++type) {
    all.push_back(all.front());
    all.back().query.weights = static_cast<WeightType>(type);
  }
  for (const KvTypeInfo& type : kv_types()) {
    all.push_back(all.front());
    set_type(all.back().query.kv_cache, type.type);
  }
  for (const DType type : {DType::float16, DType::float32}) {
    all.push_back(all.front());
    all.back().query.dtype = type;
    all.back().query.attention = AttentionImplementation::eager;
  }
  all.push_back(all.front());
  all.back().query.adapter.kind = AdapterKind::lora;
  all.back().query.adapter.held = 4;
  return all;
}

std::vector<PlanQuestion> training_questions(const Model& model) {
  std::vector<PlanQuestion> all;
  for (const Recipe recipe : {Recipe::mixed, Recipe::bfloat16, Recipe::float32, Recipe::megatron,
                              Recipe::fp8_transformer_engine, Recipe::mxfp8_transformer_engine,
                              Recipe::fp8_deepseek_v3}) {
    all.push_back(asked(model, Purpose::train));
    all.back().query.states.recipe = recipe;
  }
  all.push_back(asked(model, Purpose::train));
  all.back().query.dtype = DType::float16;
  return all;
}

/// Options and values that the engine's list lacks in any of the commands: of every question with
/// one plan, and of every plan with one question.
std::set<std::string> unknown_in_commands(Engine engine, std::set<std::string>& seen) {
  const EngineOptions options = engine_options(engine);
  const bool serves = info(engine).purpose == Purpose::serve;
  std::set<std::string> unknown;
  const auto check = [&](const PlanQuestion& question, const PlanChoice& choice) {
    const EngineCommand command = engine_command(engine, question, choice);
    for (const std::string& word : unknown_options(options, command.text, seen)) {
      unknown.insert(word);
    }
  };
  for (const char* const name : kModels) {
    const Model model = load_model(name);
    const auto questions = serves ? serving_questions(model) : training_questions(model);
    const auto plans = choices();
    for (const PlanQuestion& question : questions) check(question, plans.front());
    for (const PlanChoice& choice : plans) check(questions.front(), choice);
  }
  return unknown;
}

}  // namespace

TEST_CASE("every option of a command is in the engine's own list") {
  for (const EngineInfo& about : engines()) {
    CAPTURE(about.name);
    const EngineOptions options = engine_options(about.engine);
    CHECK(options.version == about.version);
    CHECK(options.date == about.date);
    CHECK(options.values.size() > 30);
    std::set<std::string> seen;
    const std::set<std::string> unknown = unknown_in_commands(about.engine, seen);
    CHECK_MESSAGE(unknown.empty(), fmt::format("{}", fmt::join(unknown, " ")));
    MESSAGE(about.name << ": " << seen.size() << " options");
    CHECK(seen.size() >= 5);
  }
}

TEST_CASE("an option that the list lacks is found") {
  const EngineOptions options = engine_options(Engine::vllm);
  std::set<std::string> seen;
  CHECK(unknown_options(options, "vllm serve m --tensor-parallel-degree 2 --dtype int3", seen) ==
        std::vector<std::string>{"--tensor-parallel-degree", "int3"});
}
