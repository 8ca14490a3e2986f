// shard() against the formulas of its papers, and against the whole model.
#include "gpt_models.h"

namespace headroom::test {
namespace {

const Expr b = Symbol::batch_size;
const Expr s = Symbol::seq_len;
const Expr d = Symbol::hidden_size;
const Expr h = Symbol::num_attention_heads;
const Expr fraction = Symbol::tensor_parallel_share;

/// Bytes that one layer of a rank saves for its backward pass, in the whole model's sizes.
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

}  // namespace

// arXiv 2205.05198, equations 1 to 4 and section 5. 8·b·s are the means and deviations of the two
// norms, which the paper leaves out.
TEST_CASE("saved activations of a tensor-parallel layer match Korthikanti et al.") {
  const ModelSpec spec = gpt(6144, 64, 48);
  const ParallelPlan plan = tensor_plan(8, SequenceParallel::off);
  const Expr statistics = Integer{8} * b * s;
  const Expr core = Integer{5} * b * s * s * h * fraction;
  const Expr rest = Integer{10} * b * s * d + Integer{24} * b * s * d * fraction + statistics;
  CHECK(bytes_of_layer(spec, plan, Recompute::none) == rest + core);
  CHECK(bytes_of_layer(spec, plan, Recompute::selective) == rest);
  CHECK(bytes_of_layer(spec, plan, Recompute::full) == Integer{2} * b * s * d);
}

TEST_CASE("sequence parallelism divides all activations of a layer") {
  const ModelSpec spec = gpt(6144, 64, 48);
  const ParallelPlan plan = tensor_plan(8, SequenceParallel::on);
  const Expr rest = (Integer{34} * b * s * d + Integer{8} * b * s) * fraction;
  CHECK(bytes_of_layer(spec, plan, Recompute::none) ==
        rest + Integer{5} * b * s * s * h * fraction);
  CHECK(bytes_of_layer(spec, plan, Recompute::selective) == rest);
  CHECK(bytes_of_layer(spec, plan, Recompute::full) == Integer{2} * b * s * d * fraction);
}

TEST_CASE("a plan of one rank does not change the graph") {
  const Graph whole = training_graph(gpt(768, 12, 12));
  const Graph rank = shard(whole, {});
  CHECK(analyze(rank).total.forward.matrix_flops == analyze(whole).total.forward.matrix_flops);
  CHECK(collectives_of(rank).empty());
  CHECK(parameters_on(rank) == parameters_on(whole));
}

TEST_CASE("tensor-parallel ranks store the model's parameters and copies of replicated ones") {
  for (const char* const name : {"gpt2-medium", "llama-3-8b", "bert-large-uncased", "t5-3b"}) {
    CAPTURE(name);
    const Graph whole = build_graph(load_model(name).spec, {Phase::prefill, {}});
    for (const std::int64_t ranks : {1, 2, 4, 8}) {
      const Graph rank = shard(whole, tensor_plan(ranks, SequenceParallel::off));
      const Integer copies = (ranks - 1) * replicated_parameters(rank);
      const Integer vocab = *whole.sizes.get(Symbol::vocab_size);
      const Integer padding = (ranks * *rank.sizes.get(Symbol::vocab_size) - vocab) *
                              *whole.sizes.get(Symbol::hidden_size);
      // A table and an untied head are padded separately.
      const Integer surplus = ranks * parameters_on(rank) - parameters_on(whole) - copies;
      CHECK(surplus >= 0);
      CHECK((padding == 0 ? surplus == 0 : surplus <= 2 * padding + 2 * ranks));
    }
  }
}

TEST_CASE("tensor-parallel ranks split the model's matrix FLOPs") {
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

// Megatron-LM, arXiv 1909.08053, section 3: two all-reduces of b·s·d per direction and layer.
TEST_CASE("a tensor-parallel layer all-reduces b·s·d twice forward and twice backward") {
  const Graph rank = shard(training_graph(gpt(768, 12, 12)), tensor_plan(4, SequenceParallel::off));
  int forward = 0;
  int backward = 0;
  for (const CollectiveCall& call : collectives_of(rank)) {
    if (call.repeat.constant()) continue;
    CHECK(call.kind == CollectiveKind::all_reduce);
    CHECK(call.bytes == b * s * d * Symbol::activation_bytes);
    ++(call.backward ? backward : forward);
  }
  CHECK(forward == 2);
  CHECK(backward == 2);
}

// arXiv 2205.05198, section 4.2.2: an all-reduce is a reduce-scatter and an all-gather.
TEST_CASE("sequence parallelism gathers tokens, not a table of relative positions") {
  const ModelSpec spec = load_model((data_folder() / "golden/models/deberta_v2").string()).spec;
  const Graph rank =
      shard(build_graph(spec, {Phase::prefill}), tensor_plan(2, SequenceParallel::on));
  std::size_t gathered = 0;
  for (const Block& block : rank.blocks) {
    for (const Node& node : block.nodes) {
      const auto* const op = std::get_if<Collective>(&node.op);
      if (op == nullptr || op->forward != CollectiveKind::all_gather) continue;
      CHECK(op->bytes.degree(Symbol::sequence_shard_len) == 1);
      ++gathered;
    }
  }
  CHECK(gathered > 0);
}

TEST_CASE("sequence parallelism gathers the outputs of a model without a vocabulary's head") {
  const auto gathers = [](const std::string& model, const std::string& path) {
    const Graph rank = shard(build_graph(load_model(model).spec, {Phase::prefill}),
                             tensor_plan(2, SequenceParallel::on));
    return std::ranges::any_of(rank.blocks.back().nodes,
                               [&](const Node& node) { return node.path == path; });
  };
  CHECK(gathers((data_folder() / "golden/models/nomic_bert").string(), "output_tokens.all_gather"));
  CHECK(gathers("electra-base-discriminator", "classifier.all_gather"));
}

TEST_CASE("sequence parallelism sends as many bytes as tensor parallelism alone") {
  const Graph whole = training_graph(gpt(768, 12, 12));
  const Workload workload = training(2, 256);
  const auto bytes_of_layers = [&](SequenceParallel sequence) {
    const ParallelPlan plan = tensor_plan(4, sequence);
    const Graph rank = shard(whole, plan);
    double bytes = 0;
    for (const CollectiveCall& call : collectives_of(rank)) {
      if (call.repeat.constant()) continue;
      const auto call_bytes =
          static_cast<double>(call.bytes.evaluate(values_on(rank, workload, plan)));
      bytes += wire_bytes(call.kind, call_bytes, plan.tensor);
    }
    return bytes;
  };
  CHECK(bytes_of_layers(SequenceParallel::on) ==
        doctest::Approx(bytes_of_layers(SequenceParallel::off)));
}

TEST_CASE("stages of a pipeline store the model's parameters, and a tied table twice") {
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

TEST_CASE("stages of a pipeline store their layers' weights that no operator uses") {
  const ModelSpec spec = spec_of({{"model_type", "longformer"},
                                  {"hidden_size", 48},
                                  {"num_attention_heads", 4},
                                  {"num_hidden_layers", 5},
                                  {"intermediate_size", 80},
                                  {"vocab_size", 100},
                                  {"attention_window", 4}});
  // Fused attention has no global tokens, and leaves out their projections.
  const Graph whole = build_graph(spec, {Phase::train, AttentionImplementation::fused});
  ParallelPlan plan;
  plan.pipeline = 3;
  const std::int64_t global = 3 * (48 * 48 + 48);  // of a layer
  Integer stored = 0;
  for (std::int64_t stage = 0; stage < 3; ++stage) {
    stored += parameters_on(shard_stage(whole, plan, stage));
  }
  CHECK(stored == parameters_on(whole));
  CHECK(parameters_on(whole) > 5 * global);
}

TEST_CASE("a context-parallel rank saves its shard of tokens and gathers keys and values") {
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
  const std::vector<CollectiveCall> calls = collectives_of(rank);
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].kind == CollectiveKind::all_gather);
  CHECK(calls[1].kind == CollectiveKind::reduce_scatter);
  const Expr keys_and_values =
      b * s * Symbol::num_key_value_heads * (Expr(Symbol::head_dim) + Symbol::value_head_dim);
  CHECK(calls[0].bytes == keys_and_values * Symbol::activation_bytes);
}

// A rank has two chunks of the sequence, one from either end. With a window w each token sees w
// keys once the window is full.
TEST_CASE("context parallelism divides the pairs of a sliding window") {
  const Graph whole = training_graph(load_model("gemma-2-2b").spec, AttentionImplementation::fused);
  const std::int64_t window = 4096;
  const auto pairs = [&](std::int64_t seq_len, std::int64_t ranks) {
    ParallelPlan plan;
    plan.context = ranks;
    CHECK_FALSE(broken_rule(plan, limits_of(whole, seq_len)));
    const Workload workload = training(1, seq_len, AttentionImplementation::fused);
    return *values_on(shard(whole, plan), workload, plan).get(Symbol::windowed_pairs);
  };
  const Integer all = Integer{window} * (window + 1) / 2 + Integer{32768 - window} * window;
  CHECK(pairs(32768, 1) == all);
  // Chunks as long as the window: the first has a triangle of pairs, all others are full.
  CHECK(pairs(32768, 4) == 2 * Integer{window} * window);
  for (const std::int64_t ranks : {2, 4, 8}) {
    CHECK(ranks * pairs(32768, ranks) >= all);
    CHECK(ranks * pairs(32768, ranks) <= Integer{32768} * window);
  }
  // A window as long as the sequence masks nothing.
  CHECK(4 * pairs(4096, 4) == Integer{4096} * 4097 / 2);
}

TEST_CASE("layers with a sliding window gather all keys and values") {
  const Graph whole = training_graph(load_model("gemma-2-2b").spec, AttentionImplementation::fused);
  ParallelPlan plan;
  plan.context = 4;
  Integer layers = 0;
  for (const CollectiveCall& call : collectives_of(shard(whole, plan))) {
    CHECK(call.group == RankGroup::context);
    if (!call.backward) layers += call.repeat.evaluate(whole.sizes);
  }
  CHECK(layers == 26);
}

TEST_CASE("tensor parallelism divides the heads of a recurrence") {
  const Graph whole =
      training_graph(load_model("qwen3-next-80b-a3b").spec, AttentionImplementation::fused);
  const Workload workload = training(1, 128, AttentionImplementation::fused);
  for (const std::int64_t ranks : {2, 4, 16}) {
    const ParallelPlan plan = tensor_plan(ranks, SequenceParallel::on);
    CHECK_FALSE(broken_rule(plan, limits_of(whole, 128)));
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
  // Up to as many ranks as key-value heads, only undivided weights are replicated.
  const ParallelPlan plan = tensor_plan(2, SequenceParallel::on);
  const Graph rank = shard(whole, plan);
  CHECK(2 * parameters_on(rank) == parameters_on(whole) + replicated_parameters(rank));
  CHECK(2 * forward_flops(rank, workload, plan) == forward_flops(whole, workload, {}));
}

// 23 layers; 64 heads of 64, and B and C of 8 groups with a state of 128; a kernel of 4 and a bias.
// vLLM's MambaMixer2 shards the convolution likewise; beyond 8 ranks, neighbours share a group.
TEST_CASE("tensor parallelism divides the groups of heads that share B and C, down to one a rank") {
  const Graph whole =
      training_graph(load_model("nemotron-3-nano-30b-a3b").spec, AttentionImplementation::fused);
  for (const std::int64_t ranks : {2, 4, 8, 16}) {
    const ParallelPlan plan = tensor_plan(ranks, SequenceParallel::off);
    CHECK_FALSE(broken_rule(plan, limits_of(whole, 128)));
    const Graph rank = shard(whole, plan);
    Integer convolution = 0;
    for (const Weight& weight : rank.weights) {
      const bool counted = weight.path.find("mixer.convolution") != std::string::npos;
      if (counted) convolution += (weight.repeat * weight.elements()).evaluate(rank.sizes);
    }
    const std::int64_t channels = 64 / ranks * 64 + 2 * std::max<std::int64_t>(1, 8 / ranks) * 128;
    CHECK(convolution == Integer{23} * channels * (4 + 1));
  }
  nlohmann::json config =
      read_json(std::filesystem::path(HEADROOM_PRESETS) / "nemotron-3-nano-30b-a3b.json")["config"];
  config["mamba_num_heads"] = 48;  // no multiple of the attention heads: no plan divides them
  const ModelSpec other = read_model_spec(config.dump(), "config.json", "nemotron");
  CHECK(limits_of(training_graph(other, AttentionImplementation::fused), 128).state_groups == 1);
  ShardingLimits limits = limits_of(whole, 128);
  limits.heads = limits.kv_heads = limits.intermediate_size = 48;
  CHECK(broken_rule(tensor_plan(3, SequenceParallel::off), limits) ==
        PlanRule::tensor_state_groups);
}

// Every decoder layer gathers the encoder's output as it gathers its own input, like Megatron-LM's
// column-parallel GEMMs.
TEST_CASE("sequence parallelism divides all activations of an encoder-decoder") {
  const Graph whole = training_graph(load_model("t5-small").spec, AttentionImplementation::fused);
  Workload workload = training(2, 256, AttentionImplementation::fused);
  workload.enc_seq_len = 256;
  const ParallelPlan plan = tensor_plan(4, SequenceParallel::on);
  CHECK_FALSE(broken_rule(plan, limits_of(whole, 256)));
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
  for (const CollectiveCall& call : collectives_of(rank)) {
    const bool counted = call.kind == CollectiveKind::all_gather && !call.backward;
    if (counted) gathers += call.repeat.evaluate(rank.sizes);
  }
  // Six encoder layers with 2 gathers, six decoder layers with 4, and the head.
  CHECK(gathers == 6 * 2 + 6 * 4 + 1);
}

TEST_CASE("each rule is found broken by a plan that breaks it") {
  const Graph whole = training_graph(gpt(768, 12, 12));
  const ShardingLimits limits = limits_of(whole, 2048);
  const auto broken = [&](auto change) {
    ParallelPlan plan;
    change(plan);
    return broken_rule(plan, limits);
  };
  CHECK_FALSE(broken([](ParallelPlan&) {}));
  CHECK(broken([](ParallelPlan& p) { p.tensor = 5; }) == PlanRule::tensor_heads);
  CHECK(broken([](ParallelPlan& p) { p.data = 0; }) == PlanRule::degrees_positive);
  CHECK(broken([](ParallelPlan& p) { p.sequence = SequenceParallel::on; }) ==
        PlanRule::sequence_needs_tensor);
  CHECK(broken([](ParallelPlan& p) { p.pipeline = 13; }) == PlanRule::pipeline_layers);
  CHECK(broken([](ParallelPlan& p) { p.interleave = 2; }) == PlanRule::interleave_needs_pipeline);
  CHECK(broken([](ParallelPlan& p) {
          p.pipeline = 4;
          p.interleave = 4;
        }) == PlanRule::interleave_layers);
  CHECK_FALSE(broken([](ParallelPlan& p) {
    p.pipeline = 4;
    p.interleave = 2;
  }));
  CHECK(broken([](ParallelPlan& p) { p.context = 2; }) == PlanRule::context_fused_attention);
  CHECK(broken([](ParallelPlan& p) { p.expert = 2; }) == PlanRule::expert_routed);
}

TEST_CASE("attention over compressed keys is not divided, an indexer not by context") {
  const auto limits_of_wild = [](const char* name) {
    const ModelSpec spec =
        spec_of(read_json(data_folder() / "wild" / (std::string(name) + ".config.json")));
    return limits_of(build_graph(spec, {Phase::train, AttentionImplementation::fused}), 128);
  };
  ParallelPlan tensor;
  tensor.tensor = 2;
  ParallelPlan context;
  context.context = 2;
  ParallelPlan expert;
  expert.data = 2;
  expert.expert = 2;
  const ShardingLimits compressed = limits_of_wild("deepseek-v4-flash");
  CHECK(broken_rule(tensor, compressed) == PlanRule::layers_without_compression);
  CHECK(broken_rule(context, compressed) == PlanRule::layers_without_compression);
  CHECK_FALSE(broken_rule(expert, compressed));
  const ShardingLimits indexed = limits_of_wild("deepseek-v3.2");
  CHECK_FALSE(broken_rule(tensor, indexed));
  CHECK(broken_rule(context, indexed) == PlanRule::context_all_keys);
}

TEST_CASE("a pipeline divides no layers that share weights, embeddings or earlier hidden states") {
  ParallelPlan pipeline;
  pipeline.pipeline = 2;
  const auto per_layer = data_folder() / "towers/tiny/gemma3n_text.config.json";
  const auto residuals = data_folder() / "families/kimi_k3_text";
  for (const std::string& name :
       {std::string("albert-base-v2"), per_layer.string(), residuals.string()}) {
    CAPTURE(name);
    const Graph graph = build_graph(load_model(name).spec, {Phase::train});
    CHECK(broken_rule(pipeline, limits_of(graph, 128)) == PlanRule::pipeline_separable_layers);
  }
}

TEST_CASE("no plan divides a diffusion transformer; data parallelism copies it") {
  const Graph graph = build_graph(load_model("flux.1-dev").spec, {});
  const ShardingLimits limits = limits_of(graph, 4096);
  for (const auto degree :
       {&ParallelPlan::tensor, &ParallelPlan::pipeline, &ParallelPlan::context}) {
    ParallelPlan plan;
    plan.*degree = 2;
    CHECK(broken_rule(plan, limits) == PlanRule::whole_denoiser);
  }
  ParallelPlan copies;
  copies.data = 2;
  CHECK_FALSE(broken_rule(copies, limits).has_value());
}

TEST_CASE("recurrent, convolutional and state-space layers without attention are not divided") {
  for (const char* const name : {"layer-gru", "layer-conv-dilated", "mamba-130m", "mamba2-780m"}) {
    CAPTURE(name);
    const Graph graph = build_graph(load_model(name).spec, {Phase::train});
    const ShardingLimits limits = limits_of(graph, 128);
    ParallelPlan tensor;
    tensor.tensor = 2;
    CHECK(broken_rule(tensor, limits) == PlanRule::layers_with_attention);
    ParallelPlan context;
    context.context = 2;
    CHECK(broken_rule(context, limits) == PlanRule::layers_with_attention);
    ParallelPlan data;
    data.data = 2;
    CHECK_FALSE(broken_rule(data, limits));
  }
  CHECK(requirement_of(PlanRule::layers_with_attention).find("state-space") !=
        std::string_view::npos);
}

TEST_CASE("tensor parallelism needs an output projection, which sums the heads of all ranks") {
  for (const bool projects : {true, false}) {
    CAPTURE(projects);
    const ModelSpec spec = spec_of({{"model_type", "attention"},
                                    {"hidden_size", 48},
                                    {"num_attention_heads", 4},
                                    {"head_dim", 12},
                                    {"output_projection", projects}});
    ParallelPlan tensor;
    tensor.tensor = 2;
    const auto rule = broken_rule(tensor, limits_of(build_graph(spec, {Phase::prefill}), 128));
    CHECK((rule == PlanRule::tensor_uniform_layers) == !projects);
  }
}

}  // namespace headroom::test
