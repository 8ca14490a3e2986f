// Stored bytes as the files hold them: weights and extras sum to the header's tensors, to the unit,
// and the rules of a config give the same. Shapes are those that each library writes for a linear
// layer [out, in]; see src/weights/packing.h for the sources.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "headroom/report.h"
#include "headroom/storage.h"
#include "inspect/packed_linear.h"
#include "support/data.h"
#include "support/gguf_writer.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using checkpoint::GgmlType;

/// A folder with these files, deleted with this object.
class ModelFolder {
 public:
  ModelFolder(const nlohmann::json& config, const std::vector<TensorToWrite>& tensors) {
    write_file(folder_ / "config.json", config.dump());
    checkpoint::write_safetensors(folder_ / "model.safetensors", tensors);
    for (const TensorToWrite& tensor : tensors)
      bytes_ += static_cast<std::int64_t>(tensor.data.size());
  }
  [[nodiscard]] Model model() const { return load_model(folder_.path().string()); }
  /// Bytes of all tensors.
  [[nodiscard]] Integer bytes() const { return bytes_; }

 private:
  TempFolder folder_;
  std::int64_t bytes_ = 0;
};

/// DeepSeek-V2 of three layers, 256 wide, with types as "dynamic" mixes choose them: the dense
/// first layer has other ones than the rest, and the parts of the KV up-projection differ. Names
/// and metadata: deepseek2 in gguf-py/gguf/constants.py and conversion/deepseek.py,
/// ggml-org/llama.cpp.
class LatentGguf {
 public:
  LatentGguf() {
    writer_.add("general.architecture", "deepseek2");
    for (const auto& [key, value] : kSizes) writer_.add(std::string("deepseek2.") + key, value);
    add("token_embd.weight", {96, 256}, GgmlType::q6_k);
    add("output.weight", {96, 256}, GgmlType::q6_k);
    add("output_norm.weight", {256}, GgmlType::f32);
    for (const std::int64_t layer : {0, 1, 2}) add_layer(layer);
    write_file(folder_ / "model.gguf", writer_.str());
  }
  [[nodiscard]] Model model() const { return load_model((folder_ / "model.gguf").string()); }
  /// Bytes of all tensors.
  [[nodiscard]] Integer bytes() const { return bytes_; }

 private:
  struct Size {
    const char* key;
    std::uint32_t value;
  };
  static constexpr std::array<Size, 17> kSizes{{{"block_count", 3},
                                                {"context_length", 64},
                                                {"embedding_length", 256},
                                                {"feed_forward_length", 512},
                                                {"attention.head_count", 2},
                                                {"attention.head_count_kv", 1},
                                                {"attention.kv_lora_rank", 256},
                                                {"attention.key_length", 288},
                                                {"attention.value_length", 256},
                                                {"attention.key_length_mla", 96},
                                                {"attention.value_length_mla", 128},
                                                {"rope.dimension_count", 32},
                                                {"expert_count", 4},
                                                {"expert_used_count", 2},
                                                {"expert_shared_count", 1},
                                                {"expert_feed_forward_length", 256},
                                                {"leading_dense_block_count", 1}}};

  void add(const std::string& name, const std::vector<std::int64_t>& shape, GgmlType type) {
    writer_.tensor(name, shape, type);
    bytes_ += checkpoint::ggml_bytes(type, shape).value();
  }

  void add_layer(std::int64_t index) {
    const std::string layer = fmt::format("blk.{}.", index);
    const GgmlType type = index == 0 ? GgmlType::q6_k : GgmlType::q4_k;
    add(layer + "attn_norm.weight", {256}, GgmlType::f32);
    add(layer + "attn_q.weight", {192, 256}, type);
    add(layer + "attn_kv_a_mqa.weight", {288, 256}, type);
    add(layer + "attn_kv_a_norm.weight", {256}, GgmlType::f32);
    add(layer + "attn_k_b.weight", {2, 256, 64}, GgmlType::q8_0);
    add(layer + "attn_v_b.weight", {2, 128, 256}, type);
    add(layer + "attn_output.weight", {256, 256}, type);
    add(layer + "ffn_norm.weight", {256}, GgmlType::f32);
    if (index == 0) return add_feed_forward(layer, "", {}, 512, type);
    add(layer + "ffn_gate_inp.weight", {4, 256}, GgmlType::f32);
    add_feed_forward(layer, "_exps", {4}, 256, type);
    add_feed_forward(layer, "_shexp", {}, 256, GgmlType::q5_k);
  }

  void add_feed_forward(const std::string& layer, const std::string& kind,
                        const std::vector<std::int64_t>& experts, std::int64_t width,
                        GgmlType type) {
    const auto add_matrix = [&](const char* name, std::int64_t out, std::int64_t in) {
      std::vector<std::int64_t> shape = experts;
      shape.push_back(out);
      shape.push_back(in);
      add(layer + name + kind + ".weight", shape, type);
    };
    add_matrix("ffn_gate", width, 256);
    add_matrix("ffn_up", width, 256);
    add_matrix("ffn_down", 256, width);
  }

  TempFolder folder_;
  GgufWriter writer_;
  Integer bytes_ = 0;
};

Integer sum_of(const StoredWeights& stored) {
  Integer sum = stored.bytes;
  for (const StorageGroup& extra : stored.extras) sum += extra.bytes;
  return sum;
}

/// The files' facts and the config's rules must both give the bytes of the header.
void check_method(const nlohmann::json& quantization, Packer pack) {
  CAPTURE(quantization.dump());
  nlohmann::json config = small_llama();
  config["torch_dtype"] = "bfloat16";
  config["quantization_config"] = quantization;
  const ModelFolder folder(config, packed_tensors(config, pack, StoredType::bfloat16));
  const Model model = folder.model();
  const Graph graph = build_graph(model.spec, {});
  const StoredWeights files = stored_weights(model, graph);
  CHECK(files.extras.empty());
  CHECK(files.notes.empty());
  CHECK(files.bytes == folder.bytes());
  const StoredWeights rules = stored_weights(model.spec, graph);
  CHECK(rules.bytes == folder.bytes());
  for (WeightId id = 0; id < graph.weights.size(); ++id) {
    CAPTURE(graph.weights[id].path);
    CHECK(rules.weights[id].bytes == files.weights[id].bytes);
  }
}

std::vector<TensorToWrite> fp8(const std::string& base, std::int64_t out, std::int64_t in) {
  return {zeros(base + ".weight", {out, in}, StoredType::float8_e4m3),
          zeros(base + ".weight_scale_inv", {(out + 31) / 32, (in + 31) / 32})};
}

std::vector<TensorToWrite> modelopt_fp8(const std::string& base, std::int64_t out,
                                        std::int64_t in) {
  return {zeros(base + ".weight", {out, in}, StoredType::float8_e4m3),
          zeros(base + ".weight_scale", {}), zeros(base + ".input_scale", {})};
}

std::vector<TensorToWrite> nvfp4(const std::string& base, std::int64_t out, std::int64_t in) {
  return {zeros(base + ".weight", {out, in / 2}, StoredType::uint8),
          zeros(base + ".weight_scale", {out, in / 16}, StoredType::float8_e4m3),
          zeros(base + ".weight_scale_2", {}), zeros(base + ".input_scale", {})};
}

std::vector<TensorToWrite> compressed_fp8(const std::string& base, std::int64_t out,
                                          std::int64_t in) {
  return {zeros(base + ".weight", {out, in}, StoredType::float8_e4m3),
          zeros(base + ".weight_scale", {out, 1}, StoredType::bfloat16)};
}

std::vector<TensorToWrite> compressed_mxfp8(const std::string& base, std::int64_t out,
                                            std::int64_t in) {
  return {zeros(base + ".weight", {out, in}, StoredType::float8_e4m3),
          zeros(base + ".weight_scale", {out, in / kGroup}, StoredType::uint8)};
}

nlohmann::json one_group(const nlohmann::json& weights, const std::string& format) {
  return {{"quant_method", "compressed-tensors"},
          {"format", format},
          {"ignore", {"lm_head"}},
          {"config_groups", {{"group_0", {{"targets", {"Linear"}}, {"weights", weights}}}}}};
}

}  // namespace

TEST_CASE("files of each method and the rules of its config take the bytes of the header") {
  check_method({{"quant_method", "gptq"}, {"bits", 4}, {"group_size", kGroup}}, gptq);
  check_method({{"quant_method", "awq"}, {"bits", 4}, {"group_size", kGroup}}, awq);
  check_method({{"quant_method", "fp8"}, {"weight_block_size", {32, 32}}}, fp8);
  check_method({{"quant_method", "modelopt"}, {"quant_algo", "FP8"}}, modelopt_fp8);
  check_method({{"quant_method", "bitsandbytes"}, {"load_in_8bit", true}}, bitsandbytes_8bit);
  check_method(one_group({{"num_bits", 4},
                          {"type", "int"},
                          {"strategy", "group"},
                          {"group_size", kGroup},
                          {"symmetric", true}},
                         "pack-quantized"),
               compressed);
  check_method(
      one_group({{"num_bits", 8}, {"type", "float"}, {"strategy", "channel"}}, "float-quantized"),
      compressed_fp8);
  check_method(one_group({{"num_bits", 8},
                          {"type", "float"},
                          {"strategy", "group"},
                          {"group_size", kGroup},
                          {"scale_dtype", "torch.uint8"}},
                         "mxfp8-quantized"),
               compressed_mxfp8);
}

TEST_CASE("NVFP4 files and the rules of their config take the bytes of the header") {
  check_method({{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}, {"group_size", 16}}, nvfp4);
}

// 4 bits per value, and per group of 32: HQQ a scale and a zero of 16 bits, beside each matrix its
// shape (16 B), two integers (8 B) and the name of its packing (7 B); torchao likewise without
// those.
TEST_CASE("HQQ and torchao files take the bytes of their header") {
  nlohmann::json config = small_llama();
  config["torch_dtype"] = "bfloat16";
  constexpr std::int64_t kMatrices = 2 * 7;
  constexpr std::int64_t kValues = 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64);
  const auto stored = [&](Packer pack) {
    const ModelFolder folder(config, packed_tensors(config, pack, StoredType::bfloat16));
    const Model model = folder.model();
    StoredWeights weights = stored_weights(model, build_graph(model.spec, {}));
    CHECK(weights.notes.empty());
    CHECK(weights.extras.empty());
    CHECK(weights.bytes == folder.bytes());
    return weights;
  };
  const Integer packed = kValues / 2 + kValues / kGroup * 4;
  const StoredWeights by_hqq = stored(hqq);
  CHECK(by_hqq.groups.size() == 2);
  const auto in_format = [](const StoredWeights& weights, std::string_view format) {
    const auto found = std::ranges::find(weights.groups, format, &StorageGroup::format);
    REQUIRE(found != weights.groups.end());
    return found->bytes;
  };
  CHECK(in_format(by_hqq, "HQQ 4-bit") == packed + kMatrices * (16 + 8 + 7));
  CHECK(in_format(stored(torchao_int4), "torchao 4-bit") == packed);
  CHECK(in_format(stored(torchao_tiles), "torchao 4-bit") == packed);
}

// mlx_lm quantises embedding and head, too.
TEST_CASE("MLX files and the rules of their config take the bytes of the header") {
  nlohmann::json config = small_llama();
  config["torch_dtype"] = "bfloat16";
  config["quantization"] = {{"group_size", kGroup}, {"bits", 4}};
  std::vector<TensorToWrite> tensors;
  for (const TensorToWrite& tensor : tensors_of(config)) {
    if (tensor.shape.size() != 2) {
      tensors.push_back(zeros(tensor.name, tensor.shape, StoredType::bfloat16));
      continue;
    }
    const std::string base = tensor.name.substr(0, tensor.name.rfind(".weight"));
    for (TensorToWrite& piece : mlx(base, tensor.shape[0], tensor.shape[1])) {
      tensors.push_back(std::move(piece));
    }
  }
  const ModelFolder folder(config, tensors);
  const Model model = folder.model();
  const Graph graph = build_graph(model.spec, {});
  const StoredWeights files = stored_weights(model, graph);
  CHECK(files.origin == "safetensors headers");
  CHECK(files.notes.empty());
  CHECK(files.extras.empty());
  CHECK(files.bytes == folder.bytes());
  CHECK(stored_weights(model.spec, graph).bytes == folder.bytes());
}

TEST_CASE("weights and extras of every model at hand sum to the tensors of its file") {
  for (const std::filesystem::path& folder : golden_models()) {
    const std::filesystem::path file = folder / "model.safetensors";
    if (!std::filesystem::exists(file)) continue;
    CAPTURE(folder.filename().string());
    Model model;
    try {
      model = load_model(folder.string());
    } catch (const Error&) {
      continue;  // a layer without stored names, or a family of another release
    }
    const Graph graph = build_graph(model.spec, {});
    const StoredWeights stored = stored_weights(model, graph);
    if (!stored.notes.empty()) continue;
    CHECK(sum_of(stored) == inspect(folder.string()).all.bytes);
    const Model typed = with_file_types(model);
    CHECK(typed.spec.storage.notes.empty());
    CHECK(stored_weights(typed.spec, graph).bytes == stored.bytes);
  }
}

// Blocks as in ggml-common.h: Q4_0 18 B per 32, Q6_K 210 B per 256; norms in float32.
TEST_CASE("GGUF tensors give the bytes of every weight and layer") {
  GgufWriter writer = small_llama_metadata();
  writer.tensor("token_embd.weight", {96, 256}, GgmlType::q6_k);
  for (const GgmlType type : {GgmlType::q4_0, GgmlType::q6_k}) {
    const std::string layer = type == GgmlType::q4_0 ? "blk.0." : "blk.1.";
    writer.tensor(layer + "attn_norm.weight", {256}).tensor(layer + "ffn_norm.weight", {256});
    writer.tensor(layer + "attn_q.weight", {256, 256}, GgmlType::q4_0);
    writer.tensor(layer + "attn_k.weight", {128, 256}, GgmlType::q4_0);
    writer.tensor(layer + "attn_v.weight", {128, 256}, GgmlType::q4_0);
    writer.tensor(layer + "attn_output.weight", {256, 256}, GgmlType::q4_0);
    writer.tensor(layer + "ffn_gate.weight", {512, 256}, GgmlType::q4_0);
    writer.tensor(layer + "ffn_up.weight", {512, 256}, GgmlType::q4_0);
    writer.tensor(layer + "ffn_down.weight", {256, 512}, type);
  }
  writer.tensor("output_norm.weight", {256}).tensor("rope_freqs.weight", {32});
  const TempFolder folder;
  write_file(folder / "model.gguf", writer.str());
  const Model model = load_model((folder / "model.gguf").string());
  const Graph graph = build_graph(model.spec, {});
  const StoredWeights stored = stored_weights(model, graph);
  CHECK(stored.origin == "GGUF tensors");
  REQUIRE(stored.extras.size() == 1);
  CHECK(stored.extras.front().bytes == 32 * 4);
  const Integer q4_0 = Integer{2} * (2 * 256 + 2 * 128 + 2 * 512) * 256 / 32 * 18;
  const Integer down = Integer{256} * 512 / 32 * 18 + Integer{256} * 512 / 256 * 210;
  CHECK(stored.bytes == q4_0 + down + Integer{96} * 256 / 256 * 210 + 5 * 256 * 4);
  for (WeightId id = 0; id < graph.weights.size(); ++id) {
    if (graph.weights[id].path != "decoder.layers.mlp.down.weight") continue;
    REQUIRE(stored.weights[id].bytes_of_copy.size() == 2);
    CHECK(stored.weights[id].bytes_of_copy[0] == Integer{256} * 512 / 32 * 18);
    CHECK(stored.weights[id].bytes_of_copy[1] == Integer{256} * 512 / 256 * 210);
  }
  const Model typed = with_file_types(model);
  CHECK(typed.spec.storage.notes.empty());
  const StoredWeights rules = stored_weights(typed.spec, graph);
  CHECK(rules.bytes == stored.bytes);
  for (WeightId id = 0; id < graph.weights.size(); ++id) {
    CAPTURE(graph.weights[id].path);
    CHECK(rules.weights[id].bytes == stored.weights[id].bytes);
    CHECK(rules.weights[id].bytes_of_copy == stored.weights[id].bytes_of_copy);
  }
}

TEST_CASE("files decide over the type that a config without quantisation states") {
  nlohmann::json config = small_llama();
  config["torch_dtype"] = "float32";
  std::vector<TensorToWrite> tensors;
  for (const TensorToWrite& tensor : tensors_of(config)) {
    tensors.push_back(zeros(tensor.name, tensor.shape, StoredType::bfloat16));
  }
  const ModelFolder folder(config, tensors);
  const Model typed = with_file_types(folder.model());
  CHECK(typed.spec.storage.plain_type == "bfloat16");
  CHECK(typed.spec.storage.rules.empty());
  CHECK(stored_weights(typed.spec, build_graph(typed.spec, {})).bytes == folder.bytes());
}

TEST_CASE("files that lack a weight leave the config's rules, with a note") {
  const nlohmann::json config = small_llama();
  std::vector<TensorToWrite> tensors = tensors_of(config);
  static_cast<void>(take(tensors, "norm.weight"));
  const ModelFolder folder(config, tensors);
  const Model model = folder.model();
  const StoredWeights stored = stored_weights(model, build_graph(model.spec, {}));
  REQUIRE(stored.notes.size() == 1);
  CHECK(stored.notes.front().find("lacks tensors") != std::string::npos);
}

TEST_CASE(
    "rules of a GGUF file have its bytes where a dense layer's types differ from the others'") {
  const LatentGguf file;
  const Model typed = with_file_types(file.model());
  CHECK(typed.spec.storage.notes.empty());
  const Graph graph = build_graph(typed.spec, {});
  const StoredWeights stored = stored_weights(typed, graph);
  CHECK(stored.bytes == file.bytes());
  const StoredWeights rules = stored_weights(typed.spec, graph);
  CHECK(rules.bytes == file.bytes());
  for (WeightId id = 0; id < graph.weights.size(); ++id) {
    CAPTURE(graph.weights[id].path);
    CHECK(rules.weights[id].bytes == stored.weights[id].bytes);
    CHECK(rules.weights[id].bytes_of_copy == stored.weights[id].bytes_of_copy);
  }
}

TEST_CASE("a report of a GGUF file says that the type of its KV-cache is assumed") {
  const LatentGguf file;
  const auto notes = [&](const WorkloadRequest& request) {
    return make_analyze_report(file.model(), request).notes;
  };
  CHECK(notes({}) ==
        std::vector<std::string>{"a GGUF file states no type of the KV-cache, which counts in "
                                 "float32; llama.cpp holds it in float16 unless told otherwise "
                                 "(`kv_dtype` sets it)"});
  WorkloadRequest request;
  request.kv_dtype = DType::float16;
  CHECK(notes(request).empty());
}

TEST_CASE("a report names what fills a hundredth of the files and is not counted") {
  const LatentGguf file;
  AnalyzeReport report = make_analyze_report(file.model(), {});
  const Integer bytes = report.figures.weight_bytes;
  report.storage.extras = {{"multi-token prediction layer", 0, bytes}, {"rotary buffer", 0, 1}};
  const std::string text = render(report, {});
  CHECK(text.find(" · not counted: ") != std::string::npos);
  CHECK(text.find(", multi-token prediction layer\n") != std::string::npos);
  CHECK(text.find("rotary buffer") == std::string::npos);
}
