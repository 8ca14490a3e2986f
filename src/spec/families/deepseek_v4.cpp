// DeepSeek-V4: hyper-connections, attention over a window and compressed keys, an indexer that
// chooses among them, experts by scores or by token id (transformers, models/deepseek_v4).
#include <fmt/format.h>

#include <algorithm>

#include "../decoder.h"
#include "../deepseek_layers.h"
#include "../family.h"
#include "../quantization/formats.h"

namespace headroom::detail {
namespace {

/// compress_ratios of a layer's attention: a window only, compressed keys that an indexer chooses,
/// or all compressed keys.
enum class LayerKind { window, indexed, compressed };

struct LayerKinds {
  std::vector<LayerKind> kinds;
  std::int64_t indexed_rate = 0;
  std::int64_t compressed_rate = 0;
};

LayerKind kind_named(const ConfigReader& config, const std::string& name) {
  if (name == "sliding_attention") return LayerKind::window;
  if (name == "compressed_sparse_attention") return LayerKind::indexed;
  if (name == "heavily_compressed_attention") return LayerKind::compressed;
  config.fail("layer_types", fmt::format("\"{}\" is unknown", name),
              "use sliding_attention, compressed_sparse_attention or "
              "heavily_compressed_attention");
}

/// The schedule as transformers 5 writes it: names of layers, and the rates of two kinds. Without
/// names, the first two layers compress all keys, and every second one after them.
LayerKinds read_named_kinds(ConfigReader& config, std::int64_t num_layers) {
  LayerKinds layers{{}, 4, 128};
  ConfigReader rates = config.object_or_empty("compress_rates");
  layers.indexed_rate = rates.size_or({"compressed_sparse_attention"}, layers.indexed_rate);
  layers.compressed_rate = rates.size_or({"heavily_compressed_attention"}, layers.compressed_rate);
  rates.finish();
  if (std::min(layers.indexed_rate, layers.compressed_rate) < 2) {
    config.fail("compress_rates", "a rate of 1 compresses nothing", "use rates of at least 2");
  }
  const std::vector<std::string> names = config.texts("layer_types");
  if (!names.empty())
    config.require_one_per_layer("layer_types", names.size(), num_layers,
                                 "name each of num_hidden_layers");
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    const bool every_second = layer > 2 && layer % 2 == 1;
    LayerKind kind = every_second ? LayerKind::indexed : LayerKind::compressed;
    const std::string name = names.empty() ? "" : names[static_cast<std::size_t>(layer)];
    if (!name.empty()) kind = kind_named(config, name);
    layers.kinds.push_back(kind);
  }
  return layers;
}

/// Reads compress_ratios, of which entries after the last layer belong to prediction layers. The
/// class names two rates; the lower one has the indexer.
LayerKinds read_layer_kinds(ConfigReader& config, std::int64_t num_layers) {
  if (!config.has("compress_ratios")) return read_named_kinds(config, num_layers);
  const std::vector<std::int64_t> rates = config.counts("compress_ratios");
  if (std::ssize(rates) < num_layers) {
    config.fail("compress_ratios",
                fmt::format("has {} entries for {} layers", rates.size(), num_layers),
                "write 0, 4 or 128 for each of num_hidden_layers");
  }
  LayerKinds layers{{}, 4, 128};
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    const std::int64_t rate = rates[static_cast<std::size_t>(layer)];
    if (rate == 0) {
      layers.kinds.push_back(LayerKind::window);
    } else if (rate == layers.indexed_rate) {
      layers.kinds.push_back(LayerKind::indexed);
    } else if (rate == layers.compressed_rate) {
      layers.kinds.push_back(LayerKind::compressed);
    } else {
      config.fail("compress_ratios", fmt::format("a rate of {} is not supported", rate),
                  "use 0, 4 or 128");
    }
  }
  return layers;
}

/// Gives the layers of `kind` the compressed keys of `rate`.
void set_compression(StackSpec& stack, const LayerKinds& layers, LayerKind kind,
                     const KeyCompressionSpec& compression, const RopeSpec& rope,
                     const std::optional<IndexerSpec>& indexer) {
  std::vector<bool> others;
  for (const LayerKind layer : layers.kinds) others.push_back(layer != kind);
  vary_layers(stack, others, [&](LayerVariant& variant) {
    AttentionSpec& attention = variant.self_attention;
    attention.shared_key_value->compression = compression;
    attention.rope = rope;
    attention.indexer = indexer;
  });
}

void read_attention(ConfigReader& config, ModelSpec& spec) {
  StackSpec& stack = *spec.decoder;
  AttentionSpec& attention = stack.self_attention;
  SharedKeyValueSpec shared;
  shared.q_lora_rank = config.size_or({"q_lora_rank"}, 1024);
  shared.rotary_dim = config.size_or({"qk_rope_head_dim"}, 64);
  shared.output_groups = config.size_or({"o_groups"}, 8);
  shared.output_rank = config.size_or({"o_lora_rank"}, 1024);
  config.expect_number("num_key_value_heads", 1);
  if (attention.num_attention_heads % shared.output_groups != 0) {
    config.fail("o_groups", "does not divide num_attention_heads",
                "use a divisor of the number of heads");
  }
  if (shared.rotary_dim > attention.head_dim) {
    config.fail("qk_rope_head_dim", "exceeds head_dim", "use at most head_dim");
  }
  attention.shared_key_value = shared;
  attention.sinks = true;
  attention.window = {WindowKind::sliding, config.size_or({"sliding_window"}, 128)};
  const IndexerSpec indexer{config.size_or({"index_n_heads"}, 64),
                            config.size_or({"index_head_dim"}, 128),
                            config.size_or({"index_topk"}, 512)};
  if (shared.rotary_dim > indexer.head_dim) {
    config.fail("index_head_dim", "is less than qk_rope_head_dim", "use qk_rope_head_dim or more");
  }
  // Layers with a window only rotate by the plain angles.
  RopeSpec compressed = spec.position.rope;
  compressed.theta = config.number_or({"compress_rope_theta"}, 160000);
  compressed.attention_factor = 1;  // the class scales no angles
  RopeSpec& plain = spec.position.rope;
  plain = read_rope_of(config, "main", spec.position, attention.head_dim, plain);
  compressed = read_rope_of(config, "compress", spec.position, attention.head_dim, compressed);
  compressed.rotary_dim = 0;  // qk_rope_head_dim has it
  plain = RopeSpec{.theta = plain.theta, .layout = RopeLayout::interleaved};
  const LayerKinds layers = read_layer_kinds(config, stack.num_layers);
  set_compression(stack, layers, LayerKind::indexed,
                  {layers.indexed_rate, CompressionOverlap::previous_window}, compressed, indexer);
  set_compression(stack, layers, LayerKind::compressed,
                  {layers.compressed_rate, CompressionOverlap::none}, compressed, std::nullopt);
}

/// The layers whose experts are chosen by scores; the others look them up by token.
std::vector<bool> read_scored_layers(ConfigReader& config, std::int64_t num_layers) {
  const std::int64_t hashed = config.count_or({"num_hash_layers"}, 3);
  const std::vector<std::string> types = config.texts("mlp_layer_types");
  if (!types.empty())
    config.require_one_per_layer("mlp_layer_types", types.size(), num_layers,
                                 "write \"hash_moe\" or \"moe\" for each of num_hidden_layers");
  for (const std::string& type : types) {
    if (type == "moe" || type == "hash_moe") continue;
    config.fail("mlp_layer_types", fmt::format("\"{}\" is unknown", type),
                "write \"hash_moe\" or \"moe\" for each layer");
  }
  std::vector<bool> scored;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    const bool listed = !types.empty();
    scored.push_back(listed ? types[static_cast<std::size_t>(layer)] == "moe" : layer >= hashed);
  }
  return scored;
}

void read_experts_of_v4(ConfigReader& config, StackSpec& stack) {
  ExpertsSpec experts = read_experts(config, {{"n_routed_experts"}, 256, 6});
  experts.intermediate_size = config.size_or({"moe_intermediate_size"}, 2048);
  experts.shared_intermediate_size = experts.intermediate_size;
  config.expect_number("n_shared_experts", 1);  // whatever it says, the class has one
  experts.scaling_factor = config.number_or({"routed_scaling_factor"}, 1.5);
  experts.scoring = RouterScoring::sqrt_softplus;
  experts.normalise = true;
  experts.correction_bias = true;
  experts.activation = ActivationKind::clamped_silu;
  config.expect_flag("norm_topk_prob", true);
  config.expect_text("scoring_func", "sqrtsoftplus");
  config.expect_text("topk_method", "noaux_tc");
  config.expect_number("swiglu_limit", 10);
  stack.ffn.intermediate_size = experts.intermediate_size;
  stack.ffn.experts = experts;
  for (LayerVariant& variant : stack.variants) variant.ffn = stack.ffn;
  vary_layers(stack, read_scored_layers(config, stack.num_layers), [](LayerVariant& variant) {
    variant.ffn.experts->selection = ExpertSelection::token_table;
    variant.ffn.experts->correction_bias = false;
  });
}

/// Types of the published files, whatever the other weights are quantised to: float32 for
/// hyper-connections, sinks, places of compressed keys; 64-bit integers for experts by token; the
/// type of the embedding for compressors.
void set_stored_types(WeightStorage& storage) {
  const std::vector<ModuleKind> kinds{ModuleKind::linear, ModuleKind::other};
  storage.rules.push_back(
      {.format = plain_format("float32"),
       .kinds = kinds,
       .weights = {"hyper_connection.function.weight", "hyper_connection.base",
                   "hyper_connection.scale", "attention.sinks", "compressor.position_bias"}});
  storage.rules.push_back(
      {.format = int64_format(), .kinds = kinds, .weights = {"router.token_experts"}});
  storage.rules.push_back(
      {.kinds = kinds,
       .weights = {"compressor.key.weight", "compressor.gate.weight", "indexer.weights.weight"}});
  storage.block_scales = BlockScaleStorage::exponents;
}

void read_deepseek_v4(ConfigReader& config, ModelSpec& spec) {
  DecoderDefaults defaults;
  defaults.intermediate_size = 0;
  defaults.head_dim = 512;
  defaults.num_key_value_heads = 1;
  defaults.max_position_embeddings = 1048576;
  defaults.rope.layout = RopeLayout::interleaved;
  defaults.rope.by_layer_type = config.object_or_empty("rope_parameters").is_object("main");
  defaults.bias = BiasRule::none;
  read_decoder(config, spec, defaults);
  config.expect_flag("attention_bias", false);
  config.expect_flag("mlp_bias", false);
  StackSpec& stack = *spec.decoder;
  stack.hyper_connections = read_mixed_streams(config);
  read_attention(config, spec);
  read_experts_of_v4(config, stack);
  set_stored_types(spec.storage);
  // The extra layers of multi-token prediction are not part of the model.
  config.ignore({"num_nextn_predict_layers"});
}

void finish_deepseek4(const GgufMetadataReader& metadata, ConfigDraft& config) {
  finish_prediction_layers(metadata, config);
  config.set_counts("compress_ratios", metadata.counts("attention.compress_ratios"));
  finish_rope_scaling(metadata, config);
}

GgufForm deepseek4_form() {
  return GgufForm(GgufConversion::unknown,
                  {{.name = "deepseek4",
                    .common = gguf_expert_keys(),
                    .own = {{"attention.q_lora_rank", "q_lora_rank"},
                            {"attention.sliding_window", "sliding_window"},
                            {"attention.indexer.head_count", "index_n_heads"},
                            {"attention.indexer.key_length", "index_head_dim"},
                            {"attention.indexer.top_k", "index_topk"},
                            {"attention.output_group_count", "o_groups"},
                            {"attention.output_lora_rank", "o_lora_rank"},
                            {"attention.compress_rope_freq_base", "compress_rope_theta"},
                            {"rope.dimension_count", "qk_rope_head_dim"},
                            {"expert_count", "n_routed_experts"},
                            {"expert_shared_count", "n_shared_experts"},
                            {"expert_feed_forward_length", "moe_intermediate_size"},
                            {"expert_weights_scale", "routed_scaling_factor"},
                            {"hyper_connection.count", "hc_mult"},
                            {"hyper_connection.sinkhorn_iterations", "hc_sinkhorn_iters"},
                            {"hash_layer_count", "num_hash_layers"}},
                    .head_dim = GgufHeadDim::always,
                    .finish = finish_deepseek4}});
}

// As published; transformers writes some of these names after "model.", or its own.
constexpr NameRule kDeepseekV4[] = {
    {"embeddings.word_embeddings.%", "embed.%"},
    {"decoder.layers.attention_norm.%", "layers.{}.attn_norm.%"},
    {"decoder.layers.mlp_norm.%", "layers.{}.ffn_norm.%"},
    {"decoder.layers.attention.query_a.%", "layers.{}.attn.wq_a.%"},
    {"decoder.layers.attention.query_a_norm.%", "layers.{}.attn.q_norm.%"},
    {"decoder.layers.attention.query.%", "layers.{}.attn.wq_b.%"},
    {"decoder.layers.attention.key.%", "layers.{}.attn.wkv.%"},
    {"decoder.layers.attention.key_norm.%", "layers.{}.attn.kv_norm.%"},
    {"decoder.layers.attention.key_norm.%", "layers.{}.attn.norm.%"},
    {"decoder.layers.attention.sinks", "layers.{}.attn.attn_sink"},
    {"decoder.layers.attention.output_a.%", "layers.{}.attn.wo_a.%"},
    {"decoder.layers.attention.output.%", "layers.{}.attn.wo_b.%"},
    {"decoder.layers.attention.compressor.key.%", "layers.{}.attn.compressor.wkv.%"},
    {"decoder.layers.attention.compressor.gate.%", "layers.{}.attn.compressor.wgate.%"},
    {"decoder.layers.attention.compressor.position_bias", "layers.{}.attn.compressor.ape"},
    {"decoder.layers.attention.compressor.norm.%", "layers.{}.attn.compressor.norm.%"},
    {"decoder.layers.attention.indexer.query.%", "layers.{}.attn.indexer.wq_b.%"},
    {"decoder.layers.attention.indexer.weights.%", "layers.{}.attn.indexer.weights_proj.%"},
    {"decoder.layers.attention.indexer.compressor.key.%",
     "layers.{}.attn.indexer.compressor.wkv.%"},
    {"decoder.layers.attention.indexer.compressor.gate.%",
     "layers.{}.attn.indexer.compressor.wgate.%"},
    {"decoder.layers.attention.indexer.compressor.position_bias",
     "layers.{}.attn.indexer.compressor.ape"},
    {"decoder.layers.attention.indexer.compressor.norm.%",
     "layers.{}.attn.indexer.compressor.norm.%"},
    {"decoder.layers.attention.hyper_connection.function.weight", "layers.{}.hc_attn_fn"},
    {"decoder.layers.attention.hyper_connection.base", "layers.{}.hc_attn_base"},
    {"decoder.layers.attention.hyper_connection.scale", "layers.{}.hc_attn_scale"},
    {"decoder.layers.mlp.hyper_connection.function.weight", "layers.{}.hc_ffn_fn"},
    {"decoder.layers.mlp.hyper_connection.base", "layers.{}.hc_ffn_base"},
    {"decoder.layers.mlp.hyper_connection.scale", "layers.{}.hc_ffn_scale"},
    {"decoder.layers.mlp.router.correction_bias", "layers.{}.ffn.gate.bias"},
    {"decoder.layers.mlp.router.token_experts", "layers.{}.ffn.gate.tid2eid"},
    {"decoder.layers.mlp.router.weight", "layers.{}.ffn.gate.weight"},
    {"decoder.layers.mlp.experts.gate.%", "layers.{}.ffn.experts.{e}.w1.%"},
    {"decoder.layers.mlp.experts.up.%", "layers.{}.ffn.experts.{e}.w3.%"},
    {"decoder.layers.mlp.experts.down.%", "layers.{}.ffn.experts.{e}.w2.%"},
    {"decoder.layers.mlp.shared_expert.gate.%", "layers.{}.ffn.shared_experts.w1.%"},
    {"decoder.layers.mlp.shared_expert.up.%", "layers.{}.ffn.shared_experts.w3.%"},
    {"decoder.layers.mlp.shared_expert.down.%", "layers.{}.ffn.shared_experts.w2.%"},
    {"decoder.hyper_connection.function.weight", "hc_head_fn"},
    {"decoder.hyper_connection.base", "hc_head_base"},
    {"decoder.hyper_connection.scale", "hc_head_scale"},
    {"decoder.hyper_connection.function.weight", "hc_head.hc_fn"},
    {"decoder.hyper_connection.base", "hc_head.hc_base"},
    {"decoder.hyper_connection.scale", "hc_head.hc_scale"},
    {"head.language_model.%", "head.%"},
};

}  // namespace

std::vector<Family> deepseek_v4_families() {
  return {{.model_types = {"deepseek_v4", "deepseek_ref"},
           .classes = llama_classes("DeepseekV4"),
           .reader = read_deepseek_v4,
           .names = llama_names({kDeepseekV4}),
           .gguf = deepseek4_form()}};
}

}  // namespace headroom::detail
