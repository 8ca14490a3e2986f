// KV-cache of a plan by an engine's policy and types, against engines' logs and sums by hand.
#include "gpt_models.h"
#include "headroom/plan.h"

using namespace headroom;
using namespace headroom::test;

namespace {

DeviceRates reservation_rates() {
  return device_rates(find_machine("h100-80gb"), Purpose::serve, DType::bfloat16);
}

Integer planned_cache(const char* preset, const KvCacheRequest& kv_cache,
                      const ParallelPlan& parallel, const Load& load) {
  PlanQuery query;
  query.kv_cache = kv_cache;
  Planner planner(read_preset(find_preset(preset).value()).spec, query, reservation_rates());
  PlanChoice choice;
  choice.parallel = parallel;
  return planner.evaluate(choice, load).memory.kv_cache;
}

KvCacheRequest cache_by(KvPolicy policy) {
  KvCacheRequest request;
  request.policy = policy;
  return request;
}

}  // namespace

TEST_CASE("a plan's KV-cache without a policy is what the graph counts") {
  KvCacheRequest plain;
  set_type(plain, KvType::bfloat16);
  for (const char* preset :
       {"llama-3-8b", "gpt-oss-20b", "deepseek-v2-lite", "qwen3-next-80b-a3b"}) {
    CAPTURE(preset);
    for (const std::int64_t tensor : {1, 2}) {
      ParallelPlan plan;
      plan.tensor = tensor;
      CHECK(planned_cache(preset, plain, plan, {3, 1000}) ==
            planned_cache(preset, {}, plan, {3, 1000}));
    }
  }
}

TEST_CASE("a plan's KV-cache has the reservation of its engine") {
  // vLLM: 12 full layers of 512 blocks and 12 windowed ones of 513, 32,768 bytes each; two ranks
  // have half of the heads each.
  const Integer gpt_oss = Integer{12} * 32'768 * (512 + 513);
  CHECK(planned_cache("gpt-oss-20b", cache_by(KvPolicy::vllm), {}, {1, 8192}) == gpt_oss);
  ParallelPlan two;
  two.tensor = 2;
  CHECK(planned_cache("gpt-oss-20b", cache_by(KvPolicy::vllm), two, {1, 8192}) == gpt_oss / 2);
  // Two stages of 6 layers of each kind have three batches in flight: 127 + 3 · 2048 tokens.
  KvCacheRequest small_passes = cache_by(KvPolicy::vllm);
  small_passes.batched_tokens = 2048;
  ParallelPlan stages;
  stages.pipeline = 2;
  CHECK(planned_cache("gpt-oss-20b", small_passes, stages, {1, 8192}) ==
        Integer{6} * 32'768 * (512 + 393));
  // DeepSeek-V2-Lite: every rank has the whole latent vectors, of 27 layers and 576 values.
  const Integer latent = Integer{27} * 576 * 2 * 1024;
  CHECK(planned_cache("deepseek-v2-lite", cache_by(KvPolicy::llama_cpp), two, {1, 1000}) == latent);
  // A log of llama.cpp with K in q8_0 and V in f16: 399.5 + 752 MiB.
  KvCacheRequest mixed = cache_by(KvPolicy::llama_cpp);
  mixed.key_type = KvType::q8_0;
  mixed.value_type = KvType::float16;
  CHECK(planned_cache("qwen3-235b-a22b", mixed, {}, {1, 8192}) == Integer{2303} * 512 * 1024);
}

TEST_CASE("a plan's KV-cache has a drafter's layer and the states of prefix caching") {
  KvCacheRequest request = cache_by(KvPolicy::vllm);
  request.drafter_layers = 1;
  CHECK(planned_cache("llama-3-8b", request, {}, {2, 160}) == Integer{2} * 33 * 4096 * 160);
  // 12 full layers and 3 groups of 12 recurrent ones, in blocks of 544 tokens of 2,048 bytes.
  KvCacheRequest caching = cache_by(KvPolicy::vllm);
  caching.prefix_caching = true;
  CHECK(planned_cache("qwen3-next-80b-a3b", caching, {}, {1, 1000}) ==
        Integer{12} * 544 * 2048 * (2 + 3 * 2));
}

TEST_CASE("a plan raises slots and capacity to the load that it tries") {
  KvCacheRequest shared = cache_by(KvPolicy::llama_cpp);
  shared.slots = 2;
  shared.capacity = 256;
  // 8 sequences of 1,024 tokens share a cache of 8,192 cells.
  CHECK(planned_cache("llama-3-8b", shared, {}, {8, 1024}) == Integer{131'072} * 8192);
}
