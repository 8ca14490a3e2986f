// Splits between two memories: against buffers that llama.cpp printed, and against sums worked out
// from published sizes.
#include <doctest/doctest.h>

#include <algorithm>

#include "headroom/error.h"
#include "headroom/memory_split.h"

using namespace headroom;

namespace {

constexpr double kMiB = 1048576;
constexpr Integer kGiB = Integer{1} << 30U;

PlanQuestion question_about(const char* model, Load load, std::optional<WeightType> weights = {}) {
  PlanQuestion question;
  question.model = load_model(model);
  question.query.weights = weights;
  question.load = load;
  question.rates = device_rates(find_machine("rtx-4090"), Purpose::serve, question.query.dtype);
  return question;
}

HostRates host_with(Integer memory_bytes, double bytes_per_s = 64e9, double link = 32e9) {
  HostRates host = assumed_host(memory_bytes);
  host.memory_bytes_per_s = bytes_per_s;
  host.link_bytes_per_s = link;
  return host;
}

SplitReport report_of(const char* model, SplitRequest request, Load load = {1, 4096},
                      std::optional<WeightType> weights = {}) {
  return make_split_report(question_about(model, load, weights), host_with(2048 * kGiB), request);
}

double mib(Integer bytes) { return static_cast<double>(bytes) / kMiB; }

}  // namespace

// llama.cpp build 6699, gpt-oss-20b-mxfp4.gguf, -ngl 99 --n-cpu-moe 99: "CUDA0 model buffer size =
// 1242.03 MiB" (github.com/ikawrakow/ik_llama.cpp, issue 822). The file stores all but its experts
// in Q8_0, norms and routers in float32.
TEST_CASE("gpt-oss-20b with its experts on the host takes the buffer that llama.cpp printed") {
  const SplitReport report = report_of("gpt-oss-20b", {25, 24}, {1, 131'072}, WeightType::q8_0);
  CHECK(mib(report.result.device.weights) == doctest::Approx(1242.03).epsilon(1e-4));
  // "KV buffer size = 3072.00 MiB" for 12 full layers and 18.00 MiB for 12 layers of 768 cells.
  CHECK(mib(report.result.device.kv_cache) == doctest::Approx(3072 + 18).epsilon(1e-4));
}

// llama.cpp, DeepSeek R1 in bfloat16, one layer on each of three devices: "CUDA0 model buffer size
// = 21983.94 MiB" three times ("offloaded 3/62 layers"). That file holds the up-projection of keys
// and values twice, as attn_kv_b and as attn_k_b and attn_v_b, and the router in float32.
TEST_CASE("a layer of DeepSeek R1 takes the buffer that llama.cpp printed") {
  const auto weights_with = [](std::int64_t gpu_layers) {
    return report_of("deepseek-v3", {gpu_layers, 0}, {1, 512}, WeightType::bfloat16)
        .result.device.weights;
  };
  constexpr double kSecondCopy = 2.0 * 128 * (128 + 128) * 512 / kMiB;
  constexpr double kWideRouter = 2.0 * 256 * 7168 / kMiB;
  CHECK(mib(weights_with(4) - weights_with(1)) ==
        doctest::Approx(3 * (21983.94 - kSecondCopy - kWideRouter)).epsilon(1e-5));
}

TEST_CASE("both memories together hold every stored byte, a tied table twice") {
  for (const char* const model : {"llama-3-8b", "mixtral-8x7b", "qwen3-30b-a3b", "gemma-2-9b"}) {
    const SplitReport none = report_of(model, {0, 0});
    CHECK(none.result.device.weights == 0);
    CHECK(none.result.host.weights == none.storage.bytes);
    const bool tied = std::string_view(model) == "gemma-2-9b";
    for (const std::int64_t gpu_layers : {std::int64_t{1}, none.layers / 2, none.layers + 1}) {
      const SplitReport some = report_of(model, {gpu_layers, 0});
      INFO(model, " ", gpu_layers);
      // The word embedding of Gemma 2 9B: 256,000 · 3,584 values in bfloat16.
      const Integer table = tied ? Integer{256'000} * 3'584 * 2 : Integer{0};
      CHECK(some.result.device.weights + some.result.host.weights == none.storage.bytes + table);
      CHECK(some.result.device.kv_cache + some.result.host.kv_cache == none.result.host.kv_cache);
    }
  }
}

// Llama 3 8B: 8,030,261,248 parameters; its word embedding has 128,256 · 4,096, of which a step
// reads one row. 32 layers cache 2 · 8 · 128 values of each of 4,096 tokens; all are bfloat16.
TEST_CASE("a decode step on the host takes the time of its bytes") {
  const SplitReport report = report_of("llama-3-8b", {0, 0});
  const double weights = 2.0 * (8'030'261'248 - 128'256 * 4'096);
  const double cache = 32.0 * 2 * 8 * 128 * 4'096 * 2;
  CHECK(report.result.time.host_s == doctest::Approx((weights + cache) / 64e9).epsilon(0.005));
  CHECK(report.result.time.device_s == 0);
  CHECK(report.result.time.transfer_s == 0);
}

TEST_CASE("with all layers on the device a step takes as long as without a host") {
  PlanQuestion question = question_about("llama-3-8b", {1, 4096});
  Planner planner(question.model.spec, question.query, question.rates);
  // Memory bounds the step of one sequence, arithmetic the GEMMs of 512.
  for (const Load& load : {Load{1, 4096}, Load{512, 128}}) {
    const PlanTime step = planner.evaluate(PlanChoice{}, load).time;
    const SplitTime split = report_of("llama-3-8b", {33, 0}, load).result.time;
    CHECK(split.high_s / split.decode_s ==
          doctest::Approx(step.high_s / step.iteration_s).epsilon(0.005));
  }
  const PlanTime whole = planner.evaluate(PlanChoice{}, question.load).time;
  const SplitReport report = report_of("llama-3-8b", {33, 0});
  CHECK(report.result.time.decode_s == doctest::Approx(whole.iteration_s).epsilon(0.005));
  CHECK(report.result.time.ttft_s == doctest::Approx(*whole.ttft_s).epsilon(0.01));
}

// A prompt of 1,024 tokens runs in two passes of 512, each of which copies 32 layers, but not the
// head, which runs on one row.
TEST_CASE("a prompt copies the host's layers to the device once per pass") {
  const auto ttft_with = [](double link) {
    return make_split_report(question_about("llama-3-8b", {1, 1024}),
                             host_with(64 * kGiB, 64e9, link), {0, 0})
        .result.time.ttft_s;
  };
  const double layers = 2.0 * (8'030'261'248 - 2 * 128'256 * 4'096 - 4'096);
  CHECK(ttft_with(16e9) - ttft_with(32e9) == doctest::Approx(2 * layers / 32e9).epsilon(1e-6));
}

TEST_CASE("a decode step of 32 sequences copies weights, one of 31 does not") {
  const auto link_s = [](std::int64_t sequences) {
    return report_of("llama-3-8b", {0, 0}, {sequences, 512}).result.time.transfer_s;
  };
  CHECK(link_s(31) == 0);
  const double weights = 2.0 * (8'030'261'248 - 128'256 * 4'096 - 4'096);
  CHECK(link_s(32) == doctest::Approx(weights / 32e9).epsilon(1e-4));
}

TEST_CASE("no split that fits takes a shorter decode step than the chosen one") {
  const HostRates host = host_with(96 * kGiB);
  const PlanQuestion question = question_about("gpt-oss-120b", {1, 8192});
  const SplitReport best = make_split_report(question, host, {});
  REQUIRE(best.result.fits);
  for (std::int64_t gpu_layers = 0; gpu_layers <= best.layers + 1; gpu_layers += 6) {
    for (std::int64_t moe = 0; moe <= best.layers; moe += 4) {
      const SplitFigures other = make_split_report(question, host, {gpu_layers, moe}).result;
      if (other.fits) CHECK(other.time.decode_s >= best.result.time.decode_s);
    }
  }
  // One layer's experts less on the host do not fit.
  const MemorySplit split = best.result.split;
  CHECK(split.gpu_layers == best.layers + 1);
  const auto next = make_split_report(question, host, {split.gpu_layers, split.cpu_moe_layers - 1});
  CHECK_FALSE(next.result.fits);
}

TEST_CASE("of a model too large for both memories, the device holds its part") {
  const SplitReport report =
      make_split_report(question_about("deepseek-v3", {1, 4096}), host_with(64 * kGiB), {});
  CHECK_FALSE(report.result.fits);
  CHECK(report.result.device.total() <= report.question.rates.memory_bytes);
  CHECK(report.result.host.total() > report.host.memory_bytes);
  for (const SplitFigures& other : report.others) CHECK_FALSE(other.fits);
}

TEST_CASE("the command has llama.cpp's options for the split") {
  CHECK(report_of("gpt-oss-20b", {25, 12}, {2, 8192}).command ==
        "llama-server -m gpt-oss-20b.gguf --gpu-layers 25 --n-cpu-moe 12 --ctx-size 16384 "
        "--parallel 2 --flash-attn on");
  PlanQuestion question = question_about("llama-3-8b", {1, 4096});
  question.query.kv_cache.key_type = question.query.kv_cache.value_type = KvType::q8_0;
  CHECK(make_split_report(question, host_with(64 * kGiB), {10, {}}).command ==
        "llama-server -m llama-3-8b.gguf --gpu-layers 10 --ctx-size 4096 --parallel 1 --flash-attn "
        "on "
        "--cache-type-k q8_0 --cache-type-v q8_0");
}

TEST_CASE("splits that llama.cpp has not are refused") {
  CHECK_THROWS_AS((void)report_of("bert-base", {}), Error);
  CHECK_THROWS_AS((void)report_of("t5-small", {}), Error);
  CHECK_THROWS_AS((void)report_of("llama-3-8b", {34, 0}), Error);
  CHECK_THROWS_AS((void)report_of("llama-3-8b", {33, 33}), Error);
  PlanQuestion training = question_about("gpt2", {1, 512});
  training.query.purpose = Purpose::train;
  CHECK_THROWS_AS((void)make_split_report(training, host_with(kGiB), {}), Error);
  PlanQuestion two = question_about("gpt2", {1, 512});
  two.devices = 2;
  CHECK_THROWS_AS((void)make_split_report(two, host_with(kGiB), {}), Error);
}
