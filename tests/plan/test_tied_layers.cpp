// Pipelines of models whose layers read keys and values, or an indexer's choice, of earlier layers.
#include <algorithm>
#include <set>

#include "gpt_models.h"

namespace headroom::test {
namespace {

ParallelPlan stages(std::int64_t count) {
  ParallelPlan plan;
  plan.pipeline = count;
  return plan;
}

Graph graph_with_cache(const ModelSpec& spec) {
  return build_graph(spec, {Phase::decode, AttentionImplementation::fused});
}

/// Hunyuan-Large with `layers` layers: each odd one reads the keys and values of the one before.
Graph hunyuan(int layers) {
  auto config = read_json(data_folder() / "towers/tiny/hunyuan.config.json");
  config["num_hidden_layers"] = layers;
  return graph_with_cache(spec_of(config));
}

Graph glm_5_2() { return graph_with_cache(load_model("glm-5.2-fp8").spec); }

/// Caches that no node of the stage writes.
std::set<std::string> unwritten_caches(const Graph& stage) {
  std::set<TensorId> written;
  std::set<TensorId> read;
  for (const Block& block : stage.blocks) {
    for (const Node& node : block.nodes) {
      const bool writes = std::holds_alternative<KvCacheAppend>(node.op);
      for (const TensorId input : node.inputs) {
        if (is_cached(stage.tensors[input].type)) (writes ? written : read).insert(input);
      }
    }
  }
  std::set<std::string> names;
  for (const TensorId cache : read) {
    if (!written.contains(cache)) names.insert(stage.tensors[cache].name);
  }
  return names;
}

/// Values that the stage reads, but neither makes nor receives.
std::set<std::string> missing_values(const Graph& stage) {
  std::set<TensorId> present(stage.inputs.begin(), stage.inputs.end());
  std::set<std::string> missing;
  for (const Block& block : stage.blocks) {
    for (const Node& node : block.nodes) {
      for (const TensorId input : node.inputs) {
        const bool value = stage.tensors[input].type == ElementType::activation;
        if (value && !present.contains(input) && !block.carries_in(input)) {
          missing.insert(stage.tensors[input].name);
        }
      }
      present.insert(node.output);
    }
  }
  return missing;
}

std::vector<Expr> sent_by(const Graph& whole, const ParallelPlan& plan, std::int64_t stage) {
  std::vector<Expr> bytes;
  for (const CollectiveCall& call : collectives_of(shard_stage(whole, plan, stage))) {
    bytes.push_back(call.bytes);
  }
  return bytes;
}

}  // namespace

TEST_CASE("a pipeline cuts pairs of layers with common keys only between two pairs") {
  const ShardingLimits limits = limits_of(hunyuan(8), 128);
  CHECK(limits.joined_layers == std::vector<std::int64_t>{1, 3, 5, 7});
  CHECK_FALSE(broken_rule(stages(2), limits));
  CHECK_FALSE(broken_rule(stages(4), limits));
  CHECK(broken_rule(stages(3), limits) == PlanRule::pipeline_joined_layers);
  CHECK(broken_rule(stages(8), limits) == PlanRule::pipeline_joined_layers);
  CHECK(first_divided_layer(stages(8), limits) == 1);
}

TEST_CASE("layers that read latent vectors of a layer far before them stay on its stage") {
  auto config = read_json(data_folder() / "towers/tiny/mistral_large4.config.json");
  config["text_config"]["kv_source_layers"] = {0, 1, 2, 3, 2};
  const ShardingLimits limits = limits_of(graph_with_cache(spec_of(config)), 128);
  CHECK(limits.joined_layers == std::vector<std::int64_t>{3, 4});
  CHECK(broken_rule(stages(2), limits) == PlanRule::pipeline_joined_layers);  // 3 + 2 layers
  config["text_config"]["kv_source_layers"] = {0, 1, 1, 3, 4};
  CHECK_FALSE(broken_rule(stages(2), limits_of(graph_with_cache(spec_of(config)), 128)));
}

TEST_CASE("an interleaved pipeline does not divide layers with common keys either") {
  auto config = read_json(data_folder() / "towers/tiny/hunyuan.config.json");
  config["num_hidden_layers"] = 8;
  const Graph graph = training_graph(spec_of(config), AttentionImplementation::fused);
  ParallelPlan plan = stages(2);
  plan.interleave = 2;
  CHECK_FALSE(broken_rule(plan, limits_of(graph, 128)));
  plan.interleave = 4;
  CHECK(broken_rule(plan, limits_of(graph, 128)) == PlanRule::pipeline_joined_layers);
}

TEST_CASE("each stage of a legal pipeline makes, stores or receives all that it reads") {
  std::int64_t legal = 0;
  for (const Graph& whole : {hunyuan(8), hunyuan(12), glm_5_2()}) {
    const ShardingLimits limits = limits_of(whole, 128);
    for (std::int64_t count = 1; count <= 13; ++count) {
      const ParallelPlan plan = stages(count);
      if (broken_rule(plan, limits)) continue;
      ++legal;
      for (std::int64_t stage = 0; stage < count; ++stage) {
        CAPTURE(count);
        CAPTURE(stage);
        const Graph rank = shard_stage(whole, plan, stage);
        CHECK(unwritten_caches(rank).empty());
        CHECK(missing_values(rank).empty());
        if (stage > 0) CHECK(rank.inputs.size() == sent_by(whole, plan, stage - 1).size());
      }
    }
  }
  CHECK(legal == 3 + 4 + 13);
}

// Layers 2, 6, 10, … of GLM-5.2's 78 have an indexer; the three behind each read its choice
// (index_topk_freq 4, index_skip_topk_offset 3). With two stages, the second begins at layer 39
// and needs the choice of layer 38 (github.com/sgl-project/sglang, pull request 28532).
TEST_CASE("a stage sends on the keys that an indexer chose if the next one reads them") {
  const Graph whole = glm_5_2();
  const Expr hidden =
      Expr(Symbol::batch_size) * Symbol::seq_len * Symbol::hidden_size * Symbol::activation_bytes;
  const Expr choice = Expr(Symbol::batch_size) * Symbol::chosen_pairs * Integer{4};
  CHECK(sent_by(whole, stages(2), 0) == std::vector<Expr>{hidden, choice});
  CHECK(sent_by(whole, stages(3), 0) == std::vector<Expr>{hidden});  // layer 26 has an indexer
  CHECK(sent_by(whole, stages(3), 1) == std::vector<Expr>{hidden, choice});
  CHECK(sent_by(whole, stages(3), 2).empty());
}

TEST_CASE("the planner counts the choice of keys that its first stage sends on") {
  const ModelSpec spec = load_model("glm-5.2-fp8").spec;
  PlanQuery query;
  query.purpose = Purpose::serve;
  Planner planner(spec, query, DeviceRates{});
  PlanChoice choice;
  choice.parallel = stages(2);
  const Load load{16, 8192};
  const auto sends = [&] {
    const std::vector<Communication> all = planner.communication(choice, load);
    return *std::ranges::find(all, RankGroup::pipeline, &Communication::group);
  };
  // Hidden states of 6144 bfloat16 numbers, and 2048 indices of 4 bytes, for each sequence.
  CHECK(sends().count == 2);
  CHECK(sends().wire_bytes == 16 * (6144 * 2 + 2048 * 4));
  choice.parallel = stages(3);
  CHECK(sends().count == 1);
  CHECK(sends().wire_bytes == 16 * 6144 * 2);
}

TEST_CASE("the timeline of a training step has the sends of chosen keys, forward only") {
  StepTimes times;
  times.micro_batches = 4;
  times.send_s = 0.25;
  times.stages.assign(3, {MicroBatchTime{1, 2}});
  const auto sends = [&](std::size_t stage, StepWork work) {
    const StepTimeline timeline = timeline_of(times);
    double seconds = 0;
    for (const TimelineEvent& event : timeline.stages[stage].events)
      if (event.work == work) seconds += event.duration_s;
    return seconds;
  };
  times.key_choice_s = {{0}, {0.5}, {0}};
  CHECK(sends(0, StepWork::send_activations) == 4 * 0.25);
  CHECK(sends(1, StepWork::send_activations) == 4 * 0.75);
  CHECK(sends(2, StepWork::receive_activations) == 4 * 0.75);
  CHECK(sends(1, StepWork::send_gradients) == 4 * 0.25);
  CHECK(sends(2, StepWork::send_gradients) == 4 * 0.25);
}

// The second of two stages begins behind layer 38, whose indexer chose; the second of three does
// not. A sequence of 2048 tokens has 2048·2049/2 chosen keys of 4 bytes, beside hidden states of
// 6144 bfloat16 numbers a token.
TEST_CASE("a training step sends the keys that an indexer chose from stages that end behind one") {
  PlanQuery query;
  query.purpose = Purpose::train;
  DeviceRates rates = device_rates(find_machine("a100-80gb"), Purpose::train, DType::bfloat16);
  rates.collective_latency_s = 0;
  Planner planner(load_model("glm-5.2-fp8").spec, query, rates);
  const auto relative = [&](std::int64_t count) {
    PlanChoice choice;
    choice.parallel = stages(count);
    const StepTimes times = planner.step_times(choice, {4, 2048});
    std::vector<double> fractions;
    for (const std::vector<double>& chunks : times.key_choice_s)
      fractions.push_back(chunks.front() / times.send_s);
    return fractions;
  };
  CHECK(relative(2).front() == doctest::Approx(2049.0 / 2 * 4 / (6144 * 2)));
  CHECK(relative(2).back() == 0);
  CHECK(relative(3).front() == 0);
  CHECK(relative(3)[1] == relative(2).front());
  CHECK(relative(3).back() == 0);
}

}  // namespace headroom::test
