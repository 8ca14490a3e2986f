// Patterns of module names as published lists write them.
#include <doctest/doctest.h>

#include "headroom/error.h"
#include "pattern_set.h"
#include "quantization/methods.h"
#include "support/data.h"

using namespace headroom;
using headroom::detail::PatternSet;
using headroom::test::refusal_of;

namespace {

bool matches(const char* pattern, const char* module) {
  const std::vector<ModulePattern> patterns = {detail::pattern_of(pattern)};
  return PatternSet(patterns).matches(module);
}

}  // namespace

TEST_CASE("a name matches the module, modules inside it, and the end of a longer name") {
  CHECK(matches("lm_head", "lm_head"));
  CHECK(matches("model.layers.1.self_attn.q_proj", "layers.1.self_attn.q_proj"));
  CHECK(matches("model.layers.1.self_attn", "layers.1.self_attn.q_proj"));
  CHECK(matches("gate", "layers.3.block_sparse_moe.gate"));
  CHECK_FALSE(matches("gate", "layers.3.mlp.gate_proj"));
  CHECK_FALSE(matches("model.layers.1", "layers.10.self_attn.q_proj"));
  CHECK_FALSE(matches("layers.1.mlp", "layers.11.mlp.gate_proj"));
}

TEST_CASE("prefixes of multimodal classes do not matter") {
  CHECK(matches("model.language_model.layers.0.mlp.gate", "layers.0.mlp.gate"));
  CHECK(matches("language_model.model.layers.0*", "layers.0.mlp.gate"));
  CHECK(matches("language_model.lm_head", "lm_head"));
  CHECK_FALSE(matches("vision_tower", "layers.0.mlp.gate"));
}

TEST_CASE("wildcards match the module or one around it") {
  CHECK(matches("model.layers.*.self_attn", "layers.17.self_attn.q_proj"));
  CHECK(matches("model.layers.0.self_attn*", "layers.0.self_attn.o_proj"));
  CHECK(matches("model.layers.0*", "layers.0.mlp.down_proj"));
  CHECK_FALSE(matches("model.layers.0*", "layers.10.mlp.down_proj"));
  CHECK(matches("model.layers.1.*", "layers.1.mlp.down_proj"));
  CHECK_FALSE(matches("model.layers.1.*", "layers.11.mlp.down_proj"));
  CHECK(matches("*lm_head*", "lm_head"));
  CHECK(matches("*mlp.gate.*", "layers.4.mlp.gate"));
  CHECK_FALSE(matches("mtp*", "layers.4.mlp.gate"));
}

TEST_CASE("regular expressions match from the beginning, as Python's re.match") {
  CHECK(matches("re:.*self_attn.*", "layers.0.self_attn.kv_b_proj"));
  CHECK(matches("re:.*mlp\\.(gate|up|gate_up|down)_proj.*", "layers.0.mlp.up_proj"));
  CHECK_FALSE(
      matches("re:.*mlp\\.(gate|up|gate_up|down)_proj.*", "layers.5.mlp.experts.7.up_proj"));
  CHECK(matches("re:model\\.layers\\.[0-2]\\..*", "layers.2.mlp.up_proj"));
  CHECK_FALSE(matches("re:self_attn", "layers.0.self_attn.q_proj"));
  const auto broken = [] { static_cast<void>(matches("re:(unclosed", "lm_head")); };
  CHECK(refusal_of(broken).find("cannot be read as a regular expression") != std::string::npos);
}

TEST_CASE("22,000 patterns each match their module among 22,000") {
  std::vector<ModulePattern> patterns;
  for (int layer = 0; layer < 60; ++layer) {
    for (int expert = 0; expert < 128; ++expert) {
      for (const char* const matrix : {"w1", "w2", "w3"}) {
        patterns.push_back({"language_model.model.layers." + std::to_string(layer) +
                            ".block_sparse_moe.experts." + std::to_string(expert) + "." + matrix});
      }
    }
  }
  const PatternSet set(patterns);
  CHECK(set.names_experts());
  for (const ModulePattern& pattern : patterns) {
    REQUIRE(set.matches(std::string_view(pattern.text).substr(21)));
  }
  CHECK_FALSE(set.matches("layers.60.block_sparse_moe.experts.0.w1"));
}
