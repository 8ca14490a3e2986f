// Zamba2: Mamba-2 layers, some of which also read a block of attention and feed-forward network
// whose weights they share, with adapters of their own (Zyphra, arXiv 2411.15242; transformers,
// models/zamba2).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>

#include "../common_keys.h"
#include "../decoder.h"
#include "../family.h"
#include "../state_space.h"

namespace headroom::detail {
namespace {

constexpr DualKeys kZamba2Keys = {.num_heads = "n_mamba_heads",
                                  .head_dim = "mamba_headdim",
                                  .num_groups = "mamba_ngroups",
                                  .chunk_size = "chunk_size",
                                  .projection_bias = "add_bias_linear",
                                  .convolution_bias = "use_conv_bias",
                                  .num_heads_when_absent = 8,
                                  .state_size_when_absent = 64};

/// Layers with a shared block, by `hybrid_layer_ids` or `layers_block_type`, or the class's own,
/// for 54 layers.
std::vector<std::int64_t> read_zamba2_layers(ConfigReader& config, std::int64_t num_layers) {
  constexpr std::int64_t kLayersOfClass = 54;
  const bool listed = config.has("hybrid_layer_ids") || config.has("layers_block_type");
  if (!listed && num_layers == kLayersOfClass) {
    std::vector<std::int64_t> of_class{6, 12, 18, 24, 30, 36, 42, 47, 51};
    config.note_of_class("hybrid_layer_ids", fmt::format("{}", fmt::join(of_class, " ")));
    return of_class;
  }
  std::vector<std::int64_t> layers = config.counts("hybrid_layer_ids");
  const std::vector<std::string> types = config.texts("layers_block_type");
  if (layers.empty()) {
    for (std::size_t layer = 0; layer < types.size(); ++layer) {
      if (types[layer] == "hybrid") layers.push_back(static_cast<std::int64_t>(layer));
    }
  }
  const bool rises = std::ranges::adjacent_find(layers, std::greater_equal<>{}) == layers.end();
  if (layers.empty() || !rises || layers.back() >= num_layers) {
    config.fail("hybrid_layer_ids", "does not name layers in order", "name at least one layer");
  }
  return layers;
}

/// Attention over the hidden states beside the embeddings, twice as wide.
AttentionSpec read_shared_attention(ConfigReader& config, std::int64_t hidden_size) {
  const std::int64_t width = product(config, "hidden_size", 2, hidden_size);
  AttentionSpec attention = multi_head_attention(config, "num_attention_heads",
                                                 config.size({"num_attention_heads"}), width);
  attention.num_key_value_heads =
      config.size_or({"num_key_value_heads"}, attention.num_attention_heads);
  attention.causal = true;
  attention.softmax = SoftmaxPrecision::float32;
  attention.scale = AttentionScale::fixed;
  attention.fixed_scale = 1 / std::sqrt(static_cast<double>(attention.head_dim) / 2);
  config.expect_number("attention_hidden_size", static_cast<double>(width));
  config.expect_number("attention_head_dim", static_cast<double>(attention.head_dim));
  config.ignore({"kv_channels", "num_query_groups", "ffn_hidden_size"});
  return attention;
}

SharedBlockSpec read_shared_block(ConfigReader& config, const ModelSpec& spec) {
  SharedBlockSpec block;
  block.attention = read_shared_attention(config, spec.hidden_size);
  const std::int64_t inner = product(config, "hidden_size", 4, spec.hidden_size);
  block.ffn = {FfnKind::gated, config.size_or({"intermediate_size"}, inner),
               read_activation(config, {"hidden_act"}, ActivationKind::gelu),
               config.flag_or({"add_bias_linear"}, false)};
  block.num_blocks = config.size_or({"num_mem_blocks"}, 1);
  block.adapter_rank = config.size_or({"adapter_rank"}, 128);
  block.adapts_attention = config.flag_or({"use_shared_attention_adapter"}, false);
  config.expect_flag("gated_linear_unit", true);
  // Those of the network, which the class always has.
  config.ignore({"use_shared_mlp_adapter", "use_shared_block_lora"});
  block.layers = read_zamba2_layers(config, spec.decoder->num_layers);
  if (block.num_blocks > std::ssize(block.layers)) {
    config.fail("num_mem_blocks", "exceeds the number of layers that use one",
                "use at most as many blocks as hybrid layers");
  }
  return block;
}

void read_zamba2(ConfigReader& config, ModelSpec& spec) {
  spec.kind = ModelKind::decoder;
  spec.hidden_size = config.size({"hidden_size"});
  spec.embedding.vocab_size = config.size({"vocab_size"});
  spec.position.max_position_embeddings = config.size_or({"max_position_embeddings"}, 4096);
  StackSpec stack;
  stack.num_layers = config.layers({"num_hidden_layers"});
  stack.norm_placement = NormPlacement::pre;
  stack.norm = {NormKind::rms_norm, false, config.number_or({"rms_norm_eps"}, 1e-5)};
  stack.final_norm = stack.norm;
  stack.dropout.attention_probs = config.probability_or({"attention_dropout"}, 0);
  spec.decoder = stack;
  const SharedBlockSpec shared = read_shared_block(config, spec);
  if (config.flag_or({"use_mem_rope"}, false)) {
    spec.position.kind = PositionKind::rotary;
    spec.position.rope = read_rope(config, spec.position, shared.attention.head_dim, {});
  } else {
    config.ignore({"rope_theta", "rope_scaling", "rope_parameters"});
  }
  if (config.flag_or({"use_long_context"}, false)) {
    spec.not_run = "the RoPE of its long context is not run";
  }
  const std::int64_t inner = config.size_or({"mamba_expand"}, 2) * spec.hidden_size;
  StateSpaceSpec mixer = read_dual_layer(config, kZamba2Keys, inner);
  mixer.convolution_bias = true;      // the class has it whatever use_conv_bias says
  constexpr double kMixerEps = 1e-5;  // of the class, whatever rms_norm_eps is
  mixer.gated_norm = GatedNormSpec{{NormKind::rms_norm, false, kMixerEps}, mixer.num_groups};
  // Heads and FFN of the shared block are those of the stack.
  AttentionSpec& attention = spec.decoder->self_attention;
  attention = shared.attention;
  attention.kind = AttentionKind::state_space;
  attention.state_space = mixer;
  spec.decoder->ffn.intermediate_size = shared.ffn.intermediate_size;
  spec.decoder->shared_block = shared;
}

// Layers without a shared block, then those with one.
constexpr NameRule kZamba2[] = {
    {"decoder.layers.attention_norm.%", "layers.{}.input_layernorm.%"},
    {"decoder.layers.attention_norm.%", "layers.{}.mamba_decoder.input_layernorm.%"},
    {"decoder.layers.shared_output.%", "layers.{}.linear.%"},
    {"decoder.layers.mixer.gate.%", "layers.{}.mamba_decoder.mamba.in_proj.%", part(0)},
    {"decoder.layers.mixer.x.%", "layers.{}.mamba_decoder.mamba.in_proj.%", part(1)},
    {"decoder.layers.mixer.time_step.%", "layers.{}.mamba_decoder.mamba.in_proj.%", part(2)},
    {"decoder.layers.mixer.convolution.%", "layers.{}.mamba_decoder.mamba.conv1d.%"},
    {"decoder.layers.mixer.dt_bias", "layers.{}.mamba_decoder.mamba.dt_bias"},
    {"decoder.layers.mixer.a_log", "layers.{}.mamba_decoder.mamba.A_log"},
    {"decoder.layers.mixer.d", "layers.{}.mamba_decoder.mamba.D"},
    {"decoder.layers.mixer.norm.%", "layers.{}.mamba_decoder.mamba.norm.%"},
    {"decoder.layers.mixer.out.%", "layers.{}.mamba_decoder.mamba.out_proj.%"},
    {"decoder.final_norm.%", "final_layernorm.%"},
};

/// Names of shared blocks, stored in the first layer that uses each; {block 0} stands for that
/// layer. Published models have at most 2 blocks and 13 uses.
std::span<const NameRule> shared_block_rules() {
  constexpr int kBlocks = 4;
  constexpr int kUses = 32;
  static std::deque<std::string> texts;
  static const std::vector<NameRule> rules = [] {
    std::vector<NameRule> made;
    const auto add = [&](std::string canonical, std::string stored, StoredLayout layout = {}) {
      const std::string& path = texts.emplace_back(std::move(canonical));
      made.push_back({path, texts.emplace_back(std::move(stored)), layout});
    };
    for (int block = 0; block < kBlocks; ++block) {
      const std::string own = fmt::format("shared_blocks.{}.", block);
      const std::string stored = fmt::format("layers.{{block {}}}.shared_transformer.", block);
      add(own + "attention_norm.%", stored + "input_layernorm.%");
      add(own + "mlp_norm.%", stored + "pre_ff_layernorm.%");
      for (const auto& [name, letter] :
           {std::pair{"query", 'q'}, std::pair{"key", 'k'}, std::pair{"value", 'v'}}) {
        add(fmt::format("{}attention.{}.%", own, name),
            fmt::format("{}self_attn.{}_proj.%", stored, letter));
        for (int use = block; use < kUses; ++use) {
          const std::string list =
              fmt::format("{}self_attn.linear_{}_adapter_list.{}.", stored, letter, use);
          const std::string path = fmt::format("{}attention.{}_adapter_{}.", own, name, use);
          add(path + "down.%", list + "0.%");
          add(path + "up.%", list + "1.%");
        }
      }
      add(own + "attention.output.%", stored + "self_attn.o_proj.%");
      add(own + "mlp.gate.%", stored + "feed_forward.gate_up_proj.%", part(0));
      add(own + "mlp.up.%", stored + "feed_forward.gate_up_proj.%", part(1));
      add(own + "mlp.down.%", stored + "feed_forward.down_proj.%");
      for (int use = block; use < kUses; ++use) {
        const std::string list =
            fmt::format("{}feed_forward.gate_up_proj_adapter_list.{}.", stored, use);
        const std::string path = fmt::format("{}mlp.gate_up_adapter_{}.", own, use);
        add(path + "down.%", list + "0.%");
        add(path + "up.%", list + "1.%");
      }
    }
    return made;
  }();
  return rules;
}

}  // namespace

std::vector<Family> zamba2_families() {
  return {{.model_types = {"zamba2"},
           .classes = decoder_classes("Zamba2", {.tied = true, .float32_logits = true}),
           .reader = read_zamba2,
           .names = llama_names({shared_block_rules(), hybrid_mamba_rules(), kZamba2}),
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
