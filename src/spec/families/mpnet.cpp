// MPNet: RoBERTa's encoder and heads with one table of relative position biases for all layers
// (arXiv 2004.09297).
#include "../bert.h"
#include "../encoder_heads.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_mpnet(ConfigReader& config, ModelSpec& spec) {
  read_bert_encoder(config, spec, ActivationKind::gelu);
  count_unread_head_bias(spec);
  spec.embedding.type_vocab_size = 0;
  // Constants of the class: positions start after padding token 1; distances up to 128 share 32
  // buckets. Source: MPNetEmbeddings and compute_position_bias, transformers, models/mpnet.
  spec.position.kind = PositionKind::learned_and_relative_bias;
  spec.position.offset = 2;
  spec.position.skips_padding = true;
  config.expect_number("relative_attention_num_buckets", 32);
  spec.position.num_buckets = 32;
  spec.position.max_distance = 128;
}

constexpr NameRule kMpnet[] = {
    {"encoder.relative_attention_bias.weight", "encoder.relative_attention_bias.weight"},
    {"encoder.layers.attention.query.%", "encoder.layer.{}.attention.attn.q.%"},
    {"encoder.layers.attention.key.%", "encoder.layer.{}.attention.attn.k.%"},
    {"encoder.layers.attention.value.%", "encoder.layer.{}.attention.attn.v.%"},
    {"encoder.layers.attention.output.%", "encoder.layer.{}.attention.attn.o.%"},
    {"encoder.layers.attention_norm.%", "encoder.layer.{}.attention.LayerNorm.%"},
};

}  // namespace

std::vector<Family> mpnet_families() {
  return {{.model_types = {"mpnet"},
           .classes = roberta_classes("MPNet"),
           .reader = read_mpnet,
           .names = roberta_names("mpnet.", {kMpnet}),
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
