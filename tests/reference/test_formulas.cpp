// Formulas of textbooks and papers, derived symbolically from the graph.
#include <doctest/doctest.h>

#include "letters.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

const Expr N = Symbol::seq_len;
const Expr k = Symbol::head_dim;

nlohmann::json gpt2_like() {
  return {{"model_type", "gpt2"},
          {"n_embd", 64},
          {"n_layer", 3},
          {"n_head", 4},
          {"vocab_size", 101},
          {"n_positions", 40},
          {"activation_function", "gelu"}};
}

/// The matrix FLOPs of components whose names begin with `prefix`, as a formula.
Expr flops_of(const Counted& counted, const Workload& workload, std::string_view prefix) {
  Expr sum;
  for (const ComponentAnalysis& component : counted.analysis.components) {
    if (name_of(component.component).starts_with(prefix)) {
      sum += component.cost.forward.matrix_flops;
    }
  }
  return collapsed(sum, counted.graph, workload);
}

}  // namespace

TEST_CASE("a layer's attention is 8·b·s·d² + 4·b·s²·d and its FFN 16·b·s·d²") {
  const Workload workload;
  const Counted counted = count(spec_of(gpt2_like()), workload);
  CHECK(flops_of(counted, workload, "attention") ==
        l * (Integer{8} * b * N * d * d + Integer{4} * b * N * N * d));
  CHECK(flops_of(counted, workload, "mlp") == l * Integer{16} * b * N * d * d);
  CHECK(flops_of(counted, workload, "head") == Integer{2} * b * N * d * V);
}

TEST_CASE("a decoder is l·(24·b·s·d² + 4·b·s²·d) + 2·b·s·d·V") {
  const Workload workload;
  const Counted counted = count(spec_of(gpt2_like()), workload);
  const Expr whole =
      collapsed(counted.analysis.total.forward.matrix_flops, counted.graph, workload);
  CHECK(whole == l * (Integer{24} * b * N * d * d + Integer{4} * b * N * N * d) +
                     Integer{2} * b * N * d * V);
  CHECK(format(whole) == "24·l·b·s·d² + 4·l·b·s²·d + 2·b·s·d·V");
}

TEST_CASE(
    "training activations are l·(34·b·s·d + 5·b·s²·h) bytes in 16 bit, plus statistics of norms") {
  Workload workload;
  workload.phase = Phase::train;
  workload.dtype = DType::bfloat16;
  const Counted counted = count(spec_of(gpt2_like()), workload);
  Expr tensors;
  Expr statistics;
  for (const SavedTensor& saved : counted.analysis.saved) {
    if (saved.repeat == Expr(Integer{1})) continue;  // outside the layers
    (saved.kind == SavedKind::statistic ? statistics : tensors) += saved.repeat * saved.bytes;
  }
  CHECK(collapsed(tensors, counted.graph, workload) ==
        l * (Integer{34} * b * N * d + Integer{5} * b * N * N * h));
  // Korthikanti et al. leave out mean and rstd of two norms.
  CHECK(collapsed(statistics, counted.graph, workload) == l * Integer{8} * b * N);
}

TEST_CASE("selective recompute drops 5·b·s²·h, full recompute saves 2·b·s·d per layer") {
  Workload workload;
  workload.phase = Phase::train;
  workload.dtype = DType::bfloat16;
  const Counted counted = count(spec_of(gpt2_like()), workload);
  const auto bytes = [&](Recompute recompute) {
    return collapsed(saved_bytes(counted.analysis, recompute), counted.graph, workload);
  };
  CHECK(bytes(Recompute::none) - bytes(Recompute::selective) == l * Integer{5} * b * N * N * h);
  const Expr per_layer = bytes(Recompute::full) -
                         bytes(Recompute::full).substitute(Symbol::num_hidden_layers, Integer{0});
  CHECK(per_layer == l * Integer{2} * b * N * d);
}

TEST_CASE("selective recompute reruns the attention core's element-wise FLOPs, dropout included") {
  // gpt2 at batch 1 and 128 tokens: 12 layers of 12 heads with 128² scores each.
  const Integer scores = Integer{12} * 12 * 128 * 128;
  ModelSpec spec = load_model("gpt2").spec;
  WorkloadRequest request;
  request.phase = Phase::train;
  request.recompute = Recompute::selective;
  const auto recomputed = [&] {
    return count(spec, resolve(request, spec)).figures.recompute.elementwise_flops;
  };
  // Per score: scale, mask, softmax (max, subtract, exp, sum, divide), and dropout, which
  // multiplies by the mask and by 1/(1 - p).
  const Integer with_dropout = recomputed();
  CHECK(with_dropout == (1 + 1 + 5 + 2) * scores);
  spec.decoder->dropout.attention_probs = 0;
  CHECK(with_dropout - recomputed() == 4'718'592);
}

TEST_CASE("a layer has 12·d² weights, a model L·12·d² + V·d, without biases and norms") {
  const Counted counted = count(spec_of(gpt2_like()), {});
  const Expr parameters = collapse(counted.analysis.parameters.total, counted.graph.relations);
  const Expr positions = Expr(Symbol::max_position_embeddings) * d;
  // Biases: 3·d, d, 4·d, d; norms: 4·d per layer and 2·d at the end.
  const Expr small = l * Integer{13} * d + Integer{2} * d;
  CHECK(parameters == l * Integer{12} * d * d + V * d + positions + small);
}

TEST_CASE("the KV-cache of multi-head attention after s + n tokens is 2·b·(s + n)·d·l·bytes") {
  const Counted counted = count(spec_of(gpt2_like()), {});
  const Expr cache = collapse(kv_cache_bytes(counted.analysis), counted.graph.relations);
  const Expr bytes = Symbol::kv_cache_bytes;
  CHECK(cache.substitute(Symbol::visible_keys, N + n) == Integer{2} * b * (N + n) * d * l * bytes);
}

TEST_CASE("softmax attention costs O(s²·d), linear attention O(s·d·k)") {
  const nlohmann::json softmax = {{"model_type", "attention"},
                                  {"hidden_size", 64},
                                  {"num_attention_heads", 4},
                                  {"head_dim", 16}};
  nlohmann::json linear = softmax;
  linear["attention_kind"] = "linear";
  const Workload workload;
  const auto core = [&](const nlohmann::json& config) {
    const Counted counted = count(spec_of(config), workload);
    return flops_of(counted, workload, "attention.") -
           flops_of(counted, workload, "attention.qkv") -
           flops_of(counted, workload, "attention.out");
  };
  CHECK(core(softmax) == Integer{4} * b * N * N * d * l);
  CHECK(core(softmax).degree(Symbol::seq_len) == 2);
  // φ(K)ᵀ·V, φ(Q)·S and the denominator.
  CHECK(core(linear) == l * (Integer{4} * b * N * d * k + Integer{2} * b * N * d));
  CHECK(core(linear).degree(Symbol::seq_len) == 1);
}

TEST_CASE("fused attention under a causal mask computes s·(s + 1)/2 pairs") {
  Workload workload;
  workload.attention = AttentionImplementation::fused;
  const Counted counted = count(spec_of(gpt2_like()), workload);
  CHECK(flops_of(counted, workload, "attention.core") ==
        Integer{4} * l * b * Expr(Symbol::visible_pairs) * d);
  CHECK(*bindings_of(workload, LayerTraits{}).get(Symbol::visible_pairs) == 128 * 129 / 2);
}

TEST_CASE("a decode step is linear in its visible keys") {
  Workload workload;
  workload.phase = Phase::decode;
  workload.seq_len = 1;
  workload.past_len = 10;
  const Counted counted = count(spec_of(gpt2_like()), workload);
  CHECK(collapsed(counted.analysis.total.forward.matrix_flops, counted.graph, workload) ==
        l * (Integer{24} * b * d * d + Integer{4} * b * t * d) + Integer{2} * b * d * V);
}

TEST_CASE("the worked example: d_model 512, 8 heads, d_k 64, d_v 100, 2 tokens") {
  const nlohmann::json config = {{"model_type", "attention"},
                                 {"d_model", 512},
                                 {"num_attention_heads", 8},
                                 {"d_k", 64},
                                 {"d_v", 100}};
  const ModelSpec spec = spec_of(config);
  const Graph graph = build_graph(spec, {});
  Workload workload;
  workload.seq_len = 2;
  Bindings values = bindings_of(workload, LayerTraits{});
  for (const SymbolInfo& symbol : symbols()) {
    if (const auto size = graph.sizes.get(symbol.symbol)) values.set(symbol.symbol, *size);
  }
  std::map<std::string, std::vector<Integer>> shapes;
  for (const Node& node : graph.blocks.at(0).nodes) {
    for (const Expr& size : graph.tensors[node.output].shape) {
      shapes[node.path].push_back(size.evaluate(values));
    }
  }
  using Shape = std::vector<Integer>;
  // One head: queries and keys 2 × 64, scores 2 × 2, values and context 2 × 100.
  CHECK(shapes.at("attention.qkv") == Shape{1, 2, 8 * 64 + 8 * 64 + 8 * 100});
  CHECK(shapes.at("attention.scores") == Shape{1, 8, 2, 2});
  CHECK(shapes.at("attention.context") == Shape{1, 2, 800});
  CHECK(shapes.at("attention.out") == Shape{1, 2, 512});
  CHECK(spec.encoder->self_attention.head_dim == 64);
  CHECK(spec.encoder->self_attention.value_head_dim == 100);
  // W_Q, W_K: 512 × 512 each; W_V: 512 × 800; W_O: 800 × 512.
  CHECK(count_parameters(graph).total.evaluate(graph.sizes) ==
        2 * 512 * 512 + 512 * 800 + 800 * 512);
}
