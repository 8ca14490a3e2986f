// Random weights in every type that kernels read, against float32 runs of the same values, and
// against the bytes that are counted and predicted of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "headroom/predict.h"
#include "headroom/storage.h"
#include "inspect/model_folder.h"
#include "measure.h"
#include "random_groups.h"
#include "run_memory.h"
#include "stored_runs.h"
#include "support/data.h"
#include "weight_words.h"

using namespace headroom;
using namespace headroom::measured;
using namespace headroom::test;
using headroom::detail::group_format_named;
using headroom::detail::GroupFormat;
using headroom::detail::weight_form_named;

namespace {

/// Forms of each codes, grain and scales that quantised checkpoints have.
constexpr std::string_view kForms[] = {
    "4bit-1x128-s16-zeros",  // GPTQ and AWQ
    "4bit-1x32-s16",
    "4bit-1x32-s8",      // MXFP4
    "4bit-1x16-s8",      // NVFP4
    "4bit-1x64-nested",  // NF4
    "int8-row-s32",         "int8-1x128-s16",  "int8-1x64-s16-zeros", "fp8-tensor-s32",
    "fp8-row-s16",          "fp8-128x128-s32", "fp8-1x32-s8"};

/// A model in a type, and its name.
struct Drawn {
  std::string name;
  ModelSpec spec;
};

/// `config` in every type in which random weights can be made.
std::vector<Drawn> in_every_type(const nlohmann::json& config) {
  std::vector<Drawn> all;
  constexpr auto kMost = static_cast<int>(WeightType::iq4_xs);
  for (auto type = static_cast<int>(WeightType::float8); type <= kMost; ++type) {
    const auto narrow = static_cast<WeightType>(type);
    all.push_back({std::string(name_of(narrow)), stored_as(spec_of(config), narrow)});
  }
  for (const std::string_view word : kForms) {
    all.push_back({std::string(word), stored_as(spec_of(config), weight_form_named(word).value())});
  }
  return all;
}

Measurement measured_as(const ModelSpec& spec) {
  Model model;
  model.spec = spec;
  MeasureOptions options;
  options.storage = HeldType::stored;
  options.activations = ActivationPath::float32;  // some codes are no integers
  options.runs = 1;
  options.warmup = 0;
  const auto source = random_stored(spec, 1);
  return measure(std::move(model), prompt_of(5), *source, std::nullopt, options,
                 [](int, int) { return true; });
}

std::vector<float> values_of(const checkpoint::GroupedWeights& weights) {
  std::vector<float> values(static_cast<std::size_t>(weights.rows * weights.columns));
  const auto columns = static_cast<std::size_t>(weights.columns);
  for (std::int64_t row = 0; row < weights.rows; ++row) {
    checkpoint::dequantise_row(
        weights, row, std::span(values).subspan(static_cast<std::size_t>(row) * columns, columns));
  }
  return values;
}

}  // namespace

TEST_CASE("random weights of every type compute what their float32 values compute") {
  for (const nlohmann::json& config : {llama_of_blocks(), mixture_of_experts()}) {
    for (const Drawn& drawn : in_every_type(config)) {
      const ModelSpec& spec = drawn.spec;
      CAPTURE(drawn.name);
      const auto exact = logits_of(spec, {});
      REQUIRE(exact.size() == 9 * 320);
      CHECK(root_mean_square(exact) > 0);
      CHECK(relative_error(logits_of(spec, stored_with(ActivationPath::float32)), exact) < 1e-5);
    }
  }
}

TEST_CASE("int8 activations move the logits of random integer codes by about their rounding") {
  for (const char* const word : {"4bit-1x128-s16-zeros", "4bit-1x32-s8", "4bit-1x16-s8",
                                 "int8-row-s32", "int8-1x64-s16-zeros", "q2_k", "iq4_xs"}) {
    CAPTURE(word);
    const ModelSpec spec = stored_as(spec_of(llama_of_blocks()), weight_form_named(word).value());
    const double error =
        relative_error(logits_of(spec, stored_with(ActivationPath::int8)), logits_of(spec, {}));
    CHECK(error < 0.03);  // as in test_block_weights.cpp: 2 % for seven products in sequence
    CHECK(error > 0);
  }
}

TEST_CASE("random weights of every type take exactly the bytes that are counted of them") {
  for (const nlohmann::json& config : {llama_of_blocks(), tied_llama(), mixture_of_experts()}) {
    for (const Drawn& drawn : in_every_type(config)) {
      const ModelSpec& spec = drawn.spec;
      CAPTURE(config.dump());
      CAPTURE(drawn.name);
      const Integer counted = stored_weights(spec, build_graph(spec, all_parts())).bytes;
      const Measurement run = measured_as(spec);
      const bool widens_16_bits = drawn.name == "mxfp4";  // beside ggml's blocks
      if (!widens_16_bits) CHECK(Integer{run.counted.weight_bytes} == counted);
      TimeRequest request;
      request.computes_in_float32 = true;
      request.opaque_layout = MeasureOptions{}.backend == Backend::onednn;
      const RunFigures predicted = predict_run(spec, prompt_of(5), request);
      CHECK(predicted.weight_bytes == run.counted.weight_bytes);
      CHECK(predicted.parameters == run.counted.parameters);
      const Integer held = predict_held_weight_bytes(spec, prompt_of(5), request);
      // Tiles of routers' 4 rows are filled with zeros.
      CHECK(static_cast<double>(run.memory.weights_held_bytes) ==
            doctest::Approx(static_cast<double>(held)).epsilon(0.03));
    }
  }
}

TEST_CASE("the memory of a run counts random weights of every type in their own bytes") {
  for (const Drawn& drawn : in_every_type(llama_of_blocks())) {
    const ModelSpec& spec = drawn.spec;
    CAPTURE(drawn.name);
    if (drawn.name == "mxfp4") continue;  // see above
    const RunMemory memory = memory_of(spec, {prompt_of(5), 0, HeldType::stored});
    CHECK(memory.weights == stored_weights(spec, build_graph(spec, all_parts())).bytes);
  }
}

TEST_CASE("random groups have finite values of the deviation that is asked for, within the codes") {
  constexpr double kDeviation = 0.05;
  for (const std::string_view name : kForms) {
    CAPTURE(name);
    SplitMix64 numbers(5);
    const auto weights =
        random_groups(*group_format_named(name), 160, 512, static_cast<float>(kDeviation), numbers);
    checkpoint::require_finite(weights, "test");
    const std::vector<float> values = values_of(weights);
    const double found = root_mean_square(values);
    // Scales that are powers of two are off by up to √2; the others by the sampling of scales.
    const bool powers = weights.scales.kind == checkpoint::ScaleKind::exponent;
    CHECK(found > kDeviation / (powers ? 1.5 : 1.1));
    CHECK(found < kDeviation * (powers ? 1.5 : 1.1));
    double sum = 0;
    double most = 0;
    for (const float value : values) {
      sum += static_cast<double>(value);
      most = std::max(most, std::abs(static_cast<double>(value)));
    }
    // Codes from -8 to 7 have a mean of -0.5 and a deviation of 4.6.
    CHECK(std::abs(sum) / static_cast<double>(values.size()) < 0.15 * found);
    // The largest code is 1.7 deviations of uniform codes, 3 of floats; scales differ by 1.4.
    CHECK(most < 5 * found);
  }
}

TEST_CASE("random groups differ in codes and in scales") {
  for (const std::string_view name : kForms) {
    CAPTURE(name);
    SplitMix64 numbers(5);
    const auto weights = random_groups(*group_format_named(name), 256, 512, 1, numbers);
    const auto& scales = weights.scales.values;
    const auto size = checkpoint::scale_bytes(weights.scales.kind);
    const bool several = std::ssize(scales) > size;
    const std::span all(scales);
    const auto differs = [&](std::int64_t at) {
      const auto one = all.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
      return !std::ranges::equal(one, all.first(static_cast<std::size_t>(size)));
    };
    bool any = false;
    for (std::int64_t at = 0; at < std::ssize(scales); at += size) any = any || differs(at);
    CHECK(any == several);
    const auto again = random_groups(*group_format_named(name), 256, 512, 1, numbers);
    CHECK(again.codes != weights.codes);
  }
}

TEST_CASE("matrices of 16 bits beside groups have the numbers of random float32 weights, rounded") {
  const ModelSpec spec = stored_as(spec_of(llama_of_blocks()), WeightType::int8);
  const Graph graph = build_graph(spec, all_parts());
  const auto table = std::ranges::find_if(graph.weights, [](const Weight& weight) {
    return weight.path.ends_with("word_embeddings.weight");
  });
  REQUIRE(table != graph.weights.end());
  const auto rounded = random_stored(spec, 3)->load(*table, {320, 256}, 0);
  const auto exact = random_weights(3)->load(*table, {320, 256}, 0);
  REQUIRE(rounded.size() == exact.size());
  for (std::size_t i = 0; i < exact.size(); ++i) {
    CHECK(std::abs(rounded[i] - exact[i]) <= 0x1p-8F * std::abs(exact[i]));
  }
}

TEST_CASE("rows that no kernel reads in groups are widened, as predicted") {
  nlohmann::json config = llama_of_blocks();
  config["hidden_size"] = 252;  // no multiple of 8
  config["head_dim"] = 20;
  for (const WeightType type : {WeightType::int4, WeightType::nf4, WeightType::int8}) {
    CAPTURE(name_of(type));
    const ModelSpec spec = stored_as(spec_of(config), type);
    const Measurement run = measured_as(spec);
    TimeRequest request;
    request.computes_in_float32 = true;
    request.opaque_layout = MeasureOptions{}.backend == Backend::onednn;
    const Integer held = predict_held_weight_bytes(spec, prompt_of(5), request);
    CHECK(static_cast<double>(run.memory.weights_held_bytes) ==
          doctest::Approx(static_cast<double>(held)).epsilon(0.06));
    const auto widens = [](const WeightFormat& format) {
      return format.stored != format.held && format.stored != "BF16";
    };
    CHECK(std::ranges::any_of(run.weight_formats, widens) == (type != WeightType::int8));
  }
}

TEST_CASE("the tokens of a deep model with random codes stay apart, as do those of float32") {
  const nlohmann::json config{
      {"model_type", "llama"},   {"hidden_size", 512},       {"intermediate_size", 1024},
      {"num_hidden_layers", 16}, {"num_attention_heads", 8}, {"num_key_value_heads", 8},
      {"vocab_size", 512},       {"rms_norm_eps", 1e-5},     {"tie_word_embeddings", false},
      {"hidden_act", "silu"}};
  const auto similarity = [](const std::vector<float>& logits) {
    constexpr std::size_t kVocabulary = 512;
    double largest = 0;
    for (std::size_t at = kVocabulary; at + kVocabulary <= logits.size(); at += kVocabulary) {
      double product = 0;
      double first = 0;
      double second = 0;
      for (std::size_t i = at; i < at + kVocabulary; ++i) {
        const auto a = static_cast<double>(logits[i - kVocabulary]);
        const auto b = static_cast<double>(logits[i]);
        product += a * b;
        first += a * a;
        second += b * b;
      }
      largest = std::max(largest, product / std::sqrt(first * second));
    }
    return largest;
  };
  CHECK(similarity(logits_of(spec_of(config), {})) < 0.9);
  for (const std::string_view type : {"q4_0", "q5_0", "q3_k_m", "iq4_nl", "4bit-1x32-s16"}) {
    CAPTURE(type);
    const ModelSpec spec = stored_as(spec_of(config), weight_form_named(type).value());
    CHECK(similarity(logits_of(spec, stored_with(ActivationPath::float32))) < 0.9);
  }
}
