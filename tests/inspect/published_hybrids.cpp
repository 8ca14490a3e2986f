#include <string_view>

#include "inspect/published_gguf.h"

namespace headroom::test {
namespace {

/// `value` in the layers of `chosen`, 0 in the others.
std::vector<std::uint32_t> in_layers(std::size_t layers, const std::vector<std::size_t>& chosen,
                                     std::uint32_t value) {
  std::vector<std::uint32_t> values(layers, 0);
  for (const std::size_t layer : chosen) values[layer] = value;
  return values;
}

/// `value` in the layers with this letter of Nemotron's pattern.
std::vector<std::uint32_t> in_pattern(std::string_view pattern, char letter, std::uint32_t value) {
  std::vector<std::uint32_t> values;
  for (const char one : pattern) values.push_back(one == letter ? value : 0);
  return values;
}

// The blocks of its config.json: Mamba, attention, experts.
constexpr std::string_view kNemotronPattern =
    "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME";

/// compress_ratios of DeepSeek-V4-Flash, with that of a prediction layer.
std::vector<std::uint32_t> v4_rates() {
  std::vector<std::uint32_t> rates(44, 0);
  for (std::size_t layer = 2; layer < 43; ++layer) rates[layer] = layer % 2 == 0 ? 4 : 128;
  return rates;
}

}  // namespace

std::vector<PublishedGguf> published_hybrids() {
  return {
      {"lfm2-350m",
       "lfm2",
       {128000, 1024, 16, 4608, 16, 8, 65536},
       {{"shortconv.l_cache", 3}},
       {},
       354483968,
       {{"attention.head_count_kv", in_layers(16, {2, 5, 8, 10, 12, 14}, 8)}}},
      {"lfm2-8b-a1b",
       "lfm2moe",
       {128000, 2048, 24, 7168, 32, 8, 65536},
       {{"shortconv.l_cache", 3},
        {"expert_count", 32},
        {"expert_used_count", 4},
        {"expert_feed_forward_length", 1792},
        {"leading_dense_block_count", 2}},
       {},
       8339929856,
       {{"attention.head_count_kv", in_layers(24, {2, 6, 10, 14, 18, 21}, 8)}}},
      {"mamba-130m",
       "mamba",
       {1048576, 768, 24, 0, 0, 0, 50280},
       {{"ssm.conv_kernel", 4},
        {"ssm.inner_size", 1536},
        {"ssm.state_size", 16},
        {"ssm.time_step_rank", 48}},
       {},
       129135360},
      {"falcon-mamba-7b",
       "mamba",
       {1048576, 4096, 64, 0, 0, 0, 65024},
       {{"ssm.conv_kernel", 4},
        {"ssm.inner_size", 8192},
        {"ssm.state_size", 16},
        {"ssm.time_step_rank", 256},
        {"ssm.dt_b_c_rms", 1}},
       {"output.weight"},
       7272665088},
      {"mamba2-780m",
       "mamba2",
       {1048576, 1536, 48, 0, 0, 0, 50288},
       {{"ssm.conv_kernel", 4},
        {"ssm.inner_size", 3072},
        {"ssm.state_size", 128},
        {"ssm.group_count", 1},
        {"ssm.time_step_rank", 48}},
       {},
       780161280},
      {"falcon-h1-0.5b",
       "falcon-h1",
       {16384, 1024, 36, 2048, 8, 2, 32784},
       {{"attention.key_length", 64},
        {"ssm.conv_kernel", 4},
        {"ssm.inner_size", 1536},
        {"ssm.state_size", 128},
        {"ssm.group_count", 1},
        {"ssm.time_step_rank", 24}},
       {"output.weight"},
       521411104},
      {"granite-4.0-h-small",
       "granitehybrid",
       {1048576, 4096, 40, 768, 32, 8, 100352},
       {{"ssm.conv_kernel", 4},
        {"ssm.inner_size", 8192},
        {"ssm.state_size", 128},
        {"ssm.group_count", 1},
        {"ssm.time_step_rank", 128},
        {"expert_count", 72},
        {"expert_used_count", 10},
        {"expert_shared_feed_forward_length", 1536}},
       {},
       32207337984,
       {{"attention.head_count_kv", in_layers(40, {5, 15, 25, 35}, 8)}}},
      {"bamba-9b",
       "granitehybrid",
       {262144, 4096, 32, 14336, 32, 8, 128256},
       {{"ssm.conv_kernel", 4},
        {"ssm.inner_size", 8192},
        {"ssm.state_size", 128},
        {"ssm.group_count", 1},
        {"ssm.time_step_rank", 128},
        {"rope.dimension_count", 64},
        {"rope.scaling.finetuned", 1}},
       {"output.weight"},
       9780235392,
       {{"attention.head_count_kv", in_layers(32, {9, 18, 27}, 8)}}},
      {"jamba-1.5-mini",
       "jamba",
       {262144, 4096, 32, 14336, 32, 8, 65536},
       {{"ssm.conv_kernel", 4},
        {"ssm.inner_size", 8192},
        {"ssm.state_size", 16},
        {"ssm.time_step_rank", 256},
        {"expert_count", 16},
        {"expert_used_count", 2}},
       {"output.weight"},
       51570323328,
       {{"attention.head_count_kv", in_layers(32, {4, 12, 20, 28}, 8)}}},
      {"nemotron-3.5-lightning-30b-a3b",
       "nemotron_h_moe",
       {1048576, 2688, 52, 0, 32, 2, 131072},
       {{"attention.key_length", 128},
        {"ssm.conv_kernel", 4},
        {"ssm.inner_size", 4096},
        {"ssm.state_size", 128},
        {"ssm.group_count", 8},
        {"ssm.time_step_rank", 64},
        {"expert_count", 128},
        {"expert_used_count", 6},
        {"expert_feed_forward_length", 1856},
        {"expert_shared_feed_forward_length", 3712}},
       {"output.weight"},
       31577937344,
       {{"attention.head_count_kv", in_pattern(kNemotronPattern, '*', 2)},
        {"feed_forward_length", in_pattern(kNemotronPattern, 'E', 1856)}}},
      {"kimi-linear-48b-a3b",
       "kimi-linear",
       {1048576, 2304, 27, 9216, 32, 1, 163840},
       {{"attention.kv_lora_rank", 512},
        {"attention.key_length", 576},
        {"attention.key_length_mla", 192},
        {"attention.value_length_mla", 128},
        {"rope.dimension_count", 64},
        {"ssm.conv_kernel", 4},
        {"kda.head_dim", 128},
        {"expert_count", 256},
        {"expert_used_count", 8},
        {"expert_feed_forward_length", 1024},
        {"expert_shared_count", 1},
        {"leading_dense_block_count", 1}},
       {"output.weight"},
       // The publisher's 49,122,681,728 with 26 · 256 correction biases, which transformers 5 and
       // GGUF hold as buffers.
       49122675072,
       {{"attention.head_count_kv", in_layers(27, {3, 7, 11, 15, 19, 23, 26}, 1)}}},
      {"deepseek-v4-flash",
       "deepseek4",
       {1048576, 4096, 43, 2048, 64, 1, 129280},
       {{"attention.key_length", 512},
        {"attention.q_lora_rank", 1024},
        {"attention.sliding_window", 128},
        {"attention.indexer.head_count", 64},
        {"attention.indexer.key_length", 128},
        {"attention.indexer.top_k", 512},
        {"attention.output_group_count", 8},
        {"attention.output_lora_rank", 1024},
        {"rope.dimension_count", 64},
        {"rope.scaling.original_context_length", 65536},
        {"expert_count", 256},
        {"expert_used_count", 6},
        {"expert_shared_count", 1},
        {"expert_feed_forward_length", 2048},
        {"hyper_connection.count", 4},
        {"hyper_connection.sinkhorn_iterations", 20},
        {"hash_layer_count", 3}},
       {"output.weight"},
       284332230231,
       {{"attention.compress_ratios", v4_rates()}}},
  };
}

}  // namespace headroom::test
