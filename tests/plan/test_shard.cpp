// shard() against the formulas of the papers that it follows, and against the whole model.
#include "gpt_models.h"
#include "headroom/error.h"

namespace headroom::test {
namespace {

const Expr b = Symbol::batch_size;
const Expr s = Symbol::seq_len;
const Expr d = Symbol::hidden_size;
const Expr h = Symbol::num_attention_heads;
const Expr share = Symbol::tensor_parallel_share;

/// Bytes that one layer of a rank keeps for its backward pass, in the whole model's sizes.
Expr bytes_of_layer(const ModelSpec& spec, const ParallelPlan& plan, Recompute recompute) {
  const Graph whole = training_graph(spec);
  const Analysis analysis = analyze(shard(whole, plan), fused_kernels());
  Expr bytes;
  if (recompute == Recompute::full) {
    bytes = analysis.layer_inputs.substitute(Symbol::num_hidden_layers, Integer{1});
  }
  for (const SavedTensor& saved : analysis.saved) {
    if (!saved.repeat.constant() && stays_saved(saved, recompute)) bytes += saved.bytes;
  }
  const Workload workload = training(1, 2048);
  return collapse(in_whole_sizes(collapse(bytes, relations_of(workload)), whole), whole.relations);
}

ParallelPlan tensor_plan(std::int64_t ranks, SequenceParallel sequence) {
  ParallelPlan plan;
  plan.tensor = ranks;
  plan.sequence = sequence;
  return plan;
}

/// Parameters of the weights that tensor parallelism does not divide.
Integer replicated_parameters(const Graph& rank) {
  Integer count = 0;
  for (const Weight& weight : rank.weights) {
    if (!is_divided(weight)) count += (weight.repeat * weight.elements()).evaluate(rank.sizes);
  }
  return count;
}

}  // namespace

// arXiv 2205.05198, equations 1 to 4 and section 5; 8·b·s are the means and deviations of the two
// norms, which the paper leaves out.
TEST_CASE("saved activations of a tensor-parallel layer are those of Korthikanti et al.") {
  const ModelSpec spec = gpt(6144, 64, 48);
  const ParallelPlan plan = tensor_plan(8, SequenceParallel::off);
  const Expr statistics = Integer{8} * b * s;
  const Expr core = Integer{5} * b * s * s * h * share;
  const Expr rest = Integer{10} * b * s * d + Integer{24} * b * s * d * share + statistics;
  CHECK(bytes_of_layer(spec, plan, Recompute::none) == rest + core);
  CHECK(bytes_of_layer(spec, plan, Recompute::selective) == rest);
  CHECK(bytes_of_layer(spec, plan, Recompute::full) == Integer{2} * b * s * d);
}

TEST_CASE("with sequence parallelism all of a layer's activations are divided") {
  const ModelSpec spec = gpt(6144, 64, 48);
  const ParallelPlan plan = tensor_plan(8, SequenceParallel::on);
  const Expr rest = (Integer{34} * b * s * d + Integer{8} * b * s) * share;
  CHECK(bytes_of_layer(spec, plan, Recompute::none) == rest + Integer{5} * b * s * s * h * share);
  CHECK(bytes_of_layer(spec, plan, Recompute::selective) == rest);
  CHECK(bytes_of_layer(spec, plan, Recompute::full) == Integer{2} * b * s * d * share);
}

TEST_CASE("a plan of one rank leaves the graph as it is") {
  const Graph whole = training_graph(gpt(768, 12, 12));
  const Graph rank = shard(whole, {});
  CHECK(analyze(rank).total.forward.matrix_flops == analyze(whole).total.forward.matrix_flops);
  CHECK(exchanges_of(rank).empty());
  CHECK(parameters_on(rank) == parameters_on(whole));
}

TEST_CASE("parameters of all tensor-parallel ranks are the model's and the replicated ones again") {
  for (const char* const name : {"gpt2-medium", "llama-3-8b", "bert-large-uncased", "t5-3b"}) {
    CAPTURE(name);
    const Graph whole = build_graph(load_model(name).spec, {Phase::prefill, {}});
    for (const std::int64_t ranks : {1, 2, 4, 8}) {
      const Graph rank = shard(whole, tensor_plan(ranks, SequenceParallel::off));
      const Integer again = (ranks - 1) * replicated_parameters(rank);
      const Integer vocab = *whole.sizes.get(Symbol::vocab_size);
      const Integer padding = (ranks * *rank.sizes.get(Symbol::vocab_size) - vocab) *
                              *whole.sizes.get(Symbol::hidden_size);
      // A table and an untied head are padded apart, so the padding is a multiple of one's.
      const Integer surplus = ranks * parameters_on(rank) - parameters_on(whole) - again;
      CHECK(surplus >= 0);
      CHECK((padding == 0 ? surplus == 0 : surplus <= 2 * padding + 2 * ranks));
    }
  }
}

TEST_CASE("matrix FLOPs of all tensor-parallel ranks are the model's") {
  const ModelSpec spec = gpt(768, 12, 12);
  const Workload workload = training(2, 256);
  const Graph whole = training_graph(spec);
  for (const std::int64_t ranks : {2, 4}) {
    for (const auto sequence : {SequenceParallel::off, SequenceParallel::on}) {
      const ParallelPlan plan = tensor_plan(ranks, sequence);
      const Graph rank = shard(whole, plan);
      const auto flops = [&](const Graph& graph, const ParallelPlan& by) {
        return analyze(graph, fused_kernels())
            .total.backward.matrix_flops.evaluate(values_on(graph, workload, by));
      };
      CHECK(ranks * flops(rank, plan) == flops(whole, {}));
    }
  }
}

// Megatron-LM, arXiv 1909.08053, section 3: two all-reduces of b·s·d in each direction a layer.
TEST_CASE("a tensor-parallel layer sums b·s·d twice forward and twice backward") {
  const Graph rank = shard(training_graph(gpt(768, 12, 12)), tensor_plan(4, SequenceParallel::off));
  int forward = 0;
  int backward = 0;
  for (const Exchange& exchange : exchanges_of(rank)) {
    if (exchange.repeat.constant()) continue;
    CHECK(exchange.kind == CollectiveKind::all_reduce);
    CHECK(exchange.bytes == b * s * d * Symbol::activation_bytes);
    ++(exchange.backward ? backward : forward);
  }
  CHECK(forward == 2);
  CHECK(backward == 2);
}

// arXiv 2205.05198, section 4.2.2: an all-reduce is a reduce-scatter and an all-gather, so the
// bytes on the network stay the same.
TEST_CASE("sequence parallelism sends as many bytes as tensor parallelism alone") {
  const Graph whole = training_graph(gpt(768, 12, 12));
  const Workload workload = training(2, 256);
  const auto bytes_of_layers = [&](SequenceParallel sequence) {
    const ParallelPlan plan = tensor_plan(4, sequence);
    const Graph rank = shard(whole, plan);
    double bytes = 0;
    for (const Exchange& exchange : exchanges_of(rank)) {
      if (exchange.repeat.constant()) continue;
      const auto share_bytes =
          static_cast<double>(exchange.bytes.evaluate(values_on(rank, workload, plan)));
      bytes += wire_bytes(exchange.kind, share_bytes, plan.tensor);
    }
    return bytes;
  };
  CHECK(bytes_of_layers(SequenceParallel::on) ==
        doctest::Approx(bytes_of_layers(SequenceParallel::off)));
}

TEST_CASE("stages of a pipeline hold the model's parameters, and a tied table once more") {
  const Graph whole = training_graph(gpt(768, 12, 13));
  ParallelPlan plan;
  plan.pipeline = 4;
  const Integer first = parameters_on(shard(whole, plan, Stage::first));
  const Integer last = parameters_on(shard(whole, plan, Stage::last));
  const Integer middle = parameters_on(shard(whole, plan, Stage::middle));
  const Integer table = 51200 * 768;
  const Integer third = parameters_on(shard_stage(whole, plan, 2));
  CHECK(first + middle + third + last == parameters_on(whole) + table);
}

TEST_CASE("a context-parallel rank keeps its share of tokens and gathers keys and values") {
  const ModelSpec spec = gpt(768, 12, 12);
  const Graph whole = training_graph(spec, AttentionImplementation::fused);
  const Workload workload = training(1, 2048, AttentionImplementation::fused);
  ParallelPlan plan;
  plan.context = 4;
  const Graph rank = shard(whole, plan);
  const auto layer_bytes = [&](const Graph& graph, const ParallelPlan& by) {
    Integer bytes = 0;
    for (const SavedTensor& saved : analyze(graph, fused_kernels()).saved) {
      if (saved.repeat.constant()) continue;
      bytes += saved.bytes.evaluate(values_on(graph, workload, by));
    }
    return bytes;
  };
  CHECK(4 * layer_bytes(rank, plan) == layer_bytes(whole, {}));
  const std::vector<Exchange> exchanges = exchanges_of(rank);
  REQUIRE(exchanges.size() == 2);
  CHECK(exchanges[0].kind == CollectiveKind::all_gather);
  CHECK(exchanges[1].kind == CollectiveKind::reduce_scatter);
  const Expr keys_and_values =
      b * s * Symbol::num_key_value_heads * (Expr(Symbol::head_dim) + Symbol::value_head_dim);
  CHECK(exchanges[0].bytes == keys_and_values * Symbol::activation_bytes);
}

// A rank has two pieces of the sequence, one from either end; of a window w each token sees w keys
// once it is full.
TEST_CASE("a context-parallel rank sees its share of a window's pairs") {
  const Graph whole = training_graph(load_model("gemma-2-2b").spec, AttentionImplementation::fused);
  const std::int64_t window = 4096;
  const auto pairs = [&](std::int64_t seq_len, std::int64_t ranks) {
    ParallelPlan plan;
    plan.context = ranks;
    CHECK(violation_of(plan, limits_of(whole, seq_len)) == Violation::none);
    const Workload workload = training(1, seq_len, AttentionImplementation::fused);
    return *values_on(shard(whole, plan), workload, plan).get(Symbol::windowed_pairs);
  };
  const Integer all = Integer{window} * (window + 1) / 2 + Integer{32768 - window} * window;
  CHECK(pairs(32768, 1) == all);
  // Pieces as long as the window: the first has the pairs of a triangle, all others are full.
  CHECK(pairs(32768, 4) == 2 * Integer{window} * window);
  for (const std::int64_t ranks : {2, 4, 8}) {
    CHECK(ranks * pairs(32768, ranks) >= all);
    CHECK(ranks * pairs(32768, ranks) <= Integer{32768} * window);
  }
  // A window that nothing fills is no window.
  CHECK(4 * pairs(4096, 4) == Integer{4096} * 4097 / 2);
}

TEST_CASE("layers with a window gather all keys and values, as the others do") {
  const Graph whole = training_graph(load_model("gemma-2-2b").spec, AttentionImplementation::fused);
  ParallelPlan plan;
  plan.context = 4;
  Integer layers = 0;
  for (const Exchange& exchange : exchanges_of(shard(whole, plan))) {
    CHECK(exchange.group == RankGroup::context);
    if (!exchange.backward) layers += exchange.repeat.evaluate(whole.sizes);
  }
  CHECK(layers == 26);
}

TEST_CASE("tensor parallelism divides the heads of a recurrence") {
  const Graph whole =
      training_graph(load_model("qwen3-next-80b-a3b").spec, AttentionImplementation::fused);
  const Workload workload = training(1, 128, AttentionImplementation::fused);
  for (const std::int64_t ranks : {2, 4, 16}) {
    const ParallelPlan plan = tensor_plan(ranks, SequenceParallel::on);
    CHECK(violation_of(plan, limits_of(whole, 128)) == Violation::none);
    const Graph rank = shard(whole, plan);
    Integer divided = 0;
    for (const Weight& weight : rank.weights) {
      if (weight.path.find("convolution") == std::string::npos) continue;
      CHECK(is_divided(weight));
      divided += (weight.repeat * weight.elements()).evaluate(rank.sizes);
    }
    // 36 layers; 2 · 16 key heads and 32 value heads of 128; a kernel of 4.
    CHECK(ranks * divided == Integer{36} * (2 * 16 + 32) * 128 * 4);
  }
  // With no more ranks than key-value heads nothing is held twice but what all ranks hold.
  const ParallelPlan plan = tensor_plan(2, SequenceParallel::on);
  const Graph rank = shard(whole, plan);
  CHECK(2 * parameters_on(rank) == parameters_on(whole) + replicated_parameters(rank));
  const auto flops = [&](const Graph& graph, const ParallelPlan& by) {
    return analyze(graph, fused_kernels())
        .total.forward.matrix_flops.evaluate(values_on(graph, workload, by));
  };
  CHECK(2 * flops(rank, plan) == flops(whole, {}));
}

// Every layer of a decoder gathers the encoder's output as it gathers its own input: Megatron-LM's
// column-parallel products do.
TEST_CASE("sequence parallelism of an encoder-decoder divides all of its activations") {
  const Graph whole = training_graph(load_model("t5-small").spec, AttentionImplementation::fused);
  Workload workload = training(2, 256, AttentionImplementation::fused);
  workload.enc_seq_len = 256;
  const ParallelPlan plan = tensor_plan(4, SequenceParallel::on);
  CHECK(violation_of(plan, limits_of(whole, 256)) == Violation::none);
  const Graph rank = shard(whole, plan);
  const auto layer_bytes = [&](const Graph& graph, const ParallelPlan& by) {
    Integer bytes = 0;
    for (const SavedTensor& saved : analyze(graph, fused_kernels()).saved) {
      const bool in_layers = saved.path.find(".layers.") != std::string::npos;
      if (in_layers) bytes += (saved.repeat * saved.bytes).evaluate(values_on(graph, workload, by));
    }
    return bytes;
  };
  CHECK(4 * layer_bytes(rank, plan) == layer_bytes(whole, {}));
  Integer gathers = 0;
  for (const Exchange& exchange : exchanges_of(rank)) {
    const bool counted = exchange.kind == CollectiveKind::all_gather && !exchange.backward;
    if (counted) gathers += exchange.repeat.evaluate(rank.sizes);
  }
  // Six encoder layers of 2 gathers, six decoder layers of 4; the head's.
  CHECK(gathers == 6 * 2 + 6 * 4 + 1);
}

TEST_CASE("plans that a model does not allow are refused with the reason") {
  const Graph whole = training_graph(gpt(768, 12, 12));
  const ShardingLimits limits = limits_of(whole, 2048);
  const auto violation = [&](auto change) {
    ParallelPlan plan;
    change(plan);
    return violation_of(plan, limits);
  };
  CHECK(violation([](ParallelPlan&) {}) == Violation::none);
  CHECK(violation([](ParallelPlan& p) { p.tensor = 5; }) == Violation::tensor_heads);
  CHECK(violation([](ParallelPlan& p) { p.data = 0; }) == Violation::below_one);
  CHECK(violation([](ParallelPlan& p) { p.sequence = SequenceParallel::on; }) ==
        Violation::sequence_without_tensor);
  CHECK(violation([](ParallelPlan& p) { p.pipeline = 13; }) == Violation::pipeline_layers);
  CHECK(violation([](ParallelPlan& p) { p.interleave = 2; }) ==
        Violation::interleave_without_pipeline);
  CHECK(violation([](ParallelPlan& p) {
          p.pipeline = 4;
          p.interleave = 2;
        }) == Violation::interleave_layers);
  CHECK(violation([](ParallelPlan& p) { p.context = 2; }) == Violation::context_attention);
  CHECK(violation([](ParallelPlan& p) { p.expert = 2; }) == Violation::expert_count);
  ParallelPlan plan;
  plan.tensor = 5;
  CHECK_THROWS_WITH_AS(require_legal(plan, limits), "--tp 5 does not divide 12 attention heads",
                       Error);
}

TEST_CASE("recurrent and convolutional layers are taken whole") {
  for (const char* const name : {"layer-gru", "layer-conv-dilated"}) {
    CAPTURE(name);
    const Graph graph = build_graph(load_model(name).spec, {Phase::train});
    const ShardingLimits limits = limits_of(graph, 128);
    ParallelPlan tensor;
    tensor.tensor = 2;
    CHECK(violation_of(tensor, limits) == Violation::layer_kind);
    ParallelPlan context;
    context.context = 2;
    CHECK(violation_of(context, limits) == Violation::layer_kind);
    ParallelPlan data;
    data.data = 2;
    CHECK(violation_of(data, limits) == Violation::none);
  }
}

}  // namespace headroom::test
