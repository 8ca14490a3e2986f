// Peak activations against live sets derived by hand.
#include <doctest/doctest.h>

#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

const Expr b = Symbol::batch_size;
const Expr s = Symbol::seq_len;
const Expr d = Symbol::hidden_size;
const Expr f = Symbol::intermediate_size;
const Expr h = Symbol::num_attention_heads;
const Expr a = Symbol::activation_bytes;
const Expr V = Symbol::vocab_size;

std::map<std::string, Expr> live_by_path(const nlohmann::json& config, const Workload& workload) {
  const Graph graph = build_graph(spec_of(config), graph_options(workload));
  std::map<std::string, Expr> result;
  for (const LiveBytes& live : analyze(graph).live) {
    result[live.path] = collapse(live.bytes, graph.relations);
  }
  return result;
}

const nlohmann::json kBert = {{"model_type", "bert"},     {"hidden_size", 64},
                              {"num_hidden_layers", 3},   {"num_attention_heads", 4},
                              {"intermediate_size", 700}, {"vocab_size", 101}};

}  // namespace

TEST_CASE("a post-norm layer has residual, projections, scores and context live at once") {
  const auto live = live_by_path(kBert, {});
  const Expr hidden = b * s * d * a;
  const Expr scores = b * h * s * s * a;
  CHECK(live.at("embeddings.word_embeddings") == hidden);
  CHECK(live.at("embeddings.norm") == hidden);  // in place
  CHECK(live.at("encoder.layers.attention.qkv") == Integer{4} * hidden);
  CHECK(live.at("encoder.layers.attention.scores") == Integer{4} * hidden + scores);
  CHECK(live.at("encoder.layers.attention.softmax") == Integer{4} * hidden + scores);
  CHECK(live.at("encoder.layers.attention.context") == Integer{5} * hidden + scores);
  CHECK(live.at("encoder.layers.attention.out") == Integer{3} * hidden);
  CHECK(live.at("encoder.layers.attention.residual") == Integer{2} * hidden);
  CHECK(live.at("encoder.layers.mlp.up") == hidden + b * s * f * a);
  CHECK(live.at("encoder.layers.mlp.activation") == hidden + b * s * f * a);
  CHECK(live.at("encoder.layers.mlp.down") == Integer{2} * hidden + b * s * f * a);
  // The last hidden state is an output, so it stays live in the pooler.
  CHECK(live.at("head.pooler.dense") == hidden + Integer{2} * b * d * a);
}

TEST_CASE("a pre-norm layer has its input and the normalised copy live") {
  const nlohmann::json gpt2 = {
      {"model_type", "gpt2"}, {"n_embd", 64}, {"n_layer", 2}, {"n_head", 4}, {"vocab_size", 101}};
  const auto live = live_by_path(gpt2, {});
  const Expr hidden = b * s * d * a;
  CHECK(live.at("decoder.layers.attention_norm") == Integer{2} * hidden);
  CHECK(live.at("decoder.layers.attention.qkv") == Integer{5} * hidden);
  CHECK(live.at("decoder.final_norm") == hidden);  // in place: the residual stream ends here
  CHECK(live.at("head.logits") == hidden + b * s * V * a);
}

TEST_CASE("the encoder output stays live until the last decoder layer") {
  const nlohmann::json t5 = {{"model_type", "t5"}, {"d_model", 64},  {"d_kv", 16},
                             {"d_ff", 96},         {"num_heads", 4}, {"num_layers", 2},
                             {"vocab_size", 101}};
  const Expr n = Symbol::enc_seq_len;
  const Expr t = Symbol::visible_keys;
  const auto live = live_by_path(t5, {});
  const Expr hidden = b * s * d * a;
  const Expr encoder_output = b * n * d * a;
  const Expr bias = h * s * t * a;
  CHECK(live.at("decoder.layers.mlp.down") ==
        Integer{2} * hidden + b * s * f * a + encoder_output + bias);
  CHECK(live.at("head.logits") == hidden + b * s * V * a + encoder_output);
}

TEST_CASE("the peak of bert-base is at the context, with the scores still live") {
  const Counted counted = count(load_model("bert-base").spec, {});
  CHECK(counted.analysis.live[counted.figures.peak_index].path ==
        "encoder.layers.attention.context");
  CHECK(counted.figures.peak_activation_bytes == Integer{4} * (5 * 128 * 768 + 12 * 128 * 128));
}
