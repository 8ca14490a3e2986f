// GGUF files as models: their metadata give the spec of the published config, and their tensors
// reconcile with it. Metadata keys and tensor names: gguf-py/gguf/constants.py,
// github.com/ggml-org/llama.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "headroom/plan_report.h"
#include "headroom/report.h"
#include "inspect/model_folder.h"
#include "support/data.h"
#include "support/gguf_writer.h"

using namespace headroom;
using namespace headroom::checkpoint;
using namespace headroom::test;

namespace {

void add_llama_layer(GgufWriter& writer, const std::string& layer, GgmlType type) {
  writer.tensor(layer + "attn_norm.weight", {256}).tensor(layer + "ffn_norm.weight", {256});
  writer.tensor(layer + "attn_q.weight", {256, 256}, type);
  writer.tensor(layer + "attn_k.weight", {128, 256}, type);
  writer.tensor(layer + "attn_v.weight", {128, 256}, type);
  writer.tensor(layer + "attn_output.weight", {256, 256}, type);
  writer.tensor(layer + "ffn_gate.weight", {512, 256}, type);
  writer.tensor(layer + "ffn_up.weight", {512, 256}, type);
  writer.tensor(layer + "ffn_down.weight", {256, 512}, GgmlType::q6_k);
}

GgufWriter small_gguf_llama() {
  GgufWriter writer = small_llama_metadata();
  writer.add("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
  writer.tensor("token_embd.weight", {96, 256}, GgmlType::q4_k);
  add_llama_layer(writer, "blk.0.", GgmlType::q4_k);
  add_llama_layer(writer, "blk.1.", GgmlType::q4_k);
  writer.tensor("output_norm.weight", {256}).tensor("rope_freqs.weight", {32});
  return writer;
}

/// A file with these bytes, deleted with this object.
class TempGguf {
 public:
  explicit TempGguf(const std::string& bytes, const std::string& name = "model.gguf")
      : path_((folder_ / name).string()) {
    write_file(path_, bytes);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  TempFolder folder_;
  std::string path_;
};

}  // namespace

TEST_CASE("a Llama's metadata give the spec of its config.json") {
  const TempGguf file(small_gguf_llama().str());
  const ModelSpec read = load_model(file.path()).spec;
  const ModelSpec expected = spec_of({{"model_type", "llama"},
                                      {"hidden_size", 256},
                                      {"num_attention_heads", 4},
                                      {"num_key_value_heads", 2},
                                      {"num_hidden_layers", 2},
                                      {"intermediate_size", 512},
                                      {"vocab_size", 96},
                                      {"tie_word_embeddings", true}});
  CHECK(read.name == "model");
  CHECK(count(read, {}).figures.parameters == count(expected, {}).figures.parameters);
  CHECK(read.position.max_position_embeddings == 32);
  CHECK(read.position.rope.theta == 500000);
  CHECK(read.decoder->norm.eps == 1e-5);
  CHECK(read.decoder->self_attention.num_key_value_heads == 2);
  CHECK(read.decoder->self_attention.head_dim == 64);
  CHECK(read.head.language_model->weight == WeightSharing::shared);
}

TEST_CASE("quantised tensors reconcile by logical shape and keep their stored bytes") {
  const TempGguf file(small_gguf_llama().str());
  const Inspection inspection = inspect(file.path());
  CHECK(inspection.format == FileFormat::gguf);
  CHECK(problems_of(inspection).empty());
  CHECK(extras_of(inspection) == std::vector<std::string>{"rotary buffer: 1"});
  CHECK(inspection.weights.values == inspection.reconciliation->expected_parameters);
  // Per layer: 2·256·256 + 2·128·256 + 2·512·256 values of 4.5 bits; 256·512 of 6.5625; 2 norms of
  // 32.
  const Integer four_bit = 2 * (2 * 256 * 256 + 2 * 128 * 256 + 2 * 512 * 256) + 96 * 256;
  const Integer six_bit = 2 * 256 * 512;
  CHECK(inspection.types[0].type == "Q4_K");
  CHECK(inspection.types[0].totals.values == four_bit);
  CHECK(inspection.types[0].totals.bytes == four_bit / 256 * 144);
  CHECK(inspection.types[1].type == "Q6_K");
  CHECK(inspection.types[1].totals.bytes == six_bit / 256 * 210);
  CHECK(inspection.weights.bytes == four_bit / 256 * 144 + six_bit / 256 * 210 + 5 * 256 * 4);
}

TEST_CASE("a separate head is untied, and only tensors reveal biases") {
  GgufWriter writer = small_gguf_llama();
  writer.tensor("output.weight", {96, 256}, GgmlType::q8_0);
  const TempGguf file(writer.str());
  const Inspection inspection = inspect(file.path());
  CHECK(problems_of(inspection).empty());
  CHECK(load_model(file.path()).spec.head.language_model->weight == WeightSharing::separate);
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    writer.tensor(layer + "attn_q.bias", {256}).tensor(layer + "attn_k.bias", {128});
    writer.tensor(layer + "attn_v.bias", {128}).tensor(layer + "attn_output.bias", {256});
  }
  const TempGguf biased(writer.str());
  CHECK(problems_of(inspect(biased.path())).empty());
  CHECK(load_model(biased.path()).spec.decoder->self_attention.output_bias);
}

TEST_CASE("tensors of another model are named") {
  GgufWriter writer = small_gguf_llama();
  writer.tensor("blk.2.attn_norm.weight", {256}).tensor("blk.0.attn_q.bias", {256});
  const TempGguf file(writer.str());
  CHECK(problems_of(inspect(file.path())) ==
        std::vector<std::string>{"unknown tensor: blk.2.attn_norm.weight",
                                 "unknown tensor: blk.0.attn_q.bias"});
}

TEST_CASE("equal per-layer values count as one; the error for unequal ones names the key") {
  GgufWriter equal;
  equal.add("general.architecture", "llama").add("llama.context_length", 32U);
  equal.add("llama.embedding_length", 256U).add("llama.block_count", 2U);
  equal.add("llama.feed_forward_length", 512U).add("llama.attention.head_count", 4U);
  equal.add("tokenizer.ggml.tokens", std::vector<std::string>{"a"});
  GgufWriter different = equal;
  equal.add("llama.attention.head_count_kv", std::vector<std::uint32_t>{2, 2});
  const TempGguf good(equal.str());
  CHECK(load_model(good.path()).spec.decoder->self_attention.num_key_value_heads == 2);
  different.add("llama.attention.head_count_kv", std::vector<std::uint32_t>{2, 1});
  const TempGguf bad(different.str());
  const Error error = input_error_of([&] { (void)load_model(bad.path()); });
  CHECK(error.where() == bad.path() + ": llama.attention.head_count_kv");
  CHECK(error.message().find("2, 1") != std::string::npos);
}

TEST_CASE("an unknown architecture is refused") {
  const TempGguf rwkv(GgufWriter().add("general.architecture", "rwkv6").str());
  const Error error = input_error_of([&] { (void)load_model(rwkv.path()); });
  CHECK(error.message().find("rwkv6") != std::string::npos);
  CHECK(error.hint().find("presets types") != std::string::npos);
  const TempGguf none(GgufWriter().add("general.name", "x").str());
  (void)input_error_of([&] { (void)load_model(none.path()); });
  const Inspection inspection = inspect(rwkv.path());
  CHECK_FALSE(inspection.is_explained());
}

TEST_CASE("GPT-2's fused projection and T5's two stacks reconcile") {
  GgufWriter gpt2;
  gpt2.add("general.architecture", "gpt2").add("gpt2.context_length", 16U);
  gpt2.add("gpt2.embedding_length", 8U).add("gpt2.block_count", 1U);
  gpt2.add("gpt2.feed_forward_length", 32U).add("gpt2.attention.head_count", 2U);
  gpt2.add("gpt2.attention.layer_norm_epsilon", 1e-5F);
  gpt2.tensor("token_embd.weight", {50, 8}).tensor("position_embd.weight", {16, 8});
  for (const std::string norm : {"blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"}) {
    gpt2.tensor(norm + ".weight", {8}).tensor(norm + ".bias", {8});
  }
  gpt2.tensor("blk.0.attn_qkv.weight", {24, 8}).tensor("blk.0.attn_qkv.bias", {24});
  gpt2.tensor("blk.0.attn_output.weight", {8, 8}).tensor("blk.0.attn_output.bias", {8});
  gpt2.tensor("blk.0.ffn_up.weight", {32, 8}).tensor("blk.0.ffn_up.bias", {32});
  gpt2.tensor("blk.0.ffn_down.weight", {8, 32}).tensor("blk.0.ffn_down.bias", {8});
  gpt2.tensor("output.weight", {50, 8});  // converters duplicate the tied embeddings
  const TempGguf file(gpt2.str());
  const Inspection inspection = inspect(file.path());
  CHECK(problems_of(inspection).empty());
  CHECK(extras_of(inspection) == std::vector<std::string>{"tied weight stored again: 1"});
  CHECK(inspection.weights.values == inspection.reconciliation->expected_parameters);

  GgufWriter t5;
  t5.add("general.architecture", "t5").add("t5.embedding_length", 8U).add("t5.block_count", 1U);
  t5.add("t5.feed_forward_length", 16U).add("t5.attention.head_count", 2U);
  t5.add("t5.attention.key_length", 4U).add("t5.attention.relative_buckets_count", 32U);
  t5.add("t5.attention.layer_norm_rms_epsilon", 1e-6F);
  t5.tensor("token_embd.weight", {40, 8});
  for (const std::string stack : {"enc.", "dec."}) {
    t5.tensor(stack + "output_norm.weight", {8}).tensor(stack + "blk.0.attn_norm.weight", {8});
    t5.tensor(stack + "blk.0.attn_rel_b.weight", {32, 2});
    t5.tensor(stack + "blk.0.ffn_norm.weight", {8});
    t5.tensor(stack + "blk.0.ffn_up.weight", {16, 8});
    t5.tensor(stack + "blk.0.ffn_down.weight", {8, 16});
    for (const std::string part : {"q", "k", "v", "o"}) {
      t5.tensor(stack + "blk.0.attn_" + part + ".weight", {8, 8});
    }
  }
  t5.tensor("dec.blk.0.cross_attn_norm.weight", {8});
  for (const std::string part : {"q", "k", "v", "o"}) {
    t5.tensor("dec.blk.0.cross_attn_" + part + ".weight", {8, 8});
  }
  const TempGguf two_stacks(t5.str());
  const Inspection second = inspect(two_stacks.path());
  CHECK(problems_of(second).empty());
  CHECK(second.weights.values == second.reconciliation->expected_parameters);
}

namespace {

GgufWriter& add_split(GgufWriter& writer, std::uint16_t number) {
  constexpr std::uint32_t kUint16 = 2;
  writer.add_raw("split.no", kUint16, bytes_of(number));
  return writer.add_raw("split.count", kUint16, bytes_of(std::uint16_t{2}));
}

std::string first_part() {
  GgufWriter first = small_llama_metadata();
  add_split(first, 0).tensor("token_embd.weight", {96, 256}, GgmlType::q4_k);
  add_llama_layer(first, "blk.0.", GgmlType::q4_k);
  return first.str();
}

/// The second part, which has the head.
std::string second_part(GgufWriter second) {
  add_split(second, 1);
  add_llama_layer(second, "blk.1.", GgmlType::q4_k);
  second.tensor("output_norm.weight", {256}).tensor("output.weight", {96, 256}, GgmlType::q6_k);
  return second.str();
}

constexpr const char* kFirst = "m-00001-of-00002.gguf";
constexpr const char* kSecond = "m-00002-of-00002.gguf";

}  // namespace

TEST_CASE("the files of a split are one model, whichever of them is named") {
  GgufWriter repeats;
  repeats.add("general.architecture", "llama");
  for (const GgufWriter& metadata : {GgufWriter(), repeats}) {
    const TempFolder folder;
    write_file(folder / kFirst, first_part());
    write_file(folder / kSecond, second_part(metadata));
    for (const std::string& path :
         {folder.path().string(), (folder / kFirst).string(), (folder / kSecond).string()}) {
      CAPTURE(path);
      const Inspection inspection = inspect(path);
      CHECK(inspection.files == 2);
      CHECK(problems_of(inspection).empty());
      const Model model = load_model(path);
      CHECK(model.source == (folder / kFirst).string());
      CHECK(model.spec.decoder->num_layers == 2);
      CHECK(model.spec.head.language_model->weight == WeightSharing::separate);
      // Table and head of 96·256; per layer: Q, K, V and output of 256·(256 + 128 + 128 + 256),
      // an FFN of 3·256·512; 5 norms of 256.
      const AnalyzeReport report = make_analyze_report(model, {});
      CHECK(report.figures.parameters == 2 * 96 * 256 + 2 * (256 * 768 + 3 * 256 * 512) + 5 * 256);
      CHECK(report.storage.bytes == inspection.weights.bytes);
      CHECK_FALSE(read_unknown_model(path, {}).has_value());
    }
  }
}

TEST_CASE("a part of a split without the others is refused by the name of the missing one") {
  for (const bool has_first : {true, false}) {
    const TempFolder folder;
    const std::string present = (folder / (has_first ? kFirst : kSecond)).string();
    write_file(present, has_first ? first_part() : second_part(GgufWriter()));
    const std::string expected = has_first
                                     ? "this is part 1 of 2: m-00002-of-00002.gguf is missing"
                                     : "this is part 2 of 2: m-00001-of-00002.gguf is missing";
    CHECK(input_error_of([&] { (void)load_model(present); }).message() == expected);
    CHECK(input_error_of([&] { (void)inspect(present); }).message() == expected);
    const Error error = input_error_of([&] { (void)read_unknown_model(present, {}); });
    CHECK(error.message() == expected);
    CHECK(error.where() == present);
  }
}

TEST_CASE("a part of a split under the name of another is refused") {
  const TempFolder folder;
  write_file(folder / kFirst, second_part(GgufWriter()));
  write_file(folder / kSecond, first_part());
  const Error error = input_error_of([&] { (void)load_model((folder / kSecond).string()); });
  CHECK(error.message() == "its name says part 1, its split.no part 2");
  CHECK(error.where() == (folder / kFirst).string());
}

TEST_CASE("a file without sizes that llama.cpp requires is refused with the missing keys") {
  GgufWriter none;
  none.add("general.architecture", "qwen3moe");
  const TempGguf without(none.str());
  CHECK(input_error_of([&] { (void)load_model(without.path()); }).message() ==
        "lacks qwen3moe.block_count, qwen3moe.embedding_length, qwen3moe.attention.head_count, "
        "qwen3moe.feed_forward_length, which llama.cpp requires");
  GgufWriter some;
  some.add("general.architecture", "llama").add("llama.block_count", 2U);
  some.add("llama.embedding_length", 256U).add("llama.feed_forward_length", 512U);
  const TempGguf without_heads(some.str());
  CHECK(input_error_of([&] { (void)load_model(without_heads.path()); }).message() ==
        "lacks llama.attention.head_count, which llama.cpp requires");
  GgufWriter experts;
  experts.add("general.architecture", "deepseek2").add("deepseek2.block_count", 2U);
  experts.add("deepseek2.embedding_length", 256U).add("deepseek2.attention.head_count", 4U);
  experts.add("deepseek2.expert_feed_forward_length", 64U);
  experts.add("deepseek2.leading_dense_block_count", 1U);
  const TempGguf without_dense(experts.str());
  CHECK(input_error_of([&] { (void)load_model(without_dense.path()); }).message() ==
        "lacks deepseek2.feed_forward_length, which llama.cpp requires");
}

// As llama.cpp's vocabulary files: metadata alone.
TEST_CASE("a file without tensors says so, and which type its weights count in") {
  GgufWriter writer;
  writer.add("general.architecture", "llama").add("llama.block_count", 2U);
  writer.add("llama.embedding_length", 256U).add("llama.feed_forward_length", 512U);
  writer.add("llama.attention.head_count", 4U).add("llama.vocab_size", 64U);
  const TempGguf file(writer.str());
  const AnalyzeReport report = make_analyze_report(load_model(file.path()), {});
  CHECK(report.figures.weight_bytes == 4 * report.figures.parameters);
  CHECK(report.storage.notes ==
        std::vector<std::string>{file.path() +
                                 " has no tensors; weights are counted in float32, "
                                 "since their types are not known (`weights` sets one)"});
}

TEST_CASE("a projector file is no model, but its tensors are listed") {
  GgufWriter writer;
  writer.add("general.architecture", "clip").add("clip.vision.block_count", 1U);
  writer.tensor("v.patch_embd.weight", {8, 3, 2, 2});
  const TempGguf file(writer.str(), "mmproj-model.gguf");
  const Error error = input_error_of([&] { (void)load_model(file.path()); });
  CHECK(error.message().find("projector file") != std::string::npos);
  CHECK(error.hint().find("name the model's own GGUF file") != std::string::npos);
  const auto unknown = read_unknown_model(file.path(), {});
  REQUIRE(unknown.has_value());
  CHECK(unknown->parameters() == Integer{8 * 3 * 2 * 2});
  CHECK(inspect(file.path()).weights.values == 8 * 3 * 2 * 2);
}

TEST_CASE("an analysis of a quantised file has the bytes of its tensors") {
  const TempGguf file(small_gguf_llama().str());
  const Inspection inspection = inspect(file.path());
  const AnalyzeReport report = make_analyze_report(load_model(file.path()), {});
  CHECK(report.figures.weight_bytes == inspection.weights.bytes);
  CHECK(report.figures.parameters == inspection.weights.values);
  CHECK(report.storage.bytes == inspection.weights.bytes);
  Integer sum = 0;
  for (const ComponentFigures& component : report.figures.components) {
    sum += component.weight_bytes;
  }
  CHECK(sum == inspection.weights.bytes);
}

TEST_CASE("a fit of a quantised file stores the bytes of its tensors on the device") {
  const TempGguf file(small_gguf_llama().str());
  const Integer bytes = inspect(file.path()).weights.bytes;
  PlanQuestion question;
  question.model = with_stored_types(load_model(file.path()), question.notes);
  question.rates = device_rates(find_machine("rtx-4090"), Purpose::serve, DType::bfloat16);
  question.load = {1, 32};
  const FitReport report = make_fit_report(question, {});
  CHECK(report.storage.bytes == bytes);
  CHECK(report.result.figures.memory.weights == bytes);
  CHECK_MESSAGE(report.notes.empty(), report.notes.front());
}

TEST_CASE("a diff of a quantised file has the bytes of its tensors on both sides") {
  const TempGguf file(small_gguf_llama().str());
  const Integer bytes = inspect(file.path()).weights.bytes;
  const DiffReport diff{make_analyze_report(load_model(file.path()), {}),
                        make_analyze_report(load_model(file.path()), {})};
  const auto json = nlohmann::json::parse(render(diff, {.format = Format::json}));
  const auto& rows = json.at("rows");
  const auto row = std::ranges::find(rows, "weight_bytes", [](const auto& one) {
    return one.at("quantity").template get<std::string>();
  });
  REQUIRE(row != rows.end());
  CHECK(row->at("a") == static_cast<std::int64_t>(bytes));
  CHECK(row->at("b") == static_cast<std::int64_t>(bytes));
}

TEST_CASE("the type of activations does not change the bytes of weights") {
  const auto folder = data_folder() / "golden/models/gpt2";
  const Model model = load_model(folder.string());
  WorkloadRequest request;
  const Integer stored = make_analyze_report(model, request).figures.weight_bytes;
  request.dtype = DType::bfloat16;
  CHECK(make_analyze_report(model, request).figures.weight_bytes == stored);
}

TEST_CASE("DeepSeek's latent up-projection may be stored in two halves") {
  // Keys [heads, rank, width] and values [heads, width, rank], as in newer converters.
  const auto bytes = [](bool split) {
    GgufWriter writer;
    writer.add("general.architecture", "deepseek2").add("deepseek2.context_length", 64U);
    writer.add("deepseek2.embedding_length", 64U).add("deepseek2.block_count", 1U);
    writer.add("deepseek2.feed_forward_length", 96U).add("deepseek2.attention.head_count", 4U);
    writer.add("deepseek2.attention.head_count_kv", split ? 1U : 4U);
    writer.add("deepseek2.attention.layer_norm_rms_epsilon", 1e-6F);
    writer.add("deepseek2.attention.kv_lora_rank", 32U).add("deepseek2.vocab_size", 128U);
    if (split) {
      writer.add("deepseek2.attention.key_length", 40U);
      writer.add("deepseek2.attention.value_length", 32U);
      writer.add("deepseek2.attention.key_length_mla", 24U);
      writer.add("deepseek2.attention.value_length_mla", 12U);
    } else {
      writer.add("deepseek2.attention.key_length", 24U);
      writer.add("deepseek2.attention.value_length", 12U);
    }
    writer.add("deepseek2.rope.dimension_count", 8U).add("deepseek2.expert_count", 4U);
    writer.add("deepseek2.expert_used_count", 2U).add("deepseek2.expert_shared_count", 1U);
    writer.add("deepseek2.expert_feed_forward_length", 32U);
    writer.add("deepseek2.leading_dense_block_count", 1U).add("deepseek2.expert_gating_func", 1U);
    writer.tensor("token_embd.weight", {128, 64}).tensor("output.weight", {128, 64});
    writer.tensor("output_norm.weight", {64}).tensor("blk.0.attn_norm.weight", {64});
    writer.tensor("blk.0.ffn_norm.weight", {64}).tensor("blk.0.attn_q.weight", {96, 64});
    writer.tensor("blk.0.attn_kv_a_mqa.weight", {40, 64});
    writer.tensor("blk.0.attn_kv_a_norm.weight", {32}).tensor("blk.0.attn_output.weight", {64, 48});
    writer.tensor("blk.0.ffn_gate.weight", {96, 64}).tensor("blk.0.ffn_up.weight", {96, 64});
    writer.tensor("blk.0.ffn_down.weight", {64, 96});
    if (split) {
      writer.tensor("blk.0.attn_k_b.weight", {4, 32, 16}, GgmlType::f16);
      writer.tensor("blk.0.attn_v_b.weight", {4, 12, 32}, GgmlType::f16);
    } else {
      writer.tensor("blk.0.attn_kv_b.weight", {112, 32}, GgmlType::f16);
    }
    return writer.str();
  };
  const TempGguf whole_file(bytes(false));
  const TempGguf split_file(bytes(true));
  const Inspection whole = inspect(whole_file.path());
  const Inspection split = inspect(split_file.path());
  CHECK(problems_of(whole).empty());
  CHECK(problems_of(split).empty());
  CHECK(split.weights.values == whole.weights.values);
  CHECK(split.weights.bytes == whole.weights.bytes);
  CHECK(split.weights.tensors == whole.weights.tensors + 1);
}

// Tensors of LLM_ARCH_DBRX, github.com/ggml-org/llama.cpp: 4 query and 2 KV heads of 16, 4 experts.
TEST_CASE("DBRX's tensors reconcile, and its parts have the sizes of the metadata") {
  GgufWriter writer;
  writer.add("general.architecture", "dbrx").add("dbrx.context_length", 128U);
  writer.add("dbrx.embedding_length", 64U).add("dbrx.block_count", 1U);
  writer.add("dbrx.feed_forward_length", 32U).add("dbrx.attention.head_count", 4U);
  writer.add("dbrx.attention.head_count_kv", 2U).add("dbrx.rope.freq_base", 500000.0F);
  writer.add("dbrx.attention.clamp_kqv", 8.0F).add("dbrx.attention.layer_norm_epsilon", 1e-5F);
  writer.add("dbrx.expert_count", 4U).add("dbrx.expert_used_count", 2U);
  writer.add("dbrx.vocab_size", 96U);
  writer.tensor("token_embd.weight", {96, 64}).tensor("output_norm.weight", {64});
  writer.tensor("output.weight", {96, 64}).tensor("blk.0.attn_norm.weight", {64});
  writer.tensor("blk.0.attn_qkv.weight", {128, 64}).tensor("blk.0.attn_output.weight", {64, 64});
  writer.tensor("blk.0.attn_output_norm.weight", {64});
  writer.tensor("blk.0.ffn_gate_inp.weight", {4, 64});
  writer.tensor("blk.0.ffn_gate_exps.weight", {4, 32, 64});
  writer.tensor("blk.0.ffn_up_exps.weight", {4, 32, 64});
  writer.tensor("blk.0.ffn_down_exps.weight", {4, 64, 32});
  const TempGguf file(writer.str());
  CHECK(problems_of(inspect(file.path())).empty());
  const ModelSpec spec = load_model(file.path()).spec;
  CHECK(spec.decoder->self_attention.clip_qkv == 8);
  CHECK(spec.decoder->ffn.experts->num_experts_per_tok == 2);
  CHECK(spec.position.rope.theta == 500000);
}
