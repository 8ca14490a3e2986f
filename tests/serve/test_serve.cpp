// The simulation of continuous batching against the planner's passes, queueing theory, and
// identities that hold for every schedule.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "headroom/predict.h"
#include "headroom/serve.h"
#include "support/data.h"

namespace headroom::test {
namespace {

ServeQuestion question_for(const std::string& model, const std::string& machine,
                           const ServeTraffic& traffic) {
  ServeQuestion question;
  question.plan.model = load_model(model);
  question.plan.rates = device_rates(find_machine(machine), Purpose::serve, DType::bfloat16);
  question.traffic = traffic;
  return question;
}

ServeTraffic poisson(double rate, std::int64_t requests, std::int64_t input, std::int64_t output) {
  return {PoissonArrivals{rate}, input, output, requests, 1};
}

ServeTraffic users(std::int64_t count, std::int64_t requests, std::int64_t input,
                   std::int64_t output) {
  return {UserArrivals{count}, input, output, requests, 1};
}

PlanChoice degrees(std::int64_t tensor, std::int64_t pipeline = 1, std::int64_t data = 1) {
  PlanChoice choice;
  choice.parallel.tensor = tensor;
  choice.parallel.pipeline = pipeline;
  choice.parallel.data = data;
  return choice;
}

Planner planner_of(const ServeQuestion& question) {
  return {question.plan.model.spec, question.plan.query, question.plan.rates};
}

}  // namespace

TEST_CASE("a lone request takes one prefill pass and its decode steps") {
  const ServeQuestion question = question_for("llama-3-8b", "h100-80gb", users(1, 1, 2000, 300));
  Planner planner = planner_of(question);
  for (const std::int64_t tensor : {1, 4}) {
    const ServeFigures figures = simulate(question, degrees(tensor)).figures;
    const PlanTime prompt = planner.evaluate(degrees(tensor), {1, 2000}).time;
    // A prefill pass normalises all rows of the last hidden states, a step only the sampled ones.
    CHECK(figures.ttft.mean == doctest::Approx(*prompt.ttft_s).epsilon(1e-3));
    double decode_s = 0;
    for (std::int64_t context = 2001; context < 2300; ++context) {
      decode_s += planner.evaluate(degrees(tensor), {1, context}).time.iteration_s;
    }
    CHECK(figures.end_to_end.mean - figures.ttft.mean == doctest::Approx(decode_s).epsilon(1e-3));
    CHECK(figures.tpot->mean == doctest::Approx(decode_s / 299).epsilon(1e-3));
    CHECK(figures.steps == 300);
  }
}

TEST_CASE("a batch of equal requests decodes as fast as the planner's batch") {
  // All prompts fit into one step, so that the 64 sequences stay together.
  ServeQuestion question = question_for("llama-3-8b", "h100-80gb", users(64, 64, 16, 100));
  Planner planner = planner_of(question);
  double decode_s = 0;
  for (std::int64_t context = 17; context < 116; ++context) {
    decode_s += planner.evaluate(degrees(1), {64, context}).time.iteration_s;
  }
  const ServeFigures figures = simulate(question, degrees(1)).figures;
  CHECK(figures.steps == 100);
  CHECK(figures.tpot->p50 * 99 == doctest::Approx(decode_s).epsilon(0.01));
}

TEST_CASE("a chunked prompt does the attention of a whole one") {
  ServeQuestion question = question_for("llama-3-8b", "h100-80gb", users(1, 1, 8192, 1));
  question.limits.batched_tokens = 512;
  Planner planner = planner_of(question);
  double chunks_s = 0;
  for (std::int64_t past = 0; past < 8192; past += 512) {
    const PassTime time = planner.prefill_time(degrees(1), 512, past);
    chunks_s += time.weights_s + time.sequences_s + time.communication_s;
  }
  chunks_s += planner.decode_time(degrees(1), 1, 0).head_s;
  const ServeFigures figures = simulate(question, degrees(1)).figures;
  CHECK(figures.steps == 16);
  CHECK(!figures.tpot);
  CHECK(figures.ttft.mean == doctest::Approx(chunks_s).epsilon(1e-9));
}

TEST_CASE("single sequences wait as the formula of Pollaczek and Khinchine says") {
  // One sequence at a time and one token each: a queue with random arrivals and constant service
  // time s, whose mean wait is ρ·s / (2·(1 − ρ)).
  ServeQuestion question = question_for("gpt2", "a100-80gb", users(1, 1, 100, 1));
  question.limits.max_sequences = 1;
  const double service_s = simulate(question, degrees(1)).figures.ttft.mean;
  for (const double load : {0.3, 0.6, 0.8}) {
    question.traffic = poisson(load / service_s, 400'000, 100, 1);
    const ServeFigures figures = simulate(question, degrees(1)).figures;
    const double wait_s = load * service_s / (2 * (1 - load));
    CHECK(figures.ttft.mean - service_s == doctest::Approx(wait_s).epsilon(0.03));
    CHECK(figures.busy == doctest::Approx(load).epsilon(0.01));
  }
}

TEST_CASE("requests in the system are arrivals times their stay") {
  // Little's law; over a whole simulation it holds exactly.
  for (const PlanChoice& choice : {degrees(1), degrees(2, 2), degrees(1, 1, 3)}) {
    const ServeQuestion question =
        question_for("llama-3-8b", "h100-80gb", poisson(20, 500, 700, 90));
    const ServeFigures figures = simulate(question, choice).figures;
    const double replicas = static_cast<double>(choice.parallel.data);
    const double inside = (figures.mean_running + figures.mean_waiting) * replicas;
    CHECK(inside * figures.duration_s ==
          doctest::Approx(figures.end_to_end.mean * 500).epsilon(1e-9));
  }
}

TEST_CASE("a small cache takes sequences back, and all are answered") {
  ServeQuestion question = question_for("llama-3-8b", "rtx-4090", users(64, 128, 1000, 1000));
  question.plan.query.weights = WeightType::int8;
  question.plan.rates.memory_bytes = Integer{12} << 30U;
  const ServedPlan by_prompt = simulate(question, degrees(1));
  CHECK(by_prompt.figures.preemptions > 0);
  CHECK(by_prompt.figures.peak_cache <= 1);
  CHECK(by_prompt.figures.peak_cache > 0.95);
  CHECK(by_prompt.figures.requests == 128);
  question.limits.admission = Admission::request;
  const ServedPlan whole = simulate(question, degrees(1));
  CHECK(whole.figures.preemptions == 0);
  CHECK(whole.figures.peak_running == whole.cache.requests);
}

TEST_CASE("one user is answered one request at a time") {
  const ServeQuestion question = question_for("llama-3-8b", "h100-80gb", users(1, 20, 500, 50));
  const ServeFigures figures = simulate(question, degrees(1)).figures;
  CHECK(figures.requests_per_s * figures.end_to_end.mean == doctest::Approx(1));
  CHECK(figures.peak_running == 1);
  CHECK(figures.busy == doctest::Approx(1));
}

TEST_CASE("a shared prefix is computed once and held once") {
  ServeQuestion question = question_for("llama-3-8b", "h100-80gb", users(1, 1, 4096, 1));
  question.limits.batched_tokens = 8192;
  question.limits.prefix_hit = 0.75;
  Planner planner = planner_of(question);
  const PassTime rest = planner.prefill_time(degrees(1), 1024, 3072);
  const ServedPlan shared = simulate(question, degrees(1));
  const double rest_s = rest.weights_s + rest.sequences_s + rest.communication_s +
                        planner.decode_time(degrees(1), 1, 0).head_s;
  CHECK(shared.figures.ttft.mean == doctest::Approx(rest_s).epsilon(1e-9));
  question.limits.prefix_hit = 0;
  CHECK(simulate(question, degrees(1)).cache.requests < shared.cache.requests / 3);
}

TEST_CASE("stages of a pipeline work on several batches at once") {
  const ServeQuestion question = question_for("llama-3-8b", "h100-80gb", users(128, 512, 200, 200));
  const double one = simulate(question, degrees(1, 1)).figures.output_tokens_per_s;
  const double two = simulate(question, degrees(1, 2)).figures.output_tokens_per_s;
  CHECK(two > 1.2 * one);
  CHECK(two < 2.1 * one);
  // Alone, a request passes the stages one after the other.
  const ServeQuestion alone = question_for("llama-3-8b", "h100-80gb", users(1, 4, 200, 200));
  const double whole = simulate(alone, degrees(1, 1)).figures.end_to_end.mean;
  CHECK(simulate(alone, degrees(1, 2)).figures.end_to_end.mean >= whole);
}

namespace {

/// With proposals for each sequence and step.
ServeQuestion speculating(ServeQuestion question, Drafter drafter, std::int64_t tokens,
                          double acceptance) {
  question.speculation = Speculation{std::move(drafter), tokens, acceptance};
  return question;
}

}  // namespace

// 1 + a + a² + … + a^k tokens are expected of a step (arXiv 2211.17192, equation 1). The last step
// of an answer proposes fewer.
TEST_CASE("a step of speculative decoding gives the tokens of a geometric series") {
  const ServeQuestion plain = question_for("llama-3-8b", "h100-80gb", users(4, 100, 100, 600));
  CHECK(simulate(plain, degrees(1)).figures.tokens_per_step == 1);
  for (const double acceptance : {0.0, 0.6, 0.9, 1.0}) {
    const ServeQuestion question = speculating(plain, NgramLookup{}, 4, acceptance);
    double expected = 0;
    for (int i = 0; i <= 4; ++i) expected += std::pow(acceptance, i);
    CHECK(simulate(question, degrees(1)).figures.tokens_per_step ==
          doctest::Approx(expected).epsilon(0.02));
  }
}

TEST_CASE("perfect proposals at no cost divide the time of a token") {
  const ServeQuestion plain = question_for("llama-3-8b", "h100-80gb", users(1, 1, 2000, 401));
  const ServeFigures slow = simulate(plain, degrees(1)).figures;
  const ServeFigures fast = simulate(speculating(plain, NgramLookup{}, 3, 1), degrees(1)).figures;
  // One prefill, and 400 tokens in steps of four: weights are read once for all of them.
  CHECK(fast.steps == 101);
  CHECK(fast.tpot->mean == doctest::Approx(slow.tpot->mean / 4).epsilon(0.03));
  const ServeFigures wasted = simulate(speculating(plain, NgramLookup{}, 3, 0), degrees(1)).figures;
  CHECK(wasted.steps == slow.steps);
  CHECK(wasted.tpot->mean >= slow.tpot->mean);
  CHECK(wasted.ttft.mean == slow.ttft.mean);
}

TEST_CASE("a draft model adds a decode step of its own for each proposal") {
  const ServeQuestion plain = question_for("llama-3-8b", "h100-80gb", users(1, 1, 2000, 401));
  const Model draft = load_model("llama-3.2-1b");
  const ServedPlan free = simulate(speculating(plain, NgramLookup{}, 3, 1), degrees(1));
  const ServedPlan drafted = simulate(speculating(plain, DraftModel{draft.spec}, 3, 1), degrees(1));
  Planner planner(draft.spec, plain.plan.query, plain.plan.rates);
  const double step_s = planner.evaluate({}, {1, 2200}).time.iteration_s;
  CHECK(drafted.figures.tpot->mean - free.figures.tpot->mean ==
        doctest::Approx(3 * step_s / 4).epsilon(0.01));
  // Llama 3.2 1B: 1,235,814,400 parameters in bfloat16, and 16 layers of the cache beside 32 layers
  // with heads twice as wide.
  const double left = static_cast<double>(free.cache.bytes) - 2.0 * 1'235'814'400;
  CHECK(static_cast<double>(drafted.cache.bytes) == doctest::Approx(left / 1.25).epsilon(1e-3));
}

// A layer of Llama 3 8B has 218,112,000 parameters, its head 525,336,576 and the final norm 4,096;
// the cache of 2,200 tokens has 2 · 1,024 values each. All are bfloat16.
TEST_CASE("a multi-token-prediction module adds a layer and the head for each proposal") {
  const ServeQuestion plain = question_for("llama-3-8b", "h100-80gb", users(1, 1, 2000, 401));
  const ServedPlan free = simulate(speculating(plain, NgramLookup{}, 3, 1), degrees(1));
  const ServedPlan drafted = simulate(speculating(plain, PredictionModule{}, 3, 1), degrees(1));
  const double bytes = 2.0 * (218'112'000 + 525'336'576 + 4'096 + 2'200 * 2 * 1'024);
  const DeviceRates& rates = plain.plan.rates;
  const double step_s = bytes / (rates.memory_bytes_per_s * rates.efficiency.memory);
  CHECK(drafted.figures.tpot->mean - free.figures.tpot->mean ==
        doctest::Approx(3 * step_s / 4).epsilon(0.02));
  const double left = static_cast<double>(free.cache.bytes) - 2.0 * 218'112'000;
  CHECK(static_cast<double>(drafted.cache.bytes) == doctest::Approx(left * 32 / 33).epsilon(1e-3));
}

TEST_CASE("speculation answers every request, in a small cache and a pipeline too") {
  ServeQuestion question = question_for("llama-3-8b", "h100-80gb", poisson(20, 200, 1000, 200));
  question = speculating(question, PredictionModule{}, 2, 0.7);
  question.plan.rates.memory_bytes = Integer{20} << 30U;
  const ServeFigures one = simulate(question, degrees(1)).figures;
  CHECK(one.requests == 200);
  CHECK(one.tokens_per_step > 1.5);
  CHECK(simulate(question, degrees(1, 2)).figures.requests == 200);
  question.limits.admission = Admission::request;
  CHECK(simulate(question, degrees(1)).figures.preemptions == 0);
}

TEST_CASE("a draft model without tokens to generate is refused") {
  const ServeQuestion plain = question_for("gpt2", "h100-80gb", users(1, 1, 100, 10));
  const DraftModel encoder{load_model("bert-base").spec};
  CHECK_THROWS_AS((void)simulate(speculating(plain, encoder, 3, 0.5), degrees(1)), Error);
}

// Llama 3 8B caches 2 · 32 · 1,024 values of a token in bfloat16; 2,000 tokens are whole blocks.
TEST_CASE("a prompt prefilled elsewhere brings its cache over the network") {
  ServeQuestion question = question_for("llama-3-8b", "h100-80gb", users(1, 1, 2000, 300));
  const ServeFigures alone = simulate(question, degrees(1)).figures;
  question.limits.prefill_replicas = 1;
  const ServeFigures apart = simulate(question, degrees(1, 1, 2)).figures;
  const DeviceRates& rates = question.plan.rates;
  const double bytes = 2.0 * 32 * 1'024 * 2 * 2'000;
  const double transfer_s = bytes / (rates.link.intra_node_bytes_per_s * rates.efficiency.network) +
                            rates.collective_latency_s;
  CHECK(apart.mean_transfer_s == doctest::Approx(transfer_s).epsilon(1e-9));
  CHECK(apart.ttft.mean == doctest::Approx(alone.ttft.mean).epsilon(1e-12));
  CHECK(apart.end_to_end.mean == doctest::Approx(alone.end_to_end.mean + transfer_s).epsilon(1e-9));
}

TEST_CASE("replicas that only prefill leave decode steps alone") {
  ServeQuestion question = question_for("llama-3-8b", "h100-80gb", poisson(8, 600, 4000, 100));
  Planner planner = planner_of(question);
  const ServeFigures mixed = simulate(question, degrees(1, 1, 2)).figures;
  question.limits.prefill_replicas = 1;
  const ServeFigures apart = simulate(question, degrees(1, 1, 2)).figures;
  CHECK(apart.requests == 600);
  CHECK(apart.tpot->p99 < mixed.tpot->p99);
  // No prompt interrupts: a token takes at most a step of all running sequences, and its wait for
  // the step before.
  const double step_s =
      planner.evaluate({}, {apart.peak_running, 4100}).time.iteration_s + apart.mean_transfer_s;
  CHECK(apart.tpot->p99 <= 1.05 * step_s);
}

// Options as the engines document them: docs.vllm.ai, cli/serve; docs.sglang.io,
// advanced_features/server_arguments; TensorRT-LLM, commands/trtllm-serve.
TEST_CASE("the command of an engine has the scheduler's limits") {
  ServeQuestion question = question_for("llama-3-70b", "h100-80gb", users(100, 100, 2000, 300));
  question.plan.load.seq_len = 2300;
  question.limits.max_sequences = 64;
  question.limits.batched_tokens = 4096;
  const auto command = [&](Engine engine) {
    return serving_command(engine, question, degrees(4, 1, 2));
  };
  CHECK(command(Engine::vllm).text ==
        "vllm serve meta-llama/Meta-Llama-3-70B --dtype bfloat16 --tensor-parallel-size 4 "
        "--data-parallel-size 2 --max-model-len 2300 --max-num-seqs 64 --max-num-batched-tokens "
        "4096");
  CHECK(command(Engine::sglang)
            .text.ends_with(" --max-running-requests 128 --chunked-prefill-size 4096"));
  CHECK(command(Engine::tensorrt_llm).text.ends_with(" --max_batch_size 64 --max_num_tokens 4096"));
  CHECK(command(Engine::vllm).notes.empty());
  question.limits.prefill_replicas = 1;
  CHECK(command(Engine::vllm).notes ==
        std::vector<std::string>{"replicas that prefill are servers of their own"});
  CHECK_THROWS_AS((void)command(Engine::megatron), Error);
}

TEST_CASE("latencies of users leave out their first requests, which arrive in one burst") {
  const auto served = [](std::int64_t requests) {
    const ServeTraffic traffic = users(100, requests, 1000, 200);
    return simulate(question_for("llama-3-8b", "h100-80gb", traffic), degrees(1)).figures;
  };
  const ServeFigures few = served(1000);
  CHECK(few.warm_up_requests == 100);
  CHECK(few.ttft.p99 == doctest::Approx(served(20000).ttft.p99).epsilon(0.2));
  // All at once, and nobody comes back.
  const ServeFigures burst = served(100);
  CHECK(burst.warm_up_requests == 0);
  CHECK(burst.ttft.p99 > 2 * few.ttft.p99);
}

TEST_CASE("users come back to a replica that prefills") {
  ServeQuestion question = question_for("llama-3-8b", "h100-80gb", users(16, 160, 1000, 50));
  question.limits.prefill_replicas = 1;
  CHECK(simulate(question, degrees(1, 1, 3)).figures.requests == 160);
  CHECK_THROWS_AS((void)simulate(question, degrees(1)), Error);
  question.limits.prefill_replicas = 3;
  CHECK_THROWS_AS((void)simulate(question, degrees(1, 1, 3)), Error);
}

// Long prompts are bound by arithmetic, decode steps of few sequences by memory.
TEST_CASE("a report has the range of its plan's steps") {
  const auto range_of = [](std::int64_t input, std::int64_t output) {
    const ServeQuestion question =
        question_for("llama-3-8b", "h100-80gb", users(4, 8, input, output));
    return simulate(question, degrees(1)).time_range;
  };
  const ServeQuestion question = question_for("llama-3-8b", "h100-80gb", users(4, 8, 16, 512));
  const TimeRanges ranges = question.plan.rates.time_range;
  const PlanTime step = planner_of(question).evaluate(degrees(1), {4, 528}).time;
  CHECK(step.high_s / step.iteration_s == doctest::Approx(1 + ranges.memory).epsilon(0.01));
  CHECK(range_of(16, 512) == doctest::Approx(ranges.memory).epsilon(0.02));
  CHECK(range_of(8000, 1) > 0.7 * ranges.compute + 0.3 * ranges.memory);
  CHECK(range_of(8000, 1) < ranges.compute);
}

// `analyze` sums the ranges of single operators.
TEST_CASE("an answer of one token has the range of its prefill") {
  const ServeQuestion question = question_for("llama-3-8b", "h100-80gb", users(1, 1, 2000, 1));
  Workload prompt;
  prompt.seq_len = 2000;
  prompt.dtype = prompt.kv_dtype = DType::bfloat16;
  prompt.attention = AttentionImplementation::fused;
  const TimePrediction time =
      predict_time(question.plan.model.spec, prompt, find_machine("h100-80gb"), {});
  CHECK(1 + simulate(question, degrees(1)).time_range ==
        doctest::Approx(time.high_s / time.total_s).epsilon(0.01));
}

TEST_CASE("idle time does not change the range of the steps") {
  const auto range_with = [](double last_s) {
    TraceArrivals trace;
    trace.requests.assign(8, {0, 1000, 50});
    trace.requests.push_back({last_s, 1000, 50});
    ServeTraffic traffic;
    traffic.arrivals = trace;
    return simulate(question_for("llama-3-8b", "h100-80gb", traffic), degrees(1)).time_range;
  };
  CHECK(range_with(100) == doctest::Approx(range_with(100'000)));
}

TEST_CASE("steps with less arithmetic have a range nearer to that of memory") {
  const ServeQuestion plain = question_for("llama-3-8b", "h100-80gb", users(1, 4, 8000, 8));
  const TimeRanges ranges = plain.plan.rates.time_range;
  const double whole = simulate(plain, degrees(1)).time_range;
  ServeQuestion cached = plain;
  cached.limits.prefix_hit = 0.9;
  const double hit = simulate(cached, degrees(1)).time_range;
  CHECK(ranges.memory < hit);
  CHECK(hit < whole - 0.1);
  ServeQuestion apart = question_for("llama-3-8b", "h100-80gb", poisson(1, 32, 8000, 8));
  apart.limits.prefill_replicas = 1;
  CHECK(simulate(apart, degrees(1, 1, 2)).time_range == doctest::Approx(whole).epsilon(0.05));
}

TEST_CASE("a trace is simulated as it is written") {
  const std::string text =
      "{\"arrival_s\": 2, \"input_tokens\": 10, \"output_tokens\": 3}\n\n"
      "{\"arrival_s\": 1, \"input_tokens\": 20, \"output_tokens\": 4}\n";
  const std::vector<ServeRequest> requests = parse_trace(text, "trace.jsonl").requests;
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].input_tokens == 20);
  ServeTraffic traffic;
  traffic.arrivals = TraceArrivals{requests};
  const ServeFigures figures =
      simulate(question_for("gpt2", "a100-80gb", traffic), degrees(1)).figures;
  CHECK(figures.requests == 2);
  CHECK(figures.output_tokens_per_s * figures.duration_s == doctest::Approx(7));
  CHECK(figures.arrivals_per_s == doctest::Approx(1));
}

TEST_CASE("a trace of Mooncake's is in milliseconds, and its shared prefixes are noted") {
  const std::string line =
      "{\"timestamp\": 27482, \"input_length\": 6955, \"output_length\": 52, \"hash_ids\": [46, "
      "47]}\n";
  const TraceArrivals trace = parse_trace(line, "trace.jsonl");
  REQUIRE(trace.requests.size() == 1);
  CHECK(trace.requests[0].arrival_s == doctest::Approx(27.482));
  CHECK(trace.requests[0].input_tokens == 6955);
  CHECK(trace.requests[0].output_tokens == 52);
  CHECK(trace.names_prefixes);
  const std::string plain = "{\"timestamp\": 1, \"input_length\": 2, \"output_length\": 3}";
  CHECK_FALSE(parse_trace(plain, "trace.jsonl").names_prefixes);
  ServeTraffic traffic;
  traffic.arrivals = trace;
  const ServeQuestion question = question_for("llama-3-8b", "h100-80gb", traffic);
  const ServeReport report = make_serve_report(question, PlanRequest{degrees(1), 1});
  CHECK(std::ranges::any_of(report.notes, [](const std::string& note) {
    return note.find("hash_ids") != std::string::npos;
  }));
}

TEST_CASE("a bad trace is refused with its line") {
  const auto message = [](const std::string& text) {
    try {
      (void)parse_trace(text, "t.jsonl");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const std::string good = "{\"arrival_s\": 0, \"input_tokens\": 1, \"output_tokens\": 1}\n";
  CHECK(message("") == "t.jsonl: the trace has no request");
  CHECK(message(good + "{\"arrival_s\": 0, \"input_tokens\": 1}") ==
        "t.jsonl:2: \"output_tokens\" is missing");
  CHECK(message("{\"arrival_s\": -1, \"input_tokens\": 1, \"output_tokens\": 1}") ==
        "t.jsonl:1: \"arrival_s\" is not a number of at least 0");
  CHECK(message("{\"arrival_s\": 0, \"input_tokens\": 0, \"output_tokens\": 1}") ==
        "t.jsonl:1: \"input_tokens\" is not a count from 1 to 2^30");
  CHECK(message("{\"timestamp\": 1, \"input_length\": 2, \"output_tokens\": 3}") ==
        "t.jsonl:1: unknown key \"output_tokens\"");
  CHECK(message(good + good + "[]") == "t.jsonl:3: the line is not an object");
}

TEST_CASE("models without tokens to generate and requests without room are refused") {
  CHECK_THROWS_AS(
      (void)simulate(question_for("bert-base-uncased", "t4", users(1, 1, 10, 1)), degrees(1)),
      Error);
  CHECK_THROWS_AS((void)simulate(question_for("llama-3-8b", "t4", users(1, 1, 10, 1)), degrees(1)),
                  Error);
  CHECK_THROWS_AS((void)simulate(question_for("gpt2", "t4", users(1, 1, 10, 1)), degrees(5)),
                  IllegalPlan);
}

namespace {

/// True if the plan is legal, has room for the requests, and meets the targets.
bool meets(const ServeQuestion& question, const PlanChoice& choice) {
  try {
    return simulate(question, choice).verdict.met();
  } catch (const Error&) {
    return false;
  }
}

/// True if any split of `devices` into degrees meets the targets.
bool any_plan_meets(const ServeQuestion& question, std::int64_t devices) {
  for (std::int64_t tensor = 1; tensor <= devices; ++tensor) {
    for (std::int64_t pipeline = 1; tensor * pipeline <= devices; ++pipeline) {
      if (devices % (tensor * pipeline) != 0) continue;
      PlanChoice choice = degrees(tensor, pipeline, devices / tensor / pipeline);
      for (std::int64_t expert = 1; expert <= choice.parallel.data; ++expert) {
        choice.parallel.expert = expert;
        if (meets(question, choice)) return true;
      }
    }
  }
  return false;
}

ServeQuestion with_targets(ServeQuestion question, double ttft_s, double tpot_s) {
  question.targets.ttft_s = ttft_s;
  question.targets.tpot_s = tpot_s;
  return question;
}

}  // namespace

TEST_CASE("a search answers with the fewest devices that meet the targets") {
  ServeQuestion question = with_targets(
      question_for("llama-3-70b", "h100-80gb", poisson(10, 300, 1024, 256)), 0.5, 0.03);
  const ServeReport report = make_serve_report(question, FixedDegrees{}, {1, 64});
  const ServedPlan& best = report.plans.front();
  CHECK(best.verdict.met());
  CHECK(best.figures.ttft.at_target <= 0.5);
  CHECK(best.figures.tpot->at_target <= 0.03);
  const std::int64_t devices = best.choice.parallel.devices();
  CHECK(report.question.plan.devices == devices);
  for (std::int64_t fewer = 1; fewer < devices; ++fewer) CHECK(!any_plan_meets(question, fewer));
  // The targets are met at the largest rate, and missed at a tenth more.
  REQUIRE(report.largest_rate);
  for (const auto& [factor, met] : {std::pair(1.0, true), std::pair(1.1, false)}) {
    question.traffic.arrivals = PoissonArrivals{factor * *report.largest_rate};
    CHECK(simulate(question, best.choice).verdict.met() == met);
  }
}

TEST_CASE("no smaller number of devices meets the targets, with experts and many replicas too") {
  struct Case {
    const char* model;
    const char* machine;
    double rate;
  };
  for (const Case& one : {Case{"mixtral-8x7b", "a100-80gb", 40}, Case{"llama-3-8b", "l40s", 12}}) {
    const ServeQuestion question = with_targets(
        question_for(one.model, one.machine, poisson(one.rate, 200, 1024, 128)), 0.5, 0.03);
    const ServeReport report = make_serve_report(question, FixedDegrees{}, {1, 64});
    INFO(one.model);
    REQUIRE(report.plans.front().verdict.met());
    const std::int64_t devices = report.plans.front().choice.parallel.devices();
    REQUIRE(devices > 2);
    for (std::int64_t fewer = 1; fewer < devices; ++fewer) CHECK(!any_plan_meets(question, fewer));
  }
}

TEST_CASE("a search on a given number of devices finds the best of its plans") {
  const ServeQuestion question = with_targets(
      question_for("llama-3-70b", "h100-80gb", poisson(10, 200, 1024, 256)), 0.5, 0.03);
  const ServeReport report = make_serve_report(question, FixedDegrees{}, {12, 12});
  for (const ServedPlan& plan : report.plans) CHECK(plan.choice.parallel.devices() == 12);
  CHECK(report.plans.front().verdict.met());
  CHECK(!report.closest_below);
  FixedDegrees fixed;
  fixed.tensor = 2;
  const ServeReport narrow = make_serve_report(question, fixed, {12, 12});
  for (const ServedPlan& plan : narrow.plans) CHECK(plan.choice.parallel.tensor == 2);
  CHECK_THROWS_AS((void)make_serve_report(question, FixedDegrees{}, {1, 1}), Error);
}

TEST_CASE("the tightest target is the one with the largest ratio, and plans are in its order") {
  const ServeQuestion question = with_targets(
      question_for("llama-3-70b", "h100-80gb", poisson(10, 200, 1024, 256)), 0.5, 0.03);
  const ServeReport report = make_serve_report(question, FixedDegrees{}, {1, 64});
  double last = 0;
  for (const ServedPlan& plan : report.plans) {
    const auto tightest = tightest_target(plan.figures, question.targets);
    REQUIRE(tightest);
    const double ttft = plan.figures.ttft.at_target / 0.5;
    const double tpot = plan.figures.tpot->at_target / 0.03;
    CHECK(tightest->ratio == doctest::Approx(std::max(ttft, tpot)));
    CHECK(tightest->latency == (ttft > tpot ? LatencyKind::ttft : LatencyKind::tpot));
    CHECK((tightest->ratio <= 1) == plan.verdict.met());
    CHECK(tightest->ratio >= last);
    last = tightest->ratio;
  }
  REQUIRE(report.closest_below);
  CHECK(!report.closest_below->verdict.met());
  CHECK(report.closest_below->choice.parallel.devices() < report.question.plan.devices);
  CHECK(!tightest_target(report.plans.front().figures, LatencyTargets{}));
}

namespace {

/// Llama 3 8B with targets on each machine, at the price of a device-hour.
std::vector<ServeQuestion> questions_on(const std::vector<std::pair<std::string, double>>& machines,
                                        double tpot_s) {
  std::vector<ServeQuestion> questions;
  for (const auto& [machine, price] : machines) {
    questions.push_back(
        with_targets(question_for("llama-3-8b", machine, poisson(4, 100, 1024, 128)), 1, tpot_s));
    questions.back().price_per_hour = price;
  }
  return questions;
}

std::vector<std::string> names_of(const ServeMachinesReport& report) {
  std::vector<std::string> names;
  for (const ServeReport& one : report.machines) names.push_back(one.question.plan.rates.name);
  return names;
}

}  // namespace

TEST_CASE("machines are compared by the price of the fewest devices of each") {
  const std::vector<ServeQuestion> questions =
      questions_on({{"h100-80gb", 9.0}, {"l40s", 0.5}, {"a100-80gb", 2.0}}, 0.05);
  const ServeMachinesReport report = make_serve_machines_report(questions, FixedDegrees{}, {1, 16});
  REQUIRE(report.machines.size() == 3);
  double last = 0;
  for (const ServeReport& one : report.machines) {
    const auto asked = std::ranges::find_if(questions, [&](const ServeQuestion& question) {
      return question.plan.rates.name == one.question.plan.rates.name;
    });
    REQUIRE(asked != questions.end());
    const ServeReport alone = make_serve_report(*asked, FixedDegrees{}, {1, 16});
    const ServedPlan& plan = one.plans.front();
    CHECK(plan.choice == alone.plans.front().choice);
    const double devices = static_cast<double>(plan.choice.parallel.devices());
    const auto price = price_of(one);
    REQUIRE(price);
    CHECK(price->per_hour == doctest::Approx(devices * *asked->price_per_hour));
    const double hours = 1e6 / plan.figures.output_tokens_per_s / 3600;
    CHECK(price->per_million_output_tokens == doctest::Approx(price->per_hour * hours));
    CHECK(price->per_hour >= last);
    last = price->per_hour;
  }
  CHECK(names_of(report).back() == "h100-80gb");
}

TEST_CASE("machines that miss the targets come last, and those without room are named") {
  const std::vector<ServeQuestion> questions =
      questions_on({{"rtx-3060", 0.1}, {"l4", 0.1}, {"h100-80gb", 9.0}}, 0.02);
  const ServeMachinesReport report = make_serve_machines_report(questions, FixedDegrees{}, {1, 1});
  CHECK(names_of(report) == std::vector<std::string>{"h100-80gb", "l4"});
  CHECK(report.machines.front().plans.front().verdict.met());
  CHECK(!report.machines.back().plans.front().verdict.met());
  CHECK(report.too_small == std::vector<std::string>{"rtx-3060"});
}

TEST_CASE("machines are compared only with targets") {
  std::vector<ServeQuestion> questions = questions_on({{"h100-80gb", 9.0}}, 0.02);
  questions.front().targets = {};
  CHECK_THROWS_AS((void)make_serve_machines_report(questions, FixedDegrees{}, {1, 1}), Error);
  CHECK_THROWS_AS((void)make_serve_machines_report({}, FixedDegrees{}, {1, 1}), Error);
}

// 100 requests at 1e-6 a second take 3 years; at a hundredth of that, more than can be simulated.
TEST_CASE("a target that no rate meets is reported at the smallest rates, too") {
  ServeQuestion question = question_for("llama-3-8b", "h100-80gb", poisson(1e-6, 100, 1000, 100));
  question.targets.tpot_s = 1e-6;
  const ServeReport report = make_serve_report(question, PlanRequest{});
  CHECK(!report.plans.front().verdict.met());
  CHECK(!report.largest_rate);
}

}  // namespace headroom::test
