// The simulation of continuous batching against the planner's passes, queueing theory, and
// identities that hold for every schedule.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "headroom/no_plan_fits.h"
#include "serve_questions.h"
#include "support/sanitized.h"

namespace headroom::test {

TEST_CASE("a server's limits are vLLM's by memory, but for an A100") {
  const auto limits_on = [](const char* machine) {
    return default_limits(device_rates(find_machine(machine), Purpose::serve, DType::bfloat16));
  };
  for (const char* const machine : {"h100-80gb", "mi300x", "h200-141gb"}) {
    CHECK(limits_on(machine).max_sequences == 1024);
    CHECK(limits_on(machine).batched_tokens == 8192);
  }
  for (const char* const machine : {"a100-80gb", "l40s", "rtx-4090"}) {
    CHECK(limits_on(machine).max_sequences == 256);
    CHECK(limits_on(machine).batched_tokens == 2048);
  }
}

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
    chunks_s += time.over_tokens().all + time.sequences.all;
  }
  chunks_s += planner.decode_time(degrees(1), 1, 0).head.all;
  const ServeFigures figures = simulate(question, degrees(1)).figures;
  CHECK(figures.steps == 16);
  CHECK(!figures.tpot);
  CHECK(figures.ttft.mean == doctest::Approx(chunks_s).epsilon(1e-9));
}

TEST_CASE("single sequences wait as the formula of Pollaczek and Khinchine says" *
          doctest::skip(kSanitized)) {
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
    CHECK(figures.load.busy == doctest::Approx(load).epsilon(0.01));
  }
}

TEST_CASE("requests in the system are arrivals times their stay") {
  // Little's law; over a whole simulation it holds exactly.
  for (const PlanChoice& choice : {degrees(1), degrees(2, 2), degrees(1, 1, 3)}) {
    const ServeQuestion question =
        question_for("llama-3-8b", "h100-80gb", poisson(20, 500, 700, 90));
    const ServeFigures figures = simulate(question, choice).figures;
    const double replicas = static_cast<double>(choice.parallel.data);
    const double inside = (figures.load.mean_running + figures.load.mean_waiting) * replicas;
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
  CHECK(by_prompt.figures.load.peak_cache <= 1);
  CHECK(by_prompt.figures.load.peak_cache > 0.95);
  CHECK(by_prompt.figures.requests == 128);
  question.limits.admission = Admission::request;
  const ServedPlan whole = simulate(question, degrees(1));
  CHECK(whole.figures.preemptions == 0);
  CHECK(whole.figures.load.peak_running == whole.cache.requests);
}

TEST_CASE("one user is answered one request at a time") {
  const ServeQuestion question = question_for("llama-3-8b", "h100-80gb", users(1, 20, 500, 50));
  const ServeFigures figures = simulate(question, degrees(1)).figures;
  CHECK(figures.requests_per_s * figures.end_to_end.mean == doctest::Approx(1));
  CHECK(figures.load.peak_running == 1);
  CHECK(figures.load.busy == doctest::Approx(1));
}

TEST_CASE("a shared prefix is computed once and held once") {
  ServeQuestion question = question_for("llama-3-8b", "h100-80gb", users(1, 1, 4096, 1));
  question.limits.batched_tokens = 8192;
  question.limits.prefix_hit = 0.75;
  Planner planner = planner_of(question);
  const PassTime rest = planner.prefill_time(degrees(1), 1024, 3072);
  const ServedPlan shared = simulate(question, degrees(1));
  const double rest_s =
      rest.over_tokens().all + rest.sequences.all + planner.decode_time(degrees(1), 1, 0).head.all;
  CHECK(shared.figures.ttft.mean == doctest::Approx(rest_s).epsilon(1e-9));
  question.limits.prefix_hit = 0;
  CHECK(simulate(question, degrees(1)).cache.requests < shared.cache.requests / 3);
}

TEST_CASE("stages of a pipeline work on several batches at once") {
  // Prompts, since batches of half as many tokens read the weights as often.
  const ServeQuestion question = question_for("llama-3-8b", "h100-80gb", users(64, 256, 4000, 50));
  const double one = simulate(question, degrees(1, 1)).figures.output_tokens_per_s;
  const double two = simulate(question, degrees(1, 2)).figures.output_tokens_per_s;
  CHECK(two > 1.2 * one);
  CHECK(two < 2.1 * one);
  // Alone, a request passes the stages one after the other.
  const ServeQuestion alone = question_for("llama-3-8b", "h100-80gb", users(1, 4, 200, 200));
  const double whole = simulate(alone, degrees(1, 1)).figures.end_to_end.mean;
  CHECK(simulate(alone, degrees(1, 2)).figures.end_to_end.mean >= whole);
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

// Little's law: requests in a replica are those that arrive per second times their stay.
TEST_CASE("replicas that prefill hold prompts until their first token, and others until the last") {
  ServeQuestion question = question_for("llama-3-8b", "h100-80gb", poisson(30, 400, 3000, 80));
  question.limits.prefill_replicas = 1;
  const ServeFigures figures = simulate(question, degrees(1, 1, 4)).figures;
  REQUIRE(figures.role_loads);
  const auto& [prefill, decode] = *figures.role_loads;
  const auto inside = [](const ReplicaLoad& load) { return load.mean_running + load.mean_waiting; };
  const double rate = figures.requests_per_s;
  CHECK(inside(prefill) == doctest::Approx(rate * figures.ttft.mean).epsilon(1e-9));
  const double later_s = figures.end_to_end.mean - figures.ttft.mean - figures.mean_transfer_s;
  CHECK(3 * inside(decode) == doctest::Approx(rate * later_s).epsilon(1e-9));
  CHECK(prefill.busy + 3 * decode.busy == doctest::Approx(4 * figures.load.busy));
  CHECK(std::max(prefill.peak_cache, decode.peak_cache) == figures.load.peak_cache);
  question.limits.prefill_replicas = 0;
  CHECK(!simulate(question, degrees(1, 1, 4)).figures.role_loads);
}

TEST_CASE("the prefix that all replicas hold is not sent") {
  ServeQuestion question = question_for("llama-3-8b", "h100-80gb", users(1, 1, 2000, 300));
  question.limits.prefill_replicas = 1;
  const double all_s = simulate(question, degrees(1, 1, 2)).figures.mean_transfer_s;
  question.limits.prefix_hit = 0.8;
  const double part_s = simulate(question, degrees(1, 1, 2)).figures.mean_transfer_s;
  const double latency_s = question.plan.rates.collective_latency_s;
  CHECK(part_s - latency_s == doctest::Approx((all_s - latency_s) * 0.2).epsilon(1e-9));
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
  const double step_s = planner.evaluate({}, {apart.load.peak_running, 4100}).time.iteration_s +
                        apart.mean_transfer_s;
  CHECK(apart.tpot->p99 <= 1.05 * step_s);
}

namespace {

/// A plan whose cache has room for 100 requests.
ServedPlan plan_with(const PlanChoice& choice) {
  ServedPlan plan;
  plan.choice = choice;
  plan.cache.requests = 100;
  return plan;
}

}  // namespace

// Options as the engines document them: docs.vllm.ai, cli/serve; docs.sglang.io,
// advanced_features/server_arguments; TensorRT-LLM, commands/trtllm-serve.
TEST_CASE("the command of an engine has the scheduler's limits") {
  ServeQuestion question = question_for("llama-3-70b", "h100-80gb", users(100, 100, 2000, 300));
  question.plan.load.seq_len = 2300;
  question.limits.max_sequences = 64;
  question.limits.batched_tokens = 4096;
  const auto command = [&](Engine engine) {
    return serving_command(engine, question, plan_with(degrees(4, 1, 2)));
  };
  CHECK(command(Engine::vllm).text ==
        "vllm serve meta-llama/Meta-Llama-3-70B --dtype bfloat16 --tensor-parallel-size 4 "
        "--data-parallel-size 2 --max-model-len 2300 --max-num-seqs 64 --max-num-batched-tokens "
        "4096");
  CHECK(command(Engine::sglang)
            .text.ends_with(" --max-running-requests 128 --chunked-prefill-size 4096"));
  CHECK(command(Engine::tensorrt_llm).text.ends_with(" --max_batch_size 64 --max_num_tokens 4096"));
  CHECK(command(Engine::vllm).notes.empty());
  question.limits.batched_tokens = 32;
  question.limits.block_tokens = 32;
  CHECK(command(Engine::vllm)
            .text.ends_with(" --max-num-seqs 32 --max-num-batched-tokens 32 --block-size 32"));
  CHECK(command(Engine::sglang).text.ends_with(" --page-size 32"));
  CHECK(std::ranges::count(command(Engine::tensorrt_llm).notes,
                           "the size of a block is not in the command") == 1);
  // 2 · 100 sequences of 2300 tokens: as many as fit, each replica's cache being allocated at once.
  question.limits.max_sequences = 1024;
  CHECK(command(Engine::llama_cpp).text.find(" --ctx-size 230000 --parallel 100 ") !=
        std::string::npos);
  CHECK(command(Engine::llama_cpp).text.ends_with(" --batch-size 32 --ubatch-size 32"));
  question.limits.prefill_replicas = 1;
  question.limits.block_tokens = 16;
  CHECK(command(Engine::vllm).notes ==
        std::vector<std::string>{"replicas that prefill are servers of their own"});
  CHECK_THROWS_AS((void)command(Engine::megatron), Error);
}

TEST_CASE("slots of llama.cpp share no prefix: as many as fit with whole prompts") {
  ServeQuestion question = question_for("llama-3-8b", "h100-80gb", users(100, 100, 2000, 300));
  question.plan.load.seq_len = 2300;
  question.limits.max_sequences = 1024;
  ServedPlan plan = plan_with(degrees(1));
  plan.cache.tokens = 2300 * 60;  // 100 requests fit where a prefix is held once
  const auto command = [&] { return serving_command(Engine::llama_cpp, question, plan).text; };
  CHECK(command().find(" --ctx-size 230000 --parallel 100 ") != std::string::npos);
  question.limits.prefix_hit = 0.5;
  CHECK(command().find(" --ctx-size 138000 --parallel 60 ") != std::string::npos);
}

// docs.vllm.ai, features/speculative_decoding/mtp and n_gram; docs.sglang.io,
// advanced_features/speculative_decoding, Multi Token Prediction.
TEST_CASE("the command of an engine has the drafter") {
  ServeQuestion question = question_for("deepseek-v3", "h200-141gb", users(32, 32, 2000, 300));
  const auto command = [&](Engine engine, Drafter drafter) {
    question.speculation = Speculation{std::move(drafter), 2, 0.8};
    return serving_command(engine, question, plan_with(degrees(8)));
  };
  CHECK(command(Engine::vllm, PredictionModule{})
            .text.ends_with(
                R"( --speculative-config '{"method": "mtp", "num_speculative_tokens": 2}')"));
  CHECK(command(Engine::vllm, NgramLookup{})
            .text.ends_with(
                R"( --speculative-config '{"method": "ngram", "num_speculative_tokens": 2}')"));
  CHECK(command(Engine::sglang, PredictionModule{})
            .text.ends_with(" --speculative-algorithm EAGLE --speculative-num-steps 2 "
                            "--speculative-eagle-topk 1 --speculative-num-draft-tokens 3"));
  const auto is_left_out = [](const EngineCommand& made) {
    return std::ranges::find(made.notes, "speculative decoding is not in the command") !=
           made.notes.end();
  };
  CHECK_FALSE(is_left_out(command(Engine::vllm, PredictionModule{})));
  CHECK(is_left_out(command(Engine::tensorrt_llm, PredictionModule{})));
  CHECK(is_left_out(command(Engine::vllm, DraftModel{load_model("llama-3.2-1b").spec})));
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
                  NoPlanFits);
  CHECK_THROWS_AS((void)simulate(question_for("gpt2", "t4", users(1, 1, 10, 1)), degrees(5)),
                  IllegalPlan);
}

TEST_CASE("a shared prefix shorter than a block is noted, and saves nothing") {
  ServeQuestion question = question_for("llama-3-8b", "h100-80gb", users(4, 20, 100, 20));
  const double alone_s = simulate(question, degrees(1)).figures.duration_s;
  const auto notes = [&](double prefix_hit) {
    question.limits.prefix_hit = prefix_hit;
    return make_serve_report(question, PlanRequest{degrees(1), 1}).notes;
  };
  const std::string note = "nothing is shared: the prefix is shorter than a block of 16 tokens";
  CHECK(std::ranges::count(notes(0.16), note) == 0);
  CHECK(std::ranges::count(notes(0.15), note) == 1);
  CHECK(simulate(question, degrees(1)).figures.duration_s == alone_s);
}

TEST_CASE("a model whose state has one size for any length is served without a table of lengths") {
  const ServeQuestion question = question_for("mamba-130m", "h200-141gb", users(4, 20, 100, 20));
  const ServedPlan plan = simulate(question, degrees(1));
  CHECK(plan.cache.tokens == std::int64_t{1} << 34U);  // the longest that is looked for
  CHECK(plan.cache.requests > 100);
  CHECK(plan.figures.requests == 20);
}

}  // namespace headroom::test
