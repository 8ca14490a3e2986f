// Bytes of stored weights against the weights that engines report at start-up. An engine adds a
// rotary table (32 MiB in vLLM) and keeps scales in float32, so that these agree to 0.2 %.
// Source: shared/reference/engine_logs.jsonl, which quotes public issue threads.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "headroom/storage.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

constexpr double kGibibyte = 1073741824;

/// Gibibytes of the preset's config with this quantisation and other keys.
double gibibytes(const std::string& preset, const nlohmann::json& changes) {
  const std::optional<Preset> found = find_preset(preset);
  REQUIRE(found);
  nlohmann::json config = nlohmann::json::parse(found->json).at("config");
  config.update(changes);
  const ModelSpec spec = spec_of(config);
  return static_cast<double>(stored_weights(spec, build_graph(spec, {})).bytes) / kGibibyte;
}

nlohmann::json int8_per_channel() {
  const nlohmann::json weights = {{"num_bits", 8}, {"type", "int"}, {"strategy", "channel"}};
  const nlohmann::json group = {{"targets", {"Linear"}}, {"weights", weights}};
  return {{"quant_method", "compressed-tensors"},
          {"format", "int-quantized"},
          {"ignore", {"lm_head"}},
          {"config_groups", {{"group_0", group}}}};
}

/// Meta's FP8: attention, the first and the last layer stay in 16 bits.
nlohmann::json fbgemm_of_llama_405b() {
  std::vector<std::string> kept = {"lm_head"};
  for (int layer = 0; layer < 126; ++layer) {
    const std::string name = "model.layers." + std::to_string(layer);
    for (const char* const matrix : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
      kept.push_back(name + ".self_attn." + matrix);
    }
    if (layer != 0 && layer != 125) continue;
    for (const char* const matrix : {"gate_proj", "up_proj", "down_proj"}) {
      kept.push_back(name + ".mlp." + matrix);
    }
  }
  return {{"quant_method", "fbgemm_fp8"}, {"modules_to_not_convert", kept}};
}

}  // namespace

// neuralmagic/Meta-Llama-3.1-70B-Instruct-quantized.w8a8 on one device: 67.7229.
TEST_CASE("Llama-3.1-70B in INT8 per channel takes what vLLM loads") {
  CHECK(gibibytes("llama-3.1-70b", {{"quantization_config", int8_per_channel()}}) ==
        doctest::Approx(67.7229).epsilon(0.002));
}

// meta-llama/Meta-Llama-3.1-405B-Instruct-FP8 on 8 devices: 57.752 each. That release stored every
// KV head twice (num_key_value_heads 16).
TEST_CASE("Llama-3.1-405B in FP8 takes what vLLM loads") {
  CHECK(gibibytes("llama-3.1-405b",
                  {{"quantization_config", fbgemm_of_llama_405b()}, {"num_key_value_heads", 16}}) ==
        doctest::Approx(8 * 57.752).epsilon(0.002));
}

// Qwen2.5-7B-Instruct-bnb-4bit: 5.2032, with nested scales.
TEST_CASE("Qwen2.5-7B in nested 4 bits takes what vLLM loads") {
  const nlohmann::json nf4 = {{"quant_method", "bitsandbytes"},
                              {"load_in_4bit", true},
                              {"bnb_4bit_quant_type", "nf4"},
                              {"bnb_4bit_use_double_quant", true}};
  CHECK(gibibytes("qwen2.5-7b", {{"quantization_config", nf4}}) ==
        doctest::Approx(5.2032).epsilon(0.01));
}
