// Known mistakes of similar tools, each with a model that exposes it. Counts are those of the
// published models; KV-cache bytes follow from their configs as noted.
#include <doctest/doctest.h>

#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

Workload bfloat16_workload(std::int64_t tokens) {
  Workload workload;
  workload.seq_len = tokens;
  workload.dtype = DType::bfloat16;
  workload.kv_dtype = DType::bfloat16;
  return workload;
}

Integer cache_bytes(const char* preset, std::int64_t tokens) {
  return count(load_model(preset).spec, bfloat16_workload(tokens)).figures.kv_cache_bytes;
}

struct Totals {
  Integer total;
  Integer active;
};

Totals parameters_of(const char* preset) {
  const Figures figures = count(load_model(preset).spec, {}).figures;
  return {figures.parameters, figures.active_parameters};
}

Integer matrix_flops(const char* preset, AttentionImplementation attention) {
  Workload workload = resolve({}, load_model(preset).spec);
  workload.attention = attention;
  return count(load_model(preset).spec, workload).figures.forward.matrix_flops;
}

}  // namespace

TEST_CASE("trap: the KV-cache of multi-head attention has keys and values") {
  CHECK(cache_bytes("llama-2-7b", 1) == 2 * 32 * 32 * 128 * 2);
}

TEST_CASE("trap: a window bounds the cache of windowed layers only") {
  // Mistral-7B v0.1: 32 layers, 8 heads of 128, a window of 4096; v0.2 has none.
  const Integer mistral_token = 2 * 32 * 8 * 128 * 2;
  CHECK(cache_bytes("mistral-7b-v0.1", 4095) == mistral_token * 4095);
  CHECK(cache_bytes("mistral-7b-v0.1", 32768) == mistral_token * 4096);
  CHECK(cache_bytes("mistral-7b-v0.2", 32768) == mistral_token * 32768);
  // Gemma 2 9B: 42 layers, every other one with a window of 4096; 8 heads of 256.
  CHECK(cache_bytes("gemma-2-9b", 8192) == Integer{2 * 8 * 256 * 2} * 21 * (4096 + 8192));
  // gpt-oss-20b: 24 layers, every other one with a window of 128; 8 heads of 64.
  CHECK(cache_bytes("gpt-oss-20b", 8192) == Integer{2 * 8 * 64 * 2} * 12 * (128 + 8192));
  // Gemma 3 1B: 26 layers, every sixth attends to all tokens, the others to 512; one head of 256.
  CHECK(cache_bytes("gemma-3-1b", 8192) == Integer{2 * 256 * 2} * (22 * 512 + 4 * 8192));
}

TEST_CASE("trap: a head is tied only if the config says so, and then counts once") {
  CHECK(parameters_of("llama-3-8b").total == 8030261248);
  CHECK(parameters_of("gpt2").total == 124439808);
  CHECK(parameters_of("gemma-2b").total == 2506172416);
  CHECK(parameters_of("t5-small").total == 60506624);
}

TEST_CASE("trap: the head dimension is read from the config, not computed by division") {
  CHECK(load_model("gemma-7b").spec.decoder->self_attention.head_dim == 256);  // 3072 / 16 = 192
  CHECK(load_model("qwen3-4b").spec.decoder->self_attention.head_dim == 128);  // 2560 / 32 = 80
  CHECK(load_model("mistral-nemo-12b").spec.decoder->self_attention.head_dim == 128);  // 160
}

TEST_CASE("trap: the family decides whether a network is gated") {
  CHECK(load_model("llama-2-7b").spec.decoder->ffn.kind == FfnKind::gated);
  CHECK(load_model("opt-125m").spec.decoder->ffn.kind == FfnKind::plain);
  CHECK(load_model("starcoder2-3b").spec.decoder->ffn.kind == FfnKind::plain);
}

TEST_CASE("trap: all experts count as parameters, the top-k ones as active") {
  const Totals mixtral = parameters_of("mixtral-8x7b");
  CHECK(mixtral.total == 46702792704);
  CHECK(mixtral.active == 12879925248);
  const Totals deepseek = parameters_of("deepseek-v3");
  CHECK(deepseek.total == 671026404352);
  CHECK(deepseek.active == 37552282624);
  // Twice the experts per token, twice their FLOPs.
  ModelSpec spec = load_model("mixtral-8x7b").spec;
  const auto expert_flops = [&](std::int64_t per_token) {
    spec.decoder->ffn.experts->num_experts_per_tok = per_token;
    const Counted counted = count(spec, {});
    Integer flops = 0;
    for (const NodeAnalysis& node : counted.analysis.nodes) {
      if (node.path.find("mlp.experts") == std::string::npos) continue;
      flops += node.cost.forward.matrix_flops.evaluate(bindings_of(Workload{}, counted.graph));
    }
    return flops;
  };
  CHECK(expert_flops(2) == 2 * expert_flops(1));
  CHECK(expert_flops(1) == Integer{32} * 128 * 2 * 3 * 4096 * 14336);
}

TEST_CASE("trap: the GEMM of the language-model head counts") {
  const Counted counted = count(load_model("gpt2").spec, {});
  for (const NodeAnalysis& node : counted.analysis.nodes) {
    if (node.path != "head.logits") continue;
    CHECK(node.cost.forward.matrix_flops.evaluate(bindings_of(Workload{}, counted.graph)) ==
          Integer{2} * 128 * 768 * 50257);
  }
}

TEST_CASE("trap: fused attention stores its context, not s² scores") {
  Workload workload = bfloat16_workload(32768);
  workload.attention = AttentionImplementation::fused;
  const Counted counted = count(load_model("llama-2-7b").spec, workload);
  for (const Block& block : counted.graph.blocks) {
    for (const Node& node : block.nodes) {
      if (!std::holds_alternative<FusedAttention>(node.op)) continue;
      const Expr elements = counted.graph.tensors[node.output].elements();
      CHECK(elements.evaluate(bindings_of(workload, counted.graph)) == Integer{32768} * 4096);
    }
  }
}

TEST_CASE("trap: attention in one fused kernel counts") {
  CHECK(matrix_flops("vit-base-patch16-224", AttentionImplementation::fused) ==
        matrix_flops("vit-base-patch16-224", AttentionImplementation::eager));
}

TEST_CASE("trap: an unknown architecture is an error, not read as a Llama") {
  CHECK_THROWS((void)spec_of({{"model_type", "perceiver"}, {"hidden_size", 64}}));
}
