// Options of a training step: what is refused, a loss in chunks, and experts of which some are
// fuller than others.
#include <algorithm>
#include <cmath>
#include <optional>

#include "headroom/error.h"
#include "headroom/plan_report.h"
#include "training_plans.h"

namespace headroom::test {

TEST_CASE("options of a step are refused where the plan has nothing for them") {
  const ShardingLimits limits = h100_trainer(load_model("llama-3-8b").spec).limits(8192);
  const auto broken = [&](auto change) {
    PlanChoice choice;
    change(choice);
    return broken_rule(choice, {8, 8192}, limits);
  };
  CHECK(broken([](PlanChoice& c) { c.step.tensor_overlap = TensorOverlap::on; }) ==
        PlanRule::tensor_overlap_sequence);
  CHECK(broken([](PlanChoice& c) { c.step.offload_layers = 32; }) ==
        PlanRule::offload_layers_count);
  CHECK(broken([](PlanChoice& c) { c.step.offload_layers = -1; }) ==
        PlanRule::offload_layers_count);
  CHECK(broken([](PlanChoice& c) {
          c.step.offload_layers = 1;
          c.parallel.pipeline = 2;
        }) == PlanRule::offload_layers_pipeline);
  for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
    CHECK(broken([&](PlanChoice& c) {
            c.step.offload_layers = 1;
            c.recompute.kind = recompute;
          }) == PlanRule::offload_layers_recompute);
  }
  CHECK(broken([](PlanChoice& c) { c.step.loss_chunks = 0; }) == PlanRule::loss_chunks_positive);
  CHECK(broken([](PlanChoice& c) { c.step.loss_chunks = 8193; }) == PlanRule::loss_chunks_tokens);
  CHECK_FALSE(broken([](PlanChoice& c) { c.step.loss_chunks = 8192; }));
  CHECK_FALSE(broken([](PlanChoice& c) {
    c.step.loss_chunks = 8193;
    c.micro_batch = 2;
  }));
  CHECK_FALSE(broken([](PlanChoice& c) { c.step.offload_layers = 31; }));
  const ShardingLimits images = h100_trainer(load_model("vit-base-patch16-224").spec).limits(197);
  PlanChoice choice;
  choice.step.loss_chunks = 4;
  CHECK(broken_rule(choice, {8, 197}, images) == PlanRule::loss_chunks_words);
}

TEST_CASE("a micro-batch that grows with the batch is noted, unless it is given") {
  const auto notes = [](const PlanRequest& request) {
    PlanQuestion question;
    question.model = load_model("gpt2");
    question.query.purpose = Purpose::train;
    question.rates = device_rates(find_machine("a100-80gb"), Purpose::train, DType::bfloat16);
    question.devices = request.choice.parallel.devices();
    question.load = {8, 1024};
    return std::ranges::count(
        make_fit_report(question, request).notes,
        "the micro-batch grows with the batch, as none is given; with a fixed "
        "one, gradients accumulate over a batch of any size");
  };
  PlanRequest request;
  CHECK(notes(request) == 1);
  request.micro_batch = 8;
  CHECK(notes(request) == 0);
  request.micro_batch.reset();
  request.choice.parallel.pipeline = 2;  // with a micro-batch of one sequence
  CHECK(notes(request) == 0);
}

// Megatron-LM, transformer_config.py: "CPU offloading does not work when activation recomputation
// is enabled".
TEST_CASE("plans with activations on the host are searched without recomputation") {
  const Planner planner = h100_trainer(gpt(1024, 16, 24));
  SearchSpace space;
  space.devices = 2;
  space.load = {8, 1024};
  space.keep = 100;
  space.fixed.step.offload_layers = 12;
  const PlanSearch search = search_plans(planner, space);
  REQUIRE_FALSE(search.best.empty());
  for (const RankedPlan& plan : search.best) CHECK(plan.choice.recompute == Recomputation{});
}

TEST_CASE("a search is refused where no plan has room for an option of the step") {
  const ShardingLimits limits = h100_trainer(load_model("llama-3-8b").spec).limits(8192);
  const auto refused = [&](auto change) -> std::optional<PlanRule> {
    FixedDegrees fixed;
    change(fixed);
    try {
      require_legal(fixed, {8, 8192}, limits);
    } catch (const IllegalPlan& error) {
      return error.violation().rule;
    }
    return std::nullopt;
  };
  CHECK(refused([](FixedDegrees& f) {
          f.step.offload_layers = 4;
          f.pipeline = 4;
        }) == PlanRule::offload_layers_pipeline);
  CHECK(refused([](FixedDegrees& f) { f.step.offload_layers = 99; }) ==
        PlanRule::offload_layers_count);
  CHECK(refused([](FixedDegrees& f) {
          f.step.offload_layers = 4;
          f.recompute = Recomputation{Recompute::full};
        }) == PlanRule::offload_layers_recompute);
  CHECK(refused([](FixedDegrees& f) {
          f.step.tensor_overlap = TensorOverlap::on;
          f.tensor = 1;
        }) == PlanRule::tensor_overlap_sequence);
  CHECK(refused([](FixedDegrees& f) {
          f.step.tensor_overlap = TensorOverlap::on;
          f.sequence = SequenceParallel::off;
        }) == PlanRule::tensor_overlap_sequence);
  CHECK(refused([](FixedDegrees& f) { f.step.loss_chunks = 8 * 8192 + 1; }) ==
        PlanRule::loss_chunks_tokens);
  CHECK_FALSE(refused([](FixedDegrees& f) {
    f.step.tensor_overlap = TensorOverlap::on;
    f.step.offload_layers = 4;
    f.step.loss_chunks = 8192;
  }));
}

// Liger Kernel, fused_linear_cross_entropy.py: a chunk's logits become their gradient in place, and
// grad_weight and grad_input are made in the forward pass.
TEST_CASE("a loss in chunks holds one chunk of the logits and the gradient of the head") {
  Planner planner = h100_trainer(load_model("llama-3-8b").spec);
  const Load load{1, 8192};
  PlanChoice choice;
  const PlanMemory whole = memory_of(planner, choice, load);
  constexpr Integer kLogits = Integer{8192} * 128256 * 2;
  constexpr Integer kSaved = Integer{8191} * 128256 * 2;  // the last token predicts none
  constexpr Integer kHidden = Integer{8192} * 4096 * 2;
  CHECK(whole.buffers.backward == kHidden + 2 * kLogits);
  choice.step.loss_chunks = 8;
  const PlanMemory chunks = memory_of(planner, choice, load);
  CHECK(whole.embedding_and_loss - chunks.embedding_and_loss == kSaved);
  CHECK(chunks.buffers.backward == kHidden + kLogits / 8 + Integer{128256} * 4096 * 2);
  CHECK(chunks.activations == whole.activations);
}

// grad_weight is zeros_like(weight): 4 bytes where the recipe stores float32 weights. The head of
// recipes in float8 has 16 bits.
TEST_CASE("the gradient of a chunked loss has the type of the weights") {
  const auto backward_bytes = [](Recipe recipe) {
    PlanQuery query;
    query.purpose = Purpose::train;
    query.states.recipe = recipe;
    Planner planner(load_model("llama-3-8b").spec, query,
                    device_rates(find_machine("h100-80gb"), query.purpose, query.dtype));
    PlanChoice choice;
    choice.step.loss_chunks = 8;
    return memory_of(planner, choice, {1, 8192}).buffers.backward;
  };
  constexpr Integer kWeights = Integer{128256} * 4096;
  CHECK(backward_bytes(Recipe::float32) - backward_bytes(Recipe::megatron) == 2 * kWeights);
  for (const Recipe recipe : {Recipe::fp8_transformer_engine, Recipe::mxfp8_transformer_engine,
                              Recipe::fp8_deepseek_v3}) {
    CHECK(backward_bytes(recipe) == backward_bytes(Recipe::megatron));
  }
}

// The loop of Liger's kernel in PyTorch 2 on a CPU, 1,024 tokens of width 256 and 16,384 words in
// float32: torch.profiler counts 26,411,008 bytes at once in 8 chunks and 22,151,180 in 16, of
// which three rows and two of logits are temporaries of the emulated softmax, and 12 its scalars.
TEST_CASE("a loss in chunks takes what PyTorch's allocator counts") {
  PlanQuery query;
  query.purpose = Purpose::train;
  query.dtype = DType::float32;
  query.states.recipe = Recipe::float32;
  Planner planner(gpt(256, 4, 2, 1024, 16384), query,
                  device_rates(find_machine("h100-80gb"), query.purpose, query.dtype));
  constexpr Integer kRow = 16384 * 4;
  PlanChoice choice;
  choice.step.loss_chunks = 8;
  CHECK(memory_of(planner, choice, {1, 1024}).buffers.backward == 26'411'008 - 3 * kRow);
  choice.step.loss_chunks = 16;
  CHECK(memory_of(planner, choice, {1, 1024}).buffers.backward == 22'151'180 - 2 * kRow - 12);
}

TEST_CASE("tensor parallelism divides the vocabulary of a loss in chunks") {
  Planner planner = h100_trainer(load_model("llama-3-8b").spec);
  const Load load{1, 8192};
  const auto dropped = [&](std::int64_t ranks) {
    PlanChoice choice;
    choice.parallel.tensor = ranks;
    const Integer whole = memory_of(planner, choice, load).embedding_and_loss;
    choice.step.loss_chunks = 8;
    return whole - memory_of(planner, choice, load).embedding_and_loss;
  };
  CHECK(dropped(1) == 4 * dropped(4));
}

namespace {

Planner expert_planner(double imbalance) {
  PlanQuery query;
  query.purpose = Purpose::train;
  query.expert_imbalance = imbalance;
  return {load_model("deepseek-v2-lite").spec, query,
          device_rates(find_machine("h100-80gb"), query.purpose, DType::bfloat16)};
}

PlanChoice experts_on(std::int64_t ranks) {
  PlanChoice choice;
  choice.parallel.data = ranks;
  choice.parallel.expert = ranks;
  return choice;
}

/// Bytes that the layers save between the dispatch and the combination of tokens.
Integer saved_on_exchanged_tokens(const PlanChoice& choice, const Load& load) {
  const Graph rank =
      shard(training_graph(load_model("deepseek-v2-lite").spec, AttentionImplementation::fused),
            choice.parallel);
  const Workload workload =
      training(choice.micro_batch, load.seq_len, AttentionImplementation::fused);
  Integer bytes = 0;
  for (const SavedTensor& saved : analyze(rank, fused_kernels()).saved) {
    const bool of_experts = saved.path.find("mlp.experts.") != std::string::npos;
    const bool combines = saved.path.find(".combine") != std::string::npos;
    if (!of_experts || combines) continue;
    bytes += (saved.repeat * saved.bytes).evaluate(values_on(rank, workload, choice.parallel));
  }
  return bytes;
}

}  // namespace

TEST_CASE("the fullest rank of experts decides the time and memory of a step") {
  const Load load{8, 4096};
  const PlanChoice choice = experts_on(8);
  Planner mean = expert_planner(1);
  Planner fullest = expert_planner(1.5);
  const auto exchange = [&](Planner& planner) {
    return planner.communication(choice, load).front().wire_bytes;
  };
  CHECK(exchange(fullest) == doctest::Approx(1.5 * exchange(mean)));
  const auto saved = static_cast<double>(saved_on_exchanged_tokens(choice, load));
  CHECK(saved > 0);
  CHECK(static_cast<double>(memory_of(fullest, choice, load).activations -
                            memory_of(mean, choice, load).activations) ==
        doctest::Approx(saved / 2).epsilon(1e-6));
  const PlanTime even = mean.evaluate(choice, load).time;
  const PlanTime uneven = fullest.evaluate(choice, load).time;
  CHECK(uneven.compute_s > even.compute_s);
  CHECK(uneven.compute_s < 1.5 * even.compute_s);
  // The work of all ranks together is the same.
  CHECK(*uneven.mfu * uneven.iteration_s == doctest::Approx(*even.mfu * even.iteration_s));
}

// DeepSeek-V2-Lite: 64 experts, 6 for each token. Mixtral: 8 and 2.
TEST_CASE("experts are at most as uneven as all tokens on one rank make them") {
  const ModelSpec lite = load_model("deepseek-v2-lite").spec;
  const ModelSpec mixtral = load_model("mixtral-8x7b").spec;
  CHECK(most_expert_imbalance(mixtral, 8) == 4);  // one of a token's two experts is on the rank
  CHECK(most_expert_imbalance(mixtral, 4) == 4);
  CHECK(most_expert_imbalance(mixtral, 2) == 2);
  CHECK(most_expert_imbalance(lite, 8) == 8);
  CHECK(most_expert_imbalance(lite, 64) == doctest::Approx(64.0 / 6));
  CHECK(most_expert_imbalance(load_model("llama-3-8b").spec, 8) == 1);
  Planner all_on_one = expert_planner(8);
  Planner beyond = expert_planner(100);
  const Load load{8, 4096};
  CHECK(beyond.evaluate(experts_on(8), load).time.iteration_s ==
        all_on_one.evaluate(experts_on(8), load).time.iteration_s);
}

TEST_CASE("one rank of experts is never fuller than the mean") {
  Planner mean = expert_planner(1);
  Planner fullest = expert_planner(1.5);
  CHECK(fullest.evaluate({}, {1, 4096}).time.iteration_s ==
        mean.evaluate({}, {1, 4096}).time.iteration_s);
}

TEST_CASE("an uneven batch of requests waits for the fullest rank of experts") {
  PlanQuery query;
  const auto seconds = [&](double imbalance, Load load) {
    query.expert_imbalance = imbalance;
    Planner planner(load_model("deepseek-v2-lite").spec, query,
                    device_rates(find_machine("h100-80gb"), query.purpose, DType::bfloat16));
    return planner.evaluate(experts_on(8), load).time;
  };
  const Load load{4096, 2048};
  CHECK(seconds(1.5, load).iteration_s > seconds(1, load).iteration_s);
  CHECK(seconds(1.5, load).iteration_s < 1.5 * seconds(1, load).iteration_s);
  CHECK(*seconds(1.5, load).ttft_s > *seconds(1, load).ttft_s);
}

}  // namespace headroom::test
