// Jina Embeddings v3 (arXiv 2409.10173): XLM-RoBERTa with RoPE in place of positions. Published
// files have LoRA adapters of tasks beside every matrix: they count as parameters, and a pass
// without a task reads none of them. Source: github.com/huggingface/transformers,
// models/jina_embeddings_v3, and the publisher's modeling_lora.py and modeling_xlm_roberta.py.
#include "jina_embeddings.h"

#include <fmt/format.h>

#include <string>

#include "../bert.h"
#include "../encoder_heads.h"
#include "../family.h"
#include "../rope.h"

namespace headroom::detail {
namespace {

constexpr double kJinaTheta = 20000;
constexpr std::int64_t kJinaPositions = 8194;

void read_rotary_encoder(ConfigReader& config, ModelSpec& spec, double theta) {
  read_bert_layers(config, spec, ActivationKind::gelu);
  count_unread_head_bias(spec);
  if (!config.has("type_vocab_size")) spec.embedding.type_vocab_size = 1;
  if (!config.has("layer_norm_eps")) spec.encoder->norm.eps = 1e-5;
  spec.embedding.norm = spec.encoder->norm;
  spec.position.kind = PositionKind::rotary;
  if (!config.has("max_position_embeddings"))
    spec.position.max_position_embeddings = kJinaPositions;
  RopeDefaults rope;
  rope.theta = theta;
  spec.position.rope =
      read_rope(config, spec.position, spec.encoder->self_attention.head_dim, rope);
}

void read_jina_v3(ConfigReader& config, ModelSpec& spec) {
  config.expect_text("position_embedding_type", "rotary");
  read_rotary_encoder(config, spec, kJinaTheta);
  config.expect_flag("is_decoder", false);
}

/// Counts the adapters of all tasks: A and B of one matrix or table, `repeat` times.
class TaskAdapters {
 public:
  TaskAdapters(ModelSpec& spec, std::int64_t tasks, std::int64_t rank)
      : weights_(spec.counted_only), tasks_(tasks), rank_(rank) {}

  void add_matrix(WeightRole role, const std::string& path, std::int64_t out, std::int64_t in,
                  std::int64_t repeat) {
    add(role, path + ".adapter_a", {tasks_, rank_, in}, repeat);
    add(role, path + ".adapter_b", {tasks_, out, rank_}, repeat);
  }
  void add_table(const std::string& path, std::int64_t rows, std::int64_t width) {
    add(WeightRole::embedding, path + ".adapter_a", {tasks_, rows, rank_}, 1);
    add(WeightRole::embedding, path + ".adapter_b", {tasks_, rank_, width}, 1);
  }

 private:
  void add(WeightRole role, std::string path, std::vector<std::int64_t> shape,
           std::int64_t repeat) {
    weights_.push_back(
        {std::move(path), std::move(shape), role, repeat, ModelPart::text, CountedUse::loaded});
  }

  std::vector<CountedWeight>& weights_;
  std::int64_t tasks_;
  std::int64_t rank_;
};

/// Adapters of every embedding and linear layer (XLMRobertaLoRA).
void count_adapters(ConfigReader& config, ModelSpec& spec) {
  const std::int64_t tasks = std::ssize(config.texts("lora_adaptations"));
  const std::int64_t rank = config.size_or({"lora_rank"}, 4);
  config.ignore({"lora_alpha", "lora_dropout_p", "lora_main_params_trainable",
                 "load_trained_adapters", "task_instructions"});
  if (tasks == 0) return;
  TaskAdapters adapters(spec, tasks, rank);
  const std::int64_t width = spec.hidden_size;
  const std::int64_t layers = spec.encoder->num_layers;
  const std::int64_t inner = spec.encoder->ffn.intermediate_size;
  adapters.add_table("embeddings.word_embeddings", spec.embedding.vocab_size, width);
  adapters.add_table("embeddings.token_type_embeddings", spec.embedding.type_vocab_size, width);
  adapters.add_matrix(WeightRole::attention, "encoder.layers.attention.qkv", 3 * width, width,
                      layers);
  adapters.add_matrix(WeightRole::attention, "encoder.layers.attention.output", width, width,
                      layers);
  adapters.add_matrix(WeightRole::mlp, "encoder.layers.mlp.up", inner, width, layers);
  adapters.add_matrix(WeightRole::mlp, "encoder.layers.mlp.down", width, inner, layers);
  if (spec.head.pooler) adapters.add_matrix(WeightRole::head, "head.pooler.dense", width, width, 1);
  spec.assumptions.push_back(fmt::format(
      "adapters of {} tasks count as parameters; the pass is that without a task, which reads none",
      tasks));
}

constexpr NameRule kJinaV3[] = {
    {"encoder.layers.attention.query.%", "layers.{}.self_attn.q_proj.%"},
    {"encoder.layers.attention.key.%", "layers.{}.self_attn.k_proj.%"},
    {"encoder.layers.attention.value.%", "layers.{}.self_attn.v_proj.%"},
    {"encoder.layers.attention.output.%", "layers.{}.self_attn.o_proj.%"},
    {"encoder.layers.attention_norm.%", "layers.{}.post_attention_layernorm.%"},
    {"encoder.layers.mlp.up.%", "layers.{}.mlp.fc1.%"},
    {"encoder.layers.mlp.down.%", "layers.{}.mlp.fc2.%"},
    {"encoder.layers.mlp_norm.%", "layers.{}.post_mlp_layernorm.%"},
};

// Of the publisher's class, by which transformers saves too; "parametrizations.weight.original"
// stands where adapters were registered.
constexpr NameRule kRotaryRoberta[] = {
    {"embeddings.word_embeddings.weight",
     "embeddings.word_embeddings.parametrizations.weight.original"},
    {"embeddings.word_embeddings.adapter_a",
     "embeddings.word_embeddings.parametrizations.weight.0.lora_A"},
    {"embeddings.word_embeddings.adapter_b",
     "embeddings.word_embeddings.parametrizations.weight.0.lora_B"},
    {"embeddings.token_type_embeddings.weight",
     "embeddings.token_type_embeddings.parametrizations.weight.original"},
    {"embeddings.token_type_embeddings.adapter_a",
     "embeddings.token_type_embeddings.parametrizations.weight.0.lora_A"},
    {"embeddings.token_type_embeddings.adapter_b",
     "embeddings.token_type_embeddings.parametrizations.weight.0.lora_B"},
    {"embeddings.norm.%", "emb_ln.%"},
    {"encoder.layers.attention.query.weight",
     "encoder.layers.{}.mixer.Wqkv.parametrizations.weight.original", part(0)},
    {"encoder.layers.attention.key.weight",
     "encoder.layers.{}.mixer.Wqkv.parametrizations.weight.original", part(1)},
    {"encoder.layers.attention.value.weight",
     "encoder.layers.{}.mixer.Wqkv.parametrizations.weight.original", part(2)},
    {"encoder.layers.attention.query.%", "encoder.layers.{}.mixer.Wqkv.%", part(0)},
    {"encoder.layers.attention.key.%", "encoder.layers.{}.mixer.Wqkv.%", part(1)},
    {"encoder.layers.attention.value.%", "encoder.layers.{}.mixer.Wqkv.%", part(2)},
    {"encoder.layers.attention.qkv.adapter_a",
     "encoder.layers.{}.mixer.Wqkv.parametrizations.weight.0.lora_A"},
    {"encoder.layers.attention.qkv.adapter_b",
     "encoder.layers.{}.mixer.Wqkv.parametrizations.weight.0.lora_B"},
    {"encoder.layers.attention.output.weight",
     "encoder.layers.{}.mixer.out_proj.parametrizations.weight.original"},
    {"encoder.layers.attention.output.%", "encoder.layers.{}.mixer.out_proj.%"},
    {"encoder.layers.attention.output.adapter_a",
     "encoder.layers.{}.mixer.out_proj.parametrizations.weight.0.lora_A"},
    {"encoder.layers.attention.output.adapter_b",
     "encoder.layers.{}.mixer.out_proj.parametrizations.weight.0.lora_B"},
    {"encoder.layers.attention_norm.%", "encoder.layers.{}.norm1.%"},
    {"encoder.layers.mlp.up.weight", "encoder.layers.{}.mlp.fc1.parametrizations.weight.original"},
    {"encoder.layers.mlp.up.%", "encoder.layers.{}.mlp.fc1.%"},
    {"encoder.layers.mlp.up.adapter_a",
     "encoder.layers.{}.mlp.fc1.parametrizations.weight.0.lora_A"},
    {"encoder.layers.mlp.up.adapter_b",
     "encoder.layers.{}.mlp.fc1.parametrizations.weight.0.lora_B"},
    {"encoder.layers.mlp.down.weight",
     "encoder.layers.{}.mlp.fc2.parametrizations.weight.original"},
    {"encoder.layers.mlp.down.%", "encoder.layers.{}.mlp.fc2.%"},
    {"encoder.layers.mlp.down.adapter_a",
     "encoder.layers.{}.mlp.fc2.parametrizations.weight.0.lora_A"},
    {"encoder.layers.mlp.down.adapter_b",
     "encoder.layers.{}.mlp.fc2.parametrizations.weight.0.lora_B"},
    {"encoder.layers.mlp_norm.%", "encoder.layers.{}.norm2.%"},
    {"head.pooler.dense.weight", "pooler.dense.parametrizations.weight.original"},
    {"head.pooler.dense.adapter_a", "pooler.dense.parametrizations.weight.0.lora_A"},
    {"head.pooler.dense.adapter_b", "pooler.dense.parametrizations.weight.0.lora_B"},
};

void finish_jina_v3(const GgufMetadataReader& metadata, ConfigDraft& config) {
  config.set_count("type_vocab_size", metadata.rows("token_types.weight").value_or(0));
}

}  // namespace

bool is_rotary_roberta(const ConfigReader& config) {
  return config.is_text("position_embedding_type", "rotary");
}

void read_rotary_roberta(ConfigReader& config, ModelSpec& spec) {
  constexpr double kFlashTheta = 10000;
  config.expect_text("position_embedding_type", "rotary");
  config.expect_flag("rotary_emb_interleaved", false);
  config.expect_number("rotary_emb_scale_base", 0);
  config.expect_flag("last_layer_subset", false);
  read_rotary_encoder(config, spec, config.number_or({"rotary_emb_base"}, kFlashTheta));
  config.expect_number("rotary_emb_dim",
                       static_cast<double>(spec.encoder->self_attention.head_dim));
  config.ignore({"use_flash_attn", "fused_mlp", "fused_bias_fc", "fused_dropout_add_ln",
                 "use_reentrant", "emb_pooler", "truncate_dim"});
  count_adapters(config, spec);
}

std::span<const NameRule> rotary_roberta_rules() { return kRotaryRoberta; }

std::vector<Family> jina_embeddings_families() {
  return {{.model_types = {"jina_embeddings_v3"},
           .classes = roberta_classes("JinaEmbeddingsV3"),
           .reader = read_jina_v3,
           .names = roberta_names("roberta.", {kJinaV3, kRotaryRoberta}),
           .gguf = GgufForm(GgufConversion::none,
                            {{.name = "jina-bert-v3",
                              .common = gguf_layer_norm_keys(),
                              .own = {{"attention.layer_norm_epsilon", "layer_norm_eps"}},
                              .constants = {{"add_pooling_layer", "false"}},
                              .head_dim = GgufHeadDim::never,
                              .finish = finish_jina_v3}})}};
}

}  // namespace headroom::detail
