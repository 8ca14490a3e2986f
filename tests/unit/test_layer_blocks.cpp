// Configs whose layers differ one by one: Nemotron-NAS's blocks and ALBERT's groups of layers.
#include <doctest/doctest.h>

#include "headroom/error.h"
#include "headroom/model_source.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

nlohmann::json nemotron() { return read_json(data_folder() / "families/nemotron_nas/config.json"); }

std::string refusal_of_layers(const nlohmann::json& config) {
  return refusal_of([&] { (void)spec_of(config, "nemotron"); });
}

}  // namespace

TEST_CASE("layers of Nemotron-NAS have key-value heads, widths, matrices or nothing of their own") {
  const ModelSpec spec = spec_of(nemotron());
  const StackSpec& stack = *spec.decoder;
  const auto attention = [&](std::int64_t layer) {
    return stack.attention_of(stack.variant(layer));
  };
  const auto network = [&](std::int64_t layer) { return stack.ffn_of(stack.variant(layer)); };
  CHECK(attention(0).num_key_value_heads == 2);
  CHECK(attention(1).num_key_value_heads == 1);
  CHECK(attention(2).kind == AttentionKind::none);
  CHECK(attention(3).kind == AttentionKind::matrix);
  CHECK(network(3).intermediate_size == 512);  // 2/3 · 16.5 · 24 = 264, to a multiple of 256
  CHECK(network(4).kind == FfnKind::none);
  CHECK(network(5).kind == FfnKind::matrix);
  CHECK(stack.variant(7) == stack.variant(0));
}

TEST_CASE("blocks that no published code runs are refused") {
  nlohmann::json config = nemotron();
  config["block_configs"].erase(0);
  CHECK(refusal_of_layers(config).find("7 entries for 8 layers") != std::string::npos);
  config = nemotron();
  config["block_configs"][0]["attention"]["n_heads_in_group"] = 3;
  CHECK(refusal_of_layers(config).find("does not divide") != std::string::npos);
  config = nemotron();
  config["block_configs"][0]["attention"]["window_length"] = 512;
  CHECK(refusal_of_layers(config).find("window_length") != std::string::npos);
  config = nemotron();
  config["block_configs"][0]["attention"]["unshifted_sink"] = true;
  CHECK(refusal_of_layers(config).find("unshifted_sink") != std::string::npos);
  config = nemotron();
  config["block_configs"][0]["ffn"]["ffn_mult"] = -1;
  CHECK(refusal_of_layers(config).find("inner width") != std::string::npos);
  config = nemotron();
  config["block_configs"][0]["ffn"]["ffn_mult"] = nullptr;
  CHECK(refusal_of_layers(config).find("ffn_mult") != std::string::npos);
  config = nemotron();
  config["block_configs"] = 3;
  CHECK(refusal_of_layers(config).find("list") != std::string::npos);
}

TEST_CASE("ALBERT's groups of several layers run more layers with more weights") {
  nlohmann::json config = read_json(data_folder() / "families/albert_groups/config.json");
  const Graph one = build_graph(spec_of(config), {});
  config["inner_group_num"] = 3;
  const Graph three = build_graph(spec_of(config), {});
  const auto parameters = [](const Graph& graph) {
    return count_parameters(graph).total.evaluate(graph.sizes);
  };
  // Two groups with two more layers each: attention 4·(d² + d), network 2·d·f + f + d, norms 4·d.
  constexpr Integer kWidth = 24;
  constexpr Integer kInner = 40;
  constexpr Integer kLayer =
      4 * (kWidth * kWidth + kWidth) + 2 * kWidth * kInner + kInner + kWidth + 4 * kWidth;
  CHECK(parameters(three) - parameters(one) == 2 * 2 * kLayer);
  config["inner_group_num"] = 17;
  CHECK(refusal_of_layers(config).find("inner_group_num") != std::string::npos);
}

TEST_CASE("T5Gemma's encoder may be wider than its decoder") {
  const ModelSpec spec = spec_of(read_json(data_folder() / "families/t5gemma_widths/config.json"));
  CHECK(spec.hidden_size == 48);
  CHECK(spec.encoder_width() == 60);
}
