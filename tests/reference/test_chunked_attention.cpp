// Llama 4's chunked attention with a KV-cache: keys and pairs of every step, enumerated from
// transformers' mask (tests/data/README.md).
#include <doctest/doctest.h>

#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

/// Two layers with chunked attention, of 4 heads that share 2 key heads of 8.
nlohmann::json chunked_config(std::int64_t chunk) {
  return {{"model_type", "llama4_text"},
          {"hidden_size", 32},
          {"num_hidden_layers", 2},
          {"no_rope_layers", {1, 1}},
          {"num_attention_heads", 4},
          {"num_key_value_heads", 2},
          {"head_dim", 8},
          {"intermediate_size", 16},
          {"intermediate_size_mlp", 24},
          {"num_local_experts", 2},
          {"num_experts_per_tok", 1},
          {"moe_layers", nlohmann::json::array()},
          {"attention_chunk_size", chunk},
          {"vocab_size", 64}};
}

Workload step_of(const ModelSpec& spec, AttentionImplementation attention, std::int64_t past,
                 std::int64_t tokens) {
  WorkloadRequest request;
  request.phase = Phase::decode;
  request.attention = attention;
  request.past_len = past;
  request.seq_len = tokens;
  return resolve(request, spec);
}

/// FLOPs and bytes that one pass reads in the attention's one kernel.
std::pair<Integer, Integer> attention_of_step(const ModelSpec& spec, const Workload& workload) {
  const Counted counted = count(spec, workload);
  const Bindings values = bindings_of(workload, counted.graph);
  std::pair<Integer, Integer> sum;
  for (const NodeAnalysis& node : counted.analysis.nodes) {
    if (node.component.part != Part::attention_core) continue;
    sum.first += node.cost.forward.matrix_flops.evaluate(values);
    sum.second += node.cost.forward.bytes_read.evaluate(values);
  }
  return sum;
}

}  // namespace

TEST_CASE("a step of chunked attention reads the keys that its mask leaves, each once") {
  const Integer layers = 2;
  const Integer key_value_bytes = 2 * 2 * 8 * 4;  // K and V, 2 heads of 8, float32
  for (const CsvRow& row : read_csv(data_folder() / "chunked/mask.csv")) {
    const ModelSpec spec = spec_of(chunked_config(number(row, "chunk")));
    const std::int64_t tokens = number(row, "seq_len");
    CAPTURE(number(row, "chunk"));
    CAPTURE(number(row, "past_len"));
    CAPTURE(tokens);
    const auto [flops, bytes] = attention_of_step(
        spec, step_of(spec, AttentionImplementation::fused, number(row, "past_len"), tokens));
    const Integer queries = 4 * 8 * 4 * tokens;
    CHECK(bytes == layers * (queries + number(row, "keys") * key_value_bytes));
    CHECK(flops == layers * 4 * 4 * 8 * number(row, "pairs"));
  }
}

TEST_CASE("the KV-cache of a chunk is held until new keys take its places") {
  const ModelSpec spec = spec_of(chunked_config(8));
  const auto held = [&](std::int64_t past) {
    return count(spec, step_of(spec, AttentionImplementation::fused, past, 1))
        .figures.kv_cache_bytes;
  };
  CHECK(held(8) == held(7));  // the first token of a new chunk overwrites a key
  CHECK(held(20) == held(7));
  CHECK(2 * held(3) == held(7));
}
