// Bytes of conversions against the sizes of published conversions.
#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <utility>

#include "gguf_mix.h"
#include "headroom/analysis.h"
#include "headroom/error.h"
#include "headroom/storage.h"
#include "support/data.h"
#include "support/sanitized.h"
#include "weight_words.h"

using namespace headroom;
using namespace headroom::test;

namespace {

constexpr double kMebibyte = 1048576;

Integer bytes_as(const std::string& preset, WeightType type) {
  const ModelSpec spec = stored_as(load_model(preset).spec, type);
  return stored_weights(spec, build_graph(spec, {})).bytes;
}

ModelSpec stored_as_word(const ModelSpec& spec, const char* word) {
  return stored_as(spec, headroom::detail::weight_form_named(word).value());
}

Integer bytes_as_word(const ModelSpec& spec, const char* word) {
  return stored_weights(stored_as_word(spec, word), build_graph(spec, {})).bytes;
}

double mebibytes_as(const std::string& preset, WeightType type) {
  return static_cast<double>(bytes_as(preset, type)) / kMebibyte;
}

/// Bits per value of the matrices in the layers' own format.
double bits_of_largest_group(const std::string& preset, WeightType type) {
  const ModelSpec spec = stored_as(load_model(preset).spec, type);
  const StorageGroup group = stored_weights(spec, build_graph(spec, {})).groups.front();
  return 8 * static_cast<double>(group.bytes) / static_cast<double>(group.parameters);
}

/// A file's published size, in the unit of its table.
struct Published {
  std::string preset;
  WeightType type;
  double size;
  double allowed;
};

}  // namespace

// Sums of the "model buffer size" lines, in MiB with two digits each.
// Source: shared/reference/llamacpp_logs.jsonl, which quotes public issue threads.
TEST_CASE("GGUF conversions take the bytes that llama.cpp prints") {
  const Published rows[] = {
      {"tinyllama-1.1b", WeightType::q4_0, 606.53, 0.01},
      {"llama-3-8b", WeightType::q4_k_m, 281.81 + 4403.49, 0.02},
      {"qwen3-235b-a22b", WeightType::q8_0, 193551.23 + 26024.80 + 18149.10 + 630.59, 0.1},
      {"qwen3-235b-a22b", WeightType::q4_k_m, 135562.96, 0.1},
      {"qwen3-30b-a3b", WeightType::q5_k_m, 20713.44, 0.1},
      {"deepseek-r1", WeightType::q8_0, 680237.97, 0.1},
      {"deepseek-r1", WeightType::q4_k_m, 385689.63, 0.1},
      // The file stores MLA's up-projections of 64 heads twice, merged and split.
      {"kimi-k2", WeightType::q8_0, 1041021.91 - 61.0 * 64 * 256 * 512 / 32 * 34 / kMebibyte, 0.1},
  };
  for (const Published& row : rows) {
    CAPTURE(row.preset);
    CAPTURE(name_of(row.type));
    CHECK(std::abs(mebibytes_as(row.preset, row.type) - row.size) <= row.allowed);
  }
}

// Published files, whose tokenizers and other metadata take 0.7 to 8 MB: the sizes that the Hub
// shows for microsoft/Phi-3-mini-4k-instruct-gguf (q4) and for Meta-Llama-3-70B-Instruct Q4_K_M.
TEST_CASE("GGUF conversions take the bytes of published files but for metadata") {
  const double phi = mebibytes_as("phi-3-mini", WeightType::q4_k_m) * kMebibyte;
  CHECK(2'393'231'072 - phi > 0);
  CHECK(2'393'231'072 - phi < 1e6);
  const double llama = mebibytes_as("llama-3-70b", WeightType::q4_k_m) * kMebibyte;
  CHECK(42.52e9 - llama > 0);
  CHECK(42.52e9 - llama < 13e6);
}

// Sizes in the table of files of the models of 70B by TheBloke, such as
// TheBloke/Llama-2-70B-Orca-200k-GGUF, in GB of 1e9 bytes with two digits.
TEST_CASE("GGUF conversions of Llama-2-70B take the bytes of published files") {
  const Published rows[] = {{"llama-2-70b", WeightType::q4_0, 38.87, 0.006},
                            {"llama-2-70b", WeightType::q4_k_m, 41.42, 0.006},
                            {"llama-2-70b", WeightType::q5_k_m, 48.75, 0.006},
                            {"llama-2-70b", WeightType::q6_k, 56.59, 0.006},
                            {"llama-2-70b", WeightType::q8_0, 73.29, 0.006}};
  for (const Published& row : rows) {
    CAPTURE(name_of(row.type));
    const double gigabytes = static_cast<double>(bytes_as(row.preset, row.type)) / 1e9;
    CHECK(std::abs(gigabytes - row.size) <= row.allowed);
  }
}

// Bits per weight of Llama-3.1-8B in llama.cpp's tools/quantize/README.md at 311c2c9, with four
// digits: files whose metadata the table leaves out.
TEST_CASE("mixes of few bits take the bits per weight of llama.cpp's table") {
  const ModelSpec spec = load_model("llama-3.1-8b").spec;
  const Graph graph = build_graph(spec, {});
  const auto parameters = static_cast<double>(count_parameters(graph).total.evaluate(graph.sizes));
  const std::pair<const char*, double> rows[] = {
      {"q2_k", 3.1593}, {"iq4_xs", 4.4597}, {"iq4_nl", 4.6818}};
  for (const auto& row : rows) {
    const auto [word, published] = row;
    CAPTURE(row.first);
    CHECK(8 * static_cast<double>(bytes_as_word(spec, word)) / parameters ==
          doctest::Approx(published).epsilon(1e-4));
  }
}

// Sizes of Llama-3-8B in GiB that llama.cpp's quantize prints in its help
// (tools/quantize/quantize.cpp at 03161a4), metadata of some MB included.
TEST_CASE("mixes of one type take the bytes that quantize states") {
  const ModelSpec spec = load_model("llama-3-8b").spec;
  const std::pair<const char*, double> rows[] = {
      {"q4_1", 4.78}, {"q5_0", 5.21}, {"q5_1", 5.65}, {"q3_k_m", 3.74}, {"q2_k", 2.96}};
  for (const auto& row : rows) {
    const auto [word, published] = row;
    CAPTURE(row.first);
    const double gibibytes = static_cast<double>(bytes_as_word(spec, word)) / (1024 * kMebibyte);
    CHECK(published - gibibytes > -0.005);
    CHECK(published - gibibytes < 0.015);
  }
}

TEST_CASE("rows that fill no block of 256 take the types that quantize falls back to") {
  // hidden 640: llama-quant.cpp at 007dbbf, tensor_type_fallback
  const ModelSpec spec = load_model("gemma-3-270m").spec;
  const auto formats_of = [&](const char* word) {
    std::set<std::string> formats;
    const ModelSpec stored = stored_as_word(spec, word);
    for (const StorageGroup& group : stored_weights(stored, build_graph(spec, {})).groups) {
      formats.insert(group.format);
    }
    return formats;
  };
  CHECK(formats_of("q2_k").contains("Q4_0"));
  CHECK_FALSE(formats_of("iq4_xs").contains("Q4_0"));
  CHECK(formats_of("iq4_xs").contains("IQ4_NL"));
}

TEST_CASE("every type of weights has a word, and each word names one form") {
  std::set<WeightType> types;
  for (const detail::WeightWord& one : detail::weight_words()) {
    CAPTURE(one.word);
    CHECK(detail::weight_form_named(one.word) == WeightForm(one.type));
    if (types.insert(one.type).second) CHECK(name_of(one.type) == one.word);
  }
  CHECK(types.size() == static_cast<std::size_t>(WeightType::iq4_xs) + 1);
  // quantize's aliases (QUANT_OPTIONS in llama.cpp's tools/quantize/quantize.cpp)
  CHECK(detail::weight_form_named("Q3_K") == WeightForm(WeightType::q3_k_m));
  CHECK(detail::weight_form_named("q4_k") == WeightForm(WeightType::q4_k_m));
  CHECK(detail::weight_form_named("Q5_K") == WeightForm(WeightType::q5_k_m));
  CHECK(name_of(detail::weight_form_named("FP8-128x128-s32").value()) == "fp8-128x128-s32");
}

TEST_CASE("quantize has a mix for each type of weights from Q8_0 on, and for no other") {
  const ModelSpec spec = load_model("tinyllama-1.1b").spec;
  for (const detail::WeightWord& one : detail::weight_words()) {
    CAPTURE(one.word);
    if (one.type < WeightType::q8_0) {
      CHECK_THROWS_AS((void)detail::gguf_storage(spec, one.type), Error);
    } else {
      CHECK_FALSE(detail::gguf_storage(spec, one.type).rules.empty());
    }
  }
}

TEST_CASE("words that mean nothing, and groups without scales, name no form of weights") {
  for (const char* const other :
       {"", "f16", "q4", "iq2_xxs", "int", "fp8-", "fp8-128x128", "fp8-128x128-s64", "4bit",
        "4bit-1x12-s16", "int8-0x1-s16", "q4_0-row-s16", "stored", "random"}) {
    CAPTURE(other);
    CHECK_FALSE(detail::weight_form_named(other));
  }
}

TEST_CASE("matrices in groups take codes and scales, everything else 16 bits") {
  // 7 matrices in each of 22 layers: q and o [2048, 2048], k and v [256, 2048], FFN 5632.
  const Integer matrices = Integer{22} * (2 * 2048 * 2048 + 2 * 256 * 2048 + 3 * 5632 * 2048);
  const Integer others = Integer{1'100'048'384} - matrices;
  const ModelSpec spec = load_model("tinyllama-1.1b").spec;
  CHECK(bytes_as_word(spec, "int8-1x128-s16") == matrices + matrices / 128 * 2 + 2 * others);
  CHECK(bytes_as_word(spec, "4bit-1x128-s16-zeros") ==
        matrices / 2 + matrices / 128 * 2 + matrices / 256 + 2 * others);
  CHECK(bytes_as_word(spec, "fp8-128x128-s32") == matrices + matrices / 16384 * 4 + 2 * others);
  CHECK(bytes_as_word(spec, "4bit-1x64-nested") ==
        stored_weights(stored_as(spec, WeightType::nf4), build_graph(spec, {})).bytes);
}

// OCP Microscaling Formats 1.0, section 5.1: 32 values of 8 bits share a scale of 8 bits.
TEST_CASE("MXFP8 takes 8.25 bits per value of the layers' matrices") {
  const ModelSpec spec = load_model("llama-3-8b").spec;
  const Integer matrices = Integer{32} * 4096 * (2 * 4096 + 2 * 1024 + 3 * 14336);
  const Integer others = Integer{8'030'261'248} - matrices;
  CHECK(bytes_as_word(spec, "mxfp8") == matrices * 33 / 32 + 2 * others);
  CHECK(bytes_as_word(spec, "fp8-1x32-s8") == bytes_as_word(spec, "mxfp8"));
  CHECK(stores_mxfp8(stored_as(spec, info(InferenceRecipe::w8a8_mxfp8).weights)));
  CHECK_FALSE(stores_mxfp8(stored_as(spec, WeightType::float8)));
  CHECK_FALSE(stores_mxfp8(stored_as(spec, WeightType::mxfp4)));
  CHECK_FALSE(stores_mxfp8(spec));
}

TEST_CASE("a conversion to MXFP4 is the published one of gpt-oss") {
  CHECK(bytes_as("gpt-oss-120b", WeightType::mxfp4) == 65'248'815'744);
}

// arXiv 2305.14314, section 3: 0.127 bits per parameter for the nested scales, and 1088 B of tables
// for each of 224 matrices, as bitsandbytes stores them.
TEST_CASE("few bits per value come with their scales") {
  const double tables = 8.0 * 1088 * 224 / 6'476'005'376;
  CHECK(bits_of_largest_group("llama-2-7b", WeightType::nf4) ==
        doctest::Approx(4.127 + tables).epsilon(1e-5));
  CHECK(bits_of_largest_group("llama-2-7b", WeightType::int4) == 4 + (16.0 + 4) / 128);
  CHECK(bits_of_largest_group("gpt-oss-20b", WeightType::mxfp4) == 4.25);
  CHECK(bits_of_largest_group("llama-2-7b", WeightType::nvfp4) ==
        doctest::Approx(4.5).epsilon(1e-5));
}

TEST_CASE("plain conversions take 4 and 2 bytes per value") {
  CHECK(bytes_as("deepseek-v3", WeightType::bfloat16) ==
        Integer{2} * (Integer{671'026'404'352} + 58 * 256));
  CHECK(bytes_as("tinyllama-1.1b", WeightType::float32) == Integer{4} * 1'100'048'384);
  CHECK(bytes_as("tinyllama-1.1b", WeightType::float16) == Integer{2} * 1'100'048'384);
}

TEST_CASE("float8 keeps embeddings, head, routers and norms in 16 bits") {
  const ModelSpec spec = stored_as(load_model("mixtral-8x7b").spec, WeightType::float8);
  const StoredWeights stored = stored_weights(spec, build_graph(spec, {}));
  REQUIRE(stored.groups.size() == 2);
  CHECK(stored.groups[1].format == "BF16");
  // Embedding and head [32000, 4096], 32 routers [8, 4096], 65 norms [4096].
  CHECK(stored.groups[1].parameters == 2 * 32000 * 4096 + 32 * 8 * 4096 + 65 * 4096);
  CHECK(spec.storage.activations == StatedType::float8);
}

TEST_CASE("every preset converts to every kind of type, and few bits take fewer bytes") {
  const std::vector<Preset> presets = list_presets();
  for (std::size_t i = 0; i < presets.size(); i += kModelStep) {
    const Preset& preset = presets[i];
    CAPTURE(preset.name);
    const ModelSpec spec = read_preset(preset).spec;
    const Graph graph = build_graph(spec, {});
    const auto bytes = [&](WeightType type) {
      return stored_weights(stored_as(spec, type), graph).bytes;
    };
    const Integer plain = bytes(WeightType::bfloat16);
    CHECK(bytes(WeightType::float32) == 2 * plain);
    CHECK(bytes(WeightType::nf4) <= bytes(WeightType::float8) + plain / 50);
    CHECK(bytes(WeightType::float8) <= plain + plain / 50);
    // Norms, biases and small matrices whose rows fill no block are float32 and float16.
    CHECK(bytes(WeightType::q4_k_m) <= 2 * plain);
  }
}

TEST_CASE("layers differ where a mix gives some of them more bits") {
  const ModelSpec spec = stored_as(load_model("llama-3-8b").spec, WeightType::q4_k_m);
  const Graph graph = build_graph(spec, {});
  const StoredWeights stored = stored_weights(spec, graph);
  for (WeightId id = 0; id < graph.weights.size(); ++id) {
    if (graph.weights[id].path != "decoder.layers.mlp.down.weight") continue;
    const std::vector<Integer>& copies = stored.weights[id].bytes_of_copy;
    REQUIRE(copies.size() == 32);
    const Integer blocks = Integer{4096} * 14336 / 256;
    CHECK(copies[0] == blocks * 210);   // Q6_K in the first eighth
    CHECK(copies[4] == blocks * 144);   // Q4_K
    CHECK(copies[6] == blocks * 210);   // every third
    CHECK(copies[31] == blocks * 210);  // the last eighth
  }
}
