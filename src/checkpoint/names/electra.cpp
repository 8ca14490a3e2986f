// ELECTRA; its layers are named like BERT's.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kElectra[] = {
    {"embeddings.projection.%", "embeddings_project.%"},
    {"head.transform.dense.%", "generator_predictions.dense.%"},
    {"head.transform.norm.%", "generator_predictions.LayerNorm.%"},
    {"head.language_model.%", "generator_lm_head.%"},
    {"head.classifier.dense.%", "discriminator_predictions.dense.%"},
    {"head.classifier.%", "discriminator_predictions.dense_prediction.%"},
    {"head.classifier.dense.%", "classifier.dense.%"},
    {"head.classifier.%", "classifier.out_proj.%"},
    {"head.classifier.%", "classifier.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

}  // namespace

NameTable electra_names(const ModelSpec& /*spec*/) {
  return {
      {kElectra, bert_rules()}, {"electra."}, {{"generator_lm_head.weight", ExtraKind::tied_copy}}};
}

}  // namespace headroom::checkpoint
