// Parameters against counts by the reference code: published models exactly and by category, tiny
// models tensor by tensor. Source: tests/data/README.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <regex>

#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

Integer value(const Expr& expr, const Graph& graph) { return expr.evaluate(graph.sizes); }

/// Role of a checkpoint tensor, by its name.
WeightRole role_of(const std::string& tensor) {
  const auto matches = [&](const char* pattern) {
    return std::regex_search(tensor, std::regex(pattern, std::regex::icase));
  };
  if (matches("relative_attention_bias")) return WeightRole::relative_position_bias;
  if (matches("norm|\\.ln_|layer_norm")) return WeightRole::norm;
  if (matches("pooler|^cls\\.|lm_head|classifier|vocab_|^classification|^score|multiple_choice"))
    return WeightRole::head;
  if (matches("embed|wte|wpe|^shared|cls_token")) return WeightRole::embedding;
  if (matches("attn|attention")) {
    // BERT names its feed-forward output output.dense, the attention's attention.output.dense.
    return WeightRole::attention;
  }
  return WeightRole::mlp;
}

std::map<WeightRole, Integer> by_role(const TensorShapes& tensors) {
  std::map<WeightRole, Integer> sums;
  for (const auto& [name, shape] : tensors) {
    Integer elements = 1;
    for (const std::int64_t size : shape) elements *= size;
    sums[role_of(name)] += elements;
  }
  return sums;
}

/// A buffer: added to logits, or to a router's scores for top-k only; frequencies of RoPE; or a
/// constant of a layer.
bool is_buffer(const std::string& tensor) {
  if (tensor.ends_with("moe_statics.e_score_correction_bias")) return false;  // ERNIE: a parameter
  if (tensor.ends_with("time_decay")) return false;                           // RWKV: likewise
  return tensor == "final_logits_bias" ||
         std::ranges::any_of(std::array{"e_score_correction_bias",
                                        "moe.router.expert_bias",
                                        "gate.expert_bias",
                                        "inv_freq",
                                        "act_fn.beta",
                                        "moe.router_bias",
                                        "act_fn.eps",
                                        "layer_scalar",
                                        "slope_rate",
                                        "_decay",
                                        "tower.std_bias",
                                        "tower.std_scale",
                                        "running_mean",
                                        "running_var",
                                        "num_batches_tracked",
                                        "tid2eid",
                                        "ffn.gate.bias",
                                        "global_mean",
                                        "global_invstd",
                                        "input_min",
                                        "input_max",
                                        "output_min",
                                        "output_max"},
                             [&](const char* const end) { return tensor.ends_with(end); });
}

/// Returns whether role_of recognises the tensor names of the family.
bool names_tell_roles(const std::string& model_type) {
  for (const char* const known : {"bert", "roberta", "distilbert", "gpt2", "llama", "t5", "vit",
                                  "transformer", "linear_transformer"}) {
    if (model_type == known) return true;
  }
  return false;
}

/// The number of parameters that meta.json gives, with tied ones once.
std::optional<Integer> recorded_parameters(const std::filesystem::path& model) {
  if (!std::filesystem::exists(model / "meta.json")) return std::nullopt;
  const auto meta = read_json(model / "meta.json");
  const auto count = meta.find("num_parameters_tied_once");
  if (count == meta.end()) return std::nullopt;
  return Integer{count->get<std::int64_t>()};
}

void check_checkpoint(const ModelSpec& spec, TensorShapes tensors) {
  // Laguna's and Kimi K3's biases of routers are parameters.
  const bool is_kimi_k3 = spec.decoder && spec.decoder->residual_block > 0;
  std::erase_if(tensors, [&](const auto& entry) {
    return is_buffer(entry.first) && spec.model_type != "laguna" && !is_kimi_k3;
  });
  if (spec.model_type == "hy_v3") {
    std::erase_if(tensors, [](const auto& entry) { return entry.first.ends_with("expert_bias"); });
  }
  const Graph graph = build_graph(spec, {});
  const ParameterCount count = count_parameters(graph);
  auto sums = by_role(tensors);
  Integer total = 0;
  for (const auto& [role, sum] : sums) total += sum;
  CHECK(value(count.total, graph) == total);
  if (!names_tell_roles(spec.model_type)) return;
  CHECK(value(count.embedding, graph) == sums[WeightRole::embedding]);
  CHECK(value(count.relative_position_bias, graph) == sums[WeightRole::relative_position_bias]);
  CHECK(value(count.attention, graph) == sums[WeightRole::attention]);
  CHECK(value(count.mlp, graph) == sums[WeightRole::mlp]);
  CHECK(value(count.norm, graph) == sums[WeightRole::norm]);
  CHECK(value(count.head, graph) == sums[WeightRole::head]);
}

}  // namespace

TEST_CASE("parameters of every published model equal the reference exactly, by category") {
  const auto rows = read_csv(data_folder() / "golden/params.csv");
  REQUIRE(rows.size() == 128);
  for (const CsvRow& row : rows) {
    const std::string name = row.at("model");
    CAPTURE(name);
    const auto config = read_json(data_folder() / "golden/configs" / (name + ".config.json"));
    const Graph graph = build_graph(spec_of(config, name), {});
    const ParameterCount parameters = count_parameters(graph);
    CHECK(value(parameters.total, graph) == number(row, "total_params"));
    CHECK(value(parameters.embedding, graph) == number(row, "embedding_params"));
    CHECK(value(parameters.attention, graph) == number(row, "attention_params"));
    CHECK(value(parameters.mlp, graph) == number(row, "mlp_params"));
    CHECK(value(parameters.norm, graph) == number(row, "norm_params"));
    CHECK(value(parameters.head, graph) == number(row, "head_params"));
    CHECK(value(parameters.relative_position_bias, graph) == number(row, "relpos_params"));
    CHECK(value(parameters.projector, graph) == number(row, "other_params"));
    CHECK(value(parameters.active, graph) == number(row, "active_params"));
  }
}

TEST_CASE("parameters of tiny models equal the tensors of their checkpoints, by role") {
  std::size_t models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder() / "golden/tiny")) {
    CAPTURE(entry.path().string());
    const auto tiny = read_json(entry.path());
    const auto tensors = tiny.at("tensors").get<TensorShapes>();
    check_checkpoint(spec_of(tiny.at("config")), tensors);
    if (tiny.contains("config_v5") && !tiny.at("config_v5").is_null()) {
      check_checkpoint(spec_of(tiny.at("config_v5")), tensors);
    }
    ++models;
  }
  CHECK(models == 81);
}

TEST_CASE("parameters equal the tensors that an independent reference of each family uses") {
  std::size_t models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder() / "families")) {
    CAPTURE(entry.path().string());
    check_checkpoint(spec_of(read_json(entry.path() / "config.json")),
                     safetensors_shapes(entry.path() / "model.safetensors"));
    ++models;
  }
  CHECK(models == 193);
}

TEST_CASE("parameters of reference models equal the tensors of their checkpoints") {
  for (const auto& model : golden_models()) {
    CAPTURE(model.string());
    const ModelSpec spec = load_model(model.string()).spec;
    const auto recorded = recorded_parameters(model);
    if (recorded) {
      const Graph graph = build_graph(spec, {});
      CHECK(value(count_parameters(graph).total, graph) == *recorded);
    }
    if (!recorded || names_tell_roles(spec.model_type)) {
      check_checkpoint(spec, safetensors_shapes(model / "model.safetensors"));
    }
  }
  CHECK(golden_models().size() >= 3);
}

TEST_CASE("every preset's parameters equal its reference count") {
  const auto presets = list_presets();
  CHECK(presets.size() >= 150);
  for (const Preset& preset : presets) {
    CAPTURE(preset.name);
    const Model model = read_preset(preset);
    REQUIRE(model.reference.has_value());
    CHECK_FALSE(model.source.empty());
    CHECK_FALSE(model.reference->source.empty());
    const Graph graph = build_graph(model.spec, {});
    const Integer parameters = value(count_parameters(graph).total, graph);
    if (model.reference->rounded) {
      // "65 M" and "213 M" of arXiv 1706.03762, for a vocabulary of "about 37000".
      const double ratio =
          static_cast<double>(parameters) / static_cast<double>(model.reference->parameters);
      CHECK(ratio == doctest::Approx(1.0).epsilon(0.04));
    } else {
      CHECK(parameters == model.reference->parameters);
    }
  }
}

TEST_CASE("BERT-large has 16 heads, and its count is right") {
  const Model model = load_model("bert-large");
  CHECK(model.spec.encoder->self_attention.num_attention_heads == 16);
  const Graph graph = build_graph(model.spec, {});
  CHECK(value(count_parameters(graph).total, graph) == 335141888);
}

TEST_CASE("Step 3.5 Flash has the parameters of its class, by published keys or by the class's") {
  std::vector<std::string> types;
  for (int layer = 0; layer < 48; ++layer) {
    types.emplace_back(layer % 4 == 0 ? "full_attention" : "sliding_attention");
  }
  std::string routed = "3";
  for (int layer = 4; layer < 45; ++layer) routed += "," + std::to_string(layer);
  const nlohmann::json published = {
      {"model_type", "step3p5"},
      {"architectures", {"Step3p5ForCausalLM"}},
      {"vocab_size", 128896},
      {"num_attention_groups", 8},
      {"sliding_window", 512},
      {"layer_types", types},
      {"num_nextn_predict_layers", 3},
      {"attention_other_setting",
       {{"attention_type", "sliding_attention"}, {"num_attention_heads", 96}}},
      {"rope_theta", std::vector<double>(48, 10000)},
      {"partial_rotary_factors", std::vector<double>(48, 1)},
      {"moe_num_experts", 288},
      {"moe_top_k", 8},
      {"share_expert_dim", 1280},
      {"moe_layers_enum", routed}};
  const auto total = [](const nlohmann::json& config) {
    const Graph graph = build_graph(spec_of(config), {});
    return value(count_parameters(graph).total, graph);
  };
  // Step3p7TextModel of transformers 5.24 with these keys, and an untied head.
  CHECK(total(published) == 196956118272);
  CHECK(total({{"model_type", "step3p5"}}) == 195843833088);  // its defaults
  auto other = published;
  other["rope_theta"][4] = 5e6;
  CHECK_THROWS_AS((void)spec_of(other), Error);
  other = published;
  other["moe_layers_enum"] = "3,four";
  CHECK_THROWS_AS((void)spec_of(other), Error);
}

TEST_CASE("the text model of Llama 3.2 Vision alone has the parameters of MllamaForCausalLM") {
  const Graph graph = build_graph(spec_of({{"model_type", "mllama_text_model"}}), {});
  CHECK(value(count_parameters(graph).total, graph) == 9775192080);  // by transformers 5.24
}
