// Keys that no reader knows: harmless ones are ignored, others noted, and structural ones refused.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "headroom/analysis.h"
#include "headroom/error.h"
#include "headroom/model_source.h"

using namespace headroom;

namespace {

using nlohmann::json;

/// Attributes that transformers writes for every pretrained config, at their defaults
/// (PretrainedConfig and GenerationConfig of transformers 4.45).
json common_attributes() {
  return json::parse(R"({
    "return_dict": true, "output_hidden_states": false, "output_attentions": false,
    "torchscript": false, "use_bfloat16": false, "tf_legacy_loss": false, "pruned_heads": {},
    "chunk_size_feed_forward": 0, "is_encoder_decoder": false, "is_decoder": false,
    "cross_attention_hidden_size": null, "add_cross_attention": false,
    "tie_encoder_decoder": false, "max_length": 20, "min_length": 0, "do_sample": false,
    "early_stopping": false, "num_beams": 1, "num_beam_groups": 1, "diversity_penalty": 0.0,
    "temperature": 1.0, "top_k": 50, "top_p": 1.0, "typical_p": 1.0, "repetition_penalty": 1.0,
    "length_penalty": 1.0, "no_repeat_ngram_size": 0, "encoder_no_repeat_ngram_size": 0,
    "bad_words_ids": null, "num_return_sequences": 1, "output_scores": false,
    "return_dict_in_generate": false, "forced_bos_token_id": null, "forced_eos_token_id": null,
    "remove_invalid_values": false, "exponential_decay_length_penalty": null,
    "suppress_tokens": null, "begin_suppress_tokens": null, "finetuning_task": null,
    "tokenizer_class": null, "prefix": null, "task_specific_params": null, "problem_type": null,
    "_name_or_path": "", "_attn_implementation_autoset": false, "transformers_version": "4.45.2"
  })");
}

/// Adds `attributes` to `object` and to every nested config, where they are not set.
void add_to_all(json& object, const json& attributes) {
  for (auto& [key, value] : object.items()) {
    if (key.ends_with("_config") && key != "attn_config" && value.is_object()) {
      add_to_all(value, attributes);
    }
  }
  for (const auto& [key, value] : attributes.items()) {
    if (!object.contains(key)) object[key] = value;
  }
}

json config_of(const Preset& preset) { return json::parse(preset.json).at("config"); }

ModelSpec read(const json& config) { return read_model_spec(config.dump(), "config.json", "test"); }

Integer parameters_of(const ModelSpec& spec) {
  const Graph graph = build_graph(spec, {});
  return count_parameters(graph).total.evaluate(graph.sizes);
}

json llama() { return config_of(find_preset("tinyllama-1.1b").value()); }

}  // namespace

TEST_CASE("common attributes at their defaults change no model and no sub-config") {
  const json attributes = common_attributes();
  for (const Preset& preset : list_presets()) {
    json config = config_of(preset);
    const ModelSpec plain = read(config);
    // A layer of headroom's own is no pretrained config.
    if (plain.is_layer()) continue;
    const bool has_encoder = plain.kind == ModelKind::encoder_decoder;
    add_to_all(config, attributes);
    if (has_encoder) config.erase("is_encoder_decoder");
    const ModelSpec full = read(config);
    CHECK_MESSAGE(full.unread_keys.empty(), preset.name);
    CHECK_MESSAGE(parameters_of(full) == parameters_of(plain), preset.name);
  }
}

TEST_CASE("keys that were seen in published configs and change nothing are ignored") {
  json config = llama();
  for (const char* key : {"tie_weights_", "_num_labels", "for_llm_compressor", "_commit_hash"}) {
    config[key] = 1;
  }
  config["use_mrope"] = false;
  config["use_sliding_window"] = false;
  config["eos_token_ids"] = {1, 2};
  CHECK(read(config).unread_keys.empty());
}

TEST_CASE("a key without the name of a size is counted, and named") {
  json config = llama();
  config["favourite_colour"] = "blue";
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}, {"magic", 3}};
  const ModelSpec spec = read(config);
  CHECK(spec.unread_keys == std::vector<std::string>{"rope_scaling/magic", "favourite_colour"});
  CHECK(parameters_of(spec) == 1'100'048'384);
}

TEST_CASE("all structural keys are refused at once, each with its value") {
  json config = llama();
  config["num_memory_slots"] = 4;
  config["adapter_rank"] = 8;
  config["mlp_norm_bias"] = false;
  try {
    (void)read(config);
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.message() ==
          "3 keys are unknown and could change a figure: adapter_rank (8), mlp_norm_bias (false), "
          "num_memory_slots (4)");
  }
}

TEST_CASE("non-finite numbers are read as Python writes them") {
  json config = llama();
  std::string text = config.dump();
  text.insert(1, R"("time_limits": [0.0, Infinity, -Infinity, NaN], "quote": "NaN \" Infinity", )");
  CHECK_NOTHROW((void)read_model_spec(text, "config.json", "test"));
}
