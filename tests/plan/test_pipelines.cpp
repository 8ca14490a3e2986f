// Pipelines cut between any two layers: alternating layers, an encoder and a decoder, numbers of
// layers that the stages do not divide.
#include <algorithm>
#include <numeric>

#include "gpt_models.h"

namespace headroom::test {
namespace {

/// Models with several kinds of layers, two stacks, or tables that several stages store.
constexpr const char* kModels[] = {"gpt2",        "gemma-2-2b",          "gemma-3-1b",
                                   "gpt-oss-20b", "deepseek-v2-lite",    "llama-4-scout-text",
                                   "t5-small",    "distilbart-cnn-12-6", "qwen3-next-80b-a3b"};

Graph graph_of(const char* model) {
  return training_graph(load_model(model).spec, AttentionImplementation::fused);
}

ParallelPlan pipeline_of(std::int64_t stages) {
  ParallelPlan plan;
  plan.pipeline = stages;
  return plan;
}

/// Elements of buffers.
Integer buffers_on(const Graph& rank) {
  Integer count = 0;
  for (const Weight& weight : rank.weights) {
    if (weight.kind != WeightKind::buffer) continue;
    count += (weight.repeat * weight.elements()).evaluate(rank.sizes);
  }
  return count;
}

Integer flops_on(const Graph& rank, const ParallelPlan& plan) {
  Workload workload = training(2, 128, AttentionImplementation::fused);
  workload.enc_seq_len = 128;
  return forward_flops(rank, workload, plan);
}

/// Surplus copies of parameters outside the layers, over all stages.
Integer copies(const Graph& whole, const std::vector<Graph>& stages) {
  Integer stored = 0;
  const auto outside = [](const Graph& graph) {
    Integer count = 0;
    for (const Weight& weight : graph.weights) {
      const bool in_layers = weight.path.find(".layers.") != std::string::npos;
      if (in_layers || weight.kind == WeightKind::buffer) continue;
      count += (weight.repeat * weight.elements()).evaluate(graph.sizes);
    }
    return count;
  };
  for (const Graph& stage : stages) stored += outside(stage);
  return stored - outside(whole);
}

Integer word_table_elements(const Graph& graph) {
  return *graph.sizes.get(Symbol::vocab_size) * *graph.sizes.get(Symbol::hidden_size);
}

}  // namespace

TEST_CASE("stages of a pipeline cut anywhere store each layer of the model once") {
  for (const char* const name : kModels) {
    CAPTURE(std::string(name));
    const Graph whole = graph_of(name);
    const StackLayers layers = limits_of(whole, 128).layers;
    for (const std::int64_t count : {2, 3, 4, 5, 7, 8, 11}) {
      if (count > layers.total()) continue;
      CAPTURE(count);
      const ParallelPlan plan = pipeline_of(count);
      CHECK_FALSE(broken_rule(plan, limits_of(whole, 128)));
      std::vector<Graph> stages;
      Integer parameters = 0;
      Integer flops = 0;
      std::int64_t next_layer = 0;
      for (std::int64_t stage = 0; stage < count; ++stage) {
        stages.push_back(shard_stage(whole, plan, stage));
        parameters += parameters_on(stages.back());
        flops += flops_on(stages.back(), plan);
        const std::vector<LayerRange> own = layers_of_stage(layers, plan, stage);
        REQUIRE(own.size() == 1);
        CHECK(own[0].begin == next_layer);
        CHECK(own[0].size() >= 1);
        next_layer = own[0].end;
      }
      CHECK(next_layer == layers.total());
      CHECK(parameters - copies(whole, stages) == parameters_on(whole));
      // Stages repeat the table of relative positions, which has no GEMM.
      CHECK(flops == flops_on(whole, {}));
    }
  }
}

TEST_CASE("a layer without operators keeps its place in a pipeline") {
  const nlohmann::json config = read_json(data_folder() / "families/nemotron_nas/config.json");
  const ModelSpec spec = read_model_spec(config.dump(), "config.json", "nemotron-nas");
  const Graph whole = training_graph(spec, AttentionImplementation::fused);
  for (std::int64_t count = 2; count <= 4; ++count) {
    CAPTURE(count);
    Integer stored = 0;
    for (std::int64_t stage = 0; stage < count; ++stage) {
      const Graph rank = shard_stage(whole, pipeline_of(count), stage);
      stored += count_parameters(rank).total.evaluate(rank.sizes);
    }
    CHECK(stored == count_parameters(whole).total.evaluate(whole.sizes));
  }
}

TEST_CASE("the layers of a stage keep their places in the stack") {
  // Layers alternate in Gemma 2, and a stage cuts within a run of them.
  for (const char* const model : {"gpt2", "gemma-2-2b"}) {
    const Graph whole = graph_of(model);
    const ParallelPlan plan = pipeline_of(5);
    std::int64_t next = 0;
    for (std::int64_t stage = 0; stage < plan.pipeline; ++stage) {
      const Graph part = shard_stage(whole, plan, stage);
      for (const Block& block : part.blocks) {
        if (!block.is_layers()) continue;
        const auto runs = static_cast<std::int64_t>(block.repeat.evaluate(part.sizes));
        for (std::int64_t run = 0; run < runs; ++run) {
          for (std::int64_t layer = 0; layer < block.layers_per_run; ++layer) {
            const auto node = std::ranges::find(block.nodes, layer, &Node::layer);
            REQUIRE(node != block.nodes.end());
            CHECK(block.layer_of(*node, run) == next++);
          }
        }
      }
    }
    CHECK(next == *whole.sizes.get(Symbol::num_hidden_layers));
  }
}

TEST_CASE("several stages store tied tables and tables of relative positions") {
  const auto copied = [](const char* name, std::int64_t count) {
    const Graph whole = graph_of(name);
    std::vector<Graph> stages;
    for (std::int64_t stage = 0; stage < count; ++stage) {
      stages.push_back(shard_stage(whole, pipeline_of(count), stage));
    }
    return copies(whole, stages);
  };
  CHECK(copied("deepseek-v2-lite", 4) == 0);  // untied head
  CHECK(copied("gemma-2-2b", 4) == word_table_elements(graph_of("gemma-2-2b")));
  // T5 reads one table in encoder, decoder and head: stages 0, 1 and 2 of three. The decoder's
  // second stage copies the 32 buckets of 8 heads.
  CHECK(copied("t5-small", 2) == word_table_elements(graph_of("t5-small")));
  CHECK(copied("t5-small", 3) == 2 * word_table_elements(graph_of("t5-small")) + 32 * 8);
}

TEST_CASE("an interleaved pipeline also cuts within runs") {
  const Graph whole = graph_of("gemma-3-1b");  // 26 layers: five with a window, then one without
  ParallelPlan plan = pipeline_of(2);
  plan.interleave = 13;
  REQUIRE_FALSE(broken_rule(plan, limits_of(whole, 128)));
  const Graph first = shard_stage(whole, plan, 0);
  const Graph last = shard_stage(whole, plan, 1);
  CHECK(parameters_on(first) + parameters_on(last) ==
        parameters_on(whole) + word_table_elements(whole));
  CHECK(flops_on(first, plan) + flops_on(last, plan) == flops_on(whole, {}));
}

// Llama 3 405B has 126 layers, "one Transformer layer less each" on the first and the last of its
// 16 stages: arXiv 2407.21783, section 3.3.2.
TEST_CASE("surplus layers go to the stages before the last") {
  const auto sizes = [](std::int64_t layers, std::int64_t stages) {
    std::vector<std::int64_t> result;
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      result.push_back(layers_of_stage({0, layers}, pipeline_of(stages), stage)[0].size());
    }
    return result;
  };
  std::vector<std::int64_t> llama(16, 8);
  llama.front() = llama.back() = 7;
  CHECK(sizes(126, 16) == llama);
  CHECK(sizes(13, 4) == std::vector<std::int64_t>{3, 3, 4, 3});
  CHECK(sizes(15, 4) == std::vector<std::int64_t>{4, 4, 4, 3});
  CHECK(sizes(12, 4) == std::vector<std::int64_t>{3, 3, 3, 3});
  CHECK(sizes(61, 16) == std::vector<std::int64_t>{3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 3});
}

// Llama 3 405B with a layer per chunk; DeepSeek-V3's 61 and Qwen3-235B's 94 layers, of which
// Megatron-LM lets the embedding and the head take a place each.
TEST_CASE("chunks of an uneven interleaved pipeline are shorter at the ends") {
  const auto chunks = [](std::int64_t layers, std::int64_t stages, std::int64_t interleave) {
    ParallelPlan plan = pipeline_of(stages);
    plan.interleave = interleave;
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(stages * interleave));
    std::int64_t next = 0;
    for (std::int64_t chunk = 0; chunk < interleave; ++chunk) {
      for (std::int64_t stage = 0; stage < stages; ++stage) {
        const LayerRange range =
            layers_of_stage({0, layers}, plan, stage)[static_cast<std::size_t>(chunk)];
        CHECK(range.begin == next);
        next = range.end;
        sizes[static_cast<std::size_t>(chunk * stages + stage)] = range.size();
      }
    }
    CHECK(next == layers);
    return sizes;
  };
  std::vector<std::int64_t> llama(128, 1);
  llama.front() = llama.back() = 0;
  CHECK(chunks(126, 16, 8) == llama);
  std::vector<std::int64_t> qwen(32, 3);
  qwen.front() = qwen.back() = 2;
  CHECK(chunks(94, 8, 4) == qwen);
  std::vector<std::int64_t> deepseek(32, 2);
  deepseek[0] = deepseek[30] = deepseek[31] = 1;
  CHECK(chunks(61, 16, 2) == deepseek);
  CHECK(chunks(12, 2, 3) == std::vector<std::int64_t>(6, 2));
}

TEST_CASE("stages of an uneven interleaved pipeline store each layer once") {
  const Graph whole = graph_of("deepseek-v2-lite");  // 27 layers, the first of them dense
  ParallelPlan plan = pipeline_of(4);
  plan.interleave = 3;
  REQUIRE_FALSE(broken_rule(plan, limits_of(whole, 128)));
  Integer parameters = 0;
  Integer flops = 0;
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    const Graph rank = shard_stage(whole, plan, stage);
    parameters += parameters_on(rank);
    flops += flops_on(rank, plan);
  }
  CHECK(parameters == parameters_on(whole));
  CHECK(flops == flops_on(whole, {}));
}

TEST_CASE("an encoder gets the number of stages that makes the largest stage smallest") {
  CHECK(encoder_stages({0, 12}, 4) == 0);
  CHECK(encoder_stages({12, 12}, 4) == 2);
  CHECK(encoder_stages({12, 12}, 2) == 1);
  CHECK(encoder_stages({12, 6}, 3) == 2);
  CHECK(encoder_stages({4, 4}, 3) == 1);   // a tie gives the decoder more stages
  CHECK(encoder_stages({32, 4}, 8) == 7);  // whisper-large-v3-turbo
  CHECK(encoder_stages({2, 6}, 8) == 2);
}

TEST_CASE("a decoder's stages send on the encoder's output with their hidden states") {
  const Graph whole = graph_of("t5-small");
  const ParallelPlan plan = pipeline_of(4);
  const Expr encoder = Expr(Symbol::batch_size) * Symbol::enc_seq_len * Symbol::hidden_size *
                       Symbol::activation_bytes;
  const Expr decoder =
      Expr(Symbol::batch_size) * Symbol::seq_len * Symbol::hidden_size * Symbol::activation_bytes;
  const auto sent = [&](std::int64_t stage) {
    std::vector<Expr> bytes;
    for (const CollectiveCall& call : collectives_of(shard_stage(whole, plan, stage))) {
      if (!call.backward) bytes.push_back(call.bytes);
    }
    return bytes;
  };
  CHECK(sent(0) == std::vector<Expr>{encoder});
  CHECK(sent(1) == std::vector<Expr>{encoder});
  CHECK(sent(2) == std::vector<Expr>{decoder, encoder});
  CHECK(sent(3).empty());
}

TEST_CASE("the planner's worst stage has the memory of its sharded graph") {
  for (const char* const name : kModels) {
    CAPTURE(std::string(name));
    const Graph whole = graph_of(name);
    Planner planner = h100_trainer(load_model(name).spec);
    for (const std::int64_t count : {2, 3, 5}) {
      CAPTURE(count);
      PlanChoice choice;
      choice.parallel = pipeline_of(count);
      const PlanMemory memory = planner.evaluate(choice, {32, 128}).memory;
      const Graph stage = shard_stage(whole, choice.parallel, memory.stage_index);
      const Integer states = memory.weights + memory.gradients + memory.optimizer;
      CHECK(states + memory.embedding_states == 18 * parameters_on(stage) + 2 * buffers_on(stage));
      Workload workload = training(1, 128, AttentionImplementation::fused);
      workload.enc_seq_len = 128;
      const Bindings values = values_on(stage, workload, choice.parallel);
      Integer layers = 0;
      for (const SavedTensor& saved : analyze(stage, fused_kernels()).saved) {
        const bool in_layers = saved.path.find(".layers.") != std::string::npos;
        const bool table = in_layers && saved.kept == KeptUnder::every_recompute;
        if (in_layers && !table) layers += (saved.repeat * saved.bytes).evaluate(values);
      }
      CHECK(memory.activations == (count - memory.stage_index) * layers);
    }
  }
}

TEST_CASE("more stages never need more memory each, with any kinds of layers") {
  for (const char* const name : kModels) {
    CAPTURE(std::string(name));
    Planner planner = h100_trainer(load_model(name).spec);
    const std::int64_t layers = planner.limits(512).layers.total();
    Integer before = 0;
    for (std::int64_t count = 1; count <= std::min<std::int64_t>(8, layers); count *= 2) {
      PlanChoice choice;
      choice.parallel.pipeline = count;
      const Integer now = planner.evaluate(choice, {16, 512}).memory.allocated();
      if (before > 0) CHECK(now <= before);
      before = now;
    }
  }
}

TEST_CASE("illegal pipelines of an encoder-decoder are refused") {
  ShardingLimits limits = limits_of(graph_of("t5-small"), 128);
  ParallelPlan plan = pipeline_of(2);
  plan.interleave = 3;
  CHECK(broken_rule(plan, limits) == PlanRule::interleave_one_stack);
  CHECK(broken_rule(pipeline_of(13), limits) == PlanRule::pipeline_layers);
  limits.training = false;
  CHECK(broken_rule(pipeline_of(2), limits) == PlanRule::pipeline_trains);
}

// llama.cpp's Q4_K_M of 32 layers stores attn_v and ffn_down in Q6_K in layers 0-3, 6, 9, …, 27 and
// 28-31 (use_more_bits in llama-quant.cpp), at 210 instead of 144 bytes per 256 values.
TEST_CASE("a stage stores the bytes of its own layers") {
  const ModelSpec spec = load_model("llama-3-8b").spec;
  PlanQuery query;
  query.weights = WeightType::q4_k_m;
  Planner planner(spec, query,
                  device_rates(find_machine("h100-80gb"), Purpose::serve, DType::bfloat16));
  const ModelSpec stored = converted(spec, query.weights);
  const Graph graph = build_graph(stored, {});
  const StoredWeights held = stored_weights(stored, graph);
  for (const std::int64_t count : {1, 2, 3, 4, 8}) {
    CAPTURE(count);
    PlanChoice choice;
    choice.parallel.pipeline = count;
    const std::vector<Integer> stages = planner.stage_weights(choice);
    std::vector<Integer> expected(static_cast<std::size_t>(count));
    for (std::int64_t index = 0; index < count; ++index) {
      Integer& bytes = expected[static_cast<std::size_t>(index)];
      for (WeightId id = 0; id < graph.weights.size(); ++id) {
        const StoredWeight& weight = held.weights[id];
        const std::string& path = graph.weights[id].path;
        if (path.find(".layers.") == std::string::npos) {
          const std::int64_t home = path.starts_with("embeddings.") ? 0 : count - 1;
          if (index == home) bytes += weight.bytes;
          continue;
        }
        for (const LayerRange& range : layers_of_stage({0, 32}, choice.parallel, index)) {
          for (std::int64_t layer = range.begin; layer < range.end; ++layer) {
            bytes += weight.bytes_of_copy.empty()
                         ? weight.bytes / 32
                         : weight.bytes_of_copy[static_cast<std::size_t>(layer)];
          }
        }
      }
    }
    CHECK(stages == expected);
    CHECK(std::accumulate(stages.begin(), stages.end(), Integer{0}) == held.bytes);
    if (count != 8) continue;
    // Layers 8-11 have one layer of more bits, 12-15 two.
    CHECK(stages[3] - stages[2] == Integer{(4096 * 1024 + 14336 * 4096) / 256 * (210 - 144)});
  }
}

TEST_CASE("the largest stage of layers that differ decides the memory of a plan") {
  PlanQuery query;
  query.weights = WeightType::q4_k_m;
  Planner planner(load_model("llama-3-8b").spec, query,
                  device_rates(find_machine("h100-80gb"), Purpose::serve, DType::bfloat16));
  PlanChoice choice;
  choice.parallel.pipeline = 8;
  const PlanMemory memory = planner.evaluate(choice, {1, 128}).memory;
  CHECK(memory.weights + memory.embedding_states ==
        std::ranges::max(planner.stage_weights(choice)));
}

}  // namespace headroom::test
