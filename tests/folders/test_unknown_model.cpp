// Models of an architecture that headroom does not know: sums over their files, and estimates.
#include <doctest/doctest.h>

#include <algorithm>

#include "checkpoint/weight_files.h"
#include "headroom/model_source.h"
#include "headroom/report.h"
#include "safetensors_writer.h"
#include "support/data.h"
#include "support/gguf_writer.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using checkpoint::StoredType;
using checkpoint::TensorToWrite;
using nlohmann::json;

TensorToWrite zeros(std::string name, std::vector<std::int64_t> shape, StoredType type) {
  const std::size_t bytes = checkpoint::stored_bytes(type, shape).value();
  return {std::move(name), type, std::move(shape), std::vector<std::byte>(bytes)};
}

/// 640 bfloat16 values, 20 of float32, and a buffer that is no parameter.
std::vector<TensorToWrite> some_tensors() {
  return {zeros("blocks.0.mix.weight", {32, 10}, StoredType::bfloat16),
          zeros("blocks.1.mix.weight", {32, 10}, StoredType::bfloat16),
          zeros("scale", {20}, StoredType::float32),
          zeros("blocks.0.rotary_emb.inv_freq", {8}, StoredType::float32)};
}

json acme_config() {
  return {{"model_type", "qwen4"},    {"architectures", {"Qwen4ForCausalLM"}},
          {"num_hidden_layers", 2},   {"hidden_size", 64},
          {"num_attention_heads", 4}, {"num_key_value_heads", 2},
          {"torch_dtype", "bfloat16"}};
}

std::string path_of(const TempFolder& folder) { return folder.path().string(); }

UnknownModel read(const std::string& path, const WorkloadRequest& request = {}) {
  auto model = read_unknown_model(path, request);
  REQUIRE(model.has_value());
  return *std::move(model);
}

}  // namespace

TEST_CASE("an unknown architecture's parameters and bytes are sums over its tensors") {
  const TempFolder folder;
  write_file(folder / "config.json", acme_config().dump());
  checkpoint::write_safetensors(folder / "model.safetensors", some_tensors());
  const UnknownModel model = read(path_of(folder));
  CHECK(model.model_type == "qwen4");
  CHECK(model.architecture == "Qwen4ForCausalLM");
  CHECK(model.parameters() == Integer{660});
  CHECK(model.weight_bytes() == Integer{640 * 2 + 20 * 4});
  REQUIRE(model.files->types.size() == 2);
  CHECK(model.files->types[0].type == "BF16");
  CHECK(model.files->types[0].totals.values == Integer{640});
  CHECK(model.files->types[1].totals.bytes == Integer{(20 + 8) * 4});
  CHECK(std::ranges::find(model.nearest_types, "qwen3") != model.nearest_types.end());
}

TEST_CASE("estimates of an unknown architecture are those of a plain decoder") {
  const TempFolder folder;
  write_file(folder / "config.json", acme_config().dump());
  checkpoint::write_safetensors(folder / "model.safetensors", some_tensors());
  WorkloadRequest request;
  request.batch_size = 3;
  request.seq_len = 10;
  request.past_len = 5;
  const UnknownModelEstimates estimates = *read(path_of(folder), request).estimates;
  CHECK(estimates.sizes.head_dim == 16);  // 64 / 4
  CHECK(estimates.kv_dtype == DType::bfloat16);
  // Keys and values of 2 layers, 2 heads of 16 values in 2 bytes.
  CHECK(estimates.kv_cache_bytes_per_token == Integer{2 * 2 * 2 * 16 * 2});
  CHECK(estimates.kv_cache_bytes == Integer{256 * 3 * 15});
  CHECK(estimates.matrix_flops == Integer{2 * 660 * 3 * 10});
}

TEST_CASE("without the standard keys there are no estimates, and the first missing one is named") {
  const TempFolder folder;
  json config = acme_config();
  config.erase("num_hidden_layers");
  write_file(folder / "config.json", config.dump());
  checkpoint::write_safetensors(folder / "model.safetensors", some_tensors());
  const UnknownModel model = read(path_of(folder));
  CHECK_FALSE(model.estimates.has_value());
  CHECK(model.why_no_estimates == "num_hidden_layers");
}

TEST_CASE("an index gives the bytes of absent shards") {
  const TempFolder folder;
  write_file(folder / "config.json", acme_config().dump());
  json index = {
      {"metadata", {{"total_size", 16060522496}}},
      {"weight_map",
       {{"a", "model-00001-of-00002.safetensors"}, {"b", "model-00002-of-00002.safetensors"}}}};
  write_file(folder / "model.safetensors.index.json", index.dump());
  const UnknownModel by_bytes = read(path_of(folder));
  CHECK(by_bytes.weight_bytes() == Integer{16060522496});
  CHECK(by_bytes.index->absent_files == 2);
  CHECK_FALSE(by_bytes.parameters().has_value());
  // 2 bytes per bfloat16 value: Llama 3 8B's published count.
  CHECK(by_bytes.estimates->parameters == Integer{8030261248});
  index["metadata"]["total_parameters"] = 8030261248;
  write_file(folder / "model.safetensors.index.json", index.dump());
  CHECK(read(path_of(folder)).parameters() == Integer{8030261248});
  index.erase("metadata");
  write_file(folder / "model.safetensors.index.json", index.dump());
  const std::string refusal = refusal_of([&] { (void)read_unknown_model(path_of(folder), {}); });
  CHECK(refusal.find("no metadata.total_size") != std::string::npos);
}

// Falcon-7B's index: 7,217,189,760 parameters in bfloat16.
TEST_CASE("the index of pickles gives their bytes, whether they are there or not") {
  const TempFolder folder;
  write_file(folder / "config.json", acme_config().dump());
  const json index = {{"metadata", {{"total_size", 14434379520}}},
                      {"weight_map", {{"a", "pytorch_model-00001-of-00002.bin"}}}};
  write_file(folder / "pytorch_model.bin.index.json", index.dump());
  CHECK(read(path_of(folder)).weight_bytes() == Integer{14434379520});
  write_file(folder / "pytorch_model-00001-of-00002.bin", "pickle");
  const UnknownModel model = read(path_of(folder));
  CHECK(model.weight_bytes() == Integer{14434379520});
  CHECK(model.estimates->parameters == Integer{7217189760});
}

TEST_CASE("weights without a config, and files by their path, are counted too") {
  const TempFolder folder;
  checkpoint::write_safetensors(folder / "consolidated.safetensors", some_tensors());
  const UnknownModel in_folder = read(path_of(folder));
  CHECK(in_folder.parameters() == Integer{660});
  CHECK(in_folder.why_no_estimates == "config.json");
  CHECK(read((folder / "consolidated.safetensors").string()).parameters() == Integer{660});
}

TEST_CASE("a GGUF file of an unknown architecture has its types and estimates") {
  const TempFolder folder;
  GgufWriter writer;
  writer.add("general.architecture", "acme")
      .add("acme.block_count", std::uint32_t{2})
      .add("acme.embedding_length", std::uint32_t{64})
      .add("acme.attention.head_count", std::uint32_t{4})
      .tensor("token_embd.weight", {10, 64}, checkpoint::GgmlType::q8_0);
  write_file(folder / "acme.gguf", writer.str());
  const UnknownModel model = read((folder / "acme.gguf").string());
  CHECK(model.model_type == "acme");
  CHECK(model.parameters() == Integer{640});
  CHECK(model.weight_bytes() == Integer{640 / 32 * 34});
  CHECK(model.estimates->sizes.num_key_value_heads == 4);
}

// Such as EurusRewardModel of openbmb/Eurus-RM-7b, which is no class of transformers.
TEST_CASE("a class that a known type's family lacks is counted from its files, with a note") {
  const TempFolder folder;
  json config = acme_config();
  config["model_type"] = "mistral";
  config["architectures"] = {"EurusRewardModel"};
  write_file(folder / "config.json", config.dump());
  CHECK_FALSE(read_unknown_model(path_of(folder), {}).has_value());  // no weights to count
  checkpoint::write_safetensors(folder / "model.safetensors", some_tensors());
  const UnknownModel model = read(path_of(folder));
  CHECK(model.parameters() == Integer{660});
  REQUIRE(model.notes.size() == 1);
  CHECK(model.notes.front() ==
        "headroom knows the type mistral, but not its class EurusRewardModel");
}

TEST_CASE("known models, and configs without weights, are not unknown") {
  const TempFolder folder;
  json config = acme_config();
  write_file(folder / "config.json", config.dump());
  CHECK_FALSE(read_unknown_model(path_of(folder), {}).has_value());
  checkpoint::write_safetensors(folder / "model.safetensors", some_tensors());
  config["model_type"] = "llama";
  config["architectures"] = {"LlamaForCausalLM"};
  write_file(folder / "config.json", config.dump());
  CHECK_FALSE(read_unknown_model(path_of(folder), {}).has_value());
  CHECK_FALSE(read_unknown_model("gpt2", {}).has_value());
}

TEST_CASE("a family that names its own text model is known") {
  const auto folder = data_folder() / "golden/models/clip_one_image";  // clip_text_model
  CHECK_FALSE(read_unknown_model(folder.string(), {}).has_value());
}

TEST_CASE("a multimodal model whose text is unknown is unknown") {
  const TempFolder folder;
  json config = {{"model_type", "llava"}, {"text_config", acme_config()}};
  write_file(folder / "config.json", config.dump());
  checkpoint::write_safetensors(folder / "model.safetensors", some_tensors());
  CHECK(read(path_of(folder)).estimates->sizes.num_hidden_layers == 2);
}

TEST_CASE("every format of the report says that the architecture is unknown, or sums the types") {
  const TempFolder folder;
  write_file(folder / "config.json", acme_config().dump());
  checkpoint::write_safetensors(folder / "model.safetensors", some_tensors());
  const UnknownModel model = read(path_of(folder));
  RenderOptions options;
  CHECK(render(model, options).find("architecture unknown: parameters and bytes only") !=
        std::string::npos);
  options.format = Format::markdown;
  CHECK(render(model, options).find("architecture unknown") != std::string::npos);
  options.format = Format::csv;
  CHECK(render(model, options).find("total,4,668,1392,") != std::string::npos);
  options.format = Format::json;
  const json document = json::parse(render(model, options));
  CHECK(document.at("complete") == false);
  CHECK(document.at("parameters") == 660);
}

TEST_CASE("an unknown model type is refused in three lines: the type, its nearest, where all are") {
  const json config = {{"model_type", "qwen4_moe"}, {"hidden_size", 64}};
  try {
    (void)read_model_spec(config.dump(), "config.json", "test");
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.message() == "the model type \"qwen4_moe\" is unknown");
    CHECK(error.hint() ==
          "the closest known types: qwen2_moe, qwen3_moe, qwen3_5_moe\n"
          "`headroom presets types` lists all");
  }
}

TEST_CASE("a type without a similar name has no nearest one") {
  CHECK(nearest_model_types("zzz").empty());
  CHECK(nearest_model_types("deepseek_v9_turbo").front().starts_with("deepseek"));
}

TEST_CASE("the list of model types is sorted and names each once") {
  const std::vector<ModelTypeInfo> types = list_model_types();
  const auto same = [](const ModelTypeInfo& a, const ModelTypeInfo& b) {
    return a.model_type >= b.model_type;
  };
  CHECK(std::ranges::adjacent_find(types, same) == types.end());
  const auto llama = std::ranges::find(types, "llama", &ModelTypeInfo::model_type);
  REQUIRE(llama != types.end());
  CHECK(llama->architecture == "LlamaForCausalLM");
  CHECK(llama->reads_gguf);
}

TEST_CASE("a folder without config.json is refused by what lies in it, with the next step") {
  const TempFolder folder;
  const auto says = [&](const std::string& words) {
    try {
      (void)load_model(path_of(folder));
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::missing_resource);
      return (error.message() + error.hint()).find(words) != std::string::npos;
    }
    return false;
  };
  CHECK(says("has no config.json: the folder is empty"));
  CHECK(says("download the model's config.json into it"));
  CHECK(says("safetensors or GGUF"));
  write_file(folder / "tokenizer.json", "{}");
  write_file(folder / "pytorch_model.bin", "x");
  CHECK(says("found pytorch_model.bin, tokenizer.json"));
  CHECK(says("save_pretrained"));
  for (const char* const name : {"a.txt", "b.txt", "c.txt"}) write_file(folder / name, "x");
  CHECK(says("found pytorch_model.bin, a.txt, b.txt, c.txt and 1 more"));
  checkpoint::write_safetensors(folder / "model.safetensors", some_tensors());
  CHECK(says("headroom inspect"));
}
