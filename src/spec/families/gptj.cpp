// GPT-J: one norm per layer, attention without biases parallel to an FFN with biases, interleaved
// RoPE (Wang and Komatsuzaki 2021). CodeGen (arXiv 2203.13474) stores its projections otherwise.
#include "../family.h"
#include "../gpt.h"

namespace headroom::detail {
namespace {

void read_gptj(ConfigReader& config, ModelSpec& spec) {
  if (spec.head.language_model) spec.head.language_model->bias = true;
  read_gpt_sizes(config, spec, 2048);
  StackSpec& stack = *spec.decoder;
  stack.residual = ResidualKind::parallel_one_norm;
  stack.self_attention.softmax = SoftmaxPrecision::float32;
  spec.position.kind = PositionKind::rotary;
  spec.position.rope.layout = RopeLayout::interleaved;
  spec.position.rope.rotary_dim = config.size_or({"rotary_dim"}, 64);
  config.expect_flag("rotary", true);
  config.ignore({"n_ctx"});  // formerly the size of the causal mask
  config.expect_flag("scale_attn_weights", true);
}

constexpr NameRule kGptj[] = {
    {"embeddings.word_embeddings.%", "wte.%"},
    {"decoder.layers.attention_norm.%", "h.{}.ln_1.%"},
    {"decoder.layers.attention.query.%", "h.{}.attn.q_proj.%"},
    {"decoder.layers.attention.key.%", "h.{}.attn.k_proj.%"},
    {"decoder.layers.attention.value.%", "h.{}.attn.v_proj.%"},
    {"decoder.layers.attention.output.%", "h.{}.attn.out_proj.%"},
    {"decoder.layers.mlp.up.%", "h.{}.mlp.fc_in.%"},
    {"decoder.layers.mlp.down.%", "h.{}.mlp.fc_out.%"},
    {"decoder.final_norm.%", "ln_f.%"},
    {"head.language_model.%", "lm_head.%"},
    {"head.classifier.%", "score.%"},
    {"head.classifier.%", "qa_outputs.%"},
};

// Rows are stored for four processes, each with its queries, values and keys.
constexpr NameRule kCodegen[] = {
    {"decoder.layers.attention.query.%", "h.{}.attn.qkv_proj.%", part(0, Stacking::per_quarter)},
    {"decoder.layers.attention.value.%", "h.{}.attn.qkv_proj.%", part(1, Stacking::per_quarter)},
    {"decoder.layers.attention.key.%", "h.{}.attn.qkv_proj.%", part(2, Stacking::per_quarter)},
};

NameTable codegen_names() {
  NameTable names = gpt_names(kGptj);
  names.rules.insert(names.rules.begin(), kCodegen);
  return names;
}

}  // namespace

std::vector<Family> gptj_families() {
  return {{.model_types = {"codegen"},
           .classes = {{{"CodeGenForCausalLM",
                         [](ConfigReader& config) {
                           return language_model_head(language_model_of(config, {}));
                         }},
                        {"CodeGenModel", no_head}}},
           .reader = read_gptj,
           .names = codegen_names(),
           .gguf = None("llama.cpp does not support this architecture")},
          {.model_types = {"gptj"},
           .classes = decoder_classes("GPTJ", {.tied = false}),
           .reader = read_gptj,
           .names = gpt_names(kGptj),
           .gguf = GgufForm(GgufConversion::none, {{.name = "gptj",
                                                    .common = gguf_gpt2_keys(),
                                                    .own = {{"rope.dimension_count", "rotary_dim"}},
                                                    .head_dim = GgufHeadDim::never}})}};
}

}  // namespace headroom::detail
