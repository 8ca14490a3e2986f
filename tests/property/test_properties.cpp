// Properties of every preset, independent of its figures.
#include <doctest/doctest.h>

#include <set>

#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

/// A sample of presets: one per family and kind of layer.
const std::vector<std::string>& sample_presets() {
  static const std::vector<std::string> kNames{"bert-base-uncased-pretraining",
                                               "roberta-base-mlm",
                                               "distilbert",
                                               "gpt2",
                                               "llama-3-8b",
                                               "t5-small",
                                               "flan-t5-small",
                                               "vit-base",
                                               "transformer-base",
                                               "linear-transformer",
                                               "layer-lstm",
                                               "layer-gru",
                                               "layer-conv-dilated",
                                               "layer-cross-attention",
                                               "layer-window-attention",
                                               "layer-ffn"};
  return kNames;
}

std::vector<Workload> workloads_for(const ModelSpec& spec) {
  std::vector<Workload> workloads;
  for (const Phase phase : {Phase::prefill, Phase::decode, Phase::train}) {
    const bool causal = spec.main_stack().causal();
    if (phase == Phase::decode && !causal) continue;
    for (const auto attention : {AttentionImplementation::eager, AttentionImplementation::fused}) {
      WorkloadRequest request;
      request.phase = phase;
      request.attention = attention;
      request.batch_size = 3;
      workloads.push_back(resolve(request, spec));
    }
  }
  return workloads;
}

template <class Check>
void for_each_sample(Check check) {
  for (const std::string& name : sample_presets()) {
    CAPTURE(name);
    const ModelSpec spec = load_model(name).spec;
    for (const Workload& workload : workloads_for(spec)) {
      CAPTURE(std::string(name_of(workload.phase)));
      CAPTURE(std::string(name_of(workload.attention)));
      check(spec, workload, count(spec, workload));
    }
  }
}

}  // namespace

TEST_CASE("components and operators each sum to the total") {
  for_each_sample([](const ModelSpec&, const Workload&, const Counted& counted) {
    CostFigures sum;
    Integer parameters = 0;
    for (const ComponentFigures& component : counted.figures.components) {
      parameters += component.parameters;
      sum.matrix_flops += component.forward.matrix_flops;
      sum.elementwise_flops += component.forward.elementwise_flops;
      sum.bytes_read += component.forward.bytes_read;
      sum.bytes_written += component.forward.bytes_written;
    }
    CHECK(parameters == counted.figures.parameters);
    CHECK(sum.matrix_flops == counted.figures.forward.matrix_flops);
    CHECK(sum.elementwise_flops == counted.figures.forward.elementwise_flops);
    CHECK(sum.bytes_read == counted.figures.forward.bytes_read);
    CHECK(sum.bytes_written == counted.figures.forward.bytes_written);
    Expr nodes;
    for (const NodeAnalysis& node : counted.analysis.nodes) nodes += node.cost.forward.matrix_flops;
    CHECK(nodes == counted.analysis.total.forward.matrix_flops);
  });
}

TEST_CASE("parameters by role sum to the total") {
  for_each_sample([](const ModelSpec&, const Workload&, const Counted& counted) {
    const ParameterCount& p = counted.analysis.parameters;
    CHECK(p.embedding + p.relative_position_bias + p.attention + p.recurrent + p.convolution +
              p.mlp + p.norm + p.head ==
          p.total);
  });
}

TEST_CASE("every number equals its own formula") {
  for_each_sample([](const ModelSpec&, const Workload& workload, const Counted& counted) {
    const Bindings values = bindings_of(workload, counted.graph);
    const auto value = [&](const Expr& expr) { return expr.evaluate(values); };
    const auto readable = [&](const Expr& expr) {
      return collapsed(expr, counted.graph, workload).evaluate(values);
    };
    const Cost& forward = counted.analysis.total.forward;
    CHECK(counted.figures.forward.matrix_flops == value(forward.matrix_flops));
    CHECK(counted.figures.forward.matrix_flops == readable(forward.matrix_flops));
    CHECK(counted.figures.forward.elementwise_flops == readable(forward.elementwise_flops));
    CHECK(counted.figures.forward.bytes_read == readable(forward.bytes_read));
    CHECK(counted.figures.kv_cache_bytes == readable(kv_cache_bytes(counted.analysis)));
    CHECK(counted.figures.saved_activation_bytes ==
          readable(saved_bytes(counted.analysis, workload.recompute)));
    Integer peak = 0;
    for (const LiveBytes& live : counted.analysis.live) peak = std::max(peak, value(live.bytes));
    CHECK(counted.figures.peak_activation_bytes == peak);
  });
}

TEST_CASE("the next token adds the bytes per token to the KV-cache") {
  for_each_sample([](const ModelSpec& spec, const Workload& workload, const Counted& now) {
    if (now.graph.traits.compresses_keys()) return;  // their bytes per token are a mean
    Workload longer = workload;
    ++longer.past_len;
    const Integer added = count(spec, longer).figures.kv_cache_bytes - now.figures.kv_cache_bytes;
    CHECK(added == Integer{workload.batch_size} * now.figures.kv_cache_bytes_per_token);
  });
}

TEST_CASE("FLOPs, caches and live bytes are linear in the batch size") {
  for_each_sample([](const ModelSpec& spec, const Workload& workload, const Counted& three) {
    Workload single = workload;
    single.batch_size = 1;
    const Counted one = count(spec, single);
    const bool shared_bias = spec.position.kind == PositionKind::relative_bias;
    CHECK(three.figures.forward.matrix_flops == 3 * one.figures.forward.matrix_flops);
    CHECK(three.figures.kv_cache_bytes == 3 * one.figures.kv_cache_bytes);
    CHECK(three.figures.kv_cache_bytes_per_token == one.figures.kv_cache_bytes_per_token);
    if (!shared_bias) {
      CHECK(three.figures.peak_activation_bytes == 3 * one.figures.peak_activation_bytes);
    }
  });
}

TEST_CASE("cost is linear in the number of layers") {
  const auto with_layers = [](int layers) {
    const nlohmann::json config = {{"model_type", "llama"},    {"hidden_size", 64},
                                   {"intermediate_size", 96},  {"num_hidden_layers", layers},
                                   {"num_attention_heads", 4}, {"num_key_value_heads", 2},
                                   {"vocab_size", 101}};
    return count(spec_of(config), {}).figures;
  };
  const Figures one = with_layers(1);
  const Figures two = with_layers(2);
  const Figures five = with_layers(5);
  const auto linear = [](Integer at_1, Integer at_2, Integer at_5) {
    return at_5 - at_2 == 3 * (at_2 - at_1);
  };
  CHECK(linear(one.parameters, two.parameters, five.parameters));
  CHECK(linear(one.forward.matrix_flops, two.forward.matrix_flops, five.forward.matrix_flops));
  CHECK(linear(one.kv_cache_bytes, two.kv_cache_bytes, five.kv_cache_bytes));
  // Layers run in sequence and reuse memory.
  CHECK(one.peak_activation_bytes == five.peak_activation_bytes);
}

TEST_CASE(
    "grouped-query attention with all heads equals multi-head attention; with fewer it is "
    "cheaper") {
  const auto with_groups = [](int groups) {
    const nlohmann::json config = {{"model_type", "llama"},    {"hidden_size", 64},
                                   {"intermediate_size", 96},  {"num_hidden_layers", 2},
                                   {"num_attention_heads", 8}, {"num_key_value_heads", groups},
                                   {"vocab_size", 101}};
    return count(spec_of(config), {}).figures;
  };
  const nlohmann::json unsaid = {{"model_type", "llama"},    {"hidden_size", 64},
                                 {"intermediate_size", 96},  {"num_hidden_layers", 2},
                                 {"num_attention_heads", 8}, {"vocab_size", 101}};
  const Figures multi_head = count(spec_of(unsaid), {}).figures;
  CHECK(with_groups(8).parameters == multi_head.parameters);
  CHECK(with_groups(8).kv_cache_bytes == multi_head.kv_cache_bytes);
  CHECK(4 * with_groups(2).kv_cache_bytes == multi_head.kv_cache_bytes);
  CHECK(8 * with_groups(1).kv_cache_bytes == multi_head.kv_cache_bytes);
  CHECK(with_groups(2).forward.matrix_flops < multi_head.forward.matrix_flops);
}

TEST_CASE("prefilling n + 1 tokens costs as much as prefilling n and decoding one") {
  // With fused attention, which skips masked pairs.
  for (const char* const name :
       {"gpt2", "llama-3-8b", "linear-transformer", "layer-rnn", "layer-lstm", "layer-gru",
        "layer-conv-dilated", "layer-masked-attention"}) {
    CAPTURE(name);
    const ModelSpec spec = load_model(name).spec;
    const auto flops = [&](Phase phase, std::int64_t seq, std::int64_t past) {
      Workload workload;
      workload.phase = phase;
      workload.attention = AttentionImplementation::fused;
      workload.seq_len = seq;
      workload.past_len = past;
      return count(spec, workload).figures;
    };
    const Figures longer = flops(Phase::prefill, 100, 0);
    const Figures shorter = flops(Phase::prefill, 99, 0);
    const Figures step = flops(Phase::decode, 1, 99);
    CHECK(longer.forward.matrix_flops == shorter.forward.matrix_flops + step.forward.matrix_flops);
    CHECK(longer.kv_cache_bytes == step.kv_cache_bytes);
    // A prompt that arrives in two chunks costs as much as one that arrives at once.
    const Figures chunk = flops(Phase::prefill, 40, 60);
    const Figures first = flops(Phase::prefill, 60, 0);
    CHECK(longer.forward.matrix_flops == first.forward.matrix_flops + chunk.forward.matrix_flops);
  }
}

TEST_CASE("the backward pass is twice the forward, except for pixels and fused attention") {
  for (const char* const name : {"gpt2", "bert-base", "llama-3-8b", "t5-small"}) {
    CAPTURE(name);
    WorkloadRequest request;
    request.phase = Phase::train;
    const ModelSpec spec = load_model(name).spec;
    const Figures eager = count(spec, resolve(request, spec)).figures;
    CHECK(eager.backward.matrix_flops == 2 * eager.forward.matrix_flops);
    request.attention = AttentionImplementation::fused;
    const Figures fused = count(spec, resolve(request, spec)).figures;
    CHECK(fused.backward.matrix_flops > 2 * fused.forward.matrix_flops);
  }
  WorkloadRequest request;
  request.phase = Phase::train;
  const ModelSpec spec = load_model("vit-base").spec;
  const Figures vit = count(spec, resolve(request, spec)).figures;
  // 196 patches of 768 values, projected to width 768: pixels need no gradient.
  CHECK(2 * vit.forward.matrix_flops - vit.backward.matrix_flops == Integer{2} * 196 * 768 * 768);
}

TEST_CASE("full recompute reruns all layers, selective recompute only the attention core") {
  const ModelSpec spec = load_model("gpt2").spec;
  WorkloadRequest request;
  request.phase = Phase::train;
  const auto figures = [&](Recompute recompute) {
    request.recompute = recompute;
    return count(spec, resolve(request, spec)).figures;
  };
  const Figures none = figures(Recompute::none);
  const Figures selective = figures(Recompute::selective);
  const Figures full = figures(Recompute::full);
  CHECK(none.recompute.matrix_flops == 0);
  CHECK(selective.recompute.matrix_flops == Integer{4} * 12 * 128 * 128 * 768);
  const Integer head = Integer{2} * 128 * 768 * 50257;
  CHECK(full.recompute.matrix_flops == none.forward.matrix_flops - head);
  CHECK(full.saved_activation_bytes < selective.saved_activation_bytes);
  CHECK(selective.saved_activation_bytes < none.saved_activation_bytes);
}

TEST_CASE("selective recompute reruns the operators whose tensors it drops") {
  for_each_sample([](const ModelSpec&, const Workload& workload, const Counted& counted) {
    if (workload.phase != Phase::train) return;
    std::set<std::string> core;
    Expr flops;
    std::size_t next = 0;
    for (const Block& block : counted.graph.blocks) {
      for (const Node& node : block.nodes) {
        const NodeAnalysis& cost = counted.analysis.nodes.at(next++);
        if (!in_attention_core(node)) continue;
        core.insert(cost.path);
        flops += cost.cost.forward.elementwise_flops;
      }
    }
    for (const SavedTensor& saved : counted.analysis.saved) {
      CAPTURE(saved.path);
      if (!stays_saved(saved, Recompute::selective)) CHECK(core.contains(saved.path));
    }
    const Analysis selective =
        analyze(counted.graph, {Convention::headroom, Recompute::selective, workload.kernels});
    CHECK(selective.recompute.elementwise_flops == flops);
    CHECK(core.empty() == selective.recompute.matrix_flops.is_zero());
  });
}

TEST_CASE("fused attention never stores the scores") {
  const ModelSpec spec = load_model("bert-large").spec;
  Workload workload;
  workload.seq_len = 4096;
  const Figures eager = count(spec, workload).figures;
  workload.attention = AttentionImplementation::fused;
  const Counted fused = count(spec, workload);
  CHECK(fused.figures.peak_activation_bytes < eager.peak_activation_bytes / 2);
  for (const LiveBytes& live : fused.analysis.live) {
    CHECK(live.bytes.degree(Symbol::seq_len) <= 1);
  }
}
