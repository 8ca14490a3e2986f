// Parts of DeepSeek's layers that several families share: latent attention, shared and routed
// experts, and their stored names.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "config_reader.h"
#include "decoder.h"
#include "headroom/model_spec.h"
#include "stored/stored_names.h"

namespace headroom::detail {

/// Interleaved RoPE and no biases; `positions` is the default of max_position_embeddings.
[[nodiscard]] DecoderDefaults deepseek_defaults(std::int64_t positions);

/// Default sizes of latent attention.
struct LatentSizes {
  std::int64_t q_lora_rank = 1536;
  std::int64_t qk_nope_head_dim = 128;
  std::int64_t value_head_dim = 128;
  std::int64_t qk_rope_head_dim = 64;
  std::int64_t kv_lora_rank = 512;
};

/// Reads multi-head latent attention (arXiv 2405.04434, section 2.1) into the stack of `spec`,
/// whose heads, positions and RoPE are read.
void read_latent_attention(ConfigReader& config, ModelSpec& spec, const LatentSizes& sizes);

/// Sizes and factors of experts that a config may omit.
struct ExpertDefaults {
  std::int64_t intermediate_size = 0;  ///< of one routed expert
  std::int64_t num_shared = 1;         ///< shared experts
  double scaling_factor = 1;           ///< of the routed experts' weights
};

/// Reads shared and routed experts; their scores are a softmax.
[[nodiscard]] ExpertsSpec read_shared_and_routed_experts(ConfigReader& config,
                                                         const ExpertKeys& keys,
                                                         const ExpertDefaults& absent);

/// Expert groups, and the number of groups that a token may use.
struct ExpertGroups {
  std::int64_t num = 1;
  std::int64_t chosen = 1;
};

/// Routing that is limited to some groups of experts, or not: the class may know the keys and not
/// apply them.
enum class GroupLimit { none, groups };

/// Throws Error{invalid_input} unless the groups divide the experts, and the chosen ones are no
/// more than there are.
void require_groups(ConfigReader& config, const ExpertsSpec& experts);

/// Reads n_group and topk_group. Throws as require_groups.
void read_groups(ConfigReader& config, ExpertsSpec& experts, GroupLimit limit, ExpertGroups absent);

/// Sigmoid scores with a correction bias in place of a loss that balances the load (DeepSeek V3,
/// arXiv 2412.19437, section 2.1.2), in groups.
void balance_experts(ConfigReader& config, ExpertsSpec& experts, ExpertGroups absent);

/// Values of balanced experts that a config may omit.
struct BalancedDefaults {
  std::int64_t intermediate_size = 0;  ///< of one routed expert
  double scaling_factor = 1;
  ExpertGroups groups{};
  std::string_view sigmoid_scores = "sigmoid";  ///< a value of scoring_func beside that one
};

/// Reads experts of which one is shared by default, with balanced routing.
[[nodiscard]] ExpertsSpec read_balanced_experts(ConfigReader& config, const ExpertKeys& keys,
                                                const BalancedDefaults& absent);

/// Puts experts into the layers that `mlp_layer_types` calls sparse; without that key, into all but
/// the first, of which `dense_when_absent` is the default of first_k_dense_replace.
void spread_experts(ConfigReader& config, StackSpec& stack, const ExpertsSpec& experts,
                    std::int64_t dense_when_absent);

/// As spread_experts, with `dense` layers before those with experts whatever
/// first_k_dense_replace says.
void set_sparse_layers(ConfigReader& config, StackSpec& stack, const ExpertsSpec& experts,
                       std::int64_t dense);

/// Reads the number of streams of hyper-connections, and their epsilon; without a matrix.
[[nodiscard]] HyperConnectionSpec read_streams(ConfigReader& config);

/// As read_streams, with the iterations that make the matrix doubly stochastic.
[[nodiscard]] HyperConnectionSpec read_mixed_streams(ConfigReader& config);

/// Stored names of shared experts and of the correction bias.
[[nodiscard]] std::span<const NameRule> shared_expert_rules();

/// Stored names of a decoder with latent attention, an indexer, and such experts; `own` rules come
/// first.
[[nodiscard]] NameTable deepseek_names(std::span<const NameRule> own = {});

}  // namespace headroom::detail
