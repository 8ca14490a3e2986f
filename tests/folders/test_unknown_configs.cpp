// Configs of unknown architectures with odd values, and what the report of such a model prints.
#include <doctest/doctest.h>

#include "checkpoint/weight_files.h"
#include "headroom/model_source.h"
#include "headroom/report.h"
#include "safetensors_writer.h"
#include "support/data.h"
#include "support/gguf_writer.h"
#include "unit/report_text.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using nlohmann::json;

json odd_config() {
  return {{"model_type", "acme"},     {"architectures", {"AcmeForCausalLM"}},
          {"num_hidden_layers", 2},   {"hidden_size", 64},
          {"num_attention_heads", 4}, {"num_key_value_heads", 2}};
}

/// The model of a folder with this config and one tensor of 64 values in bfloat16.
UnknownModel unknown(const json& config, const WorkloadRequest& request = {}) {
  const TempFolder folder;
  write_file(folder / "config.json", config.dump());
  checkpoint::write_safetensors(
      folder / "model.safetensors",
      std::vector<checkpoint::TensorToWrite>{
          {"blocks.0.w", checkpoint::StoredType::bfloat16, {8, 8}, std::vector<std::byte>(128)}});
  auto model = read_unknown_model(folder.path().string(), request);
  REQUIRE(model.has_value());
  return *std::move(model);
}

UnknownModel with_value(const char* key, json value) {
  json config = odd_config();
  config[key] = std::move(value);
  return unknown(config);
}

std::string unknown_refusal(const WorkloadRequest& request) {
  return refusal_of([&] { (void)unknown(odd_config(), request); });
}

}  // namespace

TEST_CASE("sizes that are none, or larger than any model's, give no estimates") {
  for (const json& value : {json(0), json(-1), json(std::int64_t{1} << 40), json("2"), json(2.5)}) {
    CAPTURE(value.dump());
    const UnknownModel model = with_value("num_hidden_layers", value);
    CHECK_FALSE(model.estimates.has_value());
    CHECK(model.why_no_estimates == "num_hidden_layers");
    CHECK(model.parameters() == Integer{64});
  }
}

TEST_CASE("the head size is the stated one, or the width's share if it is whole") {
  CHECK(with_value("head_dim", 24).estimates->sizes.head_dim == 24);
  CHECK(with_value("hidden_size", 66).why_no_estimates == "head_dim");
  CHECK(with_value("hidden_size", nullptr).why_no_estimates == "head_dim");
  json config = odd_config();
  config.erase("num_attention_heads");
  CHECK(unknown(config).why_no_estimates == "head_dim");
  config.erase("num_key_value_heads");
  CHECK(unknown(config).why_no_estimates == "num_key_value_heads");
}

TEST_CASE("every head has its keys unless the config says otherwise") {
  json config = odd_config();
  config.erase("num_key_value_heads");
  CHECK(unknown(config).estimates->sizes.num_key_value_heads == 4);
}

TEST_CASE("names that are no texts are as if they were not stated") {
  json config = odd_config();
  config["model_type"] = 7;
  for (const json& classes : {json("AcmeForCausalLM"), json::array(), json::array({3})}) {
    config["architectures"] = classes;
    const UnknownModel model = unknown(config);
    CHECK(model.model_type.empty());
    CHECK(model.architecture.empty());
    CHECK(prints(render(model, {}), "not stated\n"));
  }
}

TEST_CASE("a text config that is no object is not read, and one that is holds the sizes") {
  json config{{"model_type", "acme"}, {"text_config", odd_config()}};
  CHECK(unknown(config).estimates->sizes.num_hidden_layers == 2);
  config["text_config"] = "acme_text";
  CHECK(unknown(config).why_no_estimates == "num_hidden_layers");
}

TEST_CASE("estimates of a decode step and of stated lengths are those of the request") {
  WorkloadRequest decode;
  decode.phase = Phase::decode;
  const UnknownModelEstimates step = *unknown(odd_config(), decode).estimates;
  CHECK(step.seq_len == 1);
  CHECK(step.past_len == 127);
  WorkloadRequest empty;
  empty.batch_size = 0;
  CHECK(unknown_refusal(empty).find("must be positive") != std::string::npos);
  empty.batch_size = 1;
  empty.seq_len = 0;
  CHECK(unknown_refusal(empty).find("must be positive") != std::string::npos);
  empty.seq_len = 1;
  empty.past_len = -1;
  CHECK(unknown_refusal(empty).find("must be positive") != std::string::npos);
}

TEST_CASE("a type without known neighbours, in one file, is printed with its bits per weight") {
  const UnknownModel model = with_value("model_type", "qqqqqqqqqqqqqq");
  const std::string text = render(model, {});
  CHECK(prints(text, "qqqqqqqqqqqqqq · AcmeForCausalLM\n"));
  CHECK(prints(text, "128 B · 16.00 bits per weight · 1 file · "));
  CHECK(prints(text, "KV-cache per token  512 B\n"));
  const std::string detailed = render(model, {.detail = Detail::operators});
  CHECK(prints(detailed, "blocks"));
}

TEST_CASE("sizes of a GGUF file that are no counts give no estimates") {
  const TempFolder folder;
  const auto missing = [&](const auto& layers) {
    GgufWriter writer;
    writer.add("general.architecture", "acme")
        .add("acme.block_count", layers)
        .add("acme.embedding_length", std::uint32_t{64})
        .add("acme.attention.head_count", std::uint32_t{4})
        .tensor("token_embd.weight", {10, 64}, checkpoint::GgmlType::q8_0);
    write_file(folder / "acme.gguf", writer.str());
    return read_unknown_model((folder / "acme.gguf").string(), {})->why_no_estimates;
  };
  CHECK(missing(std::uint32_t{2}).empty());
  CHECK(missing(std::uint32_t{0}) == "block_count");
  CHECK(missing(std::uint32_t{4'000'000'000}) == "block_count");
  CHECK(missing("two") == "block_count");
}

TEST_CASE("a model without standard sizes prints which one is missing") {
  const UnknownModel model = with_value("hidden_size", nullptr);
  CHECK(prints(render(model, {}), "none  head_dim is missing\n"));
  CHECK(json::parse(render(model, {.format = Format::json}))["estimates"].is_null());
}

TEST_CASE("shards that an index lists and the folder lacks are summed by the index") {
  const TempFolder folder;
  write_file(folder / "config.json", odd_config().dump());
  json index{{"metadata", {{"total_size", 1 << 20}}},
             {"weight_map", {{"a", "model-1.safetensors"}, {"b", "model-2.safetensors"}}}};
  write_file(folder / "model.safetensors.index.json", index.dump());
  const UnknownModel model = *read_unknown_model(folder.path().string(), {});
  const std::string text = render(model, {});
  CHECK(prints(text, "not stated by the index, and the shards are not read\n"));
  CHECK(prints(text, "1.00 MiB according to the index · 2 of its files missing\n"));
  CHECK(prints(text, "matrix FLOPs        –\n"));
  CHECK(prints(render(model, {.format = Format::csv}), "total,2,,1048576\n"));
  CHECK_FALSE(prints(render(model, {.detail = Detail::operators}), "Component"));
}
