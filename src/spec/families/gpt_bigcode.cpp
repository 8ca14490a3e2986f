// StarCoder and SantaCoder: GPT-2 with one key-value head (arXiv 2305.06161).
#include "../gpt.h"

namespace headroom::detail {

void read_gpt_bigcode(ConfigReader& config, ModelSpec& spec) {
  LanguageModelHeadSpec language_model;
  language_model.weight = config.flag_or({"tie_word_embeddings"}, true) ? WeightSharing::shared
                                                                        : WeightSharing::separate;
  read_decoder_architecture(config, spec, "GPTBigCode", "GPTBigCodeForCausalLM", language_model);
  read_gpt_sizes(config, spec, 1024);
  spec.position.kind = PositionKind::learned;
  StackSpec& stack = *spec.decoder;
  AttentionSpec& attention = stack.self_attention;
  attention.qkv_bias = true;
  attention.output_bias = true;
  attention.softmax = SoftmaxPrecision::float32;
  if (!config.has("activation_function")) stack.ffn.activation = ActivationKind::gelu_tanh;
  if (config.flag_or({"multi_query"}, true)) attention.num_key_value_heads = 1;
  config.expect("scale_attn_weights", true);
  // How the reference code computes or tests itself.
  config.ignore({"num_key_value_heads", "attention_softmax_in_fp32",
                 "scale_attention_softmax_in_fp32", "inference_runner", "validate_runner_input",
                 "pre_allocate_kv_cache", "max_sequence_length", "max_batch_size", "pad_key_length",
                 "n_ctx", "summary_activation", "summary_first_dropout", "summary_proj_to_labels",
                 "summary_type", "summary_use_proj"});
}

}  // namespace headroom::detail
