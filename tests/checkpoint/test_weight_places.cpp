// Sizes of stored tensors that fit a weight or do not, and stacks whose weights do not divide into
// their groups.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "headroom/error.h"
#include "support/data.h"
#include "weight_places.h"

using namespace headroom;
using namespace headroom::detail;

namespace {

constexpr std::int64_t kHuge = std::int64_t{1} << 62U;

bool fits(MatrixShape stored, const std::vector<std::int64_t>& shape, std::int64_t experts = 1) {
  WeightPattern pattern;
  pattern.wanted = pattern.stored = stored;
  pattern.experts = experts;
  if (experts > 1) pattern.name.layout = stacked_experts();
  return pattern.fits(shape);
}

ModelSpec llama_with(const nlohmann::json& changes = nlohmann::json::object()) {
  nlohmann::json config = {{"model_type", "llama"},        {"hidden_size", 8},
                           {"num_attention_heads", 4},     {"num_key_value_heads", 2},
                           {"num_hidden_layers", 1},       {"intermediate_size", 6},
                           {"tie_word_embeddings", false}, {"vocab_size", 16}};
  config.update(changes);
  return test::spec_of(config);
}

/// The preferred pattern of `path` where these rules precede the family's.
WeightPattern pattern_of(const ModelSpec& spec, std::span<const NameRule> rules,
                         const std::string& path) {
  NameTable table = name_table(spec);
  table.rules.insert(table.rules.begin(), rules);
  const Graph graph = build_graph(spec, {});
  const WeightPlaces places(spec, graph, table);
  const auto weight = std::ranges::find(graph.weights, path, &Weight::path);
  REQUIRE(weight != graph.weights.end());
  return places.patterns(*weight).front();
}

constexpr NameRule kQuarters[] = {
    {"decoder.layers.mlp.gate.%", "layers.{}.gate_up.%", part(0, Stacking::per_quarter)},
    {"decoder.layers.mlp.up.%", "layers.{}.gate_up.%", part(1, Stacking::per_quarter)}};
constexpr NameRule kBesideEachOther[] = {
    {"decoder.layers.mlp.gate.%", "layers.{}.gate_up.%", along_input(part(0))},
    {"decoder.layers.mlp.up.%", "layers.{}.gate_up.%", along_input(part(1))}};
constexpr NameRule kQueryKey[] = {{"decoder.layers.attention.query.%", "{}.qk.%", part(0)},
                                  {"decoder.layers.attention.key.%", "{}.qk.%", part(1)}};
constexpr NameRule kPadded[] = {{"decoder.layers.attention.query.%", "{}.q.%", padded_rows()}};
constexpr NameRule kHeads[] = {
    {"encoder.layers.attention.query.%", "e.{}.qk.%", part(0, Stacking::per_key_value_head)},
    {"encoder.layers.attention.key.%", "e.{}.qk.%", part(1, Stacking::per_key_value_head)},
    {"decoder.layers.attention.query.%", "d.{}.qk.%", part(0, Stacking::per_key_value_head)},
    {"decoder.layers.attention.key.%", "d.{}.qk.%", part(1, Stacking::per_key_value_head)}};

}  // namespace

TEST_CASE("a matrix may be a grid of rows, a vector, or one with further sizes of 1") {
  CHECK(fits({6, 5}, {6, 5}));
  CHECK(fits({6, 5}, {2, 3, 5}));
  CHECK(fits({6, 5}, {30}));
  CHECK(fits({6, 5}, {6, 1, 5}));
  CHECK_FALSE(fits({6, 5}, {2, 4, 5}));
  CHECK_FALSE(fits({6, 5}, {31}));
  CHECK_FALSE(fits({1, 1}, {5}));
  CHECK_FALSE(fits({1, 1}, {5, 2}));
  CHECK(fits({1, 1}, {}));
}

TEST_CASE("experts may be one after the other in the rows of a matrix") {
  CHECK(fits({6, 5}, {3, 6, 5}, 3));
  CHECK(fits({6, 5}, {18, 5}, 3));
  CHECK_FALSE(fits({6, 5}, {18, 4}, 3));
  CHECK_FALSE(fits({6, 5}, {}, 3));
}

TEST_CASE("sizes whose products exceed 63 bits fit no weight") {
  CHECK_FALSE(fits({6, 5}, {kHuge, 4, 5}));
  CHECK_FALSE(fits({kHuge, 4}, {6}));
  CHECK_FALSE(fits({kHuge, 5}, {18, 5}, 3));
  CHECK_FALSE(fits({6, 5}, {6, kHuge, 4}));
}

TEST_CASE("rows of a joined tensor are those after sizes of 1") {
  WeightPattern pattern;
  pattern.stored = {9, 4};
  pattern.joined = 3;
  CHECK(pattern.fits(std::vector<std::int64_t>{3, 4}));
  CHECK(pattern.fits(std::vector<std::int64_t>{1, 1, 3, 4}));
  CHECK_FALSE(pattern.fits(std::vector<std::int64_t>{10, 4}));
  CHECK_FALSE(pattern.fits(std::vector<std::int64_t>{3, 5}));
  CHECK(pattern.elements(std::vector<std::int64_t>{3, 4}) == 12);
  CHECK(pattern.tensors() == 3);
}

TEST_CASE("weights beside each other have all inputs of their stack") {
  const WeightPattern up =
      pattern_of(llama_with(), kBesideEachOther, "decoder.layers.mlp.up.weight");
  CHECK(up.range == StackRange{1, 16, 8, 8});
  CHECK(up.stored == MatrixShape{6, 16});
}

TEST_CASE("a stack by key-value heads has those of its own half of the model") {
  const ModelSpec spec = test::spec_of({{"model_type", "bart"},
                                        {"d_model", 24},
                                        {"encoder_attention_heads", 4},
                                        {"decoder_attention_heads", 2},
                                        {"encoder_layers", 1},
                                        {"decoder_layers", 1},
                                        {"encoder_ffn_dim", 8},
                                        {"decoder_ffn_dim", 8},
                                        {"vocab_size", 16}});
  const auto range = [&](const char* path) { return pattern_of(spec, kHeads, path).range; };
  CHECK(range("encoder.layers.attention.key.weight") == StackRange{4, 12, 6, 6});
  CHECK(range("decoder.layers.attention.key.weight") == StackRange{2, 24, 12, 12});
}

TEST_CASE("a stack whose groups do not divide its rows is an internal error") {
  CHECK_THROWS_WITH_AS(
      (void)pattern_of(llama_with(), kQuarters, "decoder.layers.mlp.up.weight"),
      doctest::Contains("4 groups do not divide the 6 rows of decoder.layers.mlp.gate"), Error);
  const ModelSpec spec = llama_with({{"intermediate_size", 12}});
  CHECK(pattern_of(spec, kQuarters, "decoder.layers.mlp.up.weight").range ==
        StackRange{4, 6, 3, 3});
}

TEST_CASE("rows of a stack or a padding that exceed 63 bits are refused, or left as they are") {
  const std::string query = "decoder.layers.attention.query.weight";
  const auto with_heads = [](std::int64_t heads, std::int64_t size) {
    return llama_with(
        {{"num_attention_heads", heads}, {"num_key_value_heads", heads}, {"head_dim", size}});
  };
  CHECK(pattern_of(with_heads(4, 2), kQueryKey, query).range == StackRange{1, 16, 0, 8});
  constexpr std::int64_t kRoot = std::int64_t{1} << 31U;
  CHECK_THROWS_WITH_AS((void)pattern_of(with_heads(kRoot, kRoot), kQueryKey, query),
                       doctest::Contains("too many rows"), Error);
  CHECK(pattern_of(with_heads(5, 26), kPadded, query).stored.rows == 256);
  // 2⁶³ − 2 = 2·715,827,883·3·2,147,483,647, which 128 does not divide.
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() - 1;
  CHECK(pattern_of(with_heads(6'442'450'941, 1'431'655'766), kPadded, query).stored.rows == kMost);
}

TEST_CASE("a weight that the model lacks has no patterns") {
  const ModelSpec spec = llama_with();
  const Graph graph = build_graph(spec, {});
  const WeightPlaces places(spec, graph, name_table(spec));
  Weight weight = graph.weights.front();
  weight.path = "decoder.other.weight";
  CHECK_THROWS_WITH_AS((void)places.patterns(weight),
                       doctest::Contains("has no weight decoder.other.weight"), Error);
}
