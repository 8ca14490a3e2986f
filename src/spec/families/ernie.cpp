// ERNIE 4.5: Llama with interleaved RoPE, dense and with experts that a correction bias balances;
// ERNIE 4.5 VL has experts of its own for images (Baidu, ERNIE 4.5 technical report).
#include <algorithm>
#include <optional>

#include "../decoder.h"
#include "../family.h"
#include "../towers/towers.h"
#include "../towers/wrapper.h"

namespace headroom::detail {
namespace {

void read_ernie4_5(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.max_position_embeddings = 131072;
  defaults.norm_eps = 1e-5;
  defaults.rope.theta = 500000;
  defaults.rope.layout = RopeLayout::interleaved;
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  StackSpec& stack = *spec.decoder;
  stack.self_attention.qkv_bias = config.flag_or({"use_bias"}, false);
  stack.self_attention.output_bias = stack.self_attention.qkv_bias;
  stack.ffn.bias = stack.self_attention.qkv_bias;
  config.expect_flag("use_rmsnorm", true);
  // Layers of multi-token prediction, which the class lacks; kernels.
  config.ignore({"num_nextn_predict_layers", "use_flash_attention"});
}

/// Every `moe_layer_interval`-th layer from `moe_layer_start_index` to `moe_layer_end_index` (-1:
/// the last) has experts.
std::vector<bool> read_expert_layers(ConfigReader& config, std::int64_t num_layers) {
  const auto last = static_cast<double>(num_layers - 1);
  const std::int64_t first = config.count_or({"moe_layer_start_index"}, 1);
  const double end = config.number_or({"moe_layer_end_index"}, -1);
  const std::int64_t interval = config.size_or({"moe_layer_interval"}, 1);
  std::vector<bool> routed;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    const bool inside = layer >= first && static_cast<double>(layer) <= (end < 0 ? last : end);
    routed.push_back(inside && (layer + 1) % interval == 0);
  }
  return routed;
}

/// The least sum that weights are divided by, which no published one reaches.
void require_tiny_least_sum(ConfigReader& config) {
  constexpr double kMost = 1e-6;
  if (config.number_or({"moe_norm_min"}, 0) <= kMost) return;
  config.fail("moe_norm_min", "is a sum that weights of experts can have",
              "use 1e-12, as the class");
}

/// Settings of training and of its kernels.
void ignore_training_keys(ConfigReader& config) {
  config.ignore({"moe_capacity", "moe_aux_loss_lambda", "moe_z_loss_lambda",
                 "moe_orthogonal_loss_lambda", "moe_group", "moe_norm_gate_logits",
                 "moe_multimodal_dispatch_use_allgather", "moe_dense_experts_token_type_id",
                 "moe_use_hard_gate", "moe_use_size_all2all", "moe_layer_feed_fake_token",
                 "moe_fuse_experts", "modality_detach", "max_text_id", "rope_3d", "freq_allocation",
                 "compression_ratio", "hidden_dropout_prob", "micro_batch_size"});
}

void read_ernie4_5_moe(ConfigReader& config, ModelSpec& spec) {
  read_ernie4_5(config, spec);
  if (spec.head.language_model) {
    spec.head.language_model->bias = config.flag_or({"use_bias"}, false);
  }
  ExpertsSpec experts;
  experts.num_experts = config.size_or_of_class({"moe_num_experts"}, 64);
  experts.num_experts_per_tok = config.size_or_of_class({"moe_k"}, 6);
  experts.intermediate_size = config.size_or_of_class({"moe_intermediate_size"}, 1536);
  experts.shared_intermediate_size =
      product(config, "moe_num_shared_experts", config.count_or({"moe_num_shared_experts"}, 2),
              experts.intermediate_size);
  experts.correction_bias = true;
  experts.correction_bias_is_parameter = true;  // registered as one, without a gradient
  experts.normalise = true;
  set_experts(*spec.decoder, read_expert_layers(config, spec.decoder->num_layers), experts);
  config.expect_text("moe_gate", "topk");
  config.expect_flag("moe_use_aux_free", true);
  require_tiny_least_sum(config);
  ignore_training_keys(config);
}

/// The experts that only visual tokens use: a text skips them.
void count_image_experts(ModelSpec& spec, std::int64_t layers, std::int64_t experts,
                         std::int64_t width) {
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    spec.counted_only.push_back({"decoder.layers.mlp.image_experts." + name, std::move(shape),
                                 WeightRole::mlp, layers, ModelPart::text,
                                 CountedUse::image_tokens});
  };
  add("router.weight", {experts, spec.hidden_size});
  add("router.correction_bias", {experts});
  add("gate_up.weight", {experts, 2, width, spec.hidden_size});
  add("down.weight", {experts, spec.hidden_size, width});
  spec.assumptions.emplace_back("experts of images count as parameters only: a text skips them");
}

/// Numbers that text and images have each.
struct OfBoth {
  std::int64_t text = 0;
  std::int64_t images = 0;
};

/// The two entries of the list at `key`; empty if it is a number or absent.
std::optional<OfBoth> read_both(ConfigReader& config, std::string_view key) {
  const std::vector<std::int64_t> listed = config.list_of_counts(key);
  if (listed.empty()) return std::nullopt;
  if (listed.size() == 2) return OfBoth{listed[0], listed[1]};
  config.fail(key, "does not have two entries",
              "write that of the text's experts and that of the images'");
}

/// Layers with experts, by lists of the first and the last one for text and for images.
std::vector<bool> read_layers_of_both(ConfigReader& config, std::int64_t num_layers) {
  const auto first = read_both(config, "moe_layer_start_index");
  const auto last = read_both(config, "moe_layer_end_index");
  if (!first || !last) return read_expert_layers(config, num_layers);
  const std::int64_t interval = config.size_or({"moe_layer_interval"}, 2);
  std::vector<bool> routed;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    const bool of_text = layer >= first->text && layer <= last->text;
    const bool of_images = layer >= first->images && layer <= last->images;
    if (of_text != of_images) {
      config.fail("moe_layer_end_index", "gives a layer experts for text or images alone",
                  "use a model whose layers have experts for both");
    }
    routed.push_back(of_text && (layer + 1) % interval == 0);
  }
  return routed;
}

/// Layers with experts, as transformers lists them; else by their numbers.
std::vector<bool> read_vl_layers(ConfigReader& config, std::int64_t num_layers) {
  std::vector<bool> routed = read_layers_of_both(config, num_layers);
  const std::vector<std::string> kinds = config.texts("mlp_layer_types");
  if (!kinds.empty() && std::ssize(kinds) != num_layers) {
    config.fail("mlp_layer_types", "does not have an entry for every layer",
                "write sparse or dense for each");
  }
  for (std::size_t layer = 0; layer < kinds.size(); ++layer) {
    routed[layer] = kinds[layer] == "sparse";
  }
  return routed;
}

/// Experts for text, which run, and for images, which are counted.
void read_vl_experts(ConfigReader& config, ModelSpec& spec, std::int64_t shared_experts) {
  StackSpec& stack = *spec.decoder;
  const auto stated_widths = read_both(config, "moe_intermediate_size");
  if (!stated_widths) {
    config.note_of_class("moe_intermediate_size", "(1536 for text, 512 for images)");
  }
  const OfBoth widths = stated_widths.value_or(OfBoth{1536, 512});
  const auto stated_counts = read_both(config, "moe_num_experts");
  ExpertsSpec experts;
  experts.num_experts = stated_counts
                            ? stated_counts->text
                            : config.size_or_of_class({"moe_num_experts", "num_experts"}, 64);
  experts.num_experts_per_tok = config.size_or_of_class({"moe_k", "num_experts_per_tok"}, 6);
  experts.intermediate_size = widths.text;
  experts.shared_intermediate_size =
      product(config, "moe_num_shared_experts",
              config.count_or({"moe_num_shared_experts"}, shared_experts), widths.text);
  experts.correction_bias = true;
  experts.correction_bias_is_parameter = true;
  experts.normalise = true;
  const std::vector<bool> routed = read_vl_layers(config, stack.num_layers);
  const std::int64_t layers = std::ranges::count(routed, true);
  set_experts(stack, routed, experts);
  count_image_experts(spec, layers, stated_counts ? stated_counts->images : experts.num_experts,
                      widths.images);
  require_tiny_least_sum(config);
}

void read_ernie4_5_vl_text(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kSharedExperts = 2;
  read_ernie4_5(config, spec);
  read_vl_experts(config, spec, kSharedExperts);
}

/// As Baidu publishes it: the text model's keys stand beside vision_config.
void read_ernie4_5_moe_vl(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kSharedExperts = 0;  // of its class
  read_ernie4_5(config, spec);
  read_vl_experts(config, spec, kSharedExperts);
  count_ernie4_5_moe_vl_tower(config, spec);
  if (config.has("im_patch_id")) spec.tower_tokens.push_back(config.count_or({"im_patch_id"}, 0));
  config.expect_text("moe_gate", "topk");
  config.expect_flag("moe_use_aux_free", true);
  config.expect_flag("attention_bias", false);
  config.expect_flag("moe_group_experts", false);
  config.expect_number("mm_vocab_size", 0);
  ignore_training_keys(config);
}

constexpr NameRule kErnieExperts[] = {
    {"decoder.layers.mlp.router.correction_bias",
     "layers.{}.mlp.moe_statics.e_score_correction_bias"},
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.mlp.shared_experts.gate_proj.%"},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.mlp.shared_experts.up_proj.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.mlp.shared_experts.down_proj.%"},
};

ModelClasses ernie_classes(const std::string& prefix) {
  return decoder_classes(prefix, {.tied = true, .float32_logits = true});
}

}  // namespace

std::vector<Family> ernie_families() {
  return {{.model_types = {"ernie4_5"},
           .classes = either_of(ernie_classes("Ernie4_5"), ernie_classes("Ernie4_5_")),
           .reader = read_ernie4_5,
           .names = llama_names(),
           .gguf = GgufForm(GgufConversion::none, {{.name = "ernie4_5",
                                                    .common = gguf_rms_norm_keys(),
                                                    .flags = {{"blk.0.attn_q.bias", "use_bias"}},
                                                    .head_dim = GgufHeadDim::always}})},
          wrapper_family({.model_types = {"ernie4_5_vl_moe"},
                          .classes = {"Ernie4_5_VLMoeForConditionalGeneration",
                                      "Ernie4_5_VL_MoeForConditionalGeneration"},
                          .bare_classes = {"Ernie4_5_VLMoeModel", "Ernie4_5_VL_MoeModel"},
                          .text_type = "ernie4_5_vl_moe_text",
                          .count_towers = count_ernie4_5_vl_tower,
                          .tying = HeadTying::whole_else_tied}),
          {.model_types = {"ernie4_5_moe_vl"},
           .classes = {{{"Ernie4_5_VLMoeForConditionalGeneration",
                         [](ConfigReader& reader) {
                           return language_model_head(language_model_of(reader, {}));
                         }}}},
           .reader = read_ernie4_5_moe_vl,
           .names = None("its experts of images do not run"),
           .gguf = None("GGUF stores the towers in a separate file")},
          {.model_types = {"ernie4_5_vl_moe_text"},
           .classes =
               either_of(ernie_classes("Ernie4_5_VLMoeText"), ernie_classes("Ernie4_5_VL_MoeText")),
           .reader = read_ernie4_5_vl_text,
           .names = None("its experts of images do not run"),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"ernie4_5_moe"},
           .classes = either_of(ernie_classes("Ernie4_5_Moe"), ernie_classes("Ernie4_5Moe")),
           .reader = read_ernie4_5_moe,
           .names = llama_names({kErnieExperts, routed_expert_rules()}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "ernie4_5-moe",
                              .common = gguf_rms_norm_keys(),
                              .own = {{"expert_count", "moe_num_experts"},
                                      {"expert_used_count", "moe_k"},
                                      {"expert_feed_forward_length", "moe_intermediate_size"},
                                      {"expert_shared_count", "moe_num_shared_experts"},
                                      {"leading_dense_block_count", "moe_layer_start_index"},
                                      {"interleave_moe_layer_step", "moe_layer_interval"}},
                              .head_dim = GgufHeadDim::always}})}};
}

}  // namespace headroom::detail
