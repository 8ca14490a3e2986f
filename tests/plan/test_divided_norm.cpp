// Sums over the ranks that a norm over divided features needs: float32 sums of squares, as
// MiniMaxText01RMSNormTP and Mixer2RMSNormGated of vLLM all-reduce them.
#include "gpt_models.h"

namespace headroom::test {
namespace {

constexpr std::int64_t kBatch = 2;
constexpr std::int64_t kTokens = 16;
constexpr Integer kRows = kBatch * kTokens;

/// Calls of a prefill by path that carry sums of squares, layers of a run counted.
std::map<Integer, Integer> sums_by_bytes(const std::string& model, std::int64_t ranks,
                                         Phase phase) {
  const ModelSpec spec = load_model(model).spec;
  ParallelPlan plan;
  plan.tensor = ranks;
  const Graph rank = shard(build_graph(spec, {phase}), plan);
  Workload workload;
  workload.phase = phase;
  workload.batch_size = kBatch;
  workload.seq_len = kTokens;
  const Bindings values = values_on(rank, workload, plan);
  std::map<Integer, Integer> calls;
  for (const CollectiveCall& call : collectives_of(rank)) {
    const bool sums = call.path.find("norm") != std::string::npos;
    if (!sums) continue;
    CHECK(call.kind == CollectiveKind::all_reduce);
    calls[call.bytes.evaluate(values)] += call.repeat.evaluate(values);
  }
  return calls;
}

}  // namespace

// OLMo 2 (arXiv 2501.00656, section 3.1) normalises the queries of all heads, and the keys.
TEST_CASE("norms of queries and keys over all heads sum one float32 a row over the ranks") {
  CHECK(sums_by_bytes("olmo-2-7b", 4, Phase::prefill) ==
        std::map<Integer, Integer>{{4 * kRows, 2 * 32}});
  CHECK(sums_by_bytes("olmo-2-7b", 1, Phase::prefill).empty());
}

TEST_CASE("a training step sums them forward, and their gradients backward") {
  CHECK(sums_by_bytes("olmo-2-7b", 4, Phase::train) ==
        std::map<Integer, Integer>{{4 * kRows, 2 * 2 * 32}});
}

TEST_CASE("a norm of each head needs no sums over the ranks") {
  CHECK(sums_by_bytes("qwen3-8b", 4, Phase::prefill).empty());
}

// Bamba-9B has 29 Mamba-2 layers with one group (its config.json), a tiny Zamba2 four with two.
TEST_CASE("a gated norm sums one float32 a row and group, unless each rank has whole groups") {
  CHECK(sums_by_bytes("bamba-9b", 4, Phase::prefill) ==
        std::map<Integer, Integer>{{4 * kRows, 29}});
  const std::string zamba2 = (data_folder() / "golden/models/zamba2").string();
  CHECK(sums_by_bytes(zamba2, 4, Phase::prefill) == std::map<Integer, Integer>{{4 * 2 * kRows, 4}});
  CHECK(sums_by_bytes(zamba2, 2, Phase::prefill).empty());
}

}  // namespace headroom::test
