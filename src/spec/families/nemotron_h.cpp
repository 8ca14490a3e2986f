// Nemotron-H and Nemotron 3: blocks of one mixer each — Mamba-2, attention without positions, a
// feed-forward network or experts (NVIDIA, arXiv 2504.03624; transformers, models/nemotron_h).
#include <fmt/format.h>

#include <algorithm>

#include "../common_keys.h"
#include "../decoder.h"
#include "../deepseek_layers.h"
#include "../family.h"
#include "../state_space.h"

namespace headroom::detail {
namespace {

/// Kinds of blocks, in the order of the variants of the stack.
enum class NemotronBlock : std::uint8_t { attention, state_space, feed_forward, experts };

std::optional<NemotronBlock> block_of_letter(char letter) {
  switch (letter) {
    case 'M':
      return NemotronBlock::state_space;
    case '*':
      return NemotronBlock::attention;
    case '-':
      return NemotronBlock::feed_forward;
    case 'E':
      return NemotronBlock::experts;
    default:
      return std::nullopt;
  }
}

std::optional<NemotronBlock> block_of_word(const std::string& word) {
  if (word == "mamba" || word == "linear_attention") return NemotronBlock::state_space;
  if (word == "attention" || word == "full_attention") return NemotronBlock::attention;
  if (word == "mlp") return NemotronBlock::feed_forward;
  if (word == "moe") return NemotronBlock::experts;
  return std::nullopt;
}

/// The blocks of the class if the config names none, however many layers it has.
std::vector<NemotronBlock> blocks_of_class(ConfigReader& config) {
  config.note_of_class("hybrid_override_pattern", "ME*-");
  config.ignore({"num_hidden_layers"});
  return {NemotronBlock::state_space, NemotronBlock::experts, NemotronBlock::attention,
          NemotronBlock::feed_forward};
}

/// The kind of every block: `layers_block_type`, or the letters of `hybrid_override_pattern`.
std::vector<NemotronBlock> read_blocks(ConfigReader& config) {
  const bool listed = config.has("layers_block_type") || config.has("layer_types");
  const std::string_view key = config.has("layers_block_type") ? "layers_block_type"
                               : listed                        ? "layer_types"
                                                               : "hybrid_override_pattern";
  if (!config.has(key)) return blocks_of_class(config);
  std::vector<std::optional<NemotronBlock>> found;
  if (listed) {
    for (const std::string& word : config.texts(key)) found.push_back(block_of_word(word));
    config.ignore({"hybrid_override_pattern"});
  } else {
    for (const char letter : config.text_or({key}, "")) found.push_back(block_of_letter(letter));
  }
  std::vector<NemotronBlock> blocks;
  for (const auto& block : found) {
    if (!block) {
      config.fail(key, "names a block that is no Mamba, attention, MLP or MoE block",
                  "use the letters M, *, - and E, or the words mamba, attention, mlp and moe");
    }
    blocks.push_back(*block);
  }
  if (config.has("num_hidden_layers") &&
      config.layers({"num_hidden_layers"}) != std::ssize(blocks)) {
    config.fail(key, fmt::format("names {} blocks, and num_hidden_layers differs", blocks.size()),
                "name one block for each of num_hidden_layers");
  }
  return blocks;
}

StateSpaceSpec read_nemotron_mamba(ConfigReader& config, const NormSpec& norm) {
  DualKeys keys = kMamba2Keys;
  keys.num_heads = "mamba_num_heads";
  keys.head_dim = "mamba_head_dim";
  keys.state_size = "ssm_state_size";
  keys.chunk_size_when_absent = 128;
  const std::int64_t heads = config.size_or({"mamba_num_heads"}, keys.num_heads_when_absent);
  const std::int64_t inner =
      product(config, "mamba_head_dim", heads, config.size_or({"mamba_head_dim"}, 64));
  StateSpaceSpec spec = read_dual_layer(config, keys, inner);
  spec.gated_norm = GatedNormSpec{norm, spec.num_groups};
  config.expect_text("mamba_hidden_act", "silu");
  // The heads decide the inner size; the class reads no rank.
  config.ignore({"expand", "mamba_proj_bias", "time_step_rank"});
  return spec;
}

ExpertsSpec read_nemotron_experts(ConfigReader& config) {
  ExpertsSpec experts = read_experts(config, {{"n_routed_experts", "num_local_experts"}, 8, 2});
  experts.intermediate_size = config.size_or_of_class({"moe_intermediate_size"}, 7688);
  experts.scoring = RouterScoring::sigmoid;
  experts.correction_bias = true;
  experts.group_score = GroupScore::two_best;
  experts.num_groups = config.size_or({"n_group"}, 1);
  experts.chosen_groups = config.size_or({"topk_group"}, 1);
  require_groups(config, experts);
  experts.normalise = config.flag_or({"norm_topk_prob"}, true);
  experts.scaling_factor = config.number_or({"routed_scaling_factor"}, 1);
  experts.shared_intermediate_size = config.size_or({"moe_shared_expert_intermediate_size"}, 7688);
  experts.latent_size = config.count_or({"moe_latent_size"}, 0);
  config.ignore({"n_shared_experts", "moe_shared_expert_overlap"});  // the class has one
  return experts;
}

/// A model without blocks of experts has none of their sizes, even if its config states some.
std::optional<ExpertsSpec> read_experts_of(const std::vector<NemotronBlock>& blocks,
                                           ConfigReader& config) {
  if (std::ranges::find(blocks, NemotronBlock::experts) != blocks.end()) {
    return read_nemotron_experts(config);
  }
  config.ignore({"n_routed_experts", "num_local_experts", "num_experts_per_tok",
                 "moe_intermediate_size", "n_group", "topk_group", "norm_topk_prob",
                 "routed_scaling_factor", "moe_shared_expert_intermediate_size", "moe_latent_size",
                 "n_shared_experts", "moe_shared_expert_overlap"});
  return std::nullopt;
}

/// Nemotron-H of 2025 calls it attention_head_dim. A size that is stated is none of the class's.
void read_old_head_dim(ConfigReader& config) {
  const auto stated = config.optional_size({"attention_head_dim"});
  std::vector<std::string> filled;
  if (stated) config = config.with_defaults(fmt::format(R"({{"head_dim": {}}})", *stated), filled);
}

void read_nemotron_h(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.num_key_value_heads = 8;
  read_old_head_dim(config);
  defaults.head_dim = 128;
  defaults.max_position_embeddings = 4096;
  defaults.ffn = FfnKind::plain;
  defaults.activation = ActivationKind::relu_squared;
  const std::vector<NemotronBlock> blocks = read_blocks(config);
  defaults.num_hidden_layers = std::ssize(blocks);  // transformers 5 writes the list alone
  read_decoder(config, spec, defaults);
  // The class ties nothing whatever its config says.
  if (spec.head.language_model) spec.head.language_model->weight = WeightSharing::separate;
  spec.position.kind = PositionKind::none;
  StackSpec& stack = *spec.decoder;
  stack.norm.eps = config.number_or({"layer_norm_epsilon"}, 1e-5);
  stack.final_norm = stack.norm;
  stack.ffn.activation = read_activation(config, {"mlp_hidden_act"}, ActivationKind::relu_squared);
  stack.ffn.bias = config.flag_or({"mlp_bias"}, false);

  const AttentionSpec attention = stack.self_attention;
  AttentionSpec nothing;
  nothing.kind = AttentionKind::none;
  nothing.causal = true;
  const FfnSpec network = stack.ffn;
  FfnSpec experts = network;
  experts.experts = read_experts_of(blocks, config);
  stack.ffn.kind = FfnKind::none;
  const FfnSpec none = stack.ffn;
  stack.variants = {{state_space_layer(read_nemotron_mamba(config, stack.norm)), none},
                    {nothing, network},
                    {nothing, experts}};
  for (const NemotronBlock block : blocks) {
    stack.variant_of_layer.push_back(static_cast<std::size_t>(block));
  }
  config.expect_number("sliding_window", 0);
  config.ignore({"num_query_groups", "norm_eps", "hidden_dropout", "mtp_hybrid_override_pattern",
                 "mtp_layers_block_type", "num_nextn_predict_layers"});
}

constexpr NameRule kNemotron[] = {
    {"decoder.layers.mlp_norm.%", "layers.{}.norm.%"},
    {"decoder.layers.attention.query.%", "layers.{}.mixer.q_proj.%"},
    {"decoder.layers.attention.key.%", "layers.{}.mixer.k_proj.%"},
    {"decoder.layers.attention.value.%", "layers.{}.mixer.v_proj.%"},
    {"decoder.layers.attention.output.%", "layers.{}.mixer.o_proj.%"},
    {"decoder.layers.mlp.up.%", "layers.{}.mixer.up_proj.%"},
    {"decoder.layers.mlp.down.%", "layers.{}.mixer.down_proj.%"},
    {"decoder.layers.mlp.router.correction_bias", "layers.{}.mixer.gate.e_score_correction_bias"},
    {"decoder.layers.mlp.router.%", "layers.{}.mixer.gate.%"},
    {"decoder.layers.mlp.latent.down.%", "layers.{}.mixer.fc1_latent_proj.%"},
    {"decoder.layers.mlp.latent.up.%", "layers.{}.mixer.fc2_latent_proj.%"},
    {"decoder.layers.mlp.experts.up.%", "layers.{}.mixer.experts.{e}.up_proj.%"},
    {"decoder.layers.mlp.experts.down.%", "layers.{}.mixer.experts.{e}.down_proj.%"},
    {"decoder.layers.mlp.experts.up.weight", "layers.{}.mixer.experts.up_proj", stacked_experts()},
    {"decoder.layers.mlp.experts.down.weight", "layers.{}.mixer.experts.down_proj",
     stacked_experts()},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.mixer.shared_experts.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.mixer.shared_experts.down_proj.%"},
    {"head.language_model.%", "lm_head.%"},
};

constexpr NameRule kNemotronGguf[] = {{"layers.mlp_norm.%", "blk.{}.attn_norm.%"}};

/// Kinds of blocks: attention has key-value heads, an MLP or experts have an inner width.
std::vector<std::string> gguf_blocks(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const std::vector<std::int64_t> widths = metadata.counts_by_layer("feed_forward_length");
  const std::vector<bool> attends = finish_key_value_heads(metadata, config);
  const bool routed = metadata.count("expert_count").value_or(0) > 0;
  const auto layers = static_cast<std::size_t>(metadata.layers());
  std::vector<std::string> blocks;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const char* const other = widths[layer] == 0 ? "mamba" : routed ? "moe" : "mlp";
    blocks.emplace_back(attends[layer] ? "attention" : other);
    if (widths[layer] > 0) config.set_count("intermediate_size", widths[layer]);
  }
  return blocks;
}

void finish_nemotron_h(const GgufMetadataReader& metadata, ConfigDraft& config) {
  const std::vector<std::string> blocks = gguf_blocks(metadata, config);
  config.set_count("num_hidden_layers", std::ssize(blocks));
  config.set_texts("layers_block_type", blocks);
  // llama.cpp stores the number of heads as the rank of the time step.
  const std::int64_t heads = metadata.count("ssm.time_step_rank").value_or(0);
  const std::int64_t inner = metadata.count("ssm.inner_size").value_or(0);
  if (heads == 0 || inner % heads != 0) metadata.fail("ssm.time_step_rank", "is no head count");
  config.set_count("mamba_num_heads", heads);
  config.set_count("mamba_head_dim", inner / heads);
}

/// Dense models and those with experts have an architecture each.
GgufArchitecture nemotron_h_architecture(std::string_view name) {
  return {.name = name,
          .common = gguf_hybrid_keys(),
          .own = {{"attention.layer_norm_rms_epsilon", "layer_norm_epsilon"},
                  {"ssm.conv_kernel", "conv_kernel"},
                  {"ssm.state_size", "ssm_state_size"},
                  {"ssm.group_count", "n_groups"},
                  {"expert_count", "n_routed_experts"},
                  {"expert_used_count", "num_experts_per_tok"},
                  {"expert_feed_forward_length", "moe_intermediate_size"},
                  {"expert_shared_feed_forward_length", "moe_shared_expert_intermediate_size"},
                  {"expert_weights_norm", "norm_topk_prob"},
                  {"expert_weights_scale", "routed_scaling_factor"},
                  {"expert_group_count", "n_group"},
                  {"expert_group_used_count", "topk_group"},
                  {"moe_latent_size", "moe_latent_size"}},
          .head_dim = GgufHeadDim::always,
          .finish = finish_nemotron_h};
}

}  // namespace

std::vector<Family> nemotron_h_families() {
  return {{.model_types = {"nemotron_h"},
           .classes = llama_classes("NemotronH"),
           .reader = read_nemotron_h,
           .names = NameTable{{kNemotron, mixer_rules()},
                              {"backbone.", "model."},
                              {{"mtp.", ExtraKind::multi_token_prediction, NamePart::beginning},
                               {"lm_head.weight", ExtraKind::tied_copy}}},
           .gguf = GgufForm(
               GgufConversion::none,
               {nemotron_h_architecture("nemotron_h"), nemotron_h_architecture("nemotron_h_moe")},
               {kNemotronGguf, gguf_dual_rules()})}};
}

}  // namespace headroom::detail
