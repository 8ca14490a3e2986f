// The invariants of Graph (graph.h), for a sample of presets in every phase, whole and sharded.
#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <set>

#include "headroom/parallel_plan.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

std::vector<Graph> graphs_of(std::initializer_list<const char*> presets) {
  std::vector<Graph> graphs;
  for (const char* const name : presets) {
    const ModelSpec spec = load_model(name).spec;
    for (const Phase phase : {Phase::prefill, Phase::decode, Phase::train}) {
      if (phase == Phase::decode && !spec.main_stack().causal()) continue;
      for (const auto attention :
           {AttentionImplementation::eager, AttentionImplementation::fused}) {
        graphs.push_back(build_graph(spec, {phase, attention}));
      }
    }
  }
  return graphs;
}

/// Models that no plan divides.
std::vector<Graph> undivided_graphs() {
  return graphs_of({"flux.1-dev", "stable-diffusion-3.5-medium", "wan2.1-t2v-1.3b"});
}

std::vector<Graph> sample_graphs() {
  return graphs_of({"bert-base", "gpt2", "llama-3-8b", "gemma-2-9b", "mixtral-8x7b", "deepseek-v3",
                    "t5-small", "whisper-tiny", "vit-base", "qwen3-next-80b-a3b", "layer-lstm",
                    "layer-conv-causal", "layer-cross-attention", "layer-linear-attention-causal"});
}

/// A tensor- and sequence-parallel graph.
Graph sharded(const Graph& graph) {
  ParallelPlan plan;
  plan.tensor = 2;
  plan.sequence = SequenceParallel::on;
  return shard(graph, plan);
}

template <class Check>
void for_each_graph(Check check) {
  for (const Graph& graph : sample_graphs()) {
    check(graph);
    check(sharded(graph));
  }
  for (const Graph& graph : undivided_graphs()) check(graph);
}

bool contains(const std::vector<TensorId>& ids, TensorId id) {
  return std::ranges::find(ids, id) != ids.end();
}

}  // namespace

TEST_CASE("a node's inputs come first: outputs of earlier nodes, inputs, or cache tensors") {
  for_each_graph([](const Graph& graph) {
    std::set<TensorId> known;
    for (const Block& block : graph.blocks) {
      known.insert(block.carried_in);
      for (const Node& node : block.nodes) {
        CAPTURE(block.path + "." + node.path);
        for (const TensorId input : node.inputs) {
          const bool cache = is_cached(graph.tensors.at(input).type);
          CHECK((known.contains(input) || cache || contains(graph.inputs, input)));
        }
        known.insert(node.output);
      }
    }
  });
}

TEST_CASE("outputs and paths are unique, except those of collectives; no node outputs a cache") {
  for_each_graph([](const Graph& graph) {
    std::set<TensorId> outputs;
    std::set<std::string> paths;
    for (const Block& block : graph.blocks) {
      for (const Node& node : block.nodes) {
        CAPTURE(block.path + "." + node.path);
        const bool new_output = outputs.insert(node.output).second;
        const bool new_path = paths.insert(block.path + "." + node.path).second;
        CHECK(((new_output && new_path) || std::holds_alternative<Collective>(node.op)));
        CHECK(!is_cached(graph.tensors.at(node.output).type));
      }
    }
  });
}

TEST_CASE("an in-place output has the shape of the first input") {
  for_each_graph([](const Graph& graph) {
    for (const Block& block : graph.blocks) {
      for (const Node& node : block.nodes) {
        if (node.placement != Placement::in_place) continue;
        CAPTURE(block.path + "." + node.path);
        CHECK(graph.tensors.at(node.output).shape == graph.tensors.at(node.inputs.at(0)).shape);
      }
    }
  });
}

TEST_CASE("layers hand on a tensor of the shape that they receive") {
  for_each_graph([](const Graph& graph) {
    for (const Block& block : graph.blocks) {
      if (!block.is_layers()) continue;
      CAPTURE(block.path);
      CHECK(graph.tensors.at(block.carried_out).shape == graph.tensors.at(block.carried_in).shape);
      if (!block.carried_text) continue;
      CHECK(graph.tensors.at(block.carried_text->out).shape ==
            graph.tensors.at(block.carried_text->in).shape);
    }
  });
}

TEST_CASE("every symbol of a whole graph is bound by its sizes and a workload") {
  std::vector<Graph> graphs = sample_graphs();
  std::ranges::move(undivided_graphs(), std::back_inserter(graphs));
  for (const Graph& graph : graphs) {
    Workload workload;
    workload.phase = graph.options.phase;
    const Bindings values = bindings_of(workload, graph);
    for (const Tensor& tensor : graph.tensors) {
      CAPTURE(tensor.name);
      CHECK_NOTHROW((void)tensor.elements().evaluate(values));
    }
    for (const Weight& weight : graph.weights) {
      CAPTURE(weight.path);
      CHECK_NOTHROW((void)(weight.repeat * weight.elements()).evaluate(graph.sizes));
    }
  }
}
