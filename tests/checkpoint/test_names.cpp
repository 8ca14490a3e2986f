// Locations of weights in a checkpoint: every canonical weight has a name, and parts of a shared
// tensor get their sizes from the weights.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "checkpoint/weight_files.h"
#include "safetensors.h"
#include "stored/stored_form.h"
#include "support/data.h"
#include "weight_places.h"

using namespace headroom;
using namespace headroom::checkpoint;
using namespace headroom::detail;

namespace {

/// A Llama with 4 query heads of size 2 on 2 KV heads: query [8, 8], key and value [4, 8].
ModelSpec grouped_query_model() {
  return test::spec_of({{"model_type", "llama"},
                        {"hidden_size", 8},
                        {"num_attention_heads", 4},
                        {"num_key_value_heads", 2},
                        {"num_hidden_layers", 3},
                        {"intermediate_size", 6},
                        {"vocab_size", 16}});
}

constexpr NameRule kStacked[] = {
    {"decoder.layers.attention.query.%", "layers.{}.qkv.%", part(0, Stacking::per_key_value_head)},
    {"decoder.layers.attention.key.%", "layers.{}.qkv.%", part(1, Stacking::per_key_value_head)},
    {"decoder.layers.attention.value.%", "layers.{}.qkv.%", part(2, Stacking::per_key_value_head)},
    {"decoder.layers.mlp.gate.%", "layers.{}.gate_up.%", transposed(part(0, Stacking::per_index))},
    {"decoder.layers.mlp.up.%", "layers.{}.gate_up.%", transposed(part(1, Stacking::per_index))},
    {"decoder.other_layers.attention.query.%", "layers.{}.qkv.%", part(0)},
    {"decoder.other_layers.attention.key.%", "layers.{}.qkv.%", part(1)},
};

NameTable stacked_table(const ModelSpec& spec) {
  NameTable table = name_table(spec);
  table.rules.insert(table.rules.begin(), kStacked);
  return table;
}

/// All places of weight `path`, by preference.
std::vector<PlaceList> places_of(const ModelSpec& spec, const std::string& path,
                                 std::int64_t layer) {
  const Graph graph = build_graph(spec, {});
  const WeightPlaces places(spec, graph, stacked_table(spec));
  return places.of(*std::ranges::find(graph.weights, path, &Weight::path), layer);
}

/// The preferred place.
WeightPlace place_of(const ModelSpec& spec, const std::string& path, std::int64_t layer) {
  return places_of(spec, path, layer).front().front();
}

}  // namespace

TEST_CASE("parts of a stack get their sizes from the weights in it") {
  const ModelSpec spec = grouped_query_model();
  const WeightPlace query = place_of(spec, "decoder.layers.attention.query.weight", 1);
  CHECK(query.name == "layers.1.qkv.weight");
  CHECK(query.range == StackRange{2, 8, 0, 4});  // per group: 2 query heads, key, value
  CHECK(query.stored == MatrixShape{16, 8});
  const WeightPlace key = place_of(spec, "decoder.layers.attention.key.weight", 2);
  CHECK(key.range == StackRange{2, 8, 4, 2});
  CHECK(place_of(spec, "decoder.layers.attention.value.weight", 0).range == StackRange{2, 8, 6, 2});
}

TEST_CASE("interleaved parts have one group per index, and a transposed tensor transposed sizes") {
  const ModelSpec spec = grouped_query_model();
  const WeightPlace up = place_of(spec, "decoder.layers.mlp.up.weight", 0);
  CHECK(up.range == StackRange{6, 2, 1, 1});
  CHECK(up.stored == MatrixShape{8, 12});
  CHECK(up.fits(std::vector<std::int64_t>{8, 12}));
  CHECK_FALSE(up.fits(std::vector<std::int64_t>{12, 8}));
}

TEST_CASE("rules for one weight are alternatives in their order") {
  const ModelSpec spec = grouped_query_model();
  const auto found = places_of(spec, "decoder.layers.attention.query.weight", 2);
  REQUIRE(found.size() == 2);
  CHECK(found[0].front().name == "layers.2.qkv.weight");
  CHECK(found[1].front().name == "layers.2.self_attn.q_proj.weight");
}

TEST_CASE("extras are recognised by whole words at the end of their names, or by prefixes") {
  const ModelSpec spec = test::spec_of(
      {{"model_type", "gpt2"}, {"n_embd", 8}, {"n_head", 2}, {"n_layer", 1}, {"vocab_size", 16}});
  const NameTable table = name_table(spec);
  CHECK(extra_kind(table, "h.0.attn.bias") == ExtraKind::causal_mask);
  CHECK(extra_kind(table, "transformer.h.0.attn.masked_bias") == ExtraKind::causal_mask);
  CHECK_FALSE(extra_kind(table, "h.0.attn.c_attn.bias"));
  CHECK_FALSE(extra_kind(table, "h.0.c_attn.bias"));
  CHECK(extra_kind(table, "lm_head.weight") == ExtraKind::tied_copy);
  CHECK(extra_kind(table, "visual.blocks.0.weight") == ExtraKind::vision_tower);
  CHECK_FALSE(extra_kind(table, "h.0.visual.weight"));
  CHECK(extra_kind(table, "layers.0.self_attn.k_scale") == ExtraKind::kv_cache_scale);
  CHECK_FALSE(extra_kind(table, ""));
}

TEST_CASE("a weight without a stored name, and a model of no family, are internal errors") {
  const auto fails_within = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.code() == ErrorCode::internal;
    }
    return false;
  };
  ModelSpec spec = grouped_query_model();
  const NameTable table = name_table(spec);
  CHECK(fails_within([&] { (void)stored_names(table, "decoder.layers.unknown.weight"); }));
  CHECK(stored_names(table, "decoder.layers.mlp.up.weight").size() == 1);
  spec.model_type = "none";
  CHECK(fails_within([&] { (void)name_table(spec); }));
  CHECK(fails_within([&] { (void)gguf_name_table(spec); }));
}

// A GGUF file may be given for a model of any family.
TEST_CASE("a family without a form in GGUF has the names there that all share") {
  ModelSpec spec = grouped_query_model();
  spec.model_type = "apertus";
  CHECK(gguf_rules(spec).size() == 1);
  spec.model_type = "vit";
  CHECK(gguf_rules(spec).empty());
  CHECK(find_stored_names(gguf_name_table(spec), "decoder.layers.mlp.up.weight").size() == 2);
}

TEST_CASE("names get layer and expert numbers") {
  CHECK(filled("layers.{}.experts.{e}.w1.weight", 3, 17) == "layers.3.experts.17.w1.weight");
  CHECK(names_experts("layers.{}.experts.{e}.w1.weight"));
  CHECK_FALSE(names_experts("layers.{}.experts.gate_up_proj"));
}

TEST_CASE("sizes of 1 do not count, and a convolution's last dimensions count as one") {
  const WeightPlace patches{"", {}, {}, {}, {4, 27}, {4, 27}};
  CHECK(patches.fits(std::vector<std::int64_t>{4, 3, 3, 3}));
  CHECK_FALSE(patches.fits(std::vector<std::int64_t>{4, 3, 3, 2}));
  const WeightPlace token{"", {}, {}, {}, {4, 1}, {4, 1}};
  CHECK(token.fits(std::vector<std::int64_t>{1, 1, 4}));
  const WeightPlace expert{"", 1, {}, {}, {4, 5}, {4, 5}, 3};
  CHECK(expert.fits(std::vector<std::int64_t>{3, 4, 5}));
  CHECK_FALSE(expert.fits(std::vector<std::int64_t>{2, 4, 5}));
}

TEST_CASE("one expert of a stack is a slice of the bytes") {
  const std::vector<std::byte> data{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  const StoredTensor stack{"experts", StoredType::uint8, {2, 1, 2}, data};
  const StoredTensor second = slice(stack, 1);
  CHECK(second.shape == std::vector<std::int64_t>{1, 2});
  CHECK(second.data.size() == 2);
  CHECK(second.data.front() == std::byte{3});
  const StoredTensor packed{"experts", StoredType::float4, {2, 1}, {data.data(), 1}};
  CHECK(test::input_error_of([&] { (void)slice(packed, 1); }).where() == "experts");
}

namespace {

/// First places of weight `path` of a tiny model with a state.
PlaceList first_places(const std::string& model, const std::string& path, std::int64_t layer) {
  const std::filesystem::path file = test::data_folder() / "state_spaces" / (model + ".json");
  return places_of(test::spec_of(test::read_json(file)), path, layer).front();
}

}  // namespace

TEST_CASE("three tensors are the rows of one weight, however they are cut") {
  const PlaceList places =
      first_places("configs/olmo_hybrid", "decoder.layers.delta.convolution.weight", 1);
  REQUIRE(places.size() == 3);
  CHECK(places[0].name == "layers.1.linear_attn.q_conv1d.weight");
  CHECK(places[1].name == "layers.1.linear_attn.k_conv1d.weight");
  CHECK(places[2].name == "layers.1.linear_attn.v_conv1d.weight");
  // 2 · 4 heads of 10 and 4 heads of 14: 136 channels of 4 taps.
  CHECK(places[0].fits(std::vector<std::int64_t>{40, 1, 4}));
  CHECK(places[0].fits(std::vector<std::int64_t>{46, 1, 4}));
  CHECK_FALSE(places[0].fits(std::vector<std::int64_t>{137, 1, 4}));
  CHECK_FALSE(places[0].fits(std::vector<std::int64_t>{40, 1, 3}));
  const WeightPlace sized = places[0].sized_as(std::vector<std::int64_t>{46, 1, 4});
  CHECK(sized.wanted == MatrixShape{46, 4});
  CHECK(sized.stored == MatrixShape{46, 4});
}

TEST_CASE("a block that layers share is stored in the first that uses it") {
  const auto name = [](const std::string& path) {
    return first_places("unrecorded/zamba2_two_blocks", "decoder.shared_blocks." + path, 0)
        .front()
        .name;
  };
  const std::string first = "layers.3.shared_transformer.";
  const std::string second = "layers.6.shared_transformer.";
  CHECK(name("0.attention.query.weight") == first + "self_attn.q_proj.weight");
  CHECK(name("1.attention.query.weight") == second + "self_attn.q_proj.weight");
  // The third use is the first block's second.
  CHECK(name("0.attention.key_adapter_2.down.weight") ==
        first + "self_attn.linear_k_adapter_list.2.0.weight");
  CHECK(name("1.mlp.gate_up_adapter_1.up.weight") ==
        second + "feed_forward.gate_up_proj_adapter_list.1.1.weight");
}
