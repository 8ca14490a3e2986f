// Matrix FLOPs and the KV-cache against what torch's dispatcher saw the reference code do. Source:
// tests/data/README.md.
#include <doctest/doctest.h>

#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

nlohmann::json config_of(const CsvRow& row) {
  const std::string name = row.at("model");
  if (row.at("size") == "full") {
    return read_json(data_folder() / "golden/configs" / (name + ".config.json"));
  }
  return read_json(data_folder() / "golden/tiny" / (name + ".json")).at("config");
}

/// The attention products of a workload: scores and contexts of all components.
Integer attention_flops(const Counted& counted) {
  Integer flops = 0;
  for (std::size_t i = 0; i < counted.figures.components.size(); ++i) {
    const std::string name = name_of(counted.analysis.components[i].component);
    const bool core = name.ends_with("scores") || name.ends_with("context");
    if (core) flops += counted.figures.components[i].forward.matrix_flops;
  }
  return flops;
}

}  // namespace

TEST_CASE("matrix FLOPs equal those that the reference code multiplied, prefill and decode") {
  const auto rows = read_csv(data_folder() / "golden/flops.csv");
  REQUIRE(rows.size() > 100);
  for (const CsvRow& row : rows) {
    CAPTURE(row.at("model"));
    CAPTURE(row.at("phase"));
    CAPTURE(row.at("batch"));
    CAPTURE(row.at("seq"));
    const ModelSpec spec = spec_of(config_of(row), row.at("model"));
    Workload workload;
    workload.phase = row.at("phase") == "decode_one_token" ? Phase::decode : Phase::prefill;
    workload.batch_size = number(row, "batch");
    workload.seq_len = number(row, "seq");
    workload.past_len = number(row, "past");
    workload.enc_seq_len = std::max<std::int64_t>(1, number(row, "enc_seq"));
    const Counted counted = count(spec, workload);
    CHECK(counted.figures.forward.matrix_flops == number(row, "total_matmul_flops"));
    CHECK(attention_flops(counted) == number(row, "attention_matmul_flops"));
  }
}

TEST_CASE("the KV-cache holds the elements that the reference code's cache holds") {
  const auto rows = read_csv(data_folder() / "golden/kv_cache.csv");
  REQUIRE(rows.size() > 20);
  for (const CsvRow& row : rows) {
    CAPTURE(row.at("model"));
    CAPTURE(row.at("tokens"));
    const ModelSpec spec = spec_of(config_of(row), row.at("model"));
    Workload workload;
    workload.batch_size = number(row, "batch");
    workload.seq_len = number(row, "tokens");
    workload.enc_seq_len = std::max<std::int64_t>(1, number(row, "enc_tokens"));
    workload.kv_dtype = DType::int8;  // a byte an element, so bytes are elements
    const Counted counted = count(spec, workload);
    CHECK(counted.figures.kv_cache_bytes == number(row, "total_elements"));
  }
}

TEST_CASE("a ViT's tokens follow from its image") {
  const WorkloadRequest request;
  CHECK(resolve(request, load_model("vit-base-patch16-224").spec).seq_len == 197);
  CHECK(resolve(request, load_model("vit-huge").spec).seq_len == 257);
  WorkloadRequest other;
  other.seq_len = 128;
  CHECK_THROWS((void)resolve(other, load_model("vit-base").spec));
}

TEST_CASE("Llama-3-8B at 8193 tokens in bf16 has a KV-cache of 1.00 GiB, by its grouped heads") {
  Workload workload;
  workload.seq_len = 8193;
  workload.dtype = DType::bfloat16;
  workload.kv_dtype = DType::bfloat16;
  const Counted counted = count(load_model("llama-3-8b").spec, workload);
  CHECK(counted.figures.kv_cache_bytes_per_token == 131072);
  CHECK(counted.figures.kv_cache_bytes == Integer{131072} * 8193);
  const double gib = static_cast<double>(counted.figures.kv_cache_bytes) / (1 << 30);
  CHECK(gib == doctest::Approx(1.00).epsilon(0.001));
}

TEST_CASE("bert-base at batch 1 and 128 tokens takes 22,348,431,360 matrix FLOPs") {
  const Counted counted = count(load_model("bert-base").spec, {});
  CHECK(counted.figures.parameters == 109482240);
  CHECK(counted.figures.forward.matrix_flops == 22348431360);
}
