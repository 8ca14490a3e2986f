// Memory of a training step, operator by operator, against the ledger of saved tensors and live
// gradients derived by hand.
#include <doctest/doctest.h>

#include <algorithm>

#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

struct Step {
  Figures figures;
  std::vector<TrainingMoment> moments;
  std::size_t operators = 0;  ///< of all layers
};

Step step_of(const ModelSpec& spec, Workload workload) {
  workload.phase = Phase::train;
  const Graph graph = build_graph(spec, graph_options(workload));
  const Analysis analysis = analyze(graph, {.recompute = workload.recompute});
  Step step{Evaluator(graph, analysis, workload.recompute).evaluate(workload),
            training_moments(graph, analysis, workload), 0};
  const Bindings values = bindings_of(workload, graph);
  for (const Block& block : graph.blocks) {
    step.operators += static_cast<std::size_t>(block.repeat.evaluate(values)) * block.nodes.size();
  }
  return step;
}

const nlohmann::json kGpt2 = {
    {"model_type", "gpt2"}, {"n_embd", 64}, {"n_layer", 3}, {"n_head", 4}, {"vocab_size", 1001}};

const TrainingMoment& moment_at(const Step& step, const std::string& path, std::int64_t run,
                                PassDirection direction) {
  const auto found = std::ranges::find_if(step.moments, [&](const TrainingMoment& moment) {
    return moment.path == path && moment.run == run && moment.direction == direction;
  });
  REQUIRE(found != step.moments.end());
  return *found;
}

}  // namespace

TEST_CASE("saved bytes rise to the report's total over the forward pass, and fall to nothing") {
  for (const char* const name :
       {"gpt2", "bert-base", "llama-3.2-1b", "t5-small", "mixtral-8x7b", "gemma-2-2b", "vit-base",
        "deepseek-v2-lite", "layer-ffn", "transformer-base"}) {
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      CAPTURE(name);
      CAPTURE(name_of(recompute));
      Workload workload;
      workload.batch_size = 2;
      workload.seq_len = 16;
      workload.enc_seq_len = 8;
      workload.recompute = recompute;
      const Step step = step_of(load_model(name).spec, workload);
      REQUIRE(step.moments.size() == 2 * step.operators);
      Integer last = 0;
      for (std::size_t i = 0; i < step.operators; ++i) {
        CHECK(step.moments[i].direction == PassDirection::forward);
        CHECK(step.moments[i].saved >= last);
        CHECK(step.moments[i].recomputed == 0);
        CHECK(step.moments[i].gradients == 0);
        last = step.moments[i].saved;
      }
      CHECK(last == step.figures.saved_activation_bytes);
      for (std::size_t i = 0; i < step.operators; ++i) {
        // An operator runs backward with all that was saved until it had run forward.
        const TrainingMoment& forward = step.moments[step.operators - 1 - i];
        const TrainingMoment& backward = step.moments[step.operators + i];
        CHECK(backward.path == forward.path);
        CHECK(backward.run == forward.run);
        CHECK(backward.saved == forward.saved);
        CHECK(backward.recomputed >= 0);
        CHECK(backward.gradients >= 0);
      }
    }
  }
}

TEST_CASE("gradients of a pre-norm layer are live from the last reader to the producer") {
  Workload workload;
  workload.batch_size = 2;
  workload.seq_len = 8;
  const Step step = step_of(spec_of(kGpt2), workload);
  const Integer hidden = 2 * 8 * 64 * 4;
  const Integer logits = 2 * 8 * 1001 * 4;
  const auto gradients = [&](const char* path, std::int64_t run) {
    return moment_at(step, path, run, PassDirection::backward).gradients;
  };
  // The head has the gradients of the logits and of its input.
  CHECK(gradients("head.logits", 0) == logits + hidden);
  CHECK(gradients("decoder.final_norm", 0) == 2 * hidden);
  // The residual stream's stays while the branch runs: the FFN's output, and its four times wider
  // input.
  CHECK(gradients("decoder.layers.mlp.down", 1) == hidden + hidden + 4 * hidden);
  CHECK(gradients("decoder.layers.mlp.activation", 1) == hidden + 2 * 4 * hidden);
  CHECK(gradients("decoder.layers.mlp.up", 1) == hidden + 4 * hidden + hidden);
  CHECK(gradients("decoder.layers.attention.qkv", 2) == hidden + 3 * hidden + hidden);
}

TEST_CASE("full recomputation has one layer's saved tensors at once, selective its core's") {
  Workload workload;
  workload.batch_size = 2;
  workload.seq_len = 8;
  const Integer all = step_of(spec_of(kGpt2), workload).figures.saved_activation_bytes;
  const auto most_recomputed = [&](Recompute recompute) {
    workload.recompute = recompute;
    const Step step = step_of(spec_of(kGpt2), workload);
    Integer most = 0;
    for (const TrainingMoment& moment : step.moments) most = std::max(most, moment.recomputed);
    CHECK(step.moments.back().recomputed == 0);
    // Without the layers' inputs, which full recomputation saves besides.
    const Integer inputs = recompute == Recompute::full ? 3 * 2 * 8 * 64 * 4 : 0;
    CHECK(3 * most == all - (step.figures.saved_activation_bytes - inputs));
  };
  most_recomputed(Recompute::full);
  most_recomputed(Recompute::selective);
}
