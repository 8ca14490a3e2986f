// Meta's and Mistral's params.json, translated to the config.json of the same model, so that one
// reader serves both.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "config_reader.h"
#include "headroom/error.h"
#include "json_text.h"
#include "readers.h"

namespace headroom::detail {
namespace {

using nlohmann::json;

/// Keys that both formats share.
json common_config(ConfigReader& params) {
  json config;
  config["hidden_size"] = params.size({"dim"});
  config["num_hidden_layers"] = params.layers({"n_layers"});
  const std::int64_t heads = params.size({"n_heads"});
  config["num_attention_heads"] = heads;
  config["num_key_value_heads"] = params.size_or({"n_kv_heads"}, heads);
  config["vocab_size"] = params.size({"vocab_size"});
  config["rms_norm_eps"] = params.number_or({"norm_eps"}, 1e-5);
  // Neither format states the type of the consolidated weights, which are published in bfloat16.
  config["torch_dtype"] = "bfloat16";
  return config;
}

/// Width of the FFN: 2/3 of 4·dim, times `ffn_dim_multiplier`, rounded up to a multiple of
/// `multiple_of`. Source: llama-models, models/llama3/model.py, FeedForward.
std::int64_t meta_inner_size(ConfigReader& params, std::int64_t dim) {
  constexpr std::int64_t kLargestWidth = std::int64_t{1} << 40U;
  if (dim > kLargestWidth) params.fail("dim", "is larger than any model's", "check the file");
  const double multiplier = params.number_or({"ffn_dim_multiplier"}, 1.0);
  const std::int64_t multiple = params.size_or({"multiple_of"}, 256);
  if (!(multiplier > 0 && multiplier <= 100) || multiple > kLargestWidth) {
    params.fail("ffn_dim_multiplier", "and multiple_of give no width", "check the file");
  }
  std::int64_t inner = 2 * (4 * dim) / 3;
  inner = static_cast<std::int64_t>(multiplier * static_cast<double>(inner));
  return multiple * ((inner + multiple - 1) / multiple);
}

/// Llama 3.2's text models, of 1B and 3B, tie their heads; params.json does not say so. Of the
/// models with this scaling of RoPE, only they are narrower than 4096 (llama-models,
/// models/sku_list.py).
bool ties_head(const json& config, bool scaled_rope) {
  constexpr std::int64_t kNarrowestUntied = 4096;
  return scaled_rope && config["hidden_size"].get<std::int64_t>() < kNarrowestUntied;
}

json meta_config(ConfigReader& params) {
  json config = common_config(params);
  config["model_type"] = "llama";
  config["architectures"] = {"LlamaForCausalLM"};
  config["intermediate_size"] = meta_inner_size(params, config["hidden_size"].get<std::int64_t>());
  config["rope_theta"] = params.number_or({"rope_theta"}, 10000.0);
  config["max_position_embeddings"] = params.size_or({"max_seq_len"}, 8192);
  const bool scaled_rope = params.flag_or({"use_scaled_rope"}, false);
  config["tie_word_embeddings"] = ties_head(config, scaled_rope);
  if (scaled_rope) {
    // Source: llama-models, models/llama3/model.py, apply_scaling.
    config["rope_scaling"] = {{"rope_type", "llama3"},
                              {"factor", params.number_or({"rope_scaling_factor"}, 8.0)},
                              {"low_freq_factor", 1.0},
                              {"high_freq_factor", params.number_or({"high_freq_factor"}, 4.0)},
                              {"original_max_position_embeddings", 8192}};
    config["max_position_embeddings"] = 131072;
  }
  return config;
}

json mistral_config(ConfigReader& params) {
  json config = common_config(params);
  config["model_type"] = "mistral";
  config["architectures"] = {"MistralForCausalLM"};
  config["head_dim"] = params.size({"head_dim"});
  config["intermediate_size"] = params.size({"hidden_dim"});
  config["tie_word_embeddings"] = params.flag_or({"tied_embeddings"}, false);
  const auto window = params.optional_size({"sliding_window"});
  config["sliding_window"] = window ? json(*window) : json(nullptr);
  // Source: mistral-inference, transformer.py: without rope_theta, 10⁴ with a window, else 10⁶.
  config["rope_theta"] = params.number_or({"rope_theta"}, window ? 1e4 : 1e6);
  config["max_position_embeddings"] =
      params.size_or({"max_position_embeddings", "max_seq_len"}, 32768);
  if (auto experts = params.object("moe")) {
    config["model_type"] = "mixtral";
    config["architectures"] = {"MixtralForCausalLM"};
    config["num_local_experts"] = experts->size({"num_experts"});
    config["num_experts_per_tok"] = experts->size({"num_experts_per_tok"});
    experts->finish();
  }
  params.expect_flag("use_biases", false);
  params.expect_flag("causal", true);
  return config;
}

/// Refuses the parts and models that this format has beside dense and mixed transformers of text:
/// towers (Pixtral, Voxtral), Llama 4's experts, quantised weights, latent attention (Mistral Large
/// 3), and Mamba (Codestral Mamba).
void require_text_transformer(ConfigReader& params) {
  constexpr const char* kOtherFormat = "give the folder of the same model in Hugging Face's format";
  for (const char* const part : {"vision_encoder", "multimodal", "moe_args", "quantization",
                                 "quantization_args", "lora_args", "kv_lora_rank"}) {
    if (params.has(part)) params.fail(part, "is not read from params.json", kOtherFormat);
  }
  const std::string type = params.text_or({"model_type"}, "transformer");
  if (type == "transformer") return;
  params.fail("model_type", fmt::format("is \"{}\", which is not read from params.json", type),
              kOtherFormat);
}

}  // namespace

Model read_params_folder(const std::filesystem::path& folder) {
  const std::string file = (folder / "params.json").string();
  const json document = parse_json(read_text_file(file), file);
  ConfigReader params(document, file);
  if (document.value("vocab_size", json()) == -1) {
    params.fail("vocab_size", "is -1: the tokenizer decides it",
                "write the tokenizer's number of words there: 32000 for Llama 1 and 2");
  }
  require_text_transformer(params);
  // Mistral writes the width of the FFN, Meta the rule that gives it.
  const bool is_mistral = params.has("hidden_dim");
  const json config = is_mistral ? mistral_config(params) : meta_config(params);
  params.ignore({"max_batch_size"});
  params.finish();
  require_no_structural(params.unread(), file);
  Model model;
  model.spec = read_model_spec(config.dump(), file, name_of_folder(folder));
  model.source = file;
  for (const UnreadKey& key : params.unread().unlikely) {
    model.spec.unread_keys.push_back(key.pointer.substr(1));
  }
  model.spec.assumptions.emplace_back(
      "params.json does not state the type of the weights: counted as bfloat16");
  if (!is_mistral && config["tie_word_embeddings"].get<bool>()) {
    model.spec.assumptions.emplace_back(
        "params.json does not state whether the head is tied: counted as Llama 3.2's, which is");
  }
  return model;
}

}  // namespace headroom::detail
