// Metadata of GGUF files that no model can have: one value is changed, and the error names its key.
#include <doctest/doctest.h>

#include <algorithm>

#include "inspect/model_folder.h"
#include "inspect/published_gguf.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using Values = std::vector<std::uint32_t>;

/// A change of one key, and the words of the error; one value, or one a layer.
struct Refusal {
  std::string architecture;
  std::string key;
  Values values;
  std::string because;
};

/// Models that published_hybrids() lacks, with the keys that matter here.
std::vector<PublishedGguf> further_models() {
  return {{"qwen3-next",
           "qwen3next",
           {262144, 2048, 48, 5120, 16, 2, 151936},
           {{"attention.key_length", 256},
            {"rope.dimension_count", 64},
            {"full_attention_interval", 4},
            {"ssm.conv_kernel", 4},
            {"ssm.state_size", 128},
            {"ssm.group_count", 16},
            {"ssm.time_step_rank", 32},
            {"ssm.inner_size", 4096},
            {"expert_count", 512},
            {"expert_used_count", 10},
            {"expert_feed_forward_length", 512},
            {"expert_shared_feed_forward_length", 512}},
           {"output.weight"},
           0},
          {"deepseek-v2-lite",
           "deepseek2",
           {163840, 2048, 27, 10944, 16, 16, 102400},
           {{"attention.kv_lora_rank", 512},
            {"attention.key_length", 192},
            {"attention.value_length", 128},
            {"rope.dimension_count", 64},
            {"expert_count", 64},
            {"expert_shared_count", 2},
            {"expert_used_count", 6},
            {"expert_feed_forward_length", 1408},
            {"leading_dense_block_count", 1}},
           {"output.weight"},
           0},
          {"glm-4.5-air",
           "glm4moe",
           {131072, 4096, 47, 10944, 96, 8, 151552},
           {{"attention.key_length", 128},
            {"rope.dimension_count", 64},
            {"nextn_predict_layers", 1},
            {"leading_dense_block_count", 1},
            {"expert_count", 128},
            {"expert_shared_count", 1},
            {"expert_used_count", 8},
            {"expert_feed_forward_length", 1408}},
           {"output.weight"},
           0},
          {"minicpm3-4b",
           "minicpm3",
           {32768, 2560, 62, 6400, 40, 40, 73448},
           {{"attention.q_lora_rank", 768},
            {"attention.kv_lora_rank", 256},
            {"attention.key_length", 96},
            {"rope.dimension_count", 32}},
           {"blk.0.attn_kv_b.weight"},
           0}};
}

PublishedGguf changed(const Refusal& refusal) {
  std::vector<PublishedGguf> models = published_hybrids();
  std::ranges::move(further_models(), std::back_inserter(models));
  const auto found = std::ranges::find_if(models, [&](const PublishedGguf& model) {
    return model.architecture == refusal.architecture;
  });
  REQUIRE(found != models.end());
  PublishedGguf model = *found;
  std::erase_if(model.more, [&](const auto& pair) { return pair.first == refusal.key; });
  std::erase_if(model.lists, [&](const auto& pair) { return pair.first == refusal.key; });
  if (refusal.values.size() == 1) model.more.emplace_back(refusal.key, refusal.values.front());
  if (refusal.values.size() > 1) model.lists.emplace_back(refusal.key, refusal.values);
  return model;
}

std::string refusal_of_file(const PublishedGguf& model) {
  const TempFolder folder;
  write_file(folder / "model.gguf", file_of(model));
  return refusal_of([&] { (void)load_model((folder / "model.gguf").string()); });
}

}  // namespace

TEST_CASE("metadata that no model of the architecture can have is refused at its key") {
  const std::vector<Refusal> refusals{
      {"mamba2", "ssm.time_step_rank", {7}, "ssm.time_step_rank: is no head count"},
      {"nemotron_h_moe", "ssm.time_step_rank", {7}, "ssm.time_step_rank: is no head count"},
      {"qwen3next", "ssm.time_step_rank", {7}, "ssm.time_step_rank: is no head count"},
      {"falcon-h1", "ssm.time_step_rank", {7}, "7 heads of 219 are not the 1536 channels"},
      {"granitehybrid", "ssm.inner_size", {8193}, "ssm.inner_size: is no multiple of width"},
      {"jamba", "ssm.inner_size", {8193}, "ssm.inner_size: is no multiple of width"},
      {"jamba",
       "attention.head_count_kv",
       {8, 8, 0, 8, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
       "does not choose layers by a period"},
      {"granitehybrid", "attention.head_count_kv", {8, 4}, "does not list block_count layers"},
      {"lfm2",
       "attention.head_count_kv",
       {8, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
       "attention.head_count_kv: differs between attention layers"},
      {"kimi-linear", "attention.key_length_mla", {64}, "does not exceed the rotated part"},
      {"minicpm3", "attention.key_length", {32}, "does not exceed the rotated part"},
      {"deepseek2", "attention.key_length", {32}, "does not give the size of a key head"},
      {"deepseek2", "attention.value_length", {}, "attention.value_length: is missing"},
      {"qwen3next", "rope.dimension_count", {512}, "rope.dimension_count: exceeds the head size"},
      {"glm4moe", "nextn_predict_layers", {48}, "nextn_predict_layers: exceeds block_count"},
  };
  for (const Refusal& refusal : refusals) {
    CAPTURE(refusal.architecture);
    CAPTURE(refusal.key);
    const std::string error = refusal_of_file(changed(refusal));
    CAPTURE(error);
    CHECK(error.find(refusal.because) != std::string::npos);
  }
}
