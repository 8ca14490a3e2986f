// LoRA adapters beside unmerged weights: their bytes by PEFT's count, and the time of a step by the
// bytes that its requests' adapters add.
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include "headroom/engine_command.h"
#include "headroom/plan_report.h"
#include "headroom/serve.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

// PEFT's print_trainable_parameters() of Llama 3 8B with rank 16 on q, k, v, o, gate, up and down:
// 16·32·((4096 + 4096)·2 + (4096 + 1024)·2 + (4096 + 14336)·3).
constexpr Integer kAdapterParameters = 41'943'040;
constexpr Integer kAdapterBytes = 2 * kAdapterParameters;

DeviceRates h100() {
  return device_rates(find_machine("h100-80gb"), Purpose::serve, DType::bfloat16);
}

Planner planner_with(std::int64_t adapters, std::int64_t rank = 16,
                     AdapterTargets targets = AdapterTargets::all) {
  PlanQuery query;
  if (adapters > 0) query.adapter = {AdapterKind::lora, rank, targets, adapters};
  return {load_model("llama-3-8b").spec, query, h100()};
}

PlanChoice tensor_parallel(std::int64_t ranks) {
  PlanChoice choice;
  choice.parallel.tensor = ranks;
  return choice;
}

Integer weight_bytes(Planner planner, std::int64_t ranks = 1) {
  return planner.evaluate(tensor_parallel(ranks), {1, 1024}).memory.weights;
}

/// Collectives of a decode step in all layers, with their bytes.
std::pair<double, double> collectives(Planner planner, PlanChoice choice) {
  std::pair<double, double> sum;
  for (const Communication& row : planner.communication(choice, {8, 1024})) {
    sum.first += row.count;
    sum.second += row.wire_bytes;
  }
  return sum;
}

double step_seconds(std::int64_t adapters, std::int64_t sequences) {
  Planner planner = planner_with(adapters);
  return planner.evaluate(tensor_parallel(1), {sequences, 1024}).time.iteration_s;
}

}  // namespace

TEST_CASE("served adapters take as many bytes as PEFT counts parameters, each twice") {
  const Integer without = weight_bytes(planner_with(0));
  for (const std::int64_t adapters : {1, 4, 32}) {
    CHECK(weight_bytes(planner_with(adapters)) - without == adapters * kAdapterBytes);
  }
  CHECK(weight_bytes(planner_with(1, 64)) - without == 4 * kAdapterBytes);
  // q, k, v and o: 16·32·((4096 + 4096)·2 + (4096 + 1024)·2) parameters.
  CHECK(weight_bytes(planner_with(1, 16, AdapterTargets::attention)) - without == 2 * 13'631'488);
  // q and v: 16·32·((4096 + 4096) + (4096 + 1024)) parameters.
  CHECK(weight_bytes(planner_with(1, 16, AdapterTargets::query_value)) - without == 2 * 6'815'744);
}

// S-LoRA, arXiv 2311.03285, section 5, as vLLM shards by default: a rank holds its columns of B
// behind a divided output, and its rows of A behind a divided input; the other matrix is whole.
TEST_CASE("tensor parallelism divides one matrix of each adapter") {
  const Integer rank = 16;
  const Integer layers = 32;
  const Integer queries = rank * (4096 + 4096 / 2);  // out likewise, transposed
  const Integer keys = rank * (4096 + 1024 / 2);     // values likewise
  const Integer feed_forward = rank * (4096 + 14336 / 2);
  const Integer of_rank = 2 * layers * (2 * queries + 2 * keys + 3 * feed_forward);
  CHECK(weight_bytes(planner_with(8), 2) - weight_bytes(planner_with(0), 2) == 8 * of_rank);
}

TEST_CASE("a step reads the adapters of its sequences, and no others") {
  CHECK(step_seconds(64, 1) == doctest::Approx(step_seconds(1, 1)));
  CHECK(step_seconds(1, 1) > step_seconds(0, 1));
  const DeviceRates rates = h100();
  const double bytes_per_s = rates.memory_bytes_per_s * rates.efficiency.memory;
  const double one = static_cast<double>(kAdapterBytes) / bytes_per_s;
  CHECK(step_seconds(64, 64) - step_seconds(1, 64) == doctest::Approx(63 * one).epsilon(1e-6));
  CHECK(step_seconds(64, 64) - step_seconds(32, 64) == doctest::Approx(32 * one).epsilon(1e-6));
  // A lone sequence adds one adapter's bytes, and activations that are few beside them.
  const double added = step_seconds(1, 1) - step_seconds(0, 1);
  CHECK(added == doctest::Approx(one).epsilon(0.06));
}

// RowParallelLinearWithLoRA of vLLM adds B·(A·x) to the partial output and reduces the sum; A of a
// column-parallel matrix reads the input that the matrix reads.
TEST_CASE("served adapters add no collective, with and without sequence parallelism") {
  for (const SequenceParallel sequence : {SequenceParallel::off, SequenceParallel::on}) {
    PlanChoice choice = tensor_parallel(4);
    choice.parallel.sequence = sequence;
    const auto plain = collectives(planner_with(0), choice);
    CHECK(plain.first > 0);
    CHECK(collectives(planner_with(8), choice) == plain);
  }
}

TEST_CASE("tokens of one request share its adapter") {
  Planner planner = planner_with(32);
  const DeviceRates rates = h100();
  const double one =
      static_cast<double>(kAdapterBytes) / (rates.memory_bytes_per_s * rates.efficiency.memory);
  const auto seconds = [&](std::int64_t adapters) {
    return planner.prefill_time(tensor_parallel(1), 64, 0, adapters).weights.all;
  };
  CHECK(seconds(32) - seconds(1) == doctest::Approx(31 * one).epsilon(1e-6));
  CHECK(seconds(64) == seconds(32));
  const auto ttft = [](std::int64_t adapters) {
    return *planner_with(adapters).evaluate(tensor_parallel(1), {1, 1024}).time.ttft_s;
  };
  CHECK(ttft(32) == doctest::Approx(ttft(1)));
}

TEST_CASE("a model without target matrices is refused adapters") {
  PlanQuery query;
  query.adapter = {AdapterKind::lora, 16, AdapterTargets::all, 4};
  CHECK(refusal_of([&] {
          (void)Planner(load_model("mamba2-780m").spec, query, h100());
        }).find("which this model lacks") != std::string::npos);
  // One matrix makes DeepSeek's keys and values.
  query.adapter.targets = AdapterTargets::query_value;
  CHECK(refusal_of([&] {
          (void)Planner(load_model("deepseek-v3").spec, query, h100());
        }).find("matrices of queries and of values") != std::string::npos);
}

TEST_CASE("requests with adapters are answered later, and fewer fit") {
  ServeQuestion question;
  question.plan.model = load_model("llama-3-8b");
  question.plan.rates = h100();
  question.traffic = {UserArrivals{32}, 512, 64, 128, 1};
  const ServedPlan plain = simulate(question, tensor_parallel(1));
  question.plan.query.adapter = {AdapterKind::lora, 16, AdapterTargets::all, 32};
  const ServedPlan adapted = simulate(question, tensor_parallel(1));
  CHECK(adapted.figures.output_tokens_per_s < plain.figures.output_tokens_per_s);
  CHECK(adapted.figures.tpot->p50 > plain.figures.tpot->p50);
  CHECK(plain.cache.bytes - adapted.cache.bytes >= 32 * kAdapterBytes);
}

TEST_CASE("vLLM is told how many adapters of which rank to keep") {
  PlanQuestion question;
  question.model = load_model("llama-3-8b");
  question.rates = h100();
  question.load = {8, 4096};
  question.query.adapter = {AdapterKind::lora, 32, AdapterTargets::all, 4};
  const std::string start =
      "vllm serve meta-llama/Meta-Llama-3-8B --dtype bfloat16 --max-model-len 4096 "
      "--max-num-seqs 8";
  const EngineCommand exact = engine_command(Engine::vllm, question, PlanChoice{});
  CHECK(exact.text == start + " --enable-lora --max-loras 4 --max-lora-rank 32");
  CHECK(exact.notes.empty());
  // Its LoRAConfig takes 1, 8, 16, 32, 64, 128, 256, 320 and 512.
  question.query.adapter.rank = 33;
  const EngineCommand rounded = engine_command(Engine::vllm, question, PlanChoice{});
  CHECK(rounded.text == start + " --enable-lora --max-loras 4 --max-lora-rank 64");
  CHECK(rounded.notes.size() == 1);
  question.query.adapter.rank = 513;
  const EngineCommand refused = engine_command(Engine::vllm, question, PlanChoice{});
  CHECK(refused.text == start);
  CHECK(refused.notes.size() == 1);
}

TEST_CASE("SGLang has options for adapters, TensorRT-LLM a file") {
  PlanQuestion question;
  question.model = load_model("llama-3-8b");
  question.rates = h100();
  question.load = {8, 4096};
  question.query.adapter = {AdapterKind::lora, 24, AdapterTargets::attention, 4};
  const EngineCommand sglang = engine_command(Engine::sglang, question, PlanChoice{});
  CHECK(
      sglang.text.ends_with(" --enable-lora --max-loras-per-batch 4 --max-lora-rank 24 "
                            "--lora-target-modules q_proj k_proj v_proj o_proj"));
  const EngineCommand tensorrt = engine_command(Engine::tensorrt_llm, question, PlanChoice{});
  REQUIRE(tensorrt.notes.size() == 1);
  CHECK(tensorrt.notes[0].ends_with("lora_config: {max_lora_rank: 24, max_loras: 4}"));
}
