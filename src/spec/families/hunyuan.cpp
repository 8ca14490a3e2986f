// HunYuan: Llama with norms on query and key heads after RoPE, whose base grows by a fixed `alpha`;
// dense and with experts beside a shared one (Tencent, Hunyuan-A13B). Hunyuan-Large also shares
// keys and values between layers (arXiv 2411.02265).
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "../decoder.h"
#include "../family.h"

namespace headroom::detail {
namespace {

// Of an image encoder and of a classifier that the class lacks.
constexpr std::string_view kOtherParts[] = {"anyres_pooling_size",
                                            "num_media_embeds",
                                            "vit_add_patchemb_bias",
                                            "vit_input_resolution",
                                            "vit_mapping_type",
                                            "vit_norm_type",
                                            "vit_patch",
                                            "vit_path",
                                            "vit_remove_prenorm",
                                            "vit_token",
                                            "vit_type",
                                            "vit_used_rms_norm",
                                            "class_num",
                                            "pool_type",
                                            "skip_cls_token",
                                            "mask_init_id",
                                            "text_start_id",
                                            "text_end_id",
                                            "video_start_id",
                                            "video_end_id",
                                            "dense_list",
                                            "pad_id",
                                            "xdrope_section"};

/// Requires of each option the only value that the class has.
void expect_options_of_class(ConfigReader& config, const AttentionSpec& attention) {
  config.expect_flag("use_qk_norm", true);
  config.expect_flag("use_mla", false);
  config.expect_flag("mlp_bias", false);
  config.expect_flag("add_classification_head", false);
  config.expect_text("norm_type", "rms");
  config.expect_number("attention_head_dim", static_cast<double>(attention.head_dim));
}

/// The layers of all HunYuan models, without experts.
void read_hunyuan_layers(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.norm_eps = 1e-5;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.query_key_norm =
      QueryKeyNormSpec{stack.norm, QueryKeyNormScope::each_head, QueryKeyNormPlace::after_rotary};
  expect_options_of_class(config, stack.self_attention);
  config.ignore({"eod_token_id", "use_rotary_pos_emb", "org_vocab_size",
                 "position_embedding_xdrope", "im_start_id", "im_end_id", "im_newline_id"});
  for (const std::string_view key : kOtherParts) config.ignore({key});
}

void read_hunyuan_dense(ConfigReader& config, ModelSpec& spec) {
  read_hunyuan_layers(config, spec);
  config.expect_flag("use_cla", false);
  config.ignore({"cla_share_factor"});
}

/// A number, or a list of it for each layer.
std::int64_t read_layered_size(ConfigReader& config, std::string_view key, std::int64_t otherwise) {
  const std::vector<std::int64_t> sizes = config.count_or_counts(key);
  if (sizes.empty()) return otherwise;
  if (std::ranges::adjacent_find(sizes, std::not_equal_to{}) != sizes.end()) {
    config.fail(key, "differs between layers, which is not supported", "write one number");
  }
  return sizes.front();
}

void expect_layered_size(ConfigReader& config, std::string_view key, std::int64_t only) {
  if (read_layered_size(config, key, only) == only) return;
  config.fail(key, "differs from the class's size", "use the same size for all experts");
}

/// Files of the dense models state the experts of the others: one.
void read_hunyuan_v1_dense(ConfigReader& config, ModelSpec& spec) {
  read_hunyuan_dense(config, spec);
  for (const std::string_view key : {"num_experts", "moe_topk", "num_shared_expert"}) {
    expect_layered_size(config, key, 1);
  }
}

/// Of routing in training.
void ignore_routing_options(ConfigReader& config) {
  config.ignore({"moe_drop_tokens", "moe_random_routing_dropped_token", "capacity_factor",
                 "group_limited_greedy", "n_group", "topk_group", "routed_scaling_factor"});
}

void read_hunyuan_moe(ConfigReader& config, ModelSpec& spec) {
  read_hunyuan_dense(config, spec);
  FfnSpec& ffn = spec.decoder->ffn;
  ExpertsSpec experts;
  experts.num_experts = read_layered_size(config, "num_experts", 1);
  experts.num_experts_per_tok = read_layered_size(config, "moe_topk", 1);
  experts.intermediate_size = ffn.intermediate_size;
  experts.shared_intermediate_size = ffn.intermediate_size;
  experts.normalise = true;
  // The class takes both widths from intermediate_size, and always has one shared expert.
  expect_layered_size(config, "moe_intermediate_size", ffn.intermediate_size);
  expect_layered_size(config, "num_shared_expert", 1);
  ffn.experts = experts;
  config.expect_flag("use_mixed_mlp_moe", true);
  config.expect_flag("norm_topk_prob", true);
  config.ignore({"moe_layer_num_skipped"});
  ignore_routing_options(config);
}

/// Experts of all layers but the first `moe_layer_num_skipped`. The weight of a single expert is
/// its share of the softmax over all. Source: vLLM, hunyuan_v1.py, HunYuanSparseMoeBlock.
void read_large_experts(ConfigReader& config, StackSpec& stack) {
  const std::int64_t dense_layers = config.count_or({"moe_layer_num_skipped"}, 0);
  const std::int64_t inner = stack.ffn.intermediate_size;
  ExpertsSpec experts;
  experts.num_experts = read_layered_size(config, "num_experts", 1);
  experts.num_experts_per_tok = read_layered_size(config, "moe_topk", 1);
  experts.intermediate_size = read_layered_size(config, "moe_intermediate_size", inner);
  experts.normalise = experts.num_experts_per_tok > 1;
  const std::int64_t shared = read_layered_size(config, "num_shared_expert", 1);
  if (config.flag_or({"use_mixed_mlp_moe"}, false)) {
    experts.shared_intermediate_size = product(config, "num_shared_expert", shared, inner);
  }
  ignore_routing_options(config);
  if (experts.num_experts == 1) return;
  std::vector<bool> sparse;
  for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) {
    sparse.push_back(layer >= dense_layers);
  }
  set_experts(stack, sparse, experts);
}

/// Cross-layer attention (arXiv 2405.12981): every `cla_share_factor`-th layer has keys and values,
/// which those behind it read as well, through a norm of their own.
void share_key_values(ConfigReader& config, ModelSpec& spec) {
  const bool shares = config.flag_or({"use_cla"}, false);
  const std::int64_t factor = config.size_or({"cla_share_factor"}, 1);
  if (!shares || factor == 1) return;
  StackSpec& stack = *spec.decoder;
  std::vector<bool> projects;
  for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) {
    projects.push_back(layer % factor == 0);
    if (projects.back()) continue;
    spec.counted_only.push_back({fmt::format("decoder.shared_key_norms.{}.weight", layer),
                                 {stack.self_attention.head_dim},
                                 WeightRole::norm,
                                 1,
                                 ModelPart::text,
                                 CountedUse::loaded});
  }
  vary_layers(stack, projects,
              [](LayerVariant& variant) { variant.self_attention.shares_key_values = true; });
  spec.not_run = "each layer's own norm of shared keys has no kernel yet";
}

void read_hunyuan_large(ConfigReader& config, ModelSpec& spec) {
  read_hunyuan_layers(config, spec);
  read_large_experts(config, *spec.decoder);
  share_key_values(config, spec);
}

constexpr NameRule kHunyuan[] = {
    {"decoder.shared_key_norms.{i}.%", "layers.{i}.self_attn.key_layernorm.%"},
    {"decoder.layers.attention.query_norm.%", "layers.{}.self_attn.query_layernorm.%"},
    {"decoder.layers.attention.key_norm.%", "layers.{}.self_attn.key_layernorm.%"},
    {"decoder.layers.mlp.router.%", "layers.{}.mlp.gate.wg.%"},
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.mlp.shared_mlp.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.mlp.shared_mlp.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.mlp.shared_mlp.down_proj.%"},
};

}  // namespace

std::vector<Family> hunyuan_families() {
  return {
      {.model_types = {"hunyuan_v1_dense"},
       .classes = llama_classes("HunYuanDenseV1"),
       .reader = read_hunyuan_v1_dense,
       .names = llama_names({kHunyuan}),
       .gguf = GgufForm(GgufConversion::none, {{.name = "hunyuan-dense",
                                                .common = gguf_rms_norm_keys(),
                                                .flags = {{"blk.0.attn_q.bias", "attention_bias"}},
                                                .head_dim = GgufHeadDim::always}})},
      {.model_types = {"hunyuan_vl_text"},  // inside HunyuanOCR
       .classes = llama_classes("HunYuanVLText"),
       .reader = read_hunyuan_v1_dense,
       .names = llama_names({kHunyuan}),
       .gguf = None("llama.cpp stores it under the name of Hunyuan")},
      {.model_types = {"hunyuan_v1_moe"},
       .classes = llama_classes("HunYuanMoEV1"),
       .reader = read_hunyuan_moe,
       .names = llama_names({kHunyuan, routed_expert_rules()}),
       .gguf = GgufForm(GgufConversion::none,
                        {{.name = "hunyuan-moe",
                          .common = gguf_rms_norm_keys(),
                          .own = {{"expert_count", "num_experts"},
                                  {"expert_used_count", "moe_topk"},
                                  {"expert_feed_forward_length", "moe_intermediate_size"},
                                  {"expert_shared_count", "num_shared_expert"}},
                          .flags = {{"blk.0.attn_q.bias", "attention_bias"}},
                          .head_dim = GgufHeadDim::always}})},
      {.model_types = {"hunyuan"},
       .classes = llama_classes("HunYuan"),
       .reader = read_hunyuan_large,
       .names = llama_names({kHunyuan, routed_expert_rules()}),
       .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
