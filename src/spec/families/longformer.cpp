// Longformer: RoBERTa with a window around each token in place of full attention, and further
// projections for tokens with global attention (arXiv 2004.05150).
#include <fmt/format.h>

#include <algorithm>

#include "../bert.h"
#include "../encoder_heads.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// `attention_window`: one even width for all layers, or one each; half of it lies on either side.
WindowSpec read_attention_window(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kDefaultWidth = 512;
  const std::vector<std::int64_t> widths = config.count_or_counts("attention_window");
  const std::int64_t width = widths.empty() ? kDefaultWidth : std::ranges::max(widths);
  if (width < 2 || width % 2 != 0) {
    config.fail("attention_window", "is not an even number of at least 2", "use an even window");
  }
  if (std::ranges::any_of(widths, [width](std::int64_t other) { return other != width; })) {
    spec.assumptions.push_back(fmt::format(
        "the layers' windows differ; FLOPs and activations are those of the widest, {}", width));
  }
  return {WindowKind::centred, width / 2};
}

/// Projections of tokens with global attention, which the forward pass of ordinary tokens does not
/// run.
void count_global_projections(ModelSpec& spec) {
  const std::int64_t width = spec.hidden_size;
  const std::int64_t layers = spec.encoder->num_layers;
  for (const char* const name : {"query", "key", "value"}) {
    const std::string path = std::string("encoder.layers.attention.global_") + name;
    spec.counted_only.push_back(
        {path + ".weight", {width, width}, WeightRole::attention, layers, ModelPart::text});
    spec.counted_only.push_back(
        {path + ".bias", {width}, WeightRole::attention, layers, ModelPart::text});
  }
}

void read_longformer(ConfigReader& config, ModelSpec& spec) {
  read_bert_encoder(config, spec, ActivationKind::gelu);
  spec.position.offset = config.count_or({"pad_token_id"}, 1) + 1;
  spec.position.skips_padding = true;
  spec.encoder->self_attention.window = read_attention_window(config, spec);
  config.ignore({"onnx_export", "attention_mode", "ignore_attention_mask"});
  count_global_projections(spec);
  spec.assumptions.emplace_back(
      "no token has global attention: its projections count as parameters, without operators");
  spec.not_run = "its global attention has no kernel yet";
}

constexpr NameRule kLongformer[] = {
    {"encoder.layers.attention.global_query.%", "encoder.layer.{}.attention.self.query_global.%"},
    {"encoder.layers.attention.global_key.%", "encoder.layer.{}.attention.self.key_global.%"},
    {"encoder.layers.attention.global_value.%", "encoder.layer.{}.attention.self.value_global.%"},
    {"head.transform.dense.%", "lm_head.dense.%"},
    {"head.transform.norm.%", "lm_head.layer_norm.%"},
    {"head.language_model.weight", "lm_head.decoder.weight"},
    {"head.language_model.bias", "lm_head.bias"},
    {"head.classifier.%", "classifier.out_proj.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

}  // namespace

std::vector<Family> longformer_families() {
  return {{.model_types = {"longformer"},
           .classes = roberta_classes("Longformer"),
           .reader = read_longformer,
           .names = NameTable{{kLongformer, bert_rules()},
                              {"longformer."},
                              {{"lm_head.decoder.weight", ExtraKind::tied_copy},
                               {"lm_head.decoder.bias", ExtraKind::tied_copy},
                               {"position_ids", ExtraKind::position_ids},
                               {"lm_head.", ExtraKind::unused_head, NamePart::beginning},
                               {"pooler.dense.weight", ExtraKind::unused_head},
                               {"pooler.dense.bias", ExtraKind::unused_head}}},
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
