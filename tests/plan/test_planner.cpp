// The planner against the analyses of sharded graphs, and properties of what fits.
#include <algorithm>
#include <functional>

#include "gpt_models.h"
#include "headroom/error.h"
#include "headroom/plan_report.h"
#include "headroom/train_time.h"
#include "training_plans.h"

namespace headroom::test {
namespace {

DeviceRates a100() {
  return device_rates(find_machine("a100-80gb"), Purpose::train, DType::bfloat16);
}

Planner a100_trainer(const ModelSpec& spec,
                     AttentionImplementation attention = AttentionImplementation::eager) {
  PlanQuery query;
  query.purpose = Purpose::train;
  query.attention = attention;
  return {spec, query, a100()};
}

Planner server(const ModelSpec& spec) { return {spec, PlanQuery{}, a100()}; }

PlanChoice choice_of(std::int64_t tensor, std::int64_t pipeline, std::int64_t data,
                     SequenceParallel sequence = SequenceParallel::off) {
  PlanChoice choice;
  choice.parallel.tensor = tensor;
  choice.parallel.pipeline = pipeline;
  choice.parallel.data = data;
  choice.parallel.sequence = sequence;
  return choice;
}

/// Bytes saved by the layers of a stage's graph, and outside the layers.
struct StageSaved {
  Integer layers = 0;
  Integer outside = 0;
};
StageSaved saved_on(const Graph& stage, const Workload& workload, const ParallelPlan& plan,
                    Recompute recompute) {
  StageSaved saved;
  const Bindings values = values_on(stage, workload, plan);
  for (const SavedTensor& one : analyze(stage, fused_kernels()).saved) {
    if (!stays_saved(one, recompute)) continue;
    const bool layer = !one.repeat.constant();
    (layer ? saved.layers : saved.outside) += (one.repeat * one.bytes).evaluate(values);
  }
  return saved;
}

}  // namespace

TEST_CASE("a stage's memory is its sharded graph's times its micro-batches in flight") {
  const ModelSpec spec = gpt(768, 12, 12);
  const Graph whole = training_graph(spec);
  Planner planner = a100_trainer(spec);
  for (const auto sequence : {SequenceParallel::off, SequenceParallel::on}) {
    for (const Recompute recompute : {Recompute::none, Recompute::selective}) {
      PlanChoice choice = choice_of(4, 3, 2, sequence);
      choice.micro_batch = 2;
      choice.recompute.kind = recompute;
      const PlanMemory memory = planner.evaluate(choice, {64, 512}).memory;
      REQUIRE(memory.stage == Stage::first);
      const Graph first = shard(whole, choice.parallel, Stage::first);
      const StageSaved saved = saved_on(first, training(2, 512), choice.parallel, recompute);
      // Of 16 micro-batches the first of 3 stages has 3 in flight.
      CHECK(memory.activations == 3 * saved.layers);
      CHECK(memory.embedding_and_loss == 3 * saved.outside);
      const Integer parameters = count_parameters(first).total.evaluate(first.sizes);
      const Integer states = memory.weights + memory.gradients + memory.optimizer;
      CHECK(states + memory.embedding_states == 18 * parameters);
    }
  }
}

TEST_CASE("without a pipeline the memory equals the sharded graph's") {
  const ModelSpec spec = gpt(768, 12, 12);
  const Graph whole = training_graph(spec);
  Planner planner = a100_trainer(spec);
  const PlanChoice choice = choice_of(2, 1, 1);
  const PlanMemory memory = planner.evaluate(choice, {1, 256}).memory;
  const Graph rank = shard(whole, choice.parallel);
  const StageSaved saved = saved_on(rank, training(1, 256), choice.parallel, Recompute::none);
  CHECK(memory.activations == saved.layers);
  CHECK(memory.embedding_and_loss == saved.outside);
  CHECK(memory.weights == 2 * count_parameters(rank).total.evaluate(rank.sizes));
  CHECK(memory.embedding_states == 0);
  CHECK(memory.kv_cache == 0);
}

TEST_CASE("an encoder's output is saved once for all layers of the decoder") {
  PlanQuery query;
  query.purpose = Purpose::train;
  Planner planner(load_model("t5-small").spec, query, a100());
  PlanChoice choice = choice_of(1, 1, 1);
  choice.recompute = {Recompute::full, 1};
  const PlanMemory memory = planner.evaluate(choice, {1, 512}).memory;
  const Integer states = 512 * 512 * 2;  // one sequence of 512 tokens in 16 bit
  CHECK(memory.activations == (6 + 6) * states);
  std::size_t kept = 0;
  const Graph graph = training_graph(load_model("t5-small").spec);
  for (const SavedTensor& saved : analyze(graph, fused_kernels()).saved) {
    if (saved.path != "decoder.layers.cross_attention.key_value") continue;
    CHECK(saved.repeat == Integer{1});
    CHECK(stays_saved(saved, Recompute::full));
    ++kept;
  }
  CHECK(kept == 1);
}

TEST_CASE("full recompute saves the input of every k-th layer") {
  Planner planner = a100_trainer(gpt(768, 12, 12));
  PlanChoice choice = choice_of(1, 1, 1);
  const Integer input = 2 * 512 * 768 * 2;  // two sequences of 512 tokens in 16 bit
  choice.micro_batch = 2;
  for (const std::int64_t every : {1, 2, 5, 12}) {
    choice.recompute = {Recompute::full, every};
    const PlanMemory memory = planner.evaluate(choice, {2, 512}).memory;
    CHECK(memory.activations == (12 + every - 1) / every * input);
  }
}

TEST_CASE("serving memory has the weights and KV-cache of analyze") {
  const ModelSpec spec = load_model("llama-3-8b").spec;
  Planner planner = server(spec);
  const PlanMemory memory = planner.evaluate(choice_of(1, 1, 1), {4, 8192}).memory;
  CHECK(memory.weights == 2 * Integer{8'030'261'248});
  // 2 · 32 layers · 8 heads · 128 · 2 bytes = 131,072 bytes a token.
  CHECK(memory.kv_cache == Integer{131'072} * 4 * 8192);
  const PlanMemory half = planner.evaluate(choice_of(2, 1, 1), {4, 8192}).memory;
  CHECK(2 * half.kv_cache == memory.kv_cache);
  // With more ranks than key-value heads, each head is stored more than once.
  const PlanMemory split = planner.evaluate(choice_of(16, 1, 1), {4, 8192}).memory;
  CHECK(8 * split.kv_cache == memory.kv_cache);
  const PlanMemory staged = planner.evaluate(choice_of(1, 4, 1), {4, 8192}).memory;
  CHECK(4 * staged.kv_cache == memory.kv_cache);
}

TEST_CASE("an encoder-decoder caches keys and values of its decoder, on one rank or two") {
  const ModelSpec spec = load_model("t5-small").spec;
  Planner planner = server(spec);
  const Integer whole = planner.evaluate(choice_of(1, 1, 1), {4, 512}).memory.kv_cache;
  // 2 · 6 layers · 512 · 2 bytes per token of the decoder and per token of the encoder.
  CHECK(whole == Integer{2} * 6 * 512 * 2 * 4 * (512 + 512));
  CHECK(2 * planner.evaluate(choice_of(2, 1, 1), {4, 512}).memory.kv_cache == whole);
  // Whisper's encoder has 1,500 positions at any decoder length: 2 · 12 · 768 · 2 bytes each.
  const Integer audio = server(load_model("whisper-small").spec)
                            .evaluate(choice_of(1, 1, 1), {4, 64})
                            .memory.kv_cache;
  CHECK(audio == Integer{2} * 12 * 768 * 2 * 4 * (64 + 1500));
}

TEST_CASE("more devices never need more memory each") {
  const ModelSpec spec = gpt(2048, 16, 24);
  Planner planner = a100_trainer(spec);
  const Load load{64, 1024};
  const auto total = [&](const PlanChoice& choice) {
    return planner.evaluate(choice, load).memory.allocated();
  };
  for (const auto sequence : {SequenceParallel::off, SequenceParallel::on}) {
    for (const std::int64_t n : {2, 4, 8}) {
      CHECK(total(choice_of(2 * n, 1, 1, sequence)) <= total(choice_of(n, 1, 1, sequence)));
    }
  }
  for (const std::int64_t n : {1, 2, 4}) {
    CHECK(total(choice_of(1, 2 * n, 1)) <= total(choice_of(1, n, 1)));
    for (const Zero zero : {Zero::none, Zero::optimizer, Zero::gradients}) {
      PlanChoice few = choice_of(1, 1, n);
      PlanChoice many = choice_of(1, 1, 2 * n);
      few.zero = many.zero = zero;
      CHECK(total(many) <= total(few));
    }
  }
}

TEST_CASE("each stage of ZeRO and each stronger recompute needs less memory") {
  Planner planner = a100_trainer(gpt(2048, 16, 24));
  const Load load{64, 1024};
  Integer before = planner.evaluate(choice_of(1, 1, 8), load).memory.total();
  for (const Zero zero : {Zero::optimizer, Zero::gradients, Zero::weights}) {
    PlanChoice choice = choice_of(1, 1, 8);
    choice.zero = zero;
    const Integer now = planner.evaluate(choice, load).memory.total();
    CHECK(now < before);
    before = now;
  }
  Integer kept = planner.evaluate(choice_of(1, 1, 8), load).memory.activations;
  for (const Recomputation recompute :
       {Recomputation{Recompute::selective, 1}, Recomputation{Recompute::full, 1},
        Recomputation{Recompute::full, 4}}) {
    PlanChoice choice = choice_of(1, 1, 8);
    choice.recompute = recompute;
    const Integer now = planner.evaluate(choice, load).memory.activations;
    CHECK(now < kept);
    kept = now;
  }
}

TEST_CASE("a larger batch or context never needs less memory") {
  Planner planner = server(load_model("llama-3-8b").spec);
  for (const std::int64_t seq_len : {100, 4096, 30000}) {
    Integer before = 0;
    for (std::int64_t batch = 1; batch < 300; batch += 7) {
      const Integer now = planner.evaluate(choice_of(1, 1, 1), {batch, seq_len}).memory.total();
      CHECK(now >= before);
      before = now;
    }
  }
  Integer before = 0;
  for (std::int64_t seq_len = 1; seq_len < 9000; seq_len += 61) {
    const Integer now = planner.evaluate(choice_of(1, 1, 1), {8, seq_len}).memory.total();
    CHECK(now >= before);
    before = now;
  }
}

TEST_CASE("the largest batch and context fit, and larger ones do not") {
  const auto check = [](Planner planner, const PlanRequest& request, const Load& load) {
    const auto fits = [&](const Load& tried) {
      return planner.fits(planner.evaluate(resolve(request, tried), tried));
    };
    const std::int64_t batch = largest_batch(planner, request, load).value();
    CHECK(batch > 0);
    CHECK(fits({batch, load.seq_len}));
    CHECK_FALSE(fits({batch + 1, load.seq_len}));
    const std::int64_t context = largest_context(planner, request, load).value();
    CHECK(context > 0);
    CHECK(fits({load.batch_size, context}));
    if (learned_positions(planner.spec()) == context) return;
    CHECK_FALSE(fits({load.batch_size, context + 1}));
  };
  const PlanRequest one_device;
  check(server(load_model("llama-3-8b").spec), one_device, {4, 8192});
  check(server(load_model("gpt2-xl").spec), one_device, {4, 1024});
  check(a100_trainer(gpt(2048, 16, 24)), one_device, {1, 1024});
  PlanRequest sharded;
  sharded.choice = choice_of(4, 1, 1);
  check(server(load_model("llama-3-70b").spec), sharded, {4, 8192});
  check(a100_trainer(gpt(2048, 16, 24)), sharded, {1, 1024});
}

TEST_CASE("the largest context ends at the positions that a model has learned") {
  // n_positions of openai-community/gpt2; facebook/opt-125m's table has 2 rows before position 0
  // (max_position_embeddings 2048, modeling_opt.py), and its config counts without them.
  const std::pair<const char*, std::int64_t> learned[] = {{"gpt2", 1024}, {"opt-125m", 2048}};
  for (const auto& model : learned) {
    CAPTURE(model.first);
    Planner planner = server(load_model(model.first).spec);
    CHECK(learned_positions(planner.spec()) == model.second);
    CHECK(largest_context(planner, {}, {1, 64}) == model.second);
  }
  Planner rotary = server(load_model("llama-3-8b").spec);
  CHECK_FALSE(learned_positions(rotary.spec()).has_value());
  CHECK(largest_context(rotary, {}, {1, 64}).value() > 8192);
}

TEST_CASE("gradient accumulation fits any batch") {
  Planner planner = a100_trainer(gpt(2048, 16, 24));
  PlanRequest request;
  request.micro_batch = 1;
  CHECK_FALSE(largest_batch(planner, request, {8, 1024}).has_value());
  request.micro_batch = 100'000;
  CHECK(largest_batch(planner, request, {8, 1024}) == 0);
}

TEST_CASE("the largest satisfying number is found for every threshold") {
  for (std::int64_t limit = 1; limit <= 40; ++limit) {
    for (std::int64_t threshold = 0; threshold <= limit; ++threshold) {
      CHECK(largest_satisfying([&](std::int64_t n) { return n <= threshold; }, limit) == threshold);
    }
  }
}

// arXiv 2305.14314, Figure 6: LLaMA 7B needs 5,048 MB for 4-bit weights, adapters and their states,
// besides activations.
TEST_CASE("QLoRA of a 7B model needs about five gigabytes besides activations") {
  PlanQuery query;
  query.purpose = Purpose::train;
  query.states = {Recipe::mixed, Optimizer::adam, AdapterKind::none};
  query.adapter = {AdapterKind::qlora, 64, AdapterTargets::all};
  Planner planner(load_model("llama-7b").spec, query, a100());
  const PlanMemory memory = planner.evaluate(choice_of(1, 1, 1), {1, 512}).memory;
  const double weights = static_cast<double>(memory.weights) / 1e6;
  CHECK(weights > 3'500);
  CHECK(weights < 5'048);
}

// arXiv 2305.14314, abstract: 65 billion parameters on one GPU of 48 GB, here 48·2³⁰ bytes. In 16
// bit the weights alone exceed it.
TEST_CASE("QLoRA trains LLaMA 65B on 48 GB, LoRA does not") {
  PlanQuery query;
  query.purpose = Purpose::train;
  query.states = {Recipe::mixed, Optimizer::adam, AdapterKind::none};
  DeviceRates rates = a100();
  rates.memory_bytes = Integer{48} << 30U;
  PlanChoice choice = choice_of(1, 1, 1);
  choice.recompute.kind = Recompute::full;
  const auto fits = [&](AdapterKind kind) {
    query.adapter = {kind, 64, AdapterTargets::all};
    Planner planner(load_model("llama-65b").spec, query, rates);
    return planner.fits(planner.evaluate(choice, {1, 512}));
  };
  CHECK(fits(AdapterKind::qlora));
  CHECK_FALSE(fits(AdapterKind::lora));
}

TEST_CASE("communication of a step matches the papers") {
  const ModelSpec spec = gpt(1024, 16, 24);
  Planner planner = a100_trainer(spec);
  PlanChoice choice = choice_of(1, 1, 4);
  const double gradients =
      4.0 * static_cast<double>(
                count_parameters(training_graph(spec)).total.evaluate(training_graph(spec).sizes));
  // arXiv 1910.02054, section 7: an all-reduce sends 2Ψ per rank, ZeRO 1 as much in two halves.
  auto rows = planner.communication(choice, {8, 256});
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].wire_bytes == doctest::Approx(2 * 0.75 * gradients));
  choice.zero = Zero::optimizer;
  rows = planner.communication(choice, {8, 256});
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].wire_bytes == doctest::Approx(0.75 * gradients));
  CHECK(rows[1].wire_bytes == doctest::Approx(0.75 * gradients / 2).epsilon(1e-6));
  // Megatron-LM, arXiv 1909.08053: each layer all-reduces b·s·d in 16 bit twice per direction.
  choice = choice_of(4, 1, 1);
  rows = planner.communication(choice, {1, 256});
  const double message = 2.0 * 256 * 1024;
  const double layers = 24 * 4 * 1.5 * message;
  const double ends = 1.5 * (2 * message + 3 * 4 * 255);  // embedding, logits, loss
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].wire_bytes == doctest::Approx(layers + ends));
}

TEST_CASE("a pipeline's bubble is (p − 1)/(m·v) of its work") {
  const ModelSpec spec = gpt(1024, 16, 24);
  Planner planner = a100_trainer(spec);
  const auto bubble_s = [&](std::int64_t interleave) {
    PlanChoice choice = choice_of(1, 4, 1);
    choice.parallel.interleave = interleave;
    const PlanTime time = planner.evaluate(choice, {16, 256}).time;
    return time.bubble_s;
  };
  CHECK(bubble_s(1) == doctest::Approx(2 * bubble_s(2)));
  CHECK(bubble_s(1) == doctest::Approx(3 * bubble_s(3)));
}

// Meta's model card: 30.84 million H100 hours for 15.6 trillion tokens; arXiv 2407.21783, section
// 3.3.4: more than 90 % effective training time.
TEST_CASE("the training of Llama 3.1 405B takes the published device-hours within 10 %") {
  PlanQuestion question;
  question.model = load_model("llama-3.1-405b");
  question.query.purpose = Purpose::train;
  question.query.attention = AttentionImplementation::fused;
  question.rates = device_rates(find_machine("h100-80gb"), Purpose::train, DType::bfloat16);
  question.devices = 16384;
  question.load = {2048, 8192};
  FixedDegrees fixed;
  fixed.tensor = 8;
  fixed.sequence = SequenceParallel::on;
  fixed.pipeline = 16;
  fixed.interleave = 8;
  fixed.zero = Zero::optimizer;
  fixed.micro_batch = 1;
  fixed.step.overlap = DataOverlap::on;
  TrainingBudget budget;
  budget.tokens = 15.6e12;
  budget.availability = 0.9;
  budget.power_w = 700;
  const TrainTimeReport report = make_train_time_report(question, fixed, budget);
  CHECK(report.device_hours == doctest::Approx(30.84e6).epsilon(0.1));
  CHECK(report.energy_j == doctest::Approx(report.device_hours * 3600 * 700));
  CHECK(report.eight_nd / report.six_nd == doctest::Approx(4.0 / 3));
  CHECK(report.six_nd_share < *report.plan.figures.time.mfu);
}

TEST_CASE("a model without a loss cannot be trained") {
  PlanQuery query;
  query.purpose = Purpose::train;
  CHECK_THROWS_AS(Planner(load_model("bert-base-uncased").spec, query, a100()), Error);
}

TEST_CASE("an interleaved pipeline requires a multiple of its stages in micro-batches") {
  Planner planner = a100_trainer(gpt(1024, 16, 24));
  PlanChoice choice = choice_of(1, 4, 1);
  choice.parallel.interleave = 2;
  const ShardingLimits limits = planner.limits(256);
  CHECK(broken_rule(choice, {6, 256}, limits) == PlanRule::interleave_micro_batches);
  CHECK_FALSE(broken_rule(choice, {8, 256}, limits));
}

TEST_CASE("an illegal plan throws the rule and its values, worded in the library's own fields") {
  const ShardingLimits limits = a100_trainer(gpt(768, 12, 12)).limits(256);
  const PlanChoice choice = choice_of(5, 1, 1);
  try {
    require_legal(choice, {8, 256}, limits);
    FAIL("tensor 5 is legal");
  } catch (const IllegalPlan& error) {
    CHECK(error.violation().rule == PlanRule::tensor_heads);
    CHECK(error.violation().choice == choice);
    CHECK(error.violation().load.batch_size == 8);
    CHECK(error.violation().limits.heads == 12);
    CHECK(error.message() == "illegal plan (tp 5): tensor must divide num_attention_heads");
  }
  CHECK_NOTHROW(require_legal(choice_of(4, 1, 1), {8, 256}, limits));
}

TEST_CASE("loads and intervals below 1 break rules") {
  const ShardingLimits limits = a100_trainer(gpt(768, 12, 12)).limits(256);
  PlanChoice choice;
  CHECK(broken_rule(choice, {0, 256}, limits) == PlanRule::batch_size_positive);
  CHECK(broken_rule(choice, {8, 0}, limits) == PlanRule::seq_len_positive);
  choice.micro_batch = 0;
  CHECK(broken_rule(choice, {8, 256}, limits) == PlanRule::micro_batch_positive);
  choice = {};
  choice.recompute = {Recompute::full, 0};
  CHECK(broken_rule(choice, {8, 256}, limits) == PlanRule::recompute_interval_positive);
}

// T5's cache of cross-attention has a key and a value of 6 layers for each token of the encoder, as
// that of self-attention for each of the decoder: 2 · 6 · 512 values.
TEST_CASE("plans state the tokens that an encoder reads beside theirs") {
  const ModelSpec spec = load_model("t5-small").spec;
  CHECK(encoder_tokens(spec, 5000) == 5000);
  CHECK(encoder_tokens(load_model("whisper-tiny").spec, 100) == 1500);
  CHECK(encoder_tokens(load_model("flux.1-dev").spec, 4096) == 512);
  CHECK_FALSE(encoder_tokens(load_model("gpt2").spec, 100));
  const PlanQuery query;
  Planner planner(spec, query, device_rates(find_machine("h100-80gb"), query.purpose, query.dtype));
  CHECK(memory_of(planner, {}, {3, 5000}).kv_cache == Integer{3} * 2 * 6 * 512 * 2 * (5000 + 5000));
}

}  // namespace headroom::test
