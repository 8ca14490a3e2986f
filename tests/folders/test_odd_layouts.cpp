// Folders in other layouts whose files lack parts, name others, or say what no reader expects.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "checkpoint/weight_files.h"
#include "headroom/report.h"
#include "safetensors_writer.h"
#include "support/data.h"
#include "support/scratch.h"

using namespace headroom;
using namespace headroom::test;

namespace {

namespace odd_fs = std::filesystem;
using checkpoint::StoredType;
using checkpoint::TensorToWrite;
using nlohmann::json;

void write_to(const ScratchFolder& root, const std::string& file, const json& content) {
  root.write(file, content.dump());
}

Integer count_at(const odd_fs::path& path) {
  return parameters_on(build_graph(load_model(path.string()).spec, {}));
}

std::string refusal_of_path(const odd_fs::path& path) {
  return refusal_of([&] { (void)load_model(path.string()); });
}

bool holds(const std::string& text, std::string_view part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

bool notes(const Model& model, std::string_view part) {
  return std::ranges::any_of(model.spec.assumptions, [&](const std::string& note) {
    return note.find(part) != std::string::npos;
  });
}

/// 78,144 parameters, with layers' queries of 64 by 64.
json tiny_llama() {
  return {{"model_type", "llama"},    {"hidden_size", 64},        {"num_attention_heads", 4},
          {"num_key_value_heads", 2}, {"num_hidden_layers", 2},   {"intermediate_size", 96},
          {"vocab_size", 128},        {"torch_dtype", "bfloat16"}};
}

json tiny_bert() {
  return {{"model_type", "bert"},          {"hidden_size", 64},       {"num_hidden_layers", 2},
          {"num_attention_heads", 4},      {"intermediate_size", 96}, {"vocab_size", 100},
          {"max_position_embeddings", 32}, {"type_vocab_size", 2}};
}

/// A LoRA of rank 4 on queries, with these changes; its base is beside it.
odd_fs::path adapter_in(const ScratchFolder& root, const json& changes) {
  json config = {{"peft_type", "LORA"},
                 {"base_model_name_or_path", "../base"},
                 {"r", 4},
                 {"target_modules", {"q_proj"}}};
  config.merge_patch(changes);
  write_to(root, "base/config.json", tiny_llama());
  write_to(root, "adapter/adapter_config.json", config);
  return root.path() / "adapter";
}

TensorToWrite empty_tensor(std::string name, std::vector<std::int64_t> shape) {
  const std::size_t bytes = checkpoint::stored_bytes(StoredType::float32, shape).value();
  return {std::move(name), StoredType::float32, std::move(shape), std::vector<std::byte>(bytes)};
}

/// Meta's params.json of Llama 3 8B with these changes.
odd_fs::path params_in(const ScratchFolder& root, const json& changes) {
  json params = {{"dim", 4096},      {"n_layers", 32},           {"n_heads", 32},
                 {"n_kv_heads", 8},  {"vocab_size", 128256},     {"multiple_of", 1024},
                 {"norm_eps", 1e-5}, {"ffn_dim_multiplier", 1.3}};
  params.merge_patch(changes);
  write_to(root, "model/params.json", params);
  return root.path() / "model";
}

json module_of(const std::string& type, const std::string& path) {
  return {{"type", "sentence_transformers.models." + type}, {"path", path}};
}

/// The error of a pipeline with this index.
Error pipeline_error(const ScratchFolder& root, const json& index) {
  write_to(root, "pipeline/model_index.json", index);
  return error_of([&] { (void)load_model((root.path() / "pipeline").string()); });
}

}  // namespace

TEST_CASE("an adapter with biases of its own, or without a base model, is refused") {
  const ScratchFolder root;
  CHECK(
      holds(refusal_of_path(adapter_in(root, {{"lora_bias", true}})), "lora_bias decides on them"));
  CHECK(holds(refusal_of_path(adapter_in(root, {{"base_model_name_or_path", ""}})),
              "base_model_name_or_path: is missing: an adapter alone is not a model"));
}

TEST_CASE("a target is a module's whole name, or its end after a dot") {
  const ScratchFolder root;
  const auto added = [&](const json& targets) {
    return count_at(adapter_in(root, {{"target_modules", targets}})) - Integer{78144};
  };
  CHECK(added({"q_proj"}) == Integer{2 * 4 * (64 + 64)});
  CHECK(added({"lm_head"}) == Integer{4 * (64 + 128)});
  CHECK(added({"q_proj", "self_attn.q_proj", "lm_head"}) ==
        Integer{2 * 4 * (64 + 64) + 4 * (64 + 128)});
  CHECK(holds(refusal_of_path(adapter_in(root, {{"target_modules", {"proj"}}})),
              "has no module proj"));
}

TEST_CASE("an adapter's tensors count by their shapes, whatever ranks its config lists") {
  const ScratchFolder root;
  const auto folder = adapter_in(root, {{"rank_pattern", {{"q_proj", 8}}}});
  const std::string attention = "base_model.model.layer.0.attention.query.";
  checkpoint::write_safetensors(folder / "adapter_model.safetensors",
                                std::vector{empty_tensor(attention + "lora_A.weight", {8, 64}),
                                            empty_tensor(attention + "lora_B.weight", {64, 8}),
                                            empty_tensor("base_model.model.alpha", {})});
  CHECK(count_at(folder) == Integer{78144 + 2 * 8 * 64});
  (void)adapter_in(root, json::object());
  CHECK(holds(refusal_of_path(folder), "has rank 8, but adapter_config.json says r 4"));
}

TEST_CASE("an adapter says how its base model was found") {
  const ScratchFolder root;
  const auto folder = adapter_in(root, {{"base_model_name_or_path", "TinyLlama 1.1B"}});
  CHECK(
      notes(load_model(folder.string()), "TinyLlama 1.1B was taken as the preset tinyllama-1.1b"));
  CHECK(holds(refusal_of_path(adapter_in(root, {{"base_model_name_or_path", "no-such"}})),
              "is a LoRA adapter whose base model cannot be read: no-such"));
}

TEST_CASE("an adapter has a pair of weights for each module of its base that is a matrix") {
  const ScratchFolder root;
  const auto added = [&](const char* base, const char* target) {
    const auto folder =
        adapter_in(root, {{"base_model_name_or_path", base}, {"target_modules", {target}}});
    const Model model = load_model(folder.string());
    const Graph graph = build_graph(model.spec, {});
    return count_parameters(graph).parts.adapter.evaluate(graph.sizes);
  };
  // 16 heads of 128 for keys and for values, from a rank of 512; 27 layers.
  CHECK(added("deepseek-v2-lite", "kv_b_proj") == Integer{27 * 4 * (512 + 16 * 256)});
  // 64 heads of 512 in 8 groups, each to a rank of 1024; 43 layers.
  CHECK(added("deepseek-v4-flash", "wo_a") == Integer{43 * 4 * (64 * 512 / 8 + 8 * 1024)});
  // Experts that are stored as one tensor are no matrices, and have no part in the queries'.
  CHECK(added("gpt-oss-20b", "q_proj") == Integer{24 * 4 * (2880 + 64 * 64)});
  CHECK(added("granite-3.0-1b-a400m", "q_proj") == Integer{24 * 4 * (1024 + 1024)});
}

TEST_CASE("a pipeline without a transformer that is read names its models") {
  const ScratchFolder root;
  const Error plain = pipeline_error(
      root, {{"unet", {"diffusers", "UNet2DConditionModel"}}, {"extra", {"a", "b", "c"}}});
  CHECK(plain.message() ==
        "is a diffusers pipeline of several models: unet (UNet2DConditionModel)");
  CHECK(plain.hint().ends_with("pipeline/unet"));
  const Error other = pipeline_error(
      root, {{"_class_name", 7}, {"transformer", {"diffusers", "NoSuchTransformer"}}});
  CHECK(holds(other.message(), "is a diffusers pipeline of several models: transformer (NoSuch"));
  const Error none = pipeline_error(root, {{"_class_name", "Empty"}, {"unet", {"a", 7}}});
  CHECK(holds(none.message(), "is a diffusers pipeline (Empty) of several models"));
  CHECK(none.hint().ends_with("pipeline/transformer"));
  write_to(root, "pipeline/a/config.json", json::object());
  write_to(root, "pipeline/b/config.json", json::object());
  const Error two = pipeline_error(root, {{"a", {"x", "A"}}, {"b", {"x", "B"}}});
  CHECK(two.hint().ends_with("pipeline/a"));
}

TEST_CASE("a modules.json of another kind leaves a folder what its config says") {
  const ScratchFolder root;
  write_to(root, "model/config.json", tiny_bert());
  const Integer alone = count_at(root.path() / "model");
  for (const json& list : {json::object(), json::array(), json{7}, json{{{"path", ""}}},
                           json{{{"type", 7}}}, json{{{"type", "other.models.Transformer"}}}}) {
    write_to(root, "model/modules.json", list);
    CHECK(count_at(root.path() / "model") == alone);
  }
}

TEST_CASE(
    "a sentence-transformers folder may hold its transformer, and dense layers without bias") {
  const ScratchFolder root;
  write_to(root, "model/config.json", tiny_bert());
  const Integer alone = count_at(root.path() / "model/config.json");
  const auto model = [&](const json& modules) {
    write_to(root, "model/modules.json", modules);
    return load_model((root.path() / "model/modules.json").string());
  };
  const auto parameters = [](const Model& read) {
    return parameters_on(build_graph(read.spec, {}));
  };
  const Model plain = model({module_of("Transformer", ""), module_of("Dropout", "1_Dropout")});
  CHECK(parameters(plain) == alone);
  CHECK_FALSE(notes(plain, "after pooling"));
  for (const char* const dense : {"2_Dense", "3_Dense"}) {
    write_to(root, std::string("model/") + dense + "/config.json",
             {{"in_features", 64}, {"out_features", 32}, {"bias", false}});
  }
  const Model one = model({module_of("Transformer", ""), module_of("Dense", "2_Dense")});
  CHECK(parameters(one) == alone + Integer{64 * 32});
  CHECK(notes(one, "1 dense layer after pooling"));
  const Model two = model({module_of("Transformer", ""), module_of("Pooling", "1_Pooling"),
                           module_of("Dense", "2_Dense"), module_of("Dense", "3_Dense")});
  CHECK(parameters(two) == alone + Integer{2 * 64 * 32});
  CHECK(notes(two, "2 dense layers after pooling"));
}

TEST_CASE("modules that lead out of their folder, are unknown, or lack a transformer are refused") {
  const ScratchFolder root;
  const auto refusal = [&](const json& modules) {
    write_to(root, "model/modules.json", modules);
    return refusal_of_path(root.path() / "model");
  };
  CHECK(holds(refusal(json::array({module_of("Transformer", "../base")})),
              "path: leads out of the folder"));
  CHECK(holds(refusal(json::array({module_of("Transformer", "/base")})),
              "path: leads out of the folder"));
  CHECK(holds(refusal(json::array({module_of("CNN", "1_CNN")})), "module \"CNN\" is not read"));
  CHECK(holds(refusal(json::array({module_of("Pooling", "1_Pooling")})),
              "has no transformer among its modules"));
}

TEST_CASE("a layout's own file stands for its folder") {
  const ScratchFolder root;
  CHECK(count_at(params_in(root, json::object()) / "params.json") == Integer{8030261248});
  root.write("model.nemo", "");
  CHECK(holds(refusal_of_path(root.path() / "model.nemo"), "is a NeMo checkpoint"));
  root.write("gpt.yml", "num_layers: 32\n");
  CHECK(holds(refusal_of_path(root.path() / "gpt.yml"), "Megatron or NeMo"));
}

TEST_CASE("params.json's rule for the width of the FFN needs sizes of a model") {
  const ScratchFolder root;
  for (const json& changes :
       {json{{"ffn_dim_multiplier", 0}}, json{{"ffn_dim_multiplier", -1.3}},
        json{{"ffn_dim_multiplier", 101}}, json{{"multiple_of", 1LL << 41U}}}) {
    CHECK(holds(refusal_of_path(params_in(root, changes)), "and multiple_of give no width"));
  }
  CHECK(holds(refusal_of_path(params_in(root, {{"dim", 1LL << 41U}})),
              "dim: is larger than any model's"));
}

TEST_CASE("keys of params.json that change no figure are listed as not read") {
  const ScratchFolder root;
  const Model model = load_model(params_in(root, {{"colour", "blue"}}).string());
  CHECK(model.spec.unread_keys == std::vector<std::string>{"colour"});
}

// Of models that tie a head which the files lack, one file of several may lack it for another
// reason.
TEST_CASE("a head that one file of several lacks, or a file that cannot be read, is not tied") {
  const ScratchFolder root;
  const json config = read_json(data_folder() / "golden/tiny/t5_v1_1.json").at("config");
  write_to(root, "t5/config.json", config);
  const Integer alone = count_at(root.path() / "t5/config.json");
  const std::vector<std::int64_t> table{config.at("vocab_size"), config.at("d_model")};
  const auto count_of_file = [&](const std::string& name) {
    const odd_fs::path file = root.path() / "t5" / name;
    checkpoint::write_safetensors(file, std::vector{empty_tensor("shared.weight", table)});
    return count_at(file);
  };
  CHECK(count_of_file("weights.safetensors") == alone - table[0] * table[1]);
  CHECK(count_of_file("model-00001-of-00002.safetensors") == alone);
  root.write("t5/broken.safetensors", "no weights");
  CHECK(count_at(root.path() / "t5/broken.safetensors") == alone);
}
