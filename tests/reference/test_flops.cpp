// Matrix FLOPs and KV-cache against the reference code, recorded by torch's dispatcher. Source:
// tests/data/README.md.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>

#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

/// FLOPs of the attention GEMMs: scores and contexts of all components.
Integer attention_flops(const Counted& counted) {
  Integer flops = 0;
  for (std::size_t i = 0; i < counted.figures.components.size(); ++i) {
    const std::string name = name_of(counted.analysis.components[i].component);
    const bool core = name.ends_with("scores") || name.ends_with("context");
    if (core) flops += counted.figures.components[i].forward.matrix_flops;
  }
  return flops;
}

bool has_window(const ModelSpec& spec) {
  return build_graph(spec, {}).traits.window.kind != WindowKind::none;
}

/// Rows where the reference code computes more than the model needs: GPT-Neo, and Mistral in
/// transformers 4.45, decode with keys outside the window; Llama 4 runs every expert for every
/// token; a step of RWKV with several sequences mixes each of them with every other.
bool multiplies_otherwise(const CsvRow& row) {
  const std::string& model = row.at("model");
  const bool decodes = row.at("phase") == "decode_one_token";
  const bool ignores_window =
      model == "gpt_neo" ||
      (model == "mistral" && row.at("method").find("4.45.2") != std::string::npos);
  const bool mixes_sequences = model == "rwkv" && decodes && number(row, "batch") > 1;
  return (decodes && ignores_window) || mixes_sequences || model == "llama4_text";
}

}  // namespace

namespace {

void check_flops(const ModelSpec& spec, const CsvRow& row) {
  CAPTURE(row.at("model"));
  CAPTURE(row.at("phase"));
  CAPTURE(row.at("batch"));
  CAPTURE(row.at("seq"));
  Workload workload;
  workload.latent = LatentAttention::naive;  // the reference code expands keys and values
  workload.phase = row.at("phase") == "decode_one_token" ? Phase::decode : Phase::prefill;
  workload.batch_size = number(row, "batch");
  workload.seq_len = number(row, "seq");
  workload.past_len = number(row, "past");
  workload.enc_seq_len = std::max<std::int64_t>(1, number(row, "enc_seq"));
  const Counted counted = count(spec, workload);
  CHECK(counted.figures.forward.matrix_flops == number(row, "total_matmul_flops"));
  // The reference adds scores with positions, of DeBERTa and XLNet, an indexer's and AltUp's
  // predictions, components of their own.
  const AttentionSpec& attention = spec.main_stack().self_attention;
  if (attention.disentangled || attention.transformer_xl || attention.indexer) return;
  if (spec.main_stack().altup) return;
  CHECK(attention_flops(counted) == number(row, "attention_matmul_flops"));
}

/// Rows of further reference models that count alike. A note marks scans and convolutions, which
/// RecurrentGemma has too (test_state_spaces.cpp); with MLA the reference code expands all cached
/// keys in every step.
bool counts_alike(const ModelSpec& spec, const CsvRow& row) {
  if (spec.tower) return false;                               // test_image_towers.cpp
  if (spec.main_stack().self_attention.global) return false;  // test_longformer.cpp
  if (row.at("size") != "tiny" || multiplies_otherwise(row)) return false;
  const auto note = row.find("note");
  const bool noted =
      note == row.end() || !note->second.empty() || row.at("model") == "recurrent_gemma";
  const bool expands =
      spec.main_stack().self_attention.latent && row.at("phase") == "decode_one_token";
  return !noted && !expands && number(row, "seq") > 0;
}

}  // namespace

TEST_CASE("matrix FLOPs equal those of the reference code, in prefill and decode") {
  const auto rows = read_csv(data_folder() / "golden/flops.csv");
  REQUIRE(rows.size() > 100);
  for (const CsvRow& row : rows) {
    if (multiplies_otherwise(row)) continue;
    check_flops(spec_of(golden_config(row), row.at("model")), row);
  }
}

TEST_CASE("logits of the last token leave out the other rows of the head, and no more") {
  const ModelSpec spec = load_model("gemma-3-270m").spec;  // hidden size 640, vocabulary 262,144
  Workload workload;
  workload.batch_size = 3;
  const Counted all = count(spec, workload);
  workload.logits = Logits::last;
  const Counted last = count(spec, workload);
  const Integer other_rows = Integer{3} * 127;
  CHECK(all.figures.forward.matrix_flops - last.figures.forward.matrix_flops ==
        2 * other_rows * 640 * 262'144);
  CHECK(all.figures.parameters == last.figures.parameters);
  // All logits are the peak; without them it is the widest layer's.
  CHECK(last.figures.peak_activation_bytes * 10 < all.figures.peak_activation_bytes);
  workload.seq_len = 1;
  CHECK(graph_options(workload).logits == Logits::all);  // nothing to leave out
}

TEST_CASE("matrix FLOPs of further reference models equal the recordings beside them") {
  std::map<std::string, std::filesystem::path> models;
  for (const auto& model : golden_models()) models.emplace(model.filename().string(), model);
  for (const auto& folder : more_golden_folders()) {
    if (!std::filesystem::exists(folder / "flops.csv")) continue;
    for (const CsvRow& row : read_csv(folder / "flops.csv")) {
      const auto model = models.find(row.at("model"));
      if (model == models.end()) continue;
      const ModelSpec spec = load_model(model->second.string()).spec;
      if (counts_alike(spec, row)) check_flops(spec, row);
    }
  }
}

TEST_CASE("the KV-cache has as many elements as the reference code's") {
  const auto rows = read_csv(data_folder() / "golden/kv_cache.csv");
  REQUIRE(rows.size() > 20);
  for (const CsvRow& row : rows) {
    CAPTURE(row.at("model"));
    CAPTURE(row.at("tokens"));
    const ModelSpec spec = spec_of(golden_config(row), row.at("model"));
    if (has_window(spec)) continue;  // below
    Workload workload;
    workload.latent = LatentAttention::naive;
    workload.batch_size = number(row, "batch");
    workload.seq_len = number(row, "tokens");
    workload.enc_seq_len = std::max<std::int64_t>(1, number(row, "enc_tokens"));
    workload.kv_dtype = DType::int8;  // one byte per element, so bytes equal elements
    const Counted counted = count(spec, workload);
    CHECK(counted.figures.kv_cache_bytes == number(row, "total_elements"));
  }
}

TEST_CASE(
    "sliding-window layers cache the last w keys; transformers 5 caches w - 1 before a step") {
  std::size_t models = 0;
  for (const CsvRow& row : read_csv(data_folder() / "golden/kv_cache.csv")) {
    const ModelSpec spec = spec_of(golden_config(row), row.at("model"));
    const bool drops = row.at("method").find("transformers 5.10") == 0;
    if (!has_window(spec) || row.at("model") == "gpt_neo" || !drops) continue;
    CAPTURE(row.at("model"));
    const std::int64_t window = build_graph(spec, {}).traits.window.size;
    const std::int64_t tokens = number(row, "tokens");
    const auto held = [&](std::int64_t most) {
      Integer elements = 0;
      for (std::int64_t layer = 0; layer < spec.decoder->num_layers; ++layer) {
        const AttentionSpec& attention = spec.decoder->attention_of(spec.decoder->variant(layer));
        const bool windowed = attention.window.kind != WindowKind::none;
        elements += Integer{number(row, "batch")} * (windowed ? std::min(tokens, most) : tokens) *
                    attention.num_key_value_heads * (attention.head_dim + attention.value_head_dim);
      }
      return elements;
    };
    CHECK(held(window - 1) == number(row, "total_elements"));
    Workload workload;
    workload.batch_size = number(row, "batch");
    workload.seq_len = tokens;
    workload.kv_dtype = DType::int8;
    CHECK(count(spec, workload).figures.kv_cache_bytes == held(window));
    ++models;
  }
  CHECK(models >= 4);
}

TEST_CASE("DeepSeek-V3 caches 70,272 bytes per token in bf16, as latent vectors") {
  // 61 layers of 512 + 64 values of 2 bytes.
  Workload workload;
  workload.seq_len = 100;
  workload.dtype = DType::bfloat16;
  workload.kv_dtype = DType::bfloat16;
  const Counted counted = count(load_model("deepseek-v3").spec, workload);
  CHECK(counted.figures.kv_cache_bytes_per_token == 70272);
  CHECK(counted.figures.kv_cache_bytes == 7027200);
}

TEST_CASE(
    "Qwen3-Next caches 6 GiB at 262,144 tokens in every fourth layer, plus a constant state") {
  Workload workload;
  workload.seq_len = 262144;
  workload.dtype = DType::bfloat16;
  workload.kv_dtype = DType::bfloat16;
  const Counted counted = count(load_model("qwen3-next-80b-a3b").spec, workload);
  const Integer growing = Integer{6} * 1024 * 1024 * 1024;  // 12 layers · 2 · 2 heads · 256 · 2 B
  CHECK(counted.figures.kv_cache_bytes_per_token * 262144 == growing);
  // 36 layers of 32 · 128 · 128 values in float32, and 4 columns of 8192 channels in bfloat16, as
  // the reference code holds them.
  CHECK(counted.figures.kv_cache_bytes - growing ==
        Integer{36} * (32 * 128 * 128 * 4 + 4 * 8192 * 2));
}

TEST_CASE("a ViT's tokens follow from its image") {
  const WorkloadRequest request;
  CHECK(resolve(request, load_model("vit-base-patch16-224").spec).seq_len == 197);
  CHECK(resolve(request, load_model("vit-huge").spec).seq_len == 257);
  WorkloadRequest other;
  other.seq_len = 128;
  CHECK_THROWS((void)resolve(other, load_model("vit-base").spec));
}

TEST_CASE("Llama-3-8B at 8193 tokens in bf16 has a KV-cache of 1.00 GiB, with grouped heads") {
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

TEST_CASE("bert-base at batch 1 and 128 tokens costs 22,348,431,360 matrix FLOPs") {
  const Counted counted = count(load_model("bert-base").spec, {});
  CHECK(counted.figures.parameters == 109482240);
  CHECK(counted.figures.forward.matrix_flops == 22348431360);
}
