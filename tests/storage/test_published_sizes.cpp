// Bytes of stored weights against the published sizes of the checkpoints.
#include <doctest/doctest.h>

#include "headroom/storage.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

StoredWeights stored_preset(const std::string& name) {
  const Model model = load_model(name);
  return stored_weights(model.spec, build_graph(model.spec, {}));
}

const StorageGroup* group_of(const StoredWeights& stored, const std::string& format) {
  for (const StorageGroup& group : stored.groups) {
    if (group.format == format) return &group;
  }
  return nullptr;
}

}  // namespace

// model.safetensors.index.json of openai/gpt-oss-120b and openai/gpt-oss-20b, metadata.total_size.
TEST_CASE("gpt-oss takes the bytes of its published MXFP4 tensors") {
  const StoredWeights large = stored_preset("gpt-oss-120b");
  CHECK(large.bytes == 65'248'815'744);
  CHECK(large.origin == "quantization_config: mxfp4");
  CHECK(stored_preset("gpt-oss-20b").bytes == 13'761'264'768);
  // 36 layers of 128 experts of 3 matrices 2880 × 2880.
  const StorageGroup* const experts = group_of(large, "MXFP4");
  REQUIRE(experts != nullptr);
  CHECK(experts->parameters == Integer{36} * 128 * 3 * 2880 * 2880);
  REQUIRE(group_of(large, "BF16") != nullptr);
}

// The 163 files of deepseek-ai/DeepSeek-V3 have 688,586,727,753 B, of which 11,888,393 B are
// headers (129 B for each of 92 thousand tensors). Its multi-token-prediction layer, which the
// preset leaves out, is a layer with experts, a copy of embedding and head in 16 bits, a projection
// [7168, 14336] in 16 bits and three more norms.
TEST_CASE(
    "DeepSeek-V3 takes the bytes of its published FP8 tensors without the layer that predicts "
    "the token after next") {
  const StoredWeights stored = stored_preset("deepseek-v3");
  constexpr Integer kPredictionLayer = 15'424'227'552;
  constexpr Integer kFiles = 688'586'727'753;
  CHECK(kFiles - (stored.bytes + kPredictionLayer) == 11'888'393);
  const StorageGroup* const float8 = group_of(stored, "FP8, a scale per 128 × 128");
  REQUIRE(float8 != nullptr);
  // All but embedding and head [129280, 7168], routers [256, 7168] and norms.
  const Integer norms = Integer{61} * (2 * 7168 + 1536 + 512) + 7168;
  const Integer plain = Integer{2} * 129280 * 7168 + Integer{58} * (256 * 7168) + norms;
  CHECK(float8->parameters == Integer{671'026'404'352} - plain);
}

namespace {

StoredWeights stored_wild(const std::string& name) {
  const Model model = load_model((data_folder() / "wild" / (name + ".config.json")).string());
  return stored_weights(model.spec, build_graph(model.spec, {}));
}

/// Bytes of the weights whose path has `text` after the layers' prefix.
Integer bytes_with(const StoredWeights& stored, const Graph& graph, std::string_view text) {
  Integer sum = 0;
  for (std::size_t i = 0; i < graph.weights.size(); ++i) {
    if (graph.weights[i].path.find(text) != std::string::npos) sum += stored.weights[i].bytes;
  }
  return sum;
}

}  // namespace

// deepseek-ai/DeepSeek-V4-Flash: metadata.total_size of model.safetensors.index.json, and the bytes
// by component that a public inventory of its headers lists, with the prediction layer (mtp.0)
// apart: experts, attention, projections, shared expert, hyper-connections, router, norms.
TEST_CASE("DeepSeek-V4-Flash takes the bytes of its published tensors, component by component") {
  constexpr Integer kTotalSize = 159'609'485'896;
  constexpr Integer kPredictionLayer = Integer{3'422'552'064} + 106'964'608 + 33'556'480 +
                                       25'167'360 + 3'408'108 + 2'098'176 + 40'960;
  const auto file = data_folder() / "wild/deepseek-v4-flash.config.json";
  const Model model = load_model(file.string());
  const Graph graph = build_graph(model.spec, {});
  const StoredWeights stored = stored_weights(model.spec, graph);
  CHECK(stored.bytes == kTotalSize - kPredictionLayer);
  const auto bytes = [&](std::string_view text) { return bytes_with(stored, graph, text); };
  CHECK(bytes("mlp.experts.") == 147'169'738'752);
  CHECK(bytes("layers.attention.") - bytes("layers.attention.hyper_connection") == 5'400'554'112);
  CHECK(bytes("mlp.shared_expert.") == 1'082'196'480);
  CHECK(bytes("hyper_connection") == Integer{135'275'592} + 262'164);
  CHECK(bytes("mlp.router") == 108'834'816);
  CHECK(bytes("attention_norm") + bytes("mlp_norm") == 704'512);
  CHECK(bytes("word_embeddings") == 1'059'061'760);
}

// deepseek-ai/DeepSeek-V4-Pro: total_size 864,704,792,696, of which its prediction layer has
// 13,956,587,692 in a public sum over the files' headers.
TEST_CASE("DeepSeek-V4-Pro takes the bytes of its published tensors") {
  const StoredWeights stored = stored_wild("deepseek-v4-pro");
  CHECK(stored.bytes == Integer{864'704'792'696} - 13'956'587'692);
  const StorageGroup* const experts = group_of(stored, "MXFP4");
  REQUIRE(experts != nullptr);
  CHECK(experts->parameters == 1'547'396'186'112);  // params_routed_experts of wild/params.csv
}

TEST_CASE("DeepSeek-V4's FP8 experts have 8-bit scales, DeepSeek-V3.2's float32 ones") {
  const StoredWeights exponents = stored_wild("deepseek-v4-flash-fp8");
  CHECK(group_of(exponents, "MXFP4") == nullptr);
  const StorageGroup* const blocks = group_of(exponents, "FP8, an E8M0 scale per 128 × 128");
  REQUIRE(blocks != nullptr);
  CHECK(blocks->bytes == blocks->parameters + blocks->parameters / (128 * 128));
  CHECK(group_of(stored_wild("deepseek-v3.2"), "FP8, a scale per 128 × 128") != nullptr);
}

TEST_CASE("a model without a quantisation takes the type of its config") {
  const Model model = load_model("llama-3-8b");
  const StoredWeights stored = stored_weights(model.spec, build_graph(model.spec, {}));
  CHECK(stored.bytes == Integer{2} * 8'030'261'248);
  REQUIRE(stored.groups.size() == 1);
  CHECK(stored.groups.front().format == "BF16");
  CHECK(stored.groups.front().parameters == 8'030'261'248);
  CHECK(stored.origin.empty());
}

TEST_CASE("bytes of weights and of groups sum to the total") {
  for (const char* const name : {"gpt-oss-20b", "deepseek-v3", "kimi-k2", "minimax-m2", "gpt2"}) {
    CAPTURE(name);
    const StoredWeights stored = stored_preset(name);
    Integer weights = 0;
    Integer groups = 0;
    for (const StoredWeight& weight : stored.weights) weights += weight.bytes;
    for (const StorageGroup& group : stored.groups) groups += group.bytes;
    CHECK(weights == stored.bytes);
    CHECK(groups == stored.bytes);
  }
}
